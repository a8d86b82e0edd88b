import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareKeys, contentType, isFileName, readFileKey } from '../../../src/core/files/file-key.ts'

test('a key is the path of a file in its volume', () => {
  assert.deepEqual(readFileKey('a.png'), { path: ['a.png'], isFolder: false })
  assert.deepEqual(readFileKey('job/ü/a b+c%.png'), { path: ['job', 'ü', 'a b+c%.png'], isFolder: false })
  assert.deepEqual(readFileKey('a/b/'), { path: ['a', 'b'], isFolder: true })
})

test('slashes in a row count as one, as rp_upload makes them of absolute paths', () => {
  assert.deepEqual(readFileKey('job//tmp/out.png').path, ['job', 'tmp', 'out.png'])
  assert.deepEqual(readFileKey('/etc/passwd').path, ['etc', 'passwd'])
})

test('a key that leads out of its volume, or that no file can have, is refused', () => {
  const refused = [
    '',
    '/',
    '//',
    '..',
    '../a',
    'a/../b',
    'a/..',
    './a',
    'a/./b',
    'a\\b',
    '..\\a',
    'a\0b',
    'a\nb',
    '\u007f',
  ]
  for (const key of [...refused, '\ud800', 'a\ufffd']) {
    assert.throws(() => readFileKey(key), { name: 'FileError', code: 'InvalidArgument' }, JSON.stringify(key))
  }
  assert.deepEqual(readFileKey('..a/...').path, ['..a', '...'])
  assert.equal(isFileName('..'), false)
})

test('a key has at most 1,024 bytes, and 255 between its slashes', () => {
  assert.doesNotThrow(() => readFileKey(`${'a'.repeat(255)}/${'ü'.repeat(127)}`))
  assert.throws(() => readFileKey('a'.repeat(256)), { code: 'KeyTooLongError' })
  assert.throws(() => readFileKey('ü'.repeat(128)), { code: 'KeyTooLongError' })
  assert.throws(() => readFileKey(`${'ab/'.repeat(342)}`), { code: 'KeyTooLongError' })
})

test('keys are in the order of their bytes of UTF-8', () => {
  const keys = ['', 'a', 'a-b', 'a/b', 'a/b/c', 'a0', 'b', 'é', '\ufb01', '\uffee', '😀', '😀a', '\u{10ffff}']
  const byBytes = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  assert.deepEqual([...keys].reverse().sort(compareKeys), byBytes)
})

test('a content type is that of the end of the name', () => {
  const types = ['a.PNG', 'a.tar.gz', 'a', '.png', 'constructor', 'a.__proto__'].map(name => contentType(['x', name]))
  const other = 'application/octet-stream'
  assert.deepEqual(types, ['image/png', 'application/gzip', other, 'image/png', other, other])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createdText, oldKeyEnd, replacedName } from '../../console/pages/keys/rotation.ts'

test('a replaced key says so in its name, once, within the limit of names', () => {
  assert.equal(replacedName('ci'), 'ci (replaced)')
  assert.equal(replacedName('ci (replaced)'), 'ci (replaced)')
  assert.equal(replacedName('x'.repeat(191)).length, 191)
})

test('a rotation never lengthens the life of the old key', () => {
  const endMs = Date.parse('2026-11-28T12:00:00Z')
  assert.equal(oldKeyEnd(null, endMs), '2026-11-28T12:00:00.000Z')
  assert.equal(oldKeyEnd('2026-11-28T11:00:00Z', endMs), '2026-11-28T11:00:00.000Z')
  assert.equal(oldKeyEnd('2026-11-30T11:00:00Z', endMs), '2026-11-28T12:00:00.000Z')
})

test('a new key with rights on files comes with its pair for S3', () => {
  assert.equal(createdText({ key: 'rpa_1', s3: null }), 'rpa_1')
  const text = createdText({ key: 'rpa_1', s3: { accessKeyId: 'id', secretAccessKey: 'hush' } })
  assert.deepEqual(text.split('\n'), ['rpa_1', 'S3 access key: id', 'S3 secret key: hush'])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { downloadPercent, progressText, summedProgress } from '../../../src/core/models/download-progress.ts'
import { type ListedFile, ModelFileList, readModelFile } from '../../../src/core/models/model-files.ts'
import { isPassing, MAX_MODEL_FILES, ModelError, sizeText } from '../../../src/core/models/model-problem.ts'
import { firstToRemove } from '../../../src/core/models/model-removal.ts'

const GIT = 'a'.repeat(40)
const SHA256 = 'b'.repeat(64)
const file = (path: string, more: Partial<ListedFile> = {}): ListedFile => ({
  type: 'file',
  path,
  size: 3,
  oid: GIT,
  ...more,
})

function refused(act: () => unknown): string {
  try {
    act()
  } catch (thrown) {
    if (thrown instanceof ModelError) return thrown.problem.kind
    throw thrown
  }
  return 'nothing'
}

test('a file has the hash of its content: of git, or SHA-256 where it is stored apart', () => {
  assert.deepEqual(readModelFile(file('a/b.json')), { path: 'a/b.json', bytes: 3, hash: GIT, algorithm: 'git' })
  const large = readModelFile(file('w', { lfs: { oid: SHA256, size: 9 } }))
  assert.deepEqual(large, { path: 'w', bytes: 9, hash: SHA256, algorithm: 'sha256' })
  assert.equal(readModelFile(file('a', { type: 'directory' })), null)
})

test('a path that is taken stays in the folder of its model', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom('..', '.', '', 'a', 'b\\c', '\0'), fc.string())), parts => {
      const path = parts.join('/')
      if (refused(() => readModelFile(file(path))) !== 'nothing') return
      const end = new URL(path.split('/').map(encodeURIComponent).join('/'), 'file:///model/').pathname
      assert.ok(end.startsWith('/model/') && end !== '/model/', path)
      assert.ok(!path.includes('\\') && !path.split('/').includes('..'))
    }),
  )
  for (const path of ['../x', '/x', 'a/../../x', 'a//b', 'a/', './a', 'a\nb', 'x'.repeat(251), 'a/'.repeat(600)])
    assert.equal(
      refused(() => readModelFile(file(path))),
      'file_name_refused',
      path,
    )
})

test('an invalid hash, an invalid size, and entries that are neither file nor folder are refused', () => {
  const odd = [
    { oid: '../../x' },
    { oid: undefined },
    { size: -1 },
    { size: 1.5 },
    { type: 'link' },
    { lfs: { oid: GIT, size: 1 } },
  ]
  for (const more of odd)
    assert.equal(
      refused(() => readModelFile(file('a', more as Partial<ListedFile>))),
      'answer_unreadable',
    )
})

test('a list is bounded, and has each file once', () => {
  const list = new ModelFileList()
  for (let n = 0; n < MAX_MODEL_FILES; n += 1) list.add(file(`f${n}`))
  assert.equal(
    refused(() => list.add(file('f1'))),
    'file_name_refused',
  )
  assert.equal(
    refused(() => list.add(file('one more'))),
    'too_many_files',
  )
})

test('what was used longest ago goes first, and nothing that is in use', () => {
  const revision = (usedAtMs: number, isInUse = false) => ({ model: 'a/b', commit: GIT, bytes: 1, usedAtMs, isInUse })
  assert.equal(firstToRemove([revision(3), revision(1, true), revision(2)])?.usedAtMs, 2)
  assert.equal(firstToRemove([revision(1, true)]), null)
})

test('sizes and progress are for people', () => {
  assert.deepEqual([0, 999, 1_500, 2_000_000_000, 150e9].map(sizeText), [
    '0 bytes',
    '999 bytes',
    '1.5 kB',
    '2.0 GB',
    '150 GB',
  ])
  assert.equal(progressText({ receivedBytes: 999, totalBytes: 1_000 }), '999 bytes of 1.0 kB (99 %)')
  assert.equal(downloadPercent({ receivedBytes: 0, totalBytes: 0 }), 100)
  const one = { receivedBytes: 1, totalBytes: 4 }
  assert.deepEqual(summedProgress([one, one]), { receivedBytes: 2, totalBytes: 8 })
  assert.deepEqual(summedProgress([one, { ...one, totalBytes: null }]), { receivedBytes: 2, totalBytes: null })
  assert.equal(summedProgress([]), null)
})

test('failures that only people can fix are retried less often than transient ones', () => {
  assert.equal(isPassing({ kind: 'hub_unreachable', host: 'h', said: '' }), true)
  assert.equal(isPassing({ kind: 'disk_full', neededBytes: 1 }), true)
  assert.equal(isPassing({ kind: 'access_refused' }), false)
  assert.equal(isPassing({ kind: 'not_found', revision: 'x' }), false)
})

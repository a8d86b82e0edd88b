import assert from 'node:assert/strict'
import { test } from 'node:test'
import { downloadShare, modelPath } from '../../console/pages/models/downloads.ts'

test('a model is found by the name that its hub uses, and another text is refused with the form', () => {
  assert.deepEqual(modelPath(' Qwen/Qwen2.5-7B '), { path: '/ops/models/Qwen/Qwen2.5-7B', revision: null })
  assert.deepEqual(modelPath('org/tiny:v1/x'), { path: '/ops/models/org/tiny', revision: 'v1/x' })
  for (const text of ['', 'tiny', 'a/b/c', 'https://hub/a/b', 'a/b:', '../../status'])
    assert.throws(() => modelPath(text), /owner\/name/, text)
})

test('a download whose size is not known has no share', () => {
  const download = { name: 'a/b', revision: 'main', receivedBytes: 30, totalBytes: null }
  assert.equal(downloadShare(download), null)
  assert.equal(downloadShare({ ...download, totalBytes: 60 }), 0.5)
  assert.equal(downloadShare({ ...download, totalBytes: 10 }), 1)
})

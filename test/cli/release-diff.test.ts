import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseDiff } from '../../src/cli/client/release-diff.ts'

const RELEASES = [
  { version: 4, diff: [{ field: 'env.A', old: '2', new: '1' }] },
  {
    version: 3,
    diff: [
      { field: 'image', old: 'a:2', new: 'a:3' },
      { field: 'env.A', old: '1', new: '2' },
    ],
  },
  { version: 2, diff: [{ field: 'image', old: 'a:1', new: 'a:2' }] },
  { version: 1, diff: [] },
]

test('two releases differ in the fields whose first and last values differ', () => {
  assert.deepEqual(releaseDiff(RELEASES, 1, 4), [{ field: 'image', old: 'a:1', new: 'a:3' }])
  assert.deepEqual(releaseDiff(RELEASES, 1, 3), [
    { field: 'image', old: 'a:1', new: 'a:3' },
    { field: 'env.A', old: '1', new: '2' },
  ])
  assert.deepEqual(releaseDiff(RELEASES, 3, 4), [{ field: 'env.A', old: '2', new: '1' }])
})

test('a release does not differ from itself', () => {
  assert.deepEqual(releaseDiff(RELEASES, 2, 2), [])
})

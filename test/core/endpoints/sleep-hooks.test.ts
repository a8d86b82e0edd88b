/** Paths that lead to the same place, as servers of any kind may read them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparablePath } from '../../../src/core/endpoints/sleep-hooks.ts'

test('no way to write a path hides where it leads', () => {
  for (const path of [
    '/sleep',
    '/sleep?level=1',
    '/sleep#x',
    '//sleep',
    '/sleep/',
    '/./sleep',
    '/a/../sleep',
    '/../sleep',
    '/a/%2e%2E/sleep',
    '/a%2f..%2fsleep',
    '/%73leep',
    '/%2573leep',
    '/%252573leep',
    '/SLEEP',
    '/sleep;a=b',
    '/..;/sleep',
    '/\\sleep',
    '/%5csleep',
    '/sleep%20',
    '/sleep%00',
    '/sleep%09',
    '/sleep%3flevel=1',
  ]) {
    assert.equal(comparablePath(path), '/sleep', path)
  }
})

test('other paths stay other paths, and nothing malformed fails', () => {
  for (const path of ['/', '/sleepy', '/v1/sleep', '/a/sleep', '/sleep/now', '/%', '/%zz', '/sleep%2', '/%c3%a4', '']) {
    assert.notEqual(comparablePath(path), '/sleep', path)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timeOrderedUuid } from '../../src/core/ids.ts'

const RANDOM = '0b9d2f6e-51a4-4c37-9d80-3f6a7c1e55aa'

test('an id with the time is a UUID of version 7 with the rest of the random one, and a later one sorts behind', () => {
  const ids = [0, 1, 1_700_000_000_000, 1_700_000_000_001, 2 ** 47].map(ms => timeOrderedUuid(RANDOM, ms))
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7c37-9d80-3f6a7c1e55aa$/)
  assert.equal(ids[2], '018bcfe5-6800-7c37-9d80-3f6a7c1e55aa')
  assert.deepEqual(ids.toSorted(), ids)
})

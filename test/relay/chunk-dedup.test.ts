import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_COPIES } from '../../src/core/workers/relay-headers.ts'
import { ChunkDedup } from '../../src/relay/chunk-dedup.ts'

test('a chunk would be the first of its kind, or one more than were kept in a row', () => {
  const copies = new ChunkDedup()
  assert.equal(copies.copiesIfStored('job', 'x'), 1)
  copies.countStored('job', 'x')
  copies.countStored('job', 'x')
  assert.equal(copies.copiesIfStored('job', 'x'), 3)
  assert.equal(copies.copiesIfStored('job', 'y'), 1)
  copies.countStored('job', 'y')
  assert.equal(copies.copiesIfStored('job', 'x'), 1)
  assert.equal(copies.copiesIfStored('another', 'y'), 1)
})

test('the count has an end, and so has the memory', () => {
  const copies = new ChunkDedup()
  for (let n = 0; n < 200; n += 1) copies.countStored('job', 'x')
  assert.equal(copies.copiesIfStored('job', 'x'), MAX_COPIES)
  for (let n = 0; n < 10_000; n += 1) copies.countStored(`job ${n}`, 'x')
  assert.equal(copies.copiesIfStored('job', 'x'), 1)
  assert.equal(copies.copiesIfStored('job 0', 'x'), 2)
})

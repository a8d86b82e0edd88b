import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  expectedWaitMs,
  isHopelessWait,
  NO_THROUGHPUT,
  type QueueThroughput,
  throughputAfter,
} from '../../../src/core/balancing/queue-throughput.ts'

/** The pace after places have become free at these distances. */
const paced = (...distances: number[]): QueueThroughput => distances.reduce(throughputAfter, NO_THROUGHPUT)
const times = (count: number, ms: number) => new Array<number>(count).fill(ms)

test('a line that was seen to move ten times says how long the one behind all others will wait', () => {
  assert.equal(expectedWaitMs(paced(...times(9, 1_000)), 5), null)
  assert.equal(expectedWaitMs(paced(...times(10, 1_000)), 5), 6_000)
})

test('what was measured last counts more', () => {
  const expected = expectedWaitMs(paced(...times(20, 1_000), ...times(40, 100)), 0)!
  assert.ok(expected > 100 && expected < 130, String(expected))
})

test('no request is refused unless the queue is twice too slow, or before its throughput is known', () => {
  assert.equal(isHopelessWait(null, 1), false)
  assert.equal(isHopelessWait(2_000, 1_000), false)
  assert.equal(isHopelessWait(2_001, 1_000), true)
})

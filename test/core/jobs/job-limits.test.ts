import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countCall,
  JOB_LIMITS,
  JOB_WINDOW_MS,
  type JobCount,
  jobLimit,
  NO_CALLS,
} from '../../../src/core/jobs/job-limits.ts'
import { NOW } from '../../support/snapshots.ts'

const limit = { perWindow: 3, concurrent: 2 }
const counted = (count: JobCount, nowMs = NOW) => {
  const decision = countCall(count, limit, nowMs)
  assert.ok('count' in decision, JSON.stringify(decision))
  return decision.count
}
const ended = (count: JobCount) => ({ ...count, open: count.open - 1 })

test('calls are refused when too many are open, and again taken when one has ended', () => {
  const two = counted(counted(NO_CALLS))
  assert.deepEqual(countCall(two, limit, NOW), { refused: 'concurrent', retryAfterSeconds: 1 })
  assert.equal(counted(ended(two)).open, 2)
})

test('calls are refused when too many began in a window, until the next one begins', () => {
  let count: JobCount = NO_CALLS
  const startMs = NOW - (NOW % JOB_WINDOW_MS)
  for (let n = 0; n < 3; n += 1) count = ended(counted(count, startMs))
  assert.deepEqual(countCall(count, limit, startMs + 1), { refused: 'window', retryAfterSeconds: 10 })
  assert.deepEqual(countCall(count, limit, startMs + 9_999), { refused: 'window', retryAfterSeconds: 1 })
  assert.deepEqual(counted(count, startMs + 10_000), { startMs: startMs + 10_000, used: 1, open: 1 })
})

test('limits grow with the workers, and are never below those of the table', () => {
  for (const workers of [0, 1, 20]) assert.deepEqual(jobLimit('run', workers), JOB_LIMITS.run)
  assert.deepEqual(jobLimit('run', 50), { perWindow: 2_500, concurrent: 500 })
  assert.deepEqual(jobLimit('purge-queue', 1_000), { perWindow: 100, concurrent: 0 })
})

test('a limit of 0 is no limit', () => {
  assert.ok('count' in countCall({ startMs: NOW, used: 9, open: 9 }, { perWindow: 0, concurrent: 0 }, NOW))
})

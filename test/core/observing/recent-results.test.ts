/** Counts of the requests of an endpoint that ended in the last hour. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addResults,
  oneResult,
  RECENT_MINUTES,
  type ResultCounts,
  requestRate,
} from '../../../src/core/observing/recent-results.ts'

const MINUTE_MS = 60_000
const ofCompleted = (ended: number): ResultCounts => ({ ended, failed: 0, canceled: 0 })

/** The last hour, with what ended so many minutes ago. */
function hour(ago: Readonly<Record<number, ResultCounts>>): (ResultCounts | undefined)[] {
  return Array.from({ length: RECENT_MINUTES }, (_, index) => ago[RECENT_MINUTES - 1 - index])
}

test('nothing is no rate and no share', () => {
  const { perMinute, errorShare, points } = requestRate(hour({}), 0)
  assert.deepEqual([perMinute, errorShare, points], [0, null, Array.from({ length: 30 }, () => 0)])
})

test('the rate is that of the last five minutes, of which the last is not over', () => {
  const minutes = hour({ 0: ofCompleted(2), 4: ofCompleted(7), 5: ofCompleted(100) })
  assert.equal(requestRate(minutes, 10 * MINUTE_MS).perMinute, 2.25)
  assert.equal(requestRate(minutes, 10.5 * MINUTE_MS).perMinute, 2)
  assert.deepEqual(requestRate(minutes, 0).points.slice(-3), [100 + 7, 0, 2])
})

test('cancelled requests count, and are neither errors nor successes', () => {
  const results = (['completed', 'failed', 'timedOut', 'expired', 'cancelled'] as const).map(oneResult)
  const counts = results.reduce(addResults)
  assert.deepEqual(counts, { ended: 5, failed: 3, canceled: 1 })
  assert.equal(requestRate(hour({ 30: counts }), 0).errorShare, 0.75)
  assert.equal(requestRate(hour({ 0: oneResult('cancelled') }), 0).errorShare, null)
})

test('the share of errors of the last ten minutes shows a rise', () => {
  const early = { ended: 90, failed: 0, canceled: 0 }
  const late = { ended: 10, failed: 8, canceled: 0 }
  const { errorShare, recentErrorShare } = requestRate(hour({ 10: early, 9: late }), 0)
  assert.deepEqual([errorShare, recentErrorShare], [0.08, 0.8])
  assert.equal(requestRate(hour({ 10: early }), 0).recentErrorShare, null)
})

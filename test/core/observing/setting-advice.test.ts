import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AttemptTimes } from '../../../src/core/jobs/attempt-times.ts'
import { settingAdvice } from '../../../src/core/observing/setting-advice.ts'
import { anEndpoint, anExit } from '../../support/snapshots.ts'

function attempt(queuedAtMs: number, waitMs: number, runMs: number, cold = false): AttemptTimes {
  const startedAtMs = queuedAtMs + waitMs
  return { queuedAtMs, startedAtMs, finishedAtMs: startedAtMs + runMs, cold }
}

function advice(attempts: readonly AttemptTimes[], endpoint: Parameters<typeof anEndpoint>[0] = {}, startS = 0) {
  const exits = startS === 0 ? [] : [anExit({ placedAtMs: 1_000, readyAtMs: 1_000 + startS * 1_000 })]
  return settingAdvice({ endpoint: anEndpoint(endpoint), workers: [], exits }, attempts)
}

/** Bursts of twelve jobs of 10 s on two workers, a quarter of an hour apart. */
const BURSTS = Array.from({ length: 60 }, (_, n) =>
  attempt(Math.floor(n / 12) * 900_000, Math.floor((n % 12) / 2) * 10_000, 10_000),
)
/** Jobs that come 15 s after the one before has ended, each with a cold start of 20 s. */
const SINGLES = Array.from({ length: 20 }, (_, n) => attempt(n * 40_000, 20_000, 5_000, n > 0))

test('more workers are advised where jobs waited longer than the scaler lets them while all workers were busy', () => {
  const found = advice(BURSTS, { workersMax: 2 })
  assert.deepEqual(found, { setting: 'workersMax', value: 4, waited: 50, waitedMs: 1_500_000, attempts: 60 })
  assert.equal(advice(BURSTS, { workersMax: 5 }), null, 'there may be more already')
  assert.equal(advice(BURSTS, { workersMax: 2, scaler: { type: 'QUEUE_DELAY', queueDelayS: 60 } }), null)
  assert.equal(advice(BURSTS.slice(0, 6), { workersMax: 2 }), null, 'too few to conclude anything')
})

test('a longer idle timeout is advised where the next job comes within the time of a start', () => {
  const found = advice(SINGLES, { idleTimeoutS: 10, workersMax: 2 }, 20)
  assert.deepEqual(found, { setting: 'idleTimeout', value: 20, waited: 19, waitedMs: 380_000, attempts: 20 })
  const none = [
    advice(SINGLES, { idleTimeoutS: 20 }, 20),
    advice(SINGLES, { idleTimeoutS: 10 }, 12),
    advice(SINGLES, { idleTimeoutS: 10, flashboot: 'FLASHBOOT' }, 20),
    advice(SINGLES, { idleTimeoutS: 10, workersMin: 1 }, 20),
    advice(SINGLES, { idleTimeoutS: 10, scaler: { type: 'REQUEST_COUNT', requestCount: 1 } }, 20),
    advice(SINGLES, { idleTimeoutS: 10 }),
  ]
  assert.deepEqual(
    none,
    none.map(() => null),
  )
})

test('of two the one is given for which jobs waited longer', () => {
  const later = SINGLES.map(({ queuedAtMs, cold }) => attempt(queuedAtMs + 10_000_000, 20_000, 5_000, cold))
  const endpoint = { idleTimeoutS: 10, workersMax: 2 }
  assert.equal(advice([...BURSTS, ...later], endpoint, 20)?.setting, 'workersMax')
  assert.equal(advice([...BURSTS.slice(0, 12), ...later], endpoint, 20)?.setting, 'idleTimeout')
})

test('an advice is within the bounds of its setting, whatever happened', () => {
  const anyAttempt = fc
    .tuple(fc.nat(100_000), fc.nat(50_000), fc.nat(50_000), fc.boolean())
    .map(([at, wait, run, cold]) => attempt(at, wait, run, cold))
  fc.assert(
    fc.property(fc.array(anyAttempt), fc.integer({ min: 0, max: 1_000 }), fc.nat(5_000), (attempts, max, startS) => {
      const found = advice(attempts, { workersMax: max }, startS)
      if (found === null) return
      assert.ok(Number.isInteger(found.value) && found.waited <= found.attempts)
      if (found.setting === 'workersMax') assert.ok(found.value > max && found.value <= Math.min(1_000, 2 * max))
      else assert.ok(found.value > 10 && found.value <= 3_600)
    }),
  )
})

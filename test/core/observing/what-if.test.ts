import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AttemptTimes } from '../../../src/core/jobs/attempt-times.ts'
import {
  assumedStart,
  changedSettings,
  MAX_PLAYED,
  recordedLoad,
  type ScalingSettings,
  waitPercentiles,
  whatIfNotes,
} from '../../../src/core/observing/what-if.ts'

const TODAY: ScalingSettings = {
  workersMin: 0,
  workersMax: 3,
  idleTimeoutS: 10,
  scaler: { type: 'QUEUE_DELAY', queueDelayS: 4 },
  flashboot: 'OFF',
  startAware: false,
}

function attempt(queuedAtMs: number, waitMs = 0, runMs = 10, cold = false): AttemptTimes {
  const startedAtMs = queuedAtMs + waitMs
  return { queuedAtMs, startedAtMs, finishedAtMs: startedAtMs + runMs, cold }
}

test('what is not asked about stays as it is today', () => {
  assert.deepEqual(changedSettings(TODAY, {}), { settings: TODAY })
  const asked = { workersMax: 8, idleTimeoutS: 60, scalerValue: 2, startAware: true }
  const scaler = { type: 'QUEUE_DELAY', queueDelayS: 2 }
  const { scalerValue: _, ...others } = asked
  assert.deepEqual(changedSettings(TODAY, asked), { settings: { ...TODAY, ...others, scaler } })
  assert.deepEqual(changedSettings(TODAY, { scalerType: 'REQUEST_COUNT', scalerValue: 3 }), {
    settings: { ...TODAY, scaler: { type: 'REQUEST_COUNT', requestCount: 3 } },
  })
})

test('settings are refused as an update refuses them, and those with which no job ends', () => {
  const fields = (changes: Parameters<typeof changedSettings>[1]) => {
    const changed = changedSettings(TODAY, changes)
    return 'problems' in changed ? changed.problems.map(({ field }) => field) : []
  }
  assert.deepEqual(fields({ workersMin: 4 }), ['workersMin'])
  assert.deepEqual(fields({ workersMax: 0 }), ['workersMax'])
  assert.deepEqual(fields({ idleTimeoutS: 0 }), ['idleTimeoutS'])
  assert.deepEqual(fields({ scalerValue: 0.1 }), ['scaler.queueDelayS'])
  assert.deepEqual(fields({ scalerType: 'REQUEST_COUNT' }), ['scaler.requestCount'])
  assert.deepEqual(fields({ scalerType: 'REQUEST_COUNT', scalerValue: 1.5 }), ['scaler.requestCount'])
})

test('the load is what was queued in the time, in the order of its arrival, with what happened', () => {
  const attempts = [attempt(50, 7, 20), attempt(20, 3, 10, true), attempt(5), attempt(101)]
  const load = recordedLoad(attempts, { fromMs: 10, untilMs: 100 })
  assert.deepEqual(load, {
    jobs: [
      { queuedAtMs: 20, executionMs: 10 },
      { queuedAtMs: 50, executionMs: 20 },
    ],
    fromMs: 10,
    untilMs: 100,
    isCut: false,
    waitMs: { p50: 3, p95: 7, p99: 7 },
    cold: 1,
    coldWaitMs: 3,
  })
})

test('of too many attempts the newest are played, over the time that they cover', () => {
  const attempts = Array.from({ length: MAX_PLAYED + 5 }, (_, index) => attempt(1_000 + index))
  const load = recordedLoad(attempts, { fromMs: 0, untilMs: 10_000_000 })
  assert.equal(load.jobs.length, MAX_PLAYED)
  assert.equal(load.isCut, true)
  assert.equal(load.fromMs, 1_005)
  assert.equal(load.jobs[0]!.queuedAtMs, 1_005)
})

test('percentiles are waits that there were, and grow with the part', () => {
  assert.equal(waitPercentiles(new Float64Array()), null)
  fc.assert(
    fc.property(fc.array(fc.nat(100_000), { minLength: 1 }), waits => {
      const { p50, p95, p99 } = waitPercentiles(Float64Array.from(waits))!
      assert.ok(p50 <= p95 && p95 <= p99)
      for (const wait of [p50, p95, p99]) assert.ok(waits.includes(wait))
      assert.ok(waits.filter(wait => wait <= p50).length * 2 >= waits.length)
    }),
  )
})

test('a start takes as long as measured ones, else as attempts waited for one, else nothing is known', () => {
  const endpoint = { version: 2 } as never
  const worker = (version: number, startMs: number) =>
    ({ version, readyAtMs: 1_000 + startMs, placedAtMs: 1_000, createdAtMs: 900 }) as never
  const of = (workers: never[], exits: never[], coldWaitMs: number | null) =>
    assumedStart({ endpoint, workers, exits }, { coldWaitMs })
  assert.deepEqual(of([worker(2, 700)], [worker(1, 90)], 5), { ms: 700, from: 'WORKERS' })
  assert.deepEqual(of([], [worker(1, 90)], 5), { ms: 90, from: 'WORKERS' })
  assert.deepEqual(of([], [], 5), { ms: 5, from: 'COLD_ATTEMPTS' })
  assert.deepEqual(of([], [], null), { ms: 0, from: 'UNKNOWN' })
})

test('notes say where the figures say little', () => {
  const span = { fromMs: 0, untilMs: 100_000 }
  const measured = { ms: 9, from: 'WORKERS' } as const
  assert.match(whatIfNotes(recordedLoad([], span), measured).join(), /no job ran in this time/)
  assert.match(whatIfNotes(recordedLoad([attempt(1)], span), measured).join(), /only 1 attempt ran/)
  const many = recordedLoad(
    Array.from({ length: 60 }, (_, n) => attempt(n)),
    span,
  )
  assert.deepEqual(whatIfNotes(many, measured), [])
  assert.equal(whatIfNotes(many, { ms: 0, from: 'UNKNOWN' }).length, 1)
})

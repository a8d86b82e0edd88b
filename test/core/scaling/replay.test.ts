import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Endpoint } from '../../../src/core/endpoints/endpoint.ts'
import { Replay, type ReplayedJob, type ReplaySettings } from '../../../src/core/scaling/replay.ts'
import { anEndpoint } from '../../support/snapshots.ts'

const SECOND = 1_000

function settings(endpoint: Partial<Endpoint>, fields: Partial<ReplaySettings> = {}): ReplaySettings {
  const times = { startMs: 5 * SECOND, concurrency: 1, startAware: false, fromMs: 0, untilMs: 0 }
  return { endpoint: anEndpoint({ workersMax: 100, ...endpoint }), ...times, ...fields }
}

function played(jobs: readonly ReplayedJob[], given: ReplaySettings) {
  const replay = new Replay(jobs, given)
  while (!replay.advance(100));
  return replay.result()
}

const every = (gapMs: number, count: number, executionMs: number): ReplayedJob[] =>
  Array.from({ length: count }, (_, index) => ({ queuedAtMs: index * gapMs, executionMs }))

test('one job waits for a start, runs, and its worker ends after the idle timeout', () => {
  const { waitsMs, ...result } = played(every(0, 1, 2 * SECOND), settings({ idleTimeoutS: 7 }))
  assert.deepEqual([...waitsMs], [5 * SECOND])
  assert.deepEqual(result, {
    coldStarts: 1,
    startingMs: 5 * SECOND,
    idleMs: 7 * SECOND,
    runningMs: 2 * SECOND,
    mostWorkers: 1,
    endMs: 14 * SECOND,
  })
})

test('a worker that is kept costs the whole time, and its jobs do not wait', () => {
  const jobs = every(60 * SECOND, 3, SECOND).map(job => ({ ...job, queuedAtMs: job.queuedAtMs + 10 * SECOND }))
  const result = played(jobs, settings({ workersMin: 1 }, { untilMs: 3_600 * SECOND }))
  assert.deepEqual([...result.waitsMs], [0, 0, 0])
  assert.deepEqual([result.coldStarts, result.mostWorkers], [1, 1])
  assert.equal(result.startingMs + result.idleMs + result.runningMs, 3_600 * SECOND)
})

test('a paused endpoint is no replay without an end', () => {
  const { waitsMs, coldStarts } = played([], settings({ workersMax: 0 }, { untilMs: SECOND }))
  assert.deepEqual([waitsMs.length, coldStarts], [0, 0])
})

const anyLoad = fc.record({
  jobs: fc
    .array(fc.record({ gapMs: fc.nat(20 * SECOND), executionMs: fc.nat(30 * SECOND) }), { minLength: 1, maxLength: 60 })
    .map(list => {
      let queuedAtMs = 0
      return list.map(({ gapMs, executionMs }) => {
        queuedAtMs += gapMs
        return { queuedAtMs, executionMs }
      })
    }),
  startMs: fc.nat(60 * SECOND),
  concurrency: fc.integer({ min: 1, max: 4 }),
  startAware: fc.boolean(),
  workersMin: fc.nat(3),
  workersMax: fc.integer({ min: 1, max: 8 }),
  idleTimeoutS: fc.integer({ min: 1, max: 60 }),
})

test('whatever the load, all jobs run once, never with more workers than allowed, and the time adds up', () => {
  fc.assert(
    fc.property(anyLoad, ({ jobs, startMs, concurrency, startAware, ...endpoint }) => {
      const range = { ...endpoint, workersMin: Math.min(endpoint.workersMin, endpoint.workersMax) }
      const given = settings(range, { startMs, concurrency, startAware })
      const result = played(jobs, given)
      assert.ok(result.mostWorkers <= range.workersMax)
      assert.ok(result.waitsMs.every(wait => wait >= 0))
      const work = jobs.reduce((sum, job) => sum + job.executionMs, 0)
      assert.ok(result.runningMs <= work && result.runningMs * concurrency >= work)
      assert.deepEqual(played(jobs, given), result, 'the same again')
    }),
  )
})

test('under a constant load the number of workers converges, and stays', () => {
  const load = fc.record({
    gapMs: fc.integer({ min: 200, max: 8 * SECOND }),
    gaps: fc.double({ min: 0.05, max: 20, noNaN: true }),
    startMs: fc.nat(60 * SECOND),
    startAware: fc.boolean(),
  })
  fc.assert(
    fc.property(load, ({ gapMs, gaps, startMs, startAware }) => {
      const executionMs = Math.round(gapMs * gaps)
      const count = Math.ceil((30 * 60 * SECOND) / gapMs)
      const needed = Math.ceil(executionMs / gapMs)
      const given = settings({ workersMax: 1_000, idleTimeoutS: 10 }, { startMs, startAware })
      const replay = new Replay(every(gapMs, count, executionMs), given)
      const seen = new Set<number>()
      while (replay.now.atMs < (count - 1) * gapMs) {
        replay.advance(1)
        if (replay.now.atMs > (count * gapMs) / 2) seen.add(replay.now.workers)
      }
      assert.equal(seen.size, 1, `there were ${[...seen].join(', ')} workers`)
      assert.ok([...seen][0]! >= needed && [...seen][0]! <= needed + 1)
    }),
    { numRuns: 60 },
  )
})

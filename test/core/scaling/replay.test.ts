import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Endpoint } from '../../../src/core/endpoints/endpoint.ts'
import { Replay, type ReplayedJob, type ReplaySettings } from '../../../src/core/scaling/replay.ts'
import { anEndpoint } from '../../support/snapshots.ts'

const SECOND = 1_000

function settings(endpoint: Partial<Endpoint>, fields: Partial<ReplaySettings> = {}): ReplaySettings {
  const times = { startMs: 5 * SECOND, thawMs: SECOND, concurrency: 1, startAware: false, fromMs: 0, untilMs: 0 }
  const freezing = { keepMs: 3_600 * SECOND }
  return { endpoint: anEndpoint({ workersMax: 100, ...endpoint }), ...times, freezing, ...fields }
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
    thaws: 0,
    startingMs: 5 * SECOND,
    idleMs: 7 * SECOND,
    runningMs: 2 * SECOND,
    frozenMs: 0,
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

const frozenAfter10 = { idleTimeoutS: 10, flashboot: 'FLASHBOOT' } as const
const apart = every(100 * SECOND, 2, 2 * SECOND)

test('with FlashBoot an idle worker is frozen, and the next job waits for its thaw only', () => {
  const { waitsMs, ...result } = played(apart, settings(frozenAfter10, { untilMs: 200 * SECOND }))
  assert.deepEqual([...waitsMs], [5 * SECOND, SECOND])
  assert.deepEqual(result, {
    coldStarts: 1,
    thaws: 1,
    startingMs: 5 * SECOND,
    // The second of its thaw, too.
    idleMs: 21 * SECOND,
    runningMs: 4 * SECOND,
    // From 17 s to 100 s, and from 113 s to the end of the time that counts.
    frozenMs: 170 * SECOND,
    mostWorkers: 1,
    endMs: 3_713 * SECOND,
  })
})

test('a worker that was frozen for its time ends, and the next job waits for a start', () => {
  const given = settings(frozenAfter10, { untilMs: 200 * SECOND, freezing: { keepMs: 50 * SECOND } })
  const { waitsMs, coldStarts, thaws, frozenMs, endMs } = played(apart, given)
  assert.deepEqual([...waitsMs], [5 * SECOND, 5 * SECOND])
  assert.deepEqual([coldStarts, thaws, frozenMs, endMs], [2, 0, 100 * SECOND, 200 * SECOND])
})

test('with PRIORITY_FLASHBOOT one worker is there before the first job, and stays frozen', () => {
  const endpoint = { ...frozenAfter10, flashboot: 'PRIORITY_FLASHBOOT' } as const
  const jobs = apart.map(job => ({ ...job, queuedAtMs: job.queuedAtMs + 5_000 * SECOND }))
  const { waitsMs, coldStarts, thaws } = played(jobs, settings(endpoint, { untilMs: 20_000 * SECOND }))
  assert.deepEqual([...waitsMs], [SECOND, SECOND])
  assert.deepEqual([coldStarts, thaws], [1, 2])
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
  flashboot: fc.constantFrom('OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT'),
  thawMs: fc.nat(2 * SECOND),
  keepMs: fc.integer({ min: SECOND, max: 600 * SECOND }),
})

test('whatever the load, all jobs run once, never with more workers than allowed, and the time adds up', () => {
  fc.assert(
    fc.property(anyLoad, ({ jobs, startMs, thawMs, keepMs, concurrency, startAware, ...endpoint }) => {
      const range = { ...endpoint, workersMin: Math.min(endpoint.workersMin, endpoint.workersMax) }
      const given = settings(range, { startMs, thawMs, freezing: { keepMs }, concurrency, startAware })
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
        // Jobs that waited for the first workers keep one more busy for up to 16 minutes.
        if (replay.now.atMs > count * gapMs * 0.8) seen.add(replay.now.workers)
      }
      assert.equal(seen.size, 1, `there were ${[...seen].join(', ')} workers`)
      assert.ok([...seen][0]! >= needed && [...seen][0]! <= needed + 1)
    }),
    { numRuns: 60, examples: [[{ gapMs: 3131, gaps: 15.498083679335675, startMs: 59_936, startAware: true }]] },
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  COLD_START_PHASES,
  coldStartTimes,
  presentPhase,
  queuedWorkerTimeLine,
  type TimedQueuedWorker,
  type TimedWorker,
  workerTimeLine,
} from '../../../src/core/workers/worker-phase.ts'
import { aWorker, NOW } from '../../support/snapshots.ts'

/** A worker that was wanted at NOW and has come as far as the fields say. */
function worker(fields: Partial<TimedWorker> = {}): TimedWorker {
  const nothing = { placedAtMs: null, startedAtMs: null, readyAtMs: null, state: 'STARTING' as const }
  return { ...aWorker({ createdAtMs: NOW, ...nothing }), ...fields }
}

const PLACED = { placedAtMs: NOW + 10 }
const PULLED = { ...PLACED, pullStartedAtMs: NOW + 30, pullEndedAtMs: NOW + 130 }
const STARTED = { ...PULLED, startedAtMs: NOW + 150 }
const READY = { ...STARTED, readyAtMs: NOW + 400, state: 'READY' as const }
const FROZEN = { ...READY, state: 'FROZEN' as const, frozenAtMs: NOW + 450 }
const THAWED = { ...FROZEN, state: 'READY' as const, thawedAtMs: NOW + 480 }
const DRAINING = { ...READY, state: 'DRAINING' as const, stopRequestedAtMs: NOW + 500 }
const STOPPING = { ...DRAINING, state: 'STOPPING' as const, stoppingAtMs: NOW + 600 }

const lives: [what: string, fields: Partial<TimedWorker>, phase: string, sinceMs: number][] = [
  ['nobody has placed', {}, 'placing', NOW],
  ['has a place', PLACED, 'starting', NOW + 10],
  ['downloads its image', { ...PULLED, pullEndedAtMs: null }, 'pulling', NOW + 30],
  ['has its image', PULLED, 'starting', NOW + 130],
  ['has been started', STARTED, 'initializing', NOW + 150],
  ['has asked for a job', READY, 'ready', NOW + 400],
  ['is frozen', FROZEN, 'frozen', NOW + 450],
  ['was thawed', THAWED, 'ready', NOW + 480],
  ['finishes its jobs', DRAINING, 'draining', NOW + 500],
  ['was told to end', STOPPING, 'stopping', NOW + 600],
  ['was told to end, by an older server', { ...STOPPING, stoppingAtMs: null }, 'stopping', NOW + 500],
  ['has ended', { ...STOPPING, state: 'EXITED', exitedAtMs: NOW + 700 }, 'exited', NOW + 700],
  ['an older server has started', { ...STARTED, placedAtMs: null }, 'initializing', NOW + 150],
]

for (const [what, fields, phase, sinceMs] of lives) {
  test(`the phase of a worker that ${what} is ${phase}`, () => {
    assert.deepEqual(presentPhase(worker(fields)), { phase, sinceMs })
  })
}

test('the time line of a worker that has ended has the duration of each phase', () => {
  const steps = workerTimeLine(worker({ ...STOPPING, state: 'EXITED', exitedAtMs: NOW + 700 }), NOW + 9_999)
  assert.deepEqual(
    steps.map(({ phase, startedAtMs, ms }) => [phase, startedAtMs - NOW, ms]),
    [
      ...[
        ['queued', 0, 10],
        ['starting', 10, 20],
        ['pulling', 30, 100],
        ['starting', 130, 20],
      ],
      ...[
        ['initializing', 150, 250],
        ['ready', 400, 100],
        ['draining', 500, 100],
        ['stopping', 600, 100],
      ],
    ],
  )
})

test('the time in which a worker was frozen is a step of its own', () => {
  const steps = workerTimeLine(worker({ ...THAWED, state: 'READY' }), NOW + 500).slice(-3)
  assert.deepEqual(
    steps.map(({ phase, ms }) => [phase, ms]),
    [
      ['ready', 50],
      ['frozen', 30],
      ['ready', 20],
    ],
  )
})

test('the last step of a worker that has not ended has no end, and steps without duration are left out', () => {
  const steps = workerTimeLine(worker({ placedAtMs: NOW, startedAtMs: NOW + 5 }), NOW + 25)
  assert.deepEqual(
    steps.map(({ phase, ms }) => [phase, ms]),
    [
      ['starting', 5],
      ['initializing', 20],
    ],
  )
})

test('a worker that asked for a job before its start was recorded has been ready since then', () => {
  const quick = worker({ ...READY, startedAtMs: NOW + 405 })
  assert.deepEqual(presentPhase(quick), { phase: 'ready', sinceMs: NOW + 400 })
  assert.equal(coldStartTimes(quick)?.initializing, 0)
})

test('a worker without a place waits, for its models and for room', () => {
  const queued = { queuedAtMs: NOW, downloadStartedAtMs: NOW, downloadEndedAtMs: null }
  const phases = (fields: Partial<TimedQueuedWorker>) =>
    queuedWorkerTimeLine({ ...queued, ...fields }, NOW + 100).map(({ phase, ms }) => [phase, ms])
  assert.deepEqual(phases({ downloadStartedAtMs: null }), [['queued', 100]])
  assert.deepEqual(phases({}), [['downloading', 100]])
  assert.deepEqual(phases({ downloadStartedAtMs: NOW + 10, downloadEndedAtMs: NOW + 40 }), [
    ['queued', 10],
    ['downloading', 30],
    ['queued', 60],
  ])
})

test('the phases of a cold start are known once the worker asks for a job', () => {
  assert.deepEqual(coldStartTimes(worker(READY)), {
    queued: 10,
    downloading: 0,
    pulling: 100,
    starting: 40,
    initializing: 250,
  })
  const downloaded = { ...READY, downloadStartedAtMs: NOW + 1, downloadEndedAtMs: NOW + 7 }
  assert.deepEqual(
    [coldStartTimes(worker(downloaded))?.queued, coldStartTimes(worker(downloaded))?.downloading],
    [4, 6],
  )
  assert.equal(coldStartTimes(worker(STARTED)), null)
})

const instant = fc.integer({ min: -1_000, max: 10_000 }).map(ms => NOW + ms)
const maybe = fc.option(instant, { nil: null })
const anyWorker = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'FROZEN', 'DRAINING', 'STOPPING', 'EXITED'),
  createdAtMs: instant,
  placedAtMs: maybe,
  downloadStartedAtMs: maybe,
  downloadEndedAtMs: maybe,
  pullStartedAtMs: maybe,
  pullEndedAtMs: maybe,
  startedAtMs: maybe,
  readyAtMs: maybe,
  frozenAtMs: maybe,
  thawedAtMs: maybe,
  stopRequestedAtMs: maybe,
  stoppingAtMs: maybe,
  exitedAtMs: maybe,
}) as fc.Arbitrary<TimedWorker>

test('whatever instants are known, the steps follow each other without gaps, and their sum is the life of the worker', () => {
  fc.assert(
    fc.property(anyWorker, timed => {
      const nowMs = NOW + 20_000
      const steps = workerTimeLine(timed, nowMs)
      for (const [index, step] of steps.entries()) {
        const next = steps[index + 1]
        assert.ok(step.ms >= 0)
        if (next !== undefined) assert.equal(step.startedAtMs + step.ms, next.startedAtMs)
      }
      const now = presentPhase(timed)
      if (timed.exitedAtMs === null) {
        assert.deepEqual([steps.at(-1)?.phase, steps.at(-1)?.startedAtMs], [now.phase, now.sinceMs])
        assert.equal(steps.at(-1)!.startedAtMs + steps.at(-1)!.ms, nowMs)
      } else {
        assert.deepEqual(now, { phase: 'exited', sinceMs: timed.exitedAtMs })
        if (steps.length > 0) assert.equal(steps.at(-1)!.startedAtMs + steps.at(-1)!.ms, timed.exitedAtMs)
      }
      const cold = coldStartTimes(timed)
      assert.equal(cold === null, timed.readyAtMs === null)
      for (const phase of COLD_START_PHASES) assert.ok((cold?.[phase] ?? 0) >= 0)
    }),
  )
})

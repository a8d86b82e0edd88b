import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../../src/core/ids.ts'
import { MAX_WINDOW_MS, MaxWindow } from '../../../src/core/scaling/max-window.ts'
import { planWorkers } from '../../../src/core/scaling/plan.ts'
import { PLATFORM_SURGE_MS, SURGE_MS } from '../../../src/core/scaling/rollout-room.ts'
import { desiredWorkers, type EndpointSnapshot, type RequestFacts } from '../../../src/core/scaling/scale.ts'
import { takesJobs, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

const serves = { port: 80, healthPort: 80, healthPath: '/ping', initTimeoutMs: 480_000 }
const balanced = { type: 'LOAD_BALANCER', scaler: { type: 'REQUEST_COUNT', requestCount: 2 }, version: 2 } as const

type Fields = Omit<Parameters<typeof aSnapshot>[0], 'workers'> & {
  readonly workers?: readonly Partial<WorkerLoad>[]
  readonly requests?: Partial<RequestFacts>
}

const ILL: WorkerProblem = { kind: 'health_status', status: 500, path: '/ping' }

function situation({ endpoint, workers = [], requests, ...fields }: Fields): EndpointSnapshot {
  const all = workers.map(worker => ({ serves, version: 2, ...worker }))
  const facts = { maxConcurrency: null, resumed: [], named: [], peak: null, healthProblems: new Map(), ...requests }
  return { ...aSnapshot({ endpoint: { ...balanced, ...endpoint }, workers: all, ...fields }), requests: facts }
}

function plan(fields: Fields): { start: number; drain: string[] } {
  const { start, drain } = planWorkers(situation(fields), NOW)
  return { start, drain: drain.map(({ worker, reason }) => `${worker.id} ${reason}`) }
}

const old = (fields: Partial<WorkerLoad> = {}) => ({ version: 1, held: 1, idleSinceMs: null, ...fields })
const idleOld = { version: 1, idleSinceMs: NOW - 1_000 }

test('as many workers are wanted as queued requests and those in flight need', () => {
  assert.deepEqual(plan({ queue: { queued: 1 } }), { start: 1, drain: [] })
  assert.deepEqual(plan({ queue: { queued: 5 } }), { start: 3, drain: [] })
  assert.deepEqual(plan({ queue: { queued: 1 }, workers: [{ held: 2, idleSinceMs: null }] }), { start: 1, drain: [] })
  assert.deepEqual(plan({ endpoint: { workersMax: 2 }, queue: { queued: 50 } }), { start: 2, drain: [] })
  assert.deepEqual(plan({ endpoint: { workersMin: 1 } }), { start: 1, drain: [] })
})

test('what drains finishes its requests by itself: they need no further worker', () => {
  const workers = [{ state: 'DRAINING', held: 40 }] as const
  assert.equal(desiredWorkers(situation({ workers }), NOW).desired, 0)
})

test('a new worker is started beside an old one, which stays until the new one is ready', () => {
  assert.deepEqual(plan({ workers: [old()] }), { start: 1, drain: [] })
  assert.deepEqual(plan({ workers: [old(), { state: 'STARTING' }] }), { start: 0, drain: [] })
  assert.deepEqual(plan({ workers: [old(), {}] }), { start: 0, drain: ['w1 outdated'] })
})

test('old workers go one after the other as new ones become ready', () => {
  const endpoint = { workersMax: 6 }
  const three = [old({ held: 2 }), old({ held: 2 }), old({ held: 1 })]
  assert.deepEqual(plan({ endpoint, workers: three }), { start: 3, drain: [] })
  assert.deepEqual(plan({ endpoint, workers: [...three, {}, { state: 'STARTING' }] }).drain, ['w3 outdated'])
  assert.deepEqual(plan({ endpoint, workers: [...three, {}, {}, {}] }).drain, [
    ...['w3 outdated', 'w1 outdated', 'w2 outdated'],
  ])
})

test('old workers that are not ready end at once', () => {
  const workers = [old(), { version: 1, state: 'STARTING' }, { version: 1, problem: ILL }] as const
  assert.deepEqual(plan({ workers }).drain, ['w2 outdated', 'w3 outdated'])
})

test('old workers of an unused endpoint end at once, and are not replaced', () => {
  const workers = [{ version: 1, idleSinceMs: NOW - 10_000 }]
  assert.deepEqual(plan({ workers }), { start: 0, drain: ['w1 outdated'] })
})

test('while an old worker was in use lately, there is one in its place before it goes', () => {
  assert.deepEqual(plan({ workers: [idleOld] }), { start: 1, drain: [] })
  assert.deepEqual(plan({ workers: [idleOld, {}] }), { start: 0, drain: ['w1 outdated'] })
  assert.deepEqual(plan({ workers: [idleOld, idleOld] }), { start: 1, drain: ['w1 outdated'] })
})

test('where max leaves no room for both, one old worker at a time makes room', () => {
  const endpoint = { workersMax: 2 }
  const both = [old({ held: 2 }), old({ held: 1 })]
  assert.deepEqual(plan({ endpoint, workers: both }), { start: 0, drain: ['w2 outdated'] })
  const leaving = [old({ held: 2 }), old({ held: 1, state: 'DRAINING' })]
  assert.deepEqual(plan({ endpoint, workers: leaving }), { start: 0, drain: [] })
  assert.deepEqual(plan({ endpoint, workers: [old({ held: 2 })] }), { start: 1, drain: [] })
  assert.deepEqual(plan({ endpoint, workers: [old({ held: 2 }), { state: 'STARTING' }] }), { start: 0, drain: [] })
  assert.deepEqual(plan({ endpoint, workers: [old({ held: 2 }), { held: 1, idleSinceMs: null }] }).drain, [
    'w1 outdated',
  ])
})

test('where there may be one worker only, the old one ends before the new one starts', () => {
  assert.deepEqual(plan({ endpoint: { workersMax: 1 }, workers: [old()] }), { start: 0, drain: ['w1 outdated'] })
})

test('where the machine has no room for both, an old worker makes room after a moment, even the only one', () => {
  const since = (ms: number) => ({ workers: [old()], queuedWorkers: [aQueued({ version: 2, queuedAtMs: NOW - ms })] })
  assert.deepEqual(plan(since(SURGE_MS - 1)), { start: 1, drain: [] })
  assert.deepEqual(plan(since(SURGE_MS)), { start: 1, drain: ['w1 outdated'] })
})

test('where the platform has no room for both, an old worker makes room later; a new one that is not wanted ends', () => {
  const platform = { place: null, waits: { kind: 'no_room', said: '' }, leaves: null } as const
  const waiting = (ms: number) =>
    ({ version: 2, state: 'STARTING', createdAtMs: NOW - ms, readyAtMs: null, idleSinceMs: null, platform }) as const
  const busyOld = old({ held: 1 })
  assert.deepEqual(plan({ workers: [busyOld, waiting(PLATFORM_SURGE_MS - 1)] }), { start: 0, drain: [] })
  assert.deepEqual(plan({ workers: [busyOld, waiting(PLATFORM_SURGE_MS)] }).drain, ['w1 outdated'])
  assert.deepEqual(plan({ workers: [waiting(1_000)] }).drain, ['w1 scaled_down'])
})

test('while new workers crash, the remaining old ones stay', () => {
  const crash = anExit({ version: 2, serves, startedAtMs: NOW - 10, readyAtMs: null, exitedAtMs: NOW })
  const workers = [old({ held: 2 }), old({ held: 2 })]
  assert.deepEqual(plan({ endpoint: { workersMax: 2 }, workers, exits: [crash] }).drain, [])
})

test('a worker that was ready and is unhealthy counts for nothing, one that starts does', () => {
  const endpoint = { workersMin: 1 }
  assert.equal(plan({ endpoint, workers: [{ problem: ILL }] }).start, 1)
  assert.equal(plan({ endpoint, workers: [{ state: 'STARTING', problem: ILL }] }).start, 0)
  assert.deepEqual(plan({ endpoint, workers: [{ problem: ILL, idleSinceMs: NOW - 20_000 }, {}] }), {
    start: 0,
    drain: [],
  })
})

test('an idle worker goes after the idle time; one in use when fewer were enough for long', () => {
  assert.deepEqual(plan({ workers: [{ idleSinceMs: NOW - 9_999 }] }).drain, [])
  assert.deepEqual(plan({ workers: [{ idleSinceMs: NOW - 10_000 }] }).drain, ['w1 idle'])
  const busy = [
    { held: 2, idleSinceMs: null },
    { held: 1, idleSinceMs: null },
    { held: 1, idleSinceMs: null, createdAtMs: NOW - 1_000 },
  ]
  const endpoint = { scaler: { type: 'REQUEST_COUNT', requestCount: 10 }, workersMax: 5 } as const
  assert.deepEqual(plan({ endpoint, workers: busy }).drain, [])
  assert.deepEqual(plan({ endpoint, workers: busy, requests: { peak: 3 } }).drain, [])
  assert.deepEqual(plan({ endpoint, workers: busy, requests: { peak: 2 } }).drain, ['w3 scaled_down'])
  assert.deepEqual(plan({ endpoint, workers: busy, requests: { peak: 0 } }).drain, ['w3 scaled_down', 'w2 scaled_down'])
})

test('above max those go first that are of least use', () => {
  const workers = [old({ held: 3 }), { held: 1, idleSinceMs: null }, { state: 'STARTING' }, {}] as const
  assert.deepEqual(plan({ endpoint: { workersMax: 2 }, workers }).drain, ['w3 scaled_down', 'w1 outdated'])
  assert.deepEqual(plan({ endpoint: { workersMax: 0 }, workers: [{}, { held: 1 }] }), {
    start: 0,
    drain: ['w1 scaled_down', 'w2 scaled_down'],
  })
})

test('a worker that requests insist on is started besides those that are wanted, under max', () => {
  const requests = { resumed: ['gone' as WorkerId] }
  assert.equal(plan({ requests }).start, 1)
  assert.equal(plan({ requests, workers: [{ held: 2, idleSinceMs: null }] }).start, 1)
  assert.equal(plan({ requests, endpoint: { workersMax: 1 }, workers: [{ held: 2, idleSinceMs: null }] }).start, 0)
  assert.equal(plan({ requests, endpoint: { workersMax: 0 } }).start, 0)
})

test('a worker that served for a minute and crashed is replaced at once, one that never came up after a back-off', () => {
  const crash = (readyForMs: number) => anExit({ version: 2, serves, readyAtMs: NOW - readyForMs, exitedAtMs: NOW })
  assert.equal(plan({ queue: { queued: 1 }, exits: [crash(60_000)] }).start, 1)
  assert.equal(plan({ queue: { queued: 1 }, exits: [crash(59_999)] }).start, 0)
})

const anyWorker = fc.record({
  version: fc.constantFrom(1, 2),
  state: fc.constantFrom('STARTING', 'READY', 'READY', 'DRAINING'),
  problem: fc.constantFrom(null, null, ILL),
  held: fc.nat(4),
})

test('for any workers: max holds, as many ready workers stay as are desired, and the last one ends only for lack of room', () => {
  const any = fc.record({
    workers: fc.array(anyWorker, { maxLength: 6 }),
    queue: fc.record({ queued: fc.nat(4) }),
    endpoint: fc.record({ workersMin: fc.nat(2), workersMax: fc.integer({ min: 2, max: 6 }) }),
  })
  fc.assert(
    fc.property(any, ({ workers, queue, endpoint }) => {
      const there = workers.map(worker => ({
        ...(worker as Partial<WorkerLoad>),
        idleSinceMs: worker.held > 0 ? null : NOW - 1_000,
      }))
      const snapshot = situation({ workers: there, queue, endpoint })
      const { start, drain } = planWorkers(snapshot, NOW)
      assert.ok(start === 0 || snapshot.workers.length + start <= endpoint.workersMax)
      const gone = new Set(drain.map(({ worker }) => worker.id))
      const isReady = (worker: WorkerLoad) => worker.state === 'READY' && worker.problem === null
      const ready = snapshot.workers.filter(isReady)
      const left = ready.filter(({ id }) => !gone.has(id)).length
      const wanted = desiredWorkers(snapshot, NOW).desired
      const isOverMax = snapshot.workers.filter(takesJobs).length > endpoint.workersMax
      const isFull = snapshot.workers.length >= endpoint.workersMax
      if (!isOverMax && !isFull) assert.ok(left >= Math.min(ready.length, wanted))
      if (!isOverMax && ready.length > 0 && wanted > 0) assert.ok(left >= 1)
    }),
    { numRuns: 2_000 },
  )
})

test('what was wanted at most is known once it was watched for a minute, and forgotten after it', () => {
  const peak = new MaxWindow()
  assert.equal(peak.note(5, 10_000, NOW), null)
  assert.equal(peak.note(1, 10_000, NOW + MAX_WINDOW_MS - 1), null)
  assert.equal(peak.note(1, 10_000, NOW + MAX_WINDOW_MS), 5)
  let most: number | null = null
  for (let atMs = NOW + MAX_WINDOW_MS; atMs <= NOW + 2 * MAX_WINDOW_MS + 20_000; atMs += 1_000)
    most = peak.note(2, 10_000, atMs)
  assert.equal(most, 2)
})

test('a longer idle time is watched for longer', () => {
  const peak = new MaxWindow()
  peak.note(5, 600_000, NOW)
  assert.equal(peak.note(1, 600_000, NOW + 599_000), null)
  assert.equal(peak.note(1, 600_000, NOW + 600_000), 5)
})

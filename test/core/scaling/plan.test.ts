import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../../src/core/ids.ts'
import { earliest, planWorkers, type WorkerPlan } from '../../../src/core/scaling/plan.ts'
import { currentBackoff, type EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import { takesJobs, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import { anExit, aSnapshot, aWorker, NOW } from '../../support/snapshots.ts'

const scaler = { type: 'REQUEST_COUNT', requestCount: 1 } as const
/** A queue of QUEUE_DELAY whose workers are known to be slow: it wants one worker for each job. */
const slow = { averageExecutionMs: 60_000 }

type Fields = Parameters<typeof aSnapshot>[0]

function plan(fields: Fields): { start: number; drain: string[]; wakeInMs: number | null } {
  const { start, drain, wakeAtMs } = planWorkers(aSnapshot(fields), NOW)
  const drains = drain.map(({ worker, reason }) => `${worker.id} ${reason}`)
  return { start, drain: drains, wakeInMs: wakeAtMs === null ? null : wakeAtMs - NOW }
}

test('what is missing is started', () => {
  assert.deepEqual(plan({ queue: { queued: 5 }, ...slow }), { start: 3, drain: [], wakeInMs: null })
  assert.deepEqual(plan({ endpoint: { workersMin: 2 } }), { start: 2, drain: [], wakeInMs: null })
  assert.equal(plan({ queue: { queued: 5 }, ...slow, workers: [{ held: 1 }] }).start, 2)
  assert.equal(plan({ queue: { queued: 5 }, ...slow, workers: [{ state: 'STARTING' }] }).start, 2)
})

test('a worker that is ending still counts against the maximum', () => {
  const workers = [{ state: 'DRAINING', held: 1 }, { state: 'STOPPING' }] as const
  const short = plan({ queue: { queued: 5 }, ...slow, workers })
  assert.deepEqual(short, { start: 1, drain: [], wakeInMs: 1_000 })
  assert.equal(plan({ endpoint: { workersMax: 2 }, queue: { queued: 5 }, ...slow, workers }).start, 0)
})

test('an idle worker is drained when its time is over and not before', () => {
  const idle = (since: number) => plan({ workers: [{ idleSinceMs: NOW - since }] })
  assert.deepEqual(idle(0), { start: 0, drain: [], wakeInMs: 10_000 })
  assert.deepEqual(idle(9_999), { start: 0, drain: [], wakeInMs: 1 })
  assert.deepEqual(idle(10_000), { start: 0, drain: ['w1 idle'], wakeInMs: null })
})

test('a queue that scales on requestCount has an idle time of 5 seconds', () => {
  const endpoint = { scaler, idleTimeoutS: 600 }
  const idle = (since: number) => plan({ endpoint, workers: [{ idleSinceMs: NOW - since }] })
  assert.deepEqual(idle(4_999), { start: 0, drain: [], wakeInMs: 1 })
  assert.deepEqual(idle(5_000).drain, ['w1 idle'])
})

test('idle workers leave the longest idle first, down to the minimum', () => {
  const workers = [{ idleSinceMs: NOW - 20_000 }, { idleSinceMs: NOW - 40_000 }, { idleSinceMs: NOW - 30_000 }]
  assert.deepEqual(plan({ workers }).drain, ['w2 idle', 'w3 idle', 'w1 idle'])
  assert.deepEqual(plan({ endpoint: { workersMin: 2 }, workers }), { start: 0, drain: ['w2 idle'], wakeInMs: null })
  assert.deepEqual(plan({ endpoint: { workersMin: 3 }, workers }).drain, [])
})

test('a worker that waits for a place on its platform and is no longer needed ends at once, the last one first', () => {
  const platform = { place: null, waits: { kind: 'no_room', said: '' }, leaves: null } as const
  const waiting = (ageMs: number) =>
    ({ state: 'STARTING', readyAtMs: null, idleSinceMs: null, createdAtMs: NOW - ageMs, platform }) as const
  const workers = [waiting(9_000), waiting(5_000), waiting(7_000)]
  assert.deepEqual(plan({ workers }).drain, ['w2 scaled_down', 'w3 scaled_down', 'w1 scaled_down'])
  assert.deepEqual(plan({ endpoint: { workersMin: 2 }, workers }).drain, ['w2 scaled_down'])
  assert.deepEqual(plan({ workers, queue: { queued: 1 } }).drain, [], 'jobs wait, and any of them may be the first')
  const placed = { ...waiting(5_000), placedAtMs: NOW - 1_000 }
  assert.deepEqual(plan({ workers: [waiting(9_000), placed] }).drain, ['w1 scaled_down'])
})

test('no worker counts as idle while jobs wait, and a worker with a job never does', () => {
  const old = { idleSinceMs: NOW - 90_000 }
  assert.deepEqual(plan({ queue: { queued: 1, headQueuedAtMs: NOW }, workers: [old] }).drain, [])
  assert.deepEqual(plan({ queue: { inProgress: 1 }, workers: [{ ...old, held: 1 }] }).drain, [])
})

test('an idle worker that would be started again at once is kept', () => {
  const old = { idleSinceMs: NOW - 90_000 }
  const crowded = plan({ endpoint: { scaler }, queue: { inProgress: 3 }, workers: [{ held: 3 }, old, old] })
  assert.deepEqual(crowded, { start: 0, drain: [], wakeInMs: null })
  const workers = [{ state: 'DRAINING', held: 1 }, old] as const
  assert.deepEqual(plan({ queue: { inProgress: 1 }, workers }), { start: 0, drain: [], wakeInMs: null })
})

test('every worker of an old version is drained, busy or not, and new ones come as the maximum allows', () => {
  const endpoint = { version: 2, workersMin: 1 }
  const workers = [{ held: 1 }, { held: 0 }, { state: 'DRAINING' }] as const
  assert.deepEqual(plan({ endpoint, workers }), {
    start: 0,
    drain: ['w1 outdated', 'w2 outdated'],
    wakeInMs: 1_000,
  })
  assert.equal(plan({ endpoint: { ...endpoint, workersMax: 4 }, workers }).start, 1)
})

test('workers above a smaller maximum are drained, those without jobs and the youngest first', () => {
  const workers = [
    { held: 2, createdAtMs: 1 },
    { held: 0, createdAtMs: 2 },
    { held: 0, createdAtMs: 3 },
    { held: 1, createdAtMs: 4 },
  ]
  const drains = (workersMax: number) => plan({ endpoint: { workersMax }, queue: { queued: 1 }, workers }).drain
  assert.deepEqual(drains(3), ['w3 scaled_down'])
  assert.deepEqual(drains(1), ['w3 scaled_down', 'w2 scaled_down', 'w4 scaled_down'])
  assert.equal(drains(0).length, 4)
})

test('nothing starts during a crash back-off, one at a time after it, and it wakes when it is over', () => {
  const queue = { queued: 3 }
  const during = plan({ queue, ...slow, exits: [anExit(), anExit()] })
  assert.deepEqual(during, { start: 0, drain: [], wakeInMs: 2_000 })
  const after = plan({ queue, ...slow, exits: [anExit({ exitedAtMs: NOW - 1_000 })] })
  assert.deepEqual(after, { start: 1, drain: [], wakeInMs: 1_000 })
  assert.equal(plan({ exits: [anExit()] }).wakeInMs, null, 'nobody waits for it')
})

test('the earliest of some instants leaves out those that never come', () => {
  assert.equal(earliest([]), null)
  assert.equal(earliest([null, null]), null)
  assert.equal(earliest([null, 7, 3, null]), 3)
})

const WORKERS: fc.Arbitrary<Partial<WorkerLoad>> = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'READY', 'READY', 'DRAINING', 'STOPPING'),
  version: fc.constantFrom(1, 2, 2, 2),
  held: fc.constantFrom(0, 0, 1, 3),
  idleSinceMs: fc.nat(30_000).map(ms => NOW - ms),
  createdAtMs: fc.nat(60_000).map(ms => NOW - ms),
})
const SITUATIONS: fc.Arbitrary<{ snapshot: EndpointSnapshot }> = fc
  .record({
    range: fc.tuple(fc.nat(6), fc.nat(6)),
    counted: fc.boolean(),
    queue: fc.record({ queued: fc.constantFrom(0, 0, 0, 1, 4), inProgress: fc.nat(9), queuedLowPriority: fc.nat(3) }),
    averageExecutionMs: fc.option(fc.nat(60_000)),
    workers: fc.array(WORKERS, { maxLength: 8 }),
    crashes: fc.array(fc.nat(20_000), { maxLength: 4 }),
  })
  .map(({ range, counted, crashes, ...rest }) => ({
    snapshot: aSnapshot({
      ...rest,
      endpoint: {
        version: 2,
        workersMin: Math.min(...range),
        workersMax: Math.max(...range),
        ...(counted ? { scaler } : {}),
      },
      exits: crashes.map(ago => anExit({ version: 2, exitedAtMs: NOW - ago })),
    }),
  }))

/** The snapshot once a plan has been carried out. */
function carriedOut(snapshot: EndpointSnapshot, { start, drain }: WorkerPlan): EndpointSnapshot {
  const leaving = new Set(drain.map(({ worker }) => worker.id))
  const kept = snapshot.workers.map(worker =>
    leaving.has(worker.id) ? { ...worker, state: 'DRAINING' as const } : worker,
  )
  const added = Array.from({ length: start }, (_, index) =>
    aWorker({ id: `new${index}` as WorkerId, state: 'STARTING', version: 2, idleSinceMs: null }),
  )
  return { ...snapshot, workers: [...kept, ...added] }
}

test('no plan starts a worker above the maximum, beyond the room, or during a back-off', () => {
  fc.assert(
    fc.property(SITUATIONS, ({ snapshot }) => {
      const { start } = planWorkers(snapshot, NOW)
      assert.ok(Number.isInteger(start) && start >= 0)
      if (start === 0) return
      assert.ok(snapshot.workers.length + start <= snapshot.endpoint.workersMax)
      assert.ok(currentBackoff(snapshot).untilMs <= NOW)
    }),
  )
})

test('every plan drains each worker at most once, and only those that could still get jobs', () => {
  fc.assert(
    fc.property(SITUATIONS, ({ snapshot }) => {
      const { drain } = planWorkers(snapshot, NOW)
      assert.equal(new Set(drain.map(({ worker }) => worker.id)).size, drain.length)
      const outdated = snapshot.workers.filter(worker => takesJobs(worker) && worker.version === 1)
      assert.deepEqual(
        drain.filter(({ reason }) => reason === 'outdated').map(({ worker }) => worker),
        outdated,
      )
      for (const { worker } of drain) assert.ok(takesJobs(worker))
    }),
  )
})

test('no plan drains below the minimum for idleness, or a worker whose time is not over', () => {
  fc.assert(
    fc.property(SITUATIONS, ({ snapshot }) => {
      const { drain } = planWorkers(snapshot, NOW)
      const idle = drain.filter(({ reason }) => reason === 'idle').map(({ worker }) => worker)
      if (idle.length === 0) return
      const { endpoint, workers } = snapshot
      const left = workers.filter(worker => takesJobs(worker) && worker.version === 2).length
      assert.ok(left - drain.filter(({ reason }) => reason !== 'outdated').length >= endpoint.workersMin)
      const patience = endpoint.scaler.type === 'REQUEST_COUNT' ? 5_000 : 10_000
      for (const worker of idle) {
        assert.ok(worker.held === 0 && worker.state === 'READY' && worker.idleSinceMs! + patience <= NOW)
      }
    }),
  )
})

test('a plan that is carried out is not undone by the next one', () => {
  fc.assert(
    fc.property(SITUATIONS, ({ snapshot }) => {
      const plan = planWorkers(snapshot, NOW)
      const idle = plan.drain.some(({ reason }) => reason === 'idle')
      assert.ok(!(plan.start > 0 && idle), 'it starts a worker and lets one go')
      const next = planWorkers(carriedOut(snapshot, plan), NOW)
      assert.deepEqual(next.drain, [])
      if (idle) assert.equal(next.start, 0, 'it starts again what it let go')
    }),
  )
})

test('whatever is missing, there is an instant to look again', () => {
  fc.assert(
    fc.property(SITUATIONS, ({ snapshot }) => {
      const { start, desired, wakeAtMs } = planWorkers(snapshot, NOW)
      const current = snapshot.workers.filter(worker => takesJobs(worker) && worker.version === 2).length
      if (current + start < desired) assert.ok(wakeAtMs !== null)
      if (wakeAtMs !== null) assert.ok(wakeAtMs > NOW)
    }),
  )
})

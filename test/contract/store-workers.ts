import assert from 'node:assert/strict'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { type Placement, UNPLACED } from '../../src/core/workers/placement.ts'
import { WORKER_STATES, type WorkerState } from '../../src/core/workers/worker.ts'
import type { WorkerProblem } from '../../src/core/workers/worker-problem.ts'
import { suspensionOf, type WorkerSuspension } from '../../src/core/workers/worker-suspension.ts'
import {
  type Cases,
  E1,
  E2,
  EXIT,
  jobId,
  makeEndpoint,
  makeWorker,
  OWNER,
  T0,
  W1,
  W2,
  type World,
} from './store-world.ts'

const STUCK: WorkerProblem = { kind: 'loop_stuck', forS: 115 }
const SILENT: WorkerProblem = { kind: 'silent', forS: 35 }

/** Placement of a worker that waits for its platform. */
const ON_PLATFORM: Placement = { ...UNPLACED, asked: { gpus: 2, pool: 'ADA_24', cpu: null } }

const SUSPENSION: WorkerSuspension = {
  card: 'GPU-1',
  bytes: 20 * 2 ** 30,
  processes: [{ pid: 812, startTime: '4711', bytes: 20 * 2 ** 30 }],
}

const ids = (workers: readonly { id: string }[]) => workers.map(({ id }) => id)

const reach: Record<WorkerState, (world: World) => Promise<unknown>> = {
  STARTING: async () => {},
  READY: ({ store }) => store.workers.seen(W1, 1, null, T0),
  FROZEN: async ({ store }) => {
    await store.workers.seen(W1, 1, null, T0)
    await store.workers.freeze(W1, T0 + 1)
  },
  DRAINING: ({ store }) => store.workers.retire(W1, 'DRAINING', 'idle', T0 + 1),
  STOPPING: ({ store }) => store.workers.retire(W1, 'STOPPING', 'idle', T0 + 1),
  EXITED: ({ store }) => store.workers.exited(W1, EXIT, T0 + 1),
}

const steps: { name: string; to: WorkerState; from: WorkerState[]; run: (world: World) => Promise<unknown> }[] = [
  { name: 'seen', to: 'READY', from: ['STARTING'], run: ({ store }) => store.workers.seen(W1, 1, null, T0 + 5) },
  { name: 'freeze', to: 'FROZEN', from: ['READY'], run: ({ store }) => store.workers.freeze(W1, T0 + 5) },
  { name: 'thaw', to: 'READY', from: ['FROZEN'], run: ({ store }) => store.workers.thaw(W1, T0 + 5, null) },
  { name: 'evict', to: 'DRAINING', from: ['READY', 'FROZEN'], run: ({ store }) => store.workers.evict(W1, T0 + 5) },
  {
    name: 'drain',
    to: 'DRAINING',
    from: ['STARTING', 'READY', 'FROZEN'],
    run: ({ store }) => store.workers.retire(W1, 'DRAINING', 'refresh', T0 + 5),
  },
  {
    name: 'stop',
    to: 'STOPPING',
    from: ['STARTING', 'READY', 'FROZEN', 'DRAINING'],
    run: ({ store }) => store.workers.retire(W1, 'STOPPING', 'refresh', T0 + 5),
  },
  {
    name: 'exit',
    to: 'EXITED',
    from: ['STARTING', 'READY', 'FROZEN', 'DRAINING', 'STOPPING'],
    run: ({ store }) => store.workers.exited(W1, EXIT, T0 + 5),
  },
]

function stateCase(state: WorkerState, { name, to, from, run }: (typeof steps)[number]): Cases {
  const moves = from.includes(state)
  return {
    [`${name} ${moves ? `leads a worker from ${state} to ${to}` : `leaves a worker ${state}`}`]: async world => {
      await world.store.workers.insert(makeWorker(W1), 'token')
      await reach[state](world)
      assert.equal((await world.readWorker()).state, state)
      const answer = await run(world)
      const after = await world.readWorker()
      assert.equal(after.state, moves ? to : state)
      assert.deepEqual(answer, moves ? { worker: after, from: state } : null)
    },
  }
}

const stateCases: Cases = Object.assign(
  {},
  ...WORKER_STATES.flatMap(state => steps.map(step => stateCase(state, step))),
)

/** Workers and their states. */
export const workerCases: Cases = {
  ...stateCases,

  'the download of an image has one begin and one end': async ({ store: { workers } }) => {
    await workers.insert(makeWorker(W1), 'token')
    const times = async () => {
      const { pullStartedAtMs, pullEndedAtMs } = (await workers.find(W1))!
      return [pullStartedAtMs, pullEndedAtMs]
    }
    await workers.pulling(W1, 'ended', T0 + 1)
    assert.deepEqual(await times(), [null, null])
    for (const afterMs of [2, 3]) await workers.pulling(W1, 'started', T0 + afterMs)
    assert.deepEqual(await times(), [T0 + 2, null])
    for (const afterMs of [4, 5]) await workers.pulling(W1, 'ended', T0 + afterMs)
    assert.deepEqual(await times(), [T0 + 2, T0 + 4])
  },

  'a worker is kept as it was given, and found by its id and its token': async ({ store: { workers } }) => {
    const worker = makeWorker(W1, { capacity: 4, sdk: 'sdk/1.0', version: 7 })
    assert.equal(await workers.insert(worker, 'hash'), true)
    assert.deepEqual(await workers.find(W1), worker)
    assert.deepEqual(await workers.findByToken('hash'), worker)
    assert.equal(await workers.findByToken('other'), null)
    assert.equal(await workers.find(W2), null)
  },

  'a worker that serves is kept with how it does': async ({ store: { workers } }) => {
    const worker = makeWorker(W1, {
      serves: { port: 80, healthPort: 81, healthPath: '/well', initTimeoutMs: 1 },
      baseUrl: '',
    })
    assert.equal(await workers.insert(worker, 'hash'), true)
    assert.deepEqual(await workers.find(W1), worker)
  },

  'a worker that has ended is begun anew under its id, with nothing of what it was, and nobody else is':
    async world => {
      const { workers } = world.store
      await workers.insert(makeWorker(W1), 'first')
      await workers.started(W1, 'handle', T0)
      await workers.seen(W1, 4, 'sdk', T0 + 1)
      await workers.noteProblem(W1, STUCK, T0 + 2)
      assert.equal(await workers.insert(makeWorker(W1), 'too early'), false)
      await workers.retire(W1, 'STOPPING', 'idle', T0 + 3)
      await workers.exited(W1, EXIT, T0 + 4)
      assert.equal(await workers.insert(makeWorker(W1, { endpointId: E2 }), 'of another endpoint'), false)
      const again = makeWorker(W1, { version: 2, createdAtMs: T0 + 10, capacity: 1 })
      assert.equal(await workers.insert(again, 'second'), true)
      assert.deepEqual(await workers.find(W1), again)
      assert.equal(await workers.findByToken('first'), null)
      assert.deepEqual(ids(await workers.alive()), [W1])
    },

  'a frozen worker claims nothing, and a thawed one does': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    const frozen = await store.workers.freeze(W1, T0 + 10)
    assert.deepEqual([frozen?.worker.frozenAtMs, frozen?.worker.thawedAtMs], [T0 + 10, null])
    await world.job('1')
    const claim = () => store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0 + 20, letGoFirst: false })
    assert.deepEqual((await claim()).jobs, [])
    const { worker: thawed } = (await store.workers.thaw(W1, T0 + 15, 1))!
    assert.deepEqual([thawed.frozenAtMs, thawed.thawedAtMs, thawed.idleSinceMs], [T0 + 10, T0 + 15, T0 + 15])
    assert.equal((await claim()).jobs.length, 1)
  },

  'a worker that gave its GPUs back is thawed only once it has them again': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    assert.equal(await store.workers.asleep(W1, T0, T0 + 1), false, 'it is not frozen')
    await store.workers.freeze(W1, T0 + 10)
    assert.equal(await store.workers.asleep(W1, T0 + 9, T0 + 11), false, 'it was thawed and frozen again since then')
    await store.workers.waitsToWake(W1, 'its GPU 0 is in use')
    assert.equal((await store.workers.find(W1))?.wakeWaitsFor, null, 'it has its GPUs')
    assert.equal(await store.workers.asleep(W1, T0 + 10, T0 + 12), true)
    await store.workers.waitsToWake(W1, 'its GPU 0 is in use')
    assert.equal(await store.workers.thaw(W1, T0 + 13, null), null)
    const asleep = await store.workers.find(W1)
    assert.deepEqual(
      [asleep?.state, asleep?.asleepAtMs, asleep?.wakeWaitsFor],
      ['FROZEN', T0 + 12, 'its GPU 0 is in use'],
    )
    const { worker } = (await store.workers.thaw(W1, T0 + 14, null, true))!
    assert.deepEqual([worker.state, worker.asleepAtMs, worker.wakeWaitsFor], ['READY', null, null])
    await store.workers.freeze(W1, T0 + 20)
    assert.equal((await store.workers.thaw(W1, T0 + 21, null))?.worker.state, 'READY', 'it is not asleep any more')
  },

  'a worker that is being suspended is not thawed, and a suspended one only once it has its card again':
    async world => {
      const { store } = world
      const phase = async () => suspensionOf((await store.workers.find(W1))!)?.phase ?? null
      await world.worker(W1)
      await store.workers.seen(W1, 1, null, T0)
      assert.equal(await store.workers.suspending(W1, T0, SUSPENSION), false, 'it is not frozen')
      await store.workers.freeze(W1, T0 + 10)
      assert.equal(await store.workers.suspended(W1, T0 + 10, T0 + 11), false, 'the intent is not noted')
      assert.equal(await store.workers.suspending(W1, T0 + 9, SUSPENSION), false, 'it was frozen again since then')
      assert.equal(await store.workers.suspending(W1, T0 + 10, { ...SUSPENSION, processes: [] }), true)
      assert.equal(await store.workers.suspending(W1, T0 + 10, SUSPENSION), true, 'with more processes')
      assert.deepEqual([await phase(), await store.workers.thaw(W1, T0 + 12, null, true)], ['suspending', null])
      assert.equal(await store.workers.suspended(W1, T0 + 10, T0 + 13), true)
      const suspended = (await store.workers.find(W1))!
      assert.deepEqual(
        [suspended.suspension, suspended.asleepAtMs, suspensionOf(suspended)?.sinceMs],
        [SUSPENSION, T0 + 13, T0 + 13],
      )
      assert.equal(await store.workers.suspensionOver(W1, T0 + 14), false, 'it is suspended')
      assert.deepEqual([await phase(), await store.workers.thaw(W1, T0 + 14, null)], ['suspended', null])
      assert.equal((await store.workers.thaw(W1, T0 + 15, null, true))?.worker.state, 'READY')
      assert.equal(await phase(), 'resuming')
    },

  'a worker gets no job and is not frozen until it is resumed': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    await store.workers.freeze(W1, T0 + 10)
    await store.workers.suspending(W1, T0 + 10, SUSPENSION)
    await store.workers.suspended(W1, T0 + 10, T0 + 11)
    await store.workers.thaw(W1, T0 + 12, null, true)
    await world.job('1')
    const claim = () => store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0 + 20, letGoFirst: false })
    assert.deepEqual((await claim()).jobs, [])
    assert.equal(await store.workers.freeze(W1, T0 + 21), null)
    assert.equal(await store.workers.suspensionOver(W1, T0 + 22), true)
    assert.equal((await store.workers.find(W1))?.idleSinceMs, T0 + 22)
    assert.equal(await store.workers.suspensionOver(W1, T0 + 23), false, 'it is over')
    assert.equal((await claim()).jobs.length, 1)
  },

  'a paused worker keeps its jobs, whose deadline stands still, and goes on with them': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    assert.equal(await store.workers.pause(W1, E2, T0 + 1), null, 'it has no job')
    await world.job('1', { executionTimeoutMs: 60_000, policy: null })
    const claim = () => store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0 + 10, letGoFirst: false })
    assert.equal((await claim()).jobs.length, 1)
    assert.equal(await store.workers.endPause(W1, T0 + 11, null), null, 'it is not paused')
    const { worker, from } = (await store.workers.pause(W1, E2, T0 + 20))!
    assert.deepEqual([from, worker.state, worker.pause], ['READY', 'FROZEN', { sinceMs: T0 + 20, for: E2 }])
    assert.equal(await store.workers.pause(W1, E2, T0 + 21), null, 'it is paused')
    assert.equal(await store.workers.evict(W1, T0 + 21), null)
    assert.deepEqual((await claim()).jobs, [])
    assert.deepEqual(await store.jobOutcomes.timeOutOverdue(T0 + 70_000, 10), [])
    assert.equal(await store.workers.endPause(W1, T0 + 70_000, null), null, 'it stands still')
    assert.equal((await store.workers.thaw(W1, T0 + 70_010, null))?.worker.idleSinceMs, null)
    const ended = (await store.workers.endPause(W1, T0 + 70_020, T0 + 100_020))!
    assert.deepEqual(
      [ended.pausedMs, ended.jobs, ended.worker.pause, ended.worker.state],
      [70_000, [jobId('1')], null, 'READY'],
    )
    assert.deepEqual([worker.pausableAtMs, (await store.workers.find(W1))?.pausableAtMs], [null, T0 + 100_020])
    assert.deepEqual(await store.jobOutcomes.timeOutOverdue(T0 + 130_009, 10), [])
    const [late] = await store.jobOutcomes.timeOutOverdue(T0 + 130_010, 10)
    assert.deepEqual([late?.job.status, late?.job.startedAtMs], ['TIMED_OUT', T0 + 70_010], 'without its pause')
    assert.equal(late?.usage.executionMs, 60_000)
    const [note] = await store.jobs.diagnostics(jobId('1'))
    assert.match(note!.text, /^attempt 1 went on after a pause of 70 s/)
  },

  'a drain of a paused worker begins when it goes on, and a stop at once': async world => {
    const { store } = world
    for (const [worker, job] of [
      [W1, '1'],
      [W2, '2'],
    ] as const) {
      await world.worker(worker)
      await store.workers.seen(worker, 1, null, T0)
      await world.job(job)
      await store.jobs.claim({ endpointId: E1, workerId: worker, limit: 1, nowMs: T0, letGoFirst: false })
      await store.workers.pause(worker, E2, T0 + 1)
      assert.equal(await store.workers.retire(worker, 'DRAINING', 'outdated', T0 + 2), null)
    }
    assert.equal((await store.workers.find(W1))?.state, 'FROZEN')
    await store.workers.thaw(W1, T0 + 3, null)
    const ended = await store.workers.endPause(W1, T0 + 4, null)
    assert.deepEqual([ended?.worker.state, ended?.worker.stopReason], ['DRAINING', 'outdated'])
    assert.equal((await store.workers.retire(W2, 'STOPPING', 'requested', T0 + 5))?.worker.state, 'STOPPING')
  },

  'a canceled and a released job of a paused worker leave the pause': async world => {
    const { store } = world
    await world.worker(W1, { capacity: 2 })
    await store.workers.seen(W1, 2, null, T0)
    await world.job('1')
    await world.job('2')
    await store.jobs.claim({ endpointId: E1, workerId: W1, limit: 2, nowMs: T0, letGoFirst: false })
    await store.workers.pause(W1, E2, T0 + 1_000)
    const canceled = await store.jobOutcomes.cancel(E1, jobId('1'), T0 + 5_000)
    assert.deepEqual([canceled?.job.startedAtMs, canceled?.usage.executionMs], [T0 + 4_000, 1_000])
    const [released] = await store.jobOutcomes.release(W1, 'all')
    assert.deepEqual([released?.job.status, released?.job.attempt], ['IN_QUEUE', 0])
  },

  'workers with jobs of low priority alone are found': async world => {
    const { store } = world
    for (const worker of [W1, W2]) {
      await world.worker(worker, { capacity: 2 })
      await store.workers.seen(worker, 2, null, T0)
    }
    const take = (worker: WorkerId, limit: number) =>
      store.jobs.claim({ endpointId: E1, workerId: worker, limit, nowMs: T0, letGoFirst: false })
    await world.job('1', { lowPriority: true })
    await take(W1, 1)
    await world.job('2', { lowPriority: true })
    await world.job('3')
    await take(W2, 2)
    assert.deepEqual(await store.workers.withLowPriorityOnly(), [W1])
  },

  'a worker that could not be resumed sleeps on with the reason': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    assert.equal(await store.workers.sleepsOn(W1, 'no room', T0 + 1), null, 'it was not suspended')
    await store.workers.freeze(W1, T0 + 10)
    await store.workers.suspending(W1, T0 + 10, SUSPENSION)
    await store.workers.suspended(W1, T0 + 10, T0 + 11)
    assert.equal(await store.workers.sleepsOn(W1, 'no room', T0 + 12), null, 'it is not thawed')
    await store.workers.thaw(W1, T0 + 13, null, true)
    const { worker, from } = (await store.workers.sleepsOn(W1, 'no room', T0 + 14))!
    assert.deepEqual(
      [from, worker.state, worker.frozenAtMs, worker.asleepAtMs, worker.thawedAtMs, worker.wakeWaitsFor],
      ['READY', 'FROZEN', T0 + 14, T0 + 14, null, 'no room'],
    )
    assert.equal(suspensionOf(worker)?.phase, 'suspended')
  },

  'a frozen worker is not thawed for a version that its endpoint has no more': async world => {
    const { store } = world
    await world.worker(W1)
    await store.workers.seen(W1, 1, null, T0)
    await store.workers.freeze(W1, T0 + 1)
    assert.equal(await store.workers.thaw(W1, T0 + 2, 2), null)
    assert.equal((await world.readWorker()).state, 'FROZEN')
    assert.equal((await store.workers.thaw(W1, T0 + 3, 1))?.worker.state, 'READY')
  },

  'a worker with a job, with one that it has to stop, or with a problem, is not frozen': async world => {
    const { store } = world
    for (const id of [W1, W2]) {
      await world.worker(id)
      await store.workers.seen(id, 1, null, T0)
    }
    await world.job('1')
    await store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0, letGoFirst: false })
    assert.equal(await store.workers.freeze(W1, T0 + 1), null)
    await store.jobOutcomes.cancel(E1, jobId('1'), T0 + 2)
    assert.equal(await store.workers.freeze(W1, T0 + 3), null)
    await store.stops.letGo(W1, 'all')
    assert.equal((await store.workers.freeze(W1, T0 + 4))?.from, 'READY')
    await store.workers.noteProblem(W2, STUCK, T0)
    assert.equal(await store.workers.freeze(W2, T0 + 5), null)
  },

  'no worker is added beyond the max of its endpoint, those that have ended left out': async world => {
    const { workers, endpoints } = world.store
    await endpoints.insert(makeEndpoint(E2, { workersMax: 2 }))
    const add = (id: string) => workers.insert(makeWorker(id, { endpointId: E2 }), id)
    assert.deepEqual([await add('a'), await add('b'), await add('c')], [true, true, false])
    await workers.retire('a' as WorkerId, 'STOPPING', 'idle', T0)
    assert.equal(await add('c'), false)
    await workers.exited('a' as WorkerId, EXIT, T0)
    assert.equal(await add('c'), true)
    assert.equal(await workers.insert(makeWorker('d', { endpointId: 'gone' as EndpointId }), 'd'), false)
  },

  'of many workers added at once, as many as the max are': async ({ store: { workers } }) => {
    const added = Array.from({ length: 30 }, (_, n) => workers.insert(makeWorker(`w${n}`), `${n}`))
    assert.equal((await Promise.all(added)).filter(ok => ok).length, 10)
  },

  'lists have workers of an endpoint newest first, and all that have not ended': async world => {
    const { workers, endpoints } = world.store
    await endpoints.insert(makeEndpoint(E2))
    await world.worker('b', { createdAtMs: T0 + 2 })
    await world.worker('a', { createdAtMs: T0 + 2 })
    await world.worker('c', { createdAtMs: T0 + 1 })
    await world.worker('d', { endpointId: E2 })
    await workers.exited('c' as WorkerId, EXIT, T0)
    assert.deepEqual(ids(await workers.list(E1)), ['b', 'a', 'c'])
    assert.deepEqual(ids(await workers.alive()), ['d', 'a', 'b'])
    assert.deepEqual(ids(await workers.known('', 10)), ['a', 'b', 'c', 'd'])
    assert.deepEqual(ids(await workers.known('a', 2)), ['b', 'c'])
    assert.deepEqual(await workers.known('b', 1), [{ id: 'c', owner: OWNER, exitedAtMs: T0 }])
    assert.deepEqual(await workers.endedSince(T0), [{ id: 'c', owner: OWNER, exitedAtMs: T0 }])
    assert.deepEqual(await workers.endedSince(T0 + 1), [])
    assert.deepEqual(ids(await workers.liveTokens('', 10)), ['a', 'b', 'd'])
    assert.deepEqual(ids(await workers.liveTokens('a', 1)), ['b'])
    const tokens = await workers.tokensOf(['c', 'd', 'none'] as WorkerId[])
    assert.deepEqual(
      tokens.map(({ id, ended }) => [id, ended]),
      [
        ['c', true],
        ['d', false],
      ],
    )
  },

  'a start is noted once, with the way to find the worker again': async world => {
    const { workers } = world.store
    await workers.insert(makeWorker(W1), 'token')
    await workers.started(W1, 'pid 1', T0 + 3)
    await workers.started(W1, 'pid 1 again', T0 + 4)
    const { handle, startedAtMs, state } = await world.readWorker()
    assert.deepEqual({ handle, startedAtMs, state }, { handle: 'pid 1 again', startedAtMs: T0 + 3, state: 'STARTING' })
    await workers.started(W2, 'nobody', T0)
  },

  'a worker that another server started keeps the way to find it when it is noted to run': async world => {
    const { workers } = world.store
    await workers.insert(makeWorker(W1, { handle: 'pod 1' }), 'token')
    await workers.started(W1, null, T0 + 3)
    const { handle, startedAtMs } = await world.readWorker()
    assert.deepEqual([handle, startedAtMs], ['pod 1', T0 + 3])
  },

  'what a platform reports is kept until the end of the worker, and the first place is when it was placed':
    async world => {
      const { workers } = world.store
      await workers.insert(makeWorker(W1, { placement: ON_PLATFORM }), 'token')
      assert.equal((await world.readWorker()).platform, null)
      const waits = { place: null, waits: { kind: 'no_room', said: 'full' }, leaves: null } as const
      assert.equal(await workers.reported(W1, waits, T0 + 1), true)
      const waiting = await world.readWorker()
      assert.deepEqual([waiting.platform, waiting.placedAtMs], [waits, null])
      const place = { node: 'n1', gpuType: 'NVIDIA L4', gpuCount: 2 }
      await workers.reported(W1, { place, waits: null, leaves: null }, T0 + 2)
      const leaving = { place, waits: null, leaves: { kind: 'evicted', node: 'n1', said: '' } } as const
      await workers.reported(W1, leaving, T0 + 3)
      const left = await world.readWorker()
      assert.deepEqual([left.platform, left.placedAtMs, left.placement], [leaving, T0 + 2, ON_PLATFORM])
      await workers.exited(W1, EXIT, T0 + 4)
      assert.equal(await workers.reported(W1, waits, T0 + 5), false)
      assert.deepEqual((await world.readWorker()).platform, leaving)
      assert.equal(await workers.reported(W2, waits, T0 + 5), false)
    },

  'the first request for jobs makes a worker READY and idle': async world => {
    const { workers } = world.store
    await workers.insert(makeWorker(W1), 'token')
    const move = await workers.seen(W1, 2, 'sdk/1', T0 + 3)
    const { state, readyAtMs, idleSinceMs, capacity, sdk } = await world.readWorker()
    assert.deepEqual([state, readyAtMs, idleSinceMs, capacity, sdk], ['READY', T0 + 3, T0 + 3, 2, 'sdk/1'])
    assert.equal(move?.from, 'STARTING')
  },

  'further requests note the capacity and the latest SDK, and move nothing': async world => {
    const { workers } = world.store
    await world.worker()
    assert.equal(await workers.seen(W1, 5, 'sdk/1', T0 + 1), null)
    assert.equal(await workers.seen(W1, 3, null, T0 + 2), null)
    assert.equal(await workers.seen(W1, 3, 'sdk/2', T0 + 3), null)
    const { readyAtMs, idleSinceMs, capacity, sdk } = await world.readWorker()
    assert.deepEqual([readyAtMs, idleSinceMs, capacity, sdk], [T0, T0, 3, 'sdk/2'])
    assert.equal(await workers.seen(W2, 1, null, T0), null)
  },

  'the first reason to stop a worker stays': async world => {
    const { workers } = world.store
    await world.worker()
    await workers.retire(W1, 'DRAINING', 'outdated', T0 + 1)
    const move = await workers.retire(W1, 'STOPPING', 'server_stopped', T0 + 2)
    assert.equal(move?.from, 'DRAINING')
    const { stopReason, stopRequestedAtMs, stoppingAtMs } = await world.readWorker()
    assert.deepEqual([stopReason, stopRequestedAtMs, stoppingAtMs], ['outdated', T0 + 1, T0 + 2])
  },

  'the first end of a worker stays, and a crash has no reason': async world => {
    const { workers } = world.store
    await world.worker()
    assert.deepEqual((await workers.exited(W1, EXIT, T0 + 1))?.worker.exit, EXIT)
    assert.equal(await workers.exited(W1, { ...EXIT, code: 2 }, T0 + 2), null)
    assert.equal(await workers.exited(W2, EXIT, T0 + 2), null)
    const { exit, exitedAtMs, stopReason, stopRequestedAtMs } = await world.readWorker()
    assert.deepEqual([exit, exitedAtMs, stopReason, stopRequestedAtMs], [EXIT, T0 + 1, null, null])
  },

  'the first problem of a worker stays, and a worker that has ended gets no problem': async world => {
    const { workers } = world.store
    await world.worker()
    await world.worker(W2)
    assert.equal((await world.readWorker()).problem, null)
    assert.equal(await workers.noteProblem(W1, STUCK, T0 + 1), true)
    assert.equal(await workers.noteProblem(W1, SILENT, T0 + 2), false)
    await workers.exited(W1, EXIT, T0 + 1)
    const { problem, problemAtMs } = await world.readWorker()
    assert.deepEqual([problem, problemAtMs], [STUCK, T0 + 1])
    await workers.exited(W2, EXIT, T0 + 1)
    assert.equal(await workers.noteProblem(W2, SILENT, T0 + 2), false)
  },

  'jobs of a worker that ended stay with it until they are requeued': async world => {
    const { workers, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    await workers.exited(W1, EXIT, T0 + 1)
    assert.equal((await world.read('a')).status, 'IN_PROGRESS')
    assert.equal((await jobOutcomes.requeueLost(W1, 'it vanished', T0 + 1)).length, 1)
  },

  'workers that ended long ago are removed, the oldest first, with what they had to stop': async world => {
    const { workers, jobOutcomes, stops } = world.store
    await world.holder('a', 'job')
    await jobOutcomes.cancel(E1, jobId('job'), T0)
    await world.worker('b')
    await world.worker('c')
    await world.worker('alive')
    await workers.exited('b' as WorkerId, EXIT, T0 + 1)
    await workers.exited('a' as WorkerId, EXIT, T0 + 2)
    await workers.exited('c' as WorkerId, EXIT, T0 + 3)
    assert.deepEqual(await workers.removeExited(T0 + 3, 1), ['b'])
    assert.deepEqual(await workers.removeExited(T0 + 3, 5), ['a'])
    assert.deepEqual(await workers.removeExited(T0 + 3, 5), [])
    assert.deepEqual(ids(await workers.known('', 10)), ['alive', 'c'])
    assert.deepEqual(await stops.list(), [])
  },
}

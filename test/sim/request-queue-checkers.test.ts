import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BalancedRequestQueues,
  type ProgramState,
  REQUEST_QUEUE_LIMITS,
  RequestQueueChecker,
} from '../../sim/checks/request-queue-checker.ts'
import type { TrafficLoad } from '../../src/core/balancing/traffic.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { RequestOutcome, Reservation, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import { aBalanced, aTarget, ENDPOINT } from '../support/request-queues.ts'

const toWorkerId = (name: string) => name as WorkerId
const HEALTHY = { endpoint: ENDPOINT, firstHealthyMs: 0, healthySinceMs: 0, terminatedMs: null, endedMs: null } as const

/** Lines that do what a test says, and the checker that looks on. */
function watchedQueues() {
  const problems: string[] = []
  const waiting: ((worker: string) => void)[] = []
  const state = { nowMs: 0, load: null as TrafficLoad | null }
  const program: { -readonly [Field in keyof ProgramState]: ProgramState[Field] } = { id: toWorkerId('a'), ...HEALTHY }
  const counts = new Map<string, number>()
  const queues: BalancedRequestQueues = {
    keep() {},
    setCircuit() {},
    forget() {},
    busyMs: () => 0,
    load: () => state.load ?? { waiting: waiting.length, waitingSinceMs: null, workers: [], resumed: [], named: [] },
    reserve: () =>
      new Promise(resolve => {
        const servedAt = aTarget('a').servedAt!
        waiting.push(worker => resolve({ workerId: toWorkerId(worker), servedAt, waitedMs: 0, release: () => {} }))
      }),
  }
  const checker = new RequestQueueChecker(problem => problems.push(problem), {
    nowMs: () => state.nowMs,
    program: () => program,
    limits: REQUEST_QUEUE_LIMITS,
    count: name => counts.set(name, (counts.get(name) ?? 0) + 1),
  })
  const watched = checker.watch(queues)
  const controllers: AbortController[] = []
  const ask = (wish: Partial<WorkerRequest> = {}) => {
    const controller = new AbortController()
    controllers.push(controller)
    const wanted = { endpointId: ENDPOINT, affinity: null, avoid: [], signal: controller.signal, ...wish }
    return watched.reserve(wanted)
  }
  /** The request that came as number `index` of those that wait gets a worker. */
  const give = async (index: number, worker = 'a') => {
    waiting.splice(index, 1)[0]!(worker)
    for (let turn = 0; turn < 5; turn += 1) await null
  }
  return { problems, checker, watched, state, program, controllers, counts, ask, give }
}

const ready = (rig: ReturnType<typeof watchedQueues>, fields = {}) =>
  rig.watched.keep(aBalanced(fields), [aTarget('a')])

test('requests in their order to a worker that is ready and has capacity are no problem', async () => {
  const rig = watchedQueues()
  ready(rig, { maxConcurrency: 1 })
  const request = [rig.ask(), rig.ask()]
  await rig.give(0)
  const first: Reservation = await request[0]!
  rig.checker.settled()
  assert.deepEqual(rig.checker.requests(ENDPOINT), { waiting: 1, all: 2 })
  first.release('answered')
  first.release('broken')
  await rig.give(0)
  rig.checker.settled()
  assert.deepEqual(rig.problems, [])
  assert.equal(rig.counts.get('requests that were answered'), 1)
})

test('one request too many at a worker is reported', async () => {
  const rig = watchedQueues()
  ready(rig, { maxConcurrency: 1 })
  void rig.ask()
  void rig.ask()
  await rig.give(0)
  await rig.give(0)
  assert.match(rig.problems.join(), /got worker a, which then has 2 requests, and its limit is 1/)
})

test('a request that overtakes others is reported, except with strict affinity', async () => {
  const rig = watchedQueues()
  ready(rig)
  void rig.ask()
  void rig.ask({ affinity: { kind: 'strict', workerId: toWorkerId('a') } })
  void rig.ask()
  await rig.give(1)
  assert.deepEqual(rig.problems, [])
  await rig.give(1)
  assert.match(rig.problems.join(), /request 3 .* before request 1, which was first in the queue/)
})

test('a worker that is not ready, not known, has ended or was never well must not get requests', async () => {
  for (const [state, found] of [
    ['starting', /which is starting/],
    ['draining', /which is draining/],
  ] as const) {
    const rig = watchedQueues()
    rig.watched.keep(aBalanced(), [aTarget('a', { state })])
    void rig.ask()
    await rig.give(0)
    assert.match(rig.problems.join(), found)
  }
  const rig = watchedQueues()
  ready(rig)
  for (let n = 0; n < 3; n += 1) void rig.ask()
  await rig.give(0, 'b')
  assert.match(rig.problems.join(), /got worker b, which is unknown/)
  rig.program.firstHealthyMs = null
  await rig.give(0)
  assert.match(rig.problems.join(), /which was never healthy/)
  Object.assign(rig.program, { firstHealthyMs: 0, endedMs: 1_000 })
  rig.state.nowMs = 20_000
  await rig.give(0)
  assert.match(rig.problems.join(), /which has ended 19000 ms before/)
})

test('another worker than the one that is insisted on, and one for a client that is gone, are reported', async () => {
  const rig = watchedQueues()
  ready(rig)
  void rig.ask({ affinity: { kind: 'strict-resume', workerId: toWorkerId('b') } })
  void rig.ask()
  await rig.give(0)
  rig.controllers[1]!.abort()
  await rig.give(0)
  assert.match(rig.problems.join(), /requires worker b/)
  assert.match(rig.problems.join(), /request 2 .* after its client had gone/)
})

test('a request that waits although a worker has room, for too long, or for a paused endpoint is reported once', () => {
  const rig = watchedQueues()
  rig.watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  void rig.ask()
  void rig.ask({ avoid: [toWorkerId('a')] })
  rig.checker.settled()
  assert.deepEqual(rig.problems, [])
  ready(rig)
  rig.checker.settled()
  rig.checker.settled()
  assert.deepEqual(rig.problems, ['request 1 of endpoint endpoint waits although worker a is ready and has capacity'])
  rig.state.nowMs = REQUEST_QUEUE_LIMITS.waitMs + 2_000
  rig.checker.settled()
  assert.match(rig.problems.at(-1)!, /request 2 .* waits for 27000 ms/)
  const paused = watchedQueues()
  paused.watched.keep(aBalanced({ paused: true }), [])
  void paused.ask()
  paused.checker.settled()
  assert.match(paused.problems.join(), /waits although its endpoint is paused/)
})

test('a worker of which a request has failed may be out of the rotation for a while', async () => {
  const rig = watchedQueues()
  ready(rig)
  const request = rig.ask()
  await rig.give(0)
  ;(await request).release('unreachable' satisfies RequestOutcome)
  void rig.ask()
  rig.checker.settled()
  assert.deepEqual(rig.problems, [])
})

test('a line that is too long, and counts that are wrong, are reported', () => {
  const rig = watchedQueues()
  for (let n = 0; n <= REQUEST_QUEUE_LIMITS.perEndpoint; n += 1) void rig.ask()
  rig.checker.settled()
  assert.match(rig.problems.join(), /13 requests wait at endpoint endpoint, and no more than 12 may/)
  const other = watchedQueues()
  ready(other)
  const workers = [{ workerId: toWorkerId('a'), inFlight: 2, idleSinceMs: null }]
  other.state.load = { waiting: 1, waitingSinceMs: 0, workers, resumed: [], named: [] }
  other.checker.settled()
  assert.match(other.problems.join(), /the load has 2 requests in flight at worker a, which has 0/)
  assert.match(other.problems.join(), /the load has 1 waiting requests at endpoint endpoint, and 0 wait/)
})

test('a request that waits while the program of a worker is healthy is reported, whatever the server knows of it', () => {
  const rig = watchedQueues()
  rig.watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  void rig.ask()
  rig.state.nowMs = 21_000
  rig.checker.inspect([{ ...rig.program, healthySinceMs: 15_000 }])
  assert.deepEqual(rig.problems, [])
  rig.checker.inspect([rig.program])
  rig.checker.inspect([rig.program])
  assert.deepEqual(rig.problems, [
    'request 1 of endpoint endpoint waits although worker a has been healthy for 21000 ms and has capacity',
  ])
})

test('refusals with an unknown message, or without a time to retry, are reported', () => {
  const { checker, problems } = watchedQueues()
  checker.refused(400, '{"error":"no workers available"}', '10', 'a')
  checker.refused(404, '{"error":"affinity_worker_gone"}', null, 'b')
  assert.deepEqual(problems, [])
  checker.refused(400, '{"error":"worker_timeout"}', null, 'c')
  checker.refused(418, 'tea', '1', 'd')
  assert.deepEqual(problems, [
    'request c was refused with 400 {"error":"worker_timeout"} without Retry-After',
    'request d was refused with 418 tea',
  ])
})

test('a line that is refused since no worker can start, although one is there, is reported', () => {
  const why = { cause: 'no worker can be started: why', retryAfterSeconds: 30 }
  const { watched, problems } = watchedQueues()
  watched.setCircuit(ENDPOINT, why)
  watched.keep(aBalanced(), [aTarget('a', { state: 'draining' })])
  watched.setCircuit(ENDPOINT, why)
  watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  watched.setCircuit(ENDPOINT, null)
  assert.deepEqual(problems, [])
  watched.setCircuit(ENDPOINT, why)
  assert.match(problems.join(), /the circuit breaker of endpoint .* opened .*, but worker a\w* is starting/)
})

test('a server that has ended has an empty queue', () => {
  const { checker, ask, problems, state } = watchedQueues()
  void ask()
  checker.serverEnded()
  state.nowMs = 100_000
  checker.settled()
  assert.deepEqual(checker.requests(ENDPOINT), { waiting: 0, all: 0 })
  assert.deepEqual(problems, [])
})

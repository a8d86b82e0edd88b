import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BalancedRequestQueues,
  type ProgramSight,
  REQUEST_QUEUE_LIMITS,
  RequestQueueChecker,
} from '../../sim/checks/request-queue-checker.ts'
import type { TrafficLoad } from '../../src/core/balancing/traffic.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { RequestOutcome, Reservation, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import { aBalanced, aTarget, ENDPOINT } from '../support/request-queues.ts'

const idOf = (name: string) => name as WorkerId
const WELL = { endpoint: ENDPOINT, firstWellMs: 0, wellSinceMs: 0, terminatedMs: null, endedMs: null } as const

/** Lines that do what a test says, and the checker that looks on. */
function seen() {
  const problems: string[] = []
  const waiting: ((worker: string) => void)[] = []
  const state = { nowMs: 0, load: null as TrafficLoad | null }
  const program: { -readonly [Field in keyof ProgramSight]: ProgramSight[Field] } = { id: idOf('a'), ...WELL }
  const counts = new Map<string, number>()
  const lines: BalancedRequestQueues = {
    keep() {},
    setCircuit() {},
    forget() {},
    busyMs: () => 0,
    load: () => state.load ?? { waiting: waiting.length, waitingSinceMs: null, workers: [], resumed: [] },
    reserve: () =>
      new Promise(resolve => {
        const servedAt = aTarget('a').servedAt!
        waiting.push(worker => resolve({ workerId: idOf(worker), servedAt, waitedMs: 0, release: () => {} }))
      }),
  }
  const checker = new RequestQueueChecker(problem => problems.push(problem), {
    nowMs: () => state.nowMs,
    program: () => program,
    limits: REQUEST_QUEUE_LIMITS,
    count: name => counts.set(name, (counts.get(name) ?? 0) + 1),
  })
  const watched = checker.watch(lines)
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

const ready = (seeing: ReturnType<typeof seen>, fields = {}) => seeing.watched.keep(aBalanced(fields), [aTarget('a')])

test('requests in their order to a worker that is ready and has room are no problem', async () => {
  const seeing = seen()
  ready(seeing, { maxConcurrency: 1 })
  const asked = [seeing.ask(), seeing.ask()]
  await seeing.give(0)
  const first: Reservation = await asked[0]!
  seeing.checker.settled()
  assert.deepEqual(seeing.checker.requests(ENDPOINT), { waiting: 1, all: 2 })
  first.release('answered')
  first.release('broken')
  await seeing.give(0)
  seeing.checker.settled()
  assert.deepEqual(seeing.problems, [])
  assert.equal(seeing.counts.get('requests that were answered'), 1)
})

test('one request too many at a worker is reported', async () => {
  const seeing = seen()
  ready(seeing, { maxConcurrency: 1 })
  void seeing.ask()
  void seeing.ask()
  await seeing.give(0)
  await seeing.give(0)
  assert.match(seeing.problems.join(), /was given worker a, which then has 2 requests, and its limit is 1/)
})

test('whoever passes others is reported, but for one that insists on a worker', async () => {
  const seeing = seen()
  ready(seeing)
  void seeing.ask()
  void seeing.ask({ affinity: { kind: 'strict', workerId: idOf('a') } })
  void seeing.ask()
  await seeing.give(1)
  assert.deepEqual(seeing.problems, [])
  await seeing.give(1)
  assert.match(seeing.problems.join(), /request 3 .* before request 1, which was there first/)
})

test('a worker that is not ready, not known, has ended or was never well must not get requests', async () => {
  for (const [state, found] of [
    ['starting', /which is starting/],
    ['draining', /which is draining/],
  ] as const) {
    const seeing = seen()
    seeing.watched.keep(aBalanced(), [aTarget('a', { state })])
    void seeing.ask()
    await seeing.give(0)
    assert.match(seeing.problems.join(), found)
  }
  const seeing = seen()
  ready(seeing)
  for (let n = 0; n < 3; n += 1) void seeing.ask()
  await seeing.give(0, 'b')
  assert.match(seeing.problems.join(), /given worker b, which is unknown/)
  seeing.program.firstWellMs = null
  await seeing.give(0)
  assert.match(seeing.problems.join(), /which was never well/)
  Object.assign(seeing.program, { firstWellMs: 0, endedMs: 1_000 })
  seeing.state.nowMs = 20_000
  await seeing.give(0)
  assert.match(seeing.problems.join(), /which has ended 19000 ms before/)
})

test('another worker than the one that is insisted on, and one for a client that is gone, are reported', async () => {
  const seeing = seen()
  ready(seeing)
  void seeing.ask({ affinity: { kind: 'strict-resume', workerId: idOf('b') } })
  void seeing.ask()
  await seeing.give(0)
  seeing.controllers[1]!.abort()
  await seeing.give(0)
  assert.match(seeing.problems.join(), /insists on worker b/)
  assert.match(seeing.problems.join(), /request 2 .* after its client had gone/)
})

test('whoever waits although a worker has room, for too long, or for a paused endpoint is reported once', () => {
  const seeing = seen()
  seeing.watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  void seeing.ask()
  void seeing.ask({ avoid: [idOf('a')] })
  seeing.checker.settled()
  assert.deepEqual(seeing.problems, [])
  ready(seeing)
  seeing.checker.settled()
  seeing.checker.settled()
  assert.deepEqual(seeing.problems, ['request 1 of endpoint endpoint waits although worker a is ready and has room'])
  seeing.state.nowMs = REQUEST_QUEUE_LIMITS.waitMs + 2_000
  seeing.checker.settled()
  assert.match(seeing.problems.at(-1)!, /request 2 .* waits for 27000 ms/)
  const paused = seen()
  paused.watched.keep(aBalanced({ paused: true }), [])
  void paused.ask()
  paused.checker.settled()
  assert.match(paused.problems.join(), /waits although its endpoint is paused/)
})

test('a worker of which a request has failed may be out of the rotation for a while', async () => {
  const seeing = seen()
  ready(seeing)
  const asked = seeing.ask()
  await seeing.give(0)
  ;(await asked).release('unreachable' satisfies RequestOutcome)
  void seeing.ask()
  seeing.checker.settled()
  assert.deepEqual(seeing.problems, [])
})

test('a line that is too long, and counts that are wrong, are reported', () => {
  const seeing = seen()
  for (let n = 0; n <= REQUEST_QUEUE_LIMITS.perEndpoint; n += 1) void seeing.ask()
  seeing.checker.settled()
  assert.match(seeing.problems.join(), /13 requests wait at endpoint endpoint, and no more than 12 may/)
  const other = seen()
  ready(other)
  const workers = [{ workerId: idOf('a'), inFlight: 2, idleSinceMs: null }]
  other.state.load = { waiting: 1, waitingSinceMs: 0, workers, resumed: [] }
  other.checker.settled()
  assert.match(other.problems.join(), /worker a is said to have 2 requests in flight, and has 0/)
  assert.match(other.problems.join(), /1 requests are said to wait at endpoint endpoint, and 0 do/)
})

test('whoever waits while the program of a worker is well for long is reported, whatever the server knows of it', () => {
  const seeing = seen()
  seeing.watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  void seeing.ask()
  seeing.state.nowMs = 21_000
  seeing.checker.look([{ ...seeing.program, wellSinceMs: 15_000 }])
  assert.deepEqual(seeing.problems, [])
  seeing.checker.look([seeing.program])
  seeing.checker.look([seeing.program])
  assert.deepEqual(seeing.problems, [
    'request 1 of endpoint endpoint waits although worker a is well since 21000 ms and has room',
  ])
})

test('refusals in unknown words, or without a time to try again, are reported', () => {
  const { checker, problems } = seen()
  checker.refused(400, '{"error":"no workers available"}', '10', 'a')
  checker.refused(404, '{"error":"affinity_worker_gone"}', null, 'b')
  assert.deepEqual(problems, [])
  checker.refused(400, '{"error":"worker_timeout"}', null, 'c')
  checker.refused(418, 'tea', '1', 'd')
  assert.deepEqual(problems, [
    'request c was refused with 400 {"error":"worker_timeout"}, and not told when to try again',
    'request d was refused with 418 tea',
  ])
})

test('a line that is refused since no worker can start, although one is there, is reported', () => {
  const why = { cause: 'no worker can be started: why', retryAfterSeconds: 30 }
  const { watched, problems } = seen()
  watched.setCircuit(ENDPOINT, why)
  watched.keep(aBalanced(), [aTarget('a', { state: 'draining' })])
  watched.setCircuit(ENDPOINT, why)
  watched.keep(aBalanced(), [aTarget('a', { state: 'starting' })])
  watched.setCircuit(ENDPOINT, null)
  assert.deepEqual(problems, [])
  watched.setCircuit(ENDPOINT, why)
  assert.match(problems.join(), /nobody is said to serve .*, but worker a\w* is starting/)
})

test('a server that has ended has nobody in line', () => {
  const { checker, ask, problems, state } = seen()
  void ask()
  checker.serverGone()
  state.nowMs = 100_000
  checker.settled()
  assert.deepEqual(checker.requests(ENDPOINT), { waiting: 0, all: 0 })
  assert.deepEqual(problems, [])
})

import type { OpenCircuit } from '../../src/core/balancing/circuit-breaker.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { BalancedEndpoint, Target } from '../../src/core/workers/socket-address.ts'
import type { RequestQueueLimits } from '../../src/gateway/queue/request-queue.ts'
import type { RequestOutcome, Reservation, Reservations, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import type { Targets, Traffic } from '../../src/ports/targets.ts'

/** Low limits, so that queues get full and waits end within a run. */
export const REQUEST_QUEUE_LIMITS: RequestQueueLimits = {
  perEndpoint: 12,
  inAll: 20,
  waitMs: 25_000,
  namedWaitMs: 35_000,
}

/** The request queues of one run of the server; the checker observes their calls. */
export type BalancedRequestQueues = Targets & Traffic & Reservations

/** Real state of a worker's program, which the server may not have seen yet. */
export interface ProgramState {
  readonly id: WorkerId
  readonly endpoint: string
  readonly firstHealthyMs: number | null
  readonly healthySinceMs: number | null
  readonly terminatedMs: number | null
  readonly endedMs: number | null
}

/** State that the checker reads besides the queues. */
export interface RequestQueueView {
  readonly nowMs: () => number
  readonly program: (worker: WorkerId) => ProgramState | undefined
  readonly count: (name: string) => void
  readonly limits: RequestQueueLimits
}

interface WaitingRequest {
  readonly n: number
  readonly endpointId: EndpointId
  readonly sinceMs: number
  readonly named: WorkerId | null
  /** True if it takes any worker, so that only earlier requests can delay it. */
  readonly takesAnyWorker: boolean
  left: boolean
  reported: boolean
}

/** The last update about an endpoint. */
interface EndpointUpdate {
  readonly endpoint: BalancedEndpoint
  readonly targets: ReadonlyMap<WorkerId, Target>
}

/** Maximum time until the server detects the end of a worker. */
const NOTICE_MS = 15_000
/** Slack of a wait beyond its limit. */
const SLACK_MS = 1_000
/** Maximum ejection of a worker after a failed request. */
const EJECTED_MS = 60_000
/** Maximum time for which a worker that refused a request gets none, even one that requires it. */
const REFUSING_MS = 8_000
/** Maximum time until a healthy worker gets a waiting request. */
const HEALTHY_MS = 20_000

/** Documented error messages, by status. All but 404 have a `Retry-After`. */
const REFUSALS: Readonly<Record<number, RegExp>> = {
  400: /no workers available|worker_timeout/,
  404: /affinity_worker_gone|endpoint \S+ not found/,
  429: /requests are waiting|all workers are busy/,
  503: /stopping/,
}

/** Reports request queues that are unfair, unbounded or lose requests, and requests that get a wrong worker. */
export class RequestQueueChecker {
  readonly #report: (problem: string) => void
  readonly #view: RequestQueueView
  #run: RequestQueueRun | null = null

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, view: RequestQueueView) {
    this.#report = report
    this.#view = view
  }

  /** A server starts. Returns its queues with the checker around them. */
  watch(queues: BalancedRequestQueues): BalancedRequestQueues {
    const run = new RequestQueueRun(this.#report, this.#view, queues)
    this.#run = run
    return run
  }

  /** The server ended, and its queues with it. */
  serverEnded(): void {
    this.#run?.end()
    this.#run = null
  }

  /** Number of requests of an endpoint that wait for any worker, and of all that wait or are in flight. */
  requests(endpoint: EndpointId): { readonly waiting: number; readonly all: number } {
    return this.#run?.requests(endpoint) ?? { waiting: 0, all: 0 }
  }

  /** No operation is under way. */
  settled(): void {
    this.#run?.settled()
  }

  /**
   * Reports requests that wait although a worker is healthy. Call it while the server is up
   * and its store is not slow.
   */
  inspect(programs: readonly ProgramState[]): void {
    this.#run?.inspect(programs)
  }

  /** A request of a client was refused. */
  refused(status: number, text: string, retryAfter: string | null, nonce: string): void {
    this.#view.count(`refusals: ${status} ${text.slice(0, 40)}`)
    // 500: the store failed during the check that a worker can be resumed.
    if (status === 500 || status === 503) return
    if (REFUSALS[status]?.test(text) !== true) this.#report(`request ${nonce} was refused with ${status} ${text}`)
    else if (status !== 404 && !(Number(retryAfter) > 0))
      this.#report(`request ${nonce} was refused with ${status} ${text} without Retry-After`)
  }
}

/** The requests of one run of the server: those that wait, and those in flight by worker. */
class RequestQueueRun implements BalancedRequestQueues {
  readonly #report: (problem: string) => void
  readonly #view: RequestQueueView
  readonly #queues: BalancedRequestQueues
  readonly #startMs: number
  readonly #waiting = new Map<EndpointId, Set<WaitingRequest>>()
  readonly #inFlight = new Map<WorkerId, number>()
  readonly #failedMs = new Map<WorkerId, number>()
  readonly #refusedMs = new Map<WorkerId, number>()
  /** Workers without a good answer since their last failure: each gets one request at a time. */
  readonly #onTrial = new Set<WorkerId>()
  readonly #updates = new Map<EndpointId, EndpointUpdate>()
  #count = 0
  #ended = false

  constructor(report: (problem: string) => void, view: RequestQueueView, queues: BalancedRequestQueues) {
    this.#report = problem => {
      if (!this.#ended) report(problem)
    }
    this.#view = view
    this.#queues = queues
    this.#startMs = view.nowMs()
  }

  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void {
    this.#updates.set(endpoint.id, { endpoint, targets: new Map(targets.map(target => [target.workerId, target])) })
    this.#queues.keep(endpoint, targets)
  }

  setCircuit(id: EndpointId, circuit: OpenCircuit | null): void {
    this.#queues.setCircuit(id, circuit)
    if (circuit === null) return
    this.#view.count('circuit breakers opened')
    const activeTargets = [...(this.#updates.get(id)?.targets.values() ?? [])].filter(
      ({ state }) => state !== 'draining',
    )
    if (activeTargets.length > 0)
      this.#report(
        `the circuit breaker of endpoint ${id} opened (${circuit.cause}), but worker ${activeTargets[0]!.workerId} is ${activeTargets[0]!.state}`,
      )
  }

  forget(id: EndpointId): void {
    this.#updates.delete(id)
    this.#queues.forget(id)
  }

  busyMs(id: EndpointId, worker: WorkerId): number {
    return this.#queues.busyMs(id, worker)
  }

  load(id: EndpointId): ReturnType<Traffic['load']> {
    return this.#queues.load(id)
  }

  async reserve(wanted: WorkerRequest): Promise<Reservation> {
    const { endpointId, affinity, avoid, signal } = wanted
    this.#count += 1
    const named = affinity === null || affinity.kind === 'soft' ? null : affinity.workerId
    const takesAnyWorker = affinity === null && avoid.length === 0
    const sinceMs = this.#view.nowMs()
    const request: WaitingRequest = {
      n: this.#count,
      endpointId,
      sinceMs,
      named,
      takesAnyWorker,
      left: false,
      reported: false,
    }
    const queue = this.#waiting.get(endpointId) ?? new Set()
    this.#waiting.set(endpointId, queue)
    queue.add(request)
    const leave = () => {
      request.left = true
      queue.delete(request)
    }
    signal.addEventListener('abort', leave, { once: true })
    try {
      return this.#dispatched(request, await this.#queues.reserve(wanted))
    } finally {
      queue.delete(request)
      signal.removeEventListener('abort', leave)
    }
  }

  end(): void {
    this.#ended = true
  }

  requests(endpoint: EndpointId): { readonly waiting: number; readonly all: number } {
    const queue = [...(this.#waiting.get(endpoint) ?? [])]
    const workers = [...(this.#updates.get(endpoint)?.targets.keys() ?? [])]
    const inFlight = workers.reduce((sum, worker) => sum + this.#inFlightAt(worker), 0)
    return { waiting: queue.filter(({ named }) => named === null).length, all: queue.length + inFlight }
  }

  settled(): void {
    for (const [id, queue] of this.#waiting) {
      if (queue.size > this.#view.limits.perEndpoint)
        this.#report(
          `${queue.size} requests wait at endpoint ${id}, and no more than ${this.#view.limits.perEndpoint} may`,
        )
      for (const request of queue) this.#checkWaiting(request)
    }
    for (const id of this.#updates.keys()) this.#checkLoad(id)
  }

  inspect(programs: readonly ProgramState[]): void {
    const nowMs = this.#view.nowMs()
    if (nowMs - this.#startMs < HEALTHY_MS) return
    for (const { id, endpoint, healthySinceMs, terminatedMs } of programs) {
      if (healthySinceMs === null || terminatedMs !== null || nowMs - healthySinceMs < HEALTHY_MS) continue
      const update = this.#updates.get(endpoint as EndpointId)
      if (
        update === undefined ||
        update.endpoint.paused ||
        !this.#hasCapacity(id, update.endpoint) ||
        this.#mayBeEjected(id)
      )
        continue
      if (update.targets.get(id)?.state === 'draining') continue
      const first = [...(this.#waiting.get(update.endpoint.id) ?? [])].find(({ takesAnyWorker }) => takesAnyWorker)
      if (first !== undefined && !first.reported && nowMs - first.sinceMs > HEALTHY_MS)
        this.#reportOnce(
          first,
          `waits although worker ${id} has been healthy for ${nowMs - healthySinceMs} ms and has capacity`,
        )
    }
  }

  #dispatched(request: WaitingRequest, reservation: Reservation): Reservation {
    const { workerId } = reservation
    const { endpointId, named, sinceMs } = request
    const dispatch = `request ${request.n} of endpoint ${endpointId} got worker ${workerId}`
    const update = this.#updates.get(endpointId)
    const state = update?.targets.get(workerId)?.state ?? 'unknown'
    if (request.left) this.#report(`${dispatch} after its client had gone`)
    if (state !== 'ready') this.#report(`${dispatch}, which is ${state}`)
    if (named !== null && workerId !== named) this.#report(`${dispatch} and requires worker ${named}`)
    this.#checkOrder(request, dispatch)
    this.#checkProgram(workerId, dispatch)
    const inFlight = this.#inFlightAt(workerId) + 1
    this.#inFlight.set(workerId, inFlight)
    const max = update?.endpoint.maxConcurrency ?? null
    if (max !== null && inFlight > max)
      this.#report(`${dispatch}, which then has ${inFlight} requests, and its limit is ${max}`)
    this.#view.count(this.#view.nowMs() === sinceMs ? 'requests sent at once' : 'requests that have waited')
    let isOver = false
    const release = (outcome: RequestOutcome) => {
      if (!isOver) this.#released(workerId, outcome)
      isOver = true
      reservation.release(outcome)
    }
    return { workerId, servedAt: reservation.servedAt, waitedMs: reservation.waitedMs, release }
  }

  #released(workerId: WorkerId, outcome: RequestOutcome): void {
    this.#view.count(`requests that were ${outcome}`)
    this.#inFlight.set(workerId, this.#inFlightAt(workerId) - 1)
    const hasFailed = outcome !== 'answered' && outcome !== 'aborted'
    if (outcome === 'refused') this.#refusedMs.set(workerId, this.#view.nowMs())
    if (hasFailed) this.#failedMs.set(workerId, this.#view.nowMs())
    if (hasFailed) this.#onTrial.add(workerId)
    else if (outcome === 'answered') this.#onTrial.delete(workerId)
  }

  #checkOrder({ takesAnyWorker, endpointId, n }: WaitingRequest, dispatch: string): void {
    if (!takesAnyWorker) return
    const passed = [...(this.#waiting.get(endpointId) ?? [])].find(other => other.takesAnyWorker && other.n < n)
    if (passed !== undefined) this.#report(`${dispatch} before request ${passed.n}, which was first in the queue`)
  }

  #checkProgram(worker: WorkerId, dispatch: string): void {
    const program = this.#view.program(worker)
    const nowMs = this.#view.nowMs()
    if (program?.firstHealthyMs == null) this.#report(`${dispatch}, which was never healthy`)
    else if (program.endedMs !== null && nowMs - Math.max(program.endedMs, this.#startMs) > NOTICE_MS)
      this.#report(`${dispatch}, which has ended ${nowMs - program.endedMs} ms before`)
  }

  #checkWaiting(request: WaitingRequest): void {
    const { endpointId, named, takesAnyWorker, sinceMs, reported } = request
    if (reported) return
    const { waitMs, namedWaitMs } = this.#view.limits
    const waitedMs = this.#view.nowMs() - sinceMs
    if (waitedMs > (named === null ? waitMs : namedWaitMs) + SLACK_MS)
      this.#reportOnce(request, `waits for ${waitedMs} ms`)
    const update = this.#updates.get(endpointId)
    if (update === undefined) return
    if (update.endpoint.paused) this.#reportOnce(request, 'waits although its endpoint is paused')
    for (const { workerId, state, servedAt } of update.targets.values()) {
      if (state !== 'ready' || servedAt === null || !this.#hasCapacity(workerId, update.endpoint)) continue
      const mayServe =
        named === null
          ? takesAnyWorker && !this.#mayBeEjected(workerId)
          : named === workerId && !this.#mayBeRefusing(workerId)
      if (mayServe) this.#reportOnce(request, `waits although worker ${workerId} is ready and has capacity`)
    }
  }

  #checkLoad(id: EndpointId): void {
    const load = this.#queues.load(id)
    for (const { workerId, inFlight: stated } of load.workers) {
      const inFlight = this.#inFlightAt(workerId)
      if (stated !== inFlight)
        this.#report(`the load has ${stated} requests in flight at worker ${workerId}, which has ${inFlight}`)
    }
    const waiting = [...(this.#waiting.get(id) ?? [])].filter(({ named }) => named === null).length
    if (load.waiting !== waiting)
      this.#report(`the load has ${load.waiting} waiting requests at endpoint ${id}, and ${waiting} wait`)
  }

  #reportOnce(request: WaitingRequest, problem: string): void {
    request.reported = true
    this.#report(`request ${request.n} of endpoint ${request.endpointId} ${problem}`)
  }

  #hasCapacity(worker: WorkerId, { maxConcurrency }: BalancedEndpoint): boolean {
    return maxConcurrency === null || this.#inFlightAt(worker) < maxConcurrency
  }

  #mayBeEjected(worker: WorkerId): boolean {
    if (this.#onTrial.has(worker) && this.#inFlightAt(worker) > 0) return true
    return this.#view.nowMs() - (this.#failedMs.get(worker) ?? Number.NEGATIVE_INFINITY) < EJECTED_MS
  }

  #mayBeRefusing(worker: WorkerId): boolean {
    return this.#view.nowMs() - (this.#refusedMs.get(worker) ?? Number.NEGATIVE_INFINITY) < REFUSING_MS
  }

  #inFlightAt(worker: WorkerId): number {
    return this.#inFlight.get(worker) ?? 0
  }
}

import type { OpenCircuit } from '../../src/core/balancing/circuit-breaker.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import type { BalancedEndpoint, Target } from '../../src/core/workers/socket-address.ts'
import type { RequestQueueLimits } from '../../src/gateway/queue/request-queue.ts'
import type { RequestOutcome, Reservation, Reservations, WorkerRequest } from '../../src/gateway/queue/reservation.ts'
import type { Targets, Traffic } from '../../src/ports/targets.ts'

/** Few requests may wait, and not for long, so that lines get full and waits end within a run. */
export const REQUEST_QUEUE_LIMITS: RequestQueueLimits = {
  perEndpoint: 12,
  inAll: 20,
  waitMs: 25_000,
  namedWaitMs: 35_000,
}

/** What the checker looks through: the lines of one run of the server. */
export type BalancedRequestQueues = Targets & Traffic & Reservations

/** What is true of the program of a worker, whatever the server believes. */
export interface ProgramSight {
  readonly id: WorkerId
  readonly endpoint: string
  readonly firstWellMs: number | null
  readonly wellSinceMs: number | null
  readonly terminatedMs: number | null
  readonly endedMs: number | null
}

/** What the checker looks at besides the lines. */
export interface RequestQueueSight {
  readonly nowMs: () => number
  readonly program: (worker: WorkerId) => ProgramSight | undefined
  readonly count: (name: string) => void
  readonly limits: RequestQueueLimits
}

interface Asked {
  readonly n: number
  readonly endpointId: EndpointId
  readonly sinceMs: number
  readonly named: WorkerId | null
  /** Whether it takes any worker, so that it waits for nobody but those before it. */
  readonly plain: boolean
  left: boolean
  told: boolean
}

/** What was told of an endpoint last. */
interface Kept {
  readonly endpoint: BalancedEndpoint
  readonly targets: ReadonlyMap<WorkerId, Target>
}

/** The server must have noticed the end of a worker after this time. */
const NOTICE_MS = 15_000
/** Waits may be over so much later. */
const SLACK_MS = 1_000
/** A worker of which a request has failed may be out of the rotation for so long. */
const DOUBT_MS = 60_000
/** A worker that was well all the time must get requests after this time, if some wait. */
const WELL_MS = 20_000

/** Refusals in the words that clients know; all but the second group say when to try again. */
const REFUSALS: Readonly<Record<number, RegExp>> = {
  400: /no workers available|worker_timeout/,
  404: /affinity_worker_gone|endpoint \S+ not found/,
  429: /requests are waiting|all workers are busy/,
  503: /stopping/,
}

/** Reports lines that are unfair, unbounded or lose somebody, and requests that are sent where they should not be. */
export class RequestQueueChecker {
  readonly #report: (problem: string) => void
  readonly #sight: RequestQueueSight
  #run: RequestQueueRun | null = null

  /** @param report is given one sentence per problem */
  constructor(report: (problem: string) => void, sight: RequestQueueSight) {
    this.#report = report
    this.#sight = sight
  }

  /** The lines of a server that starts, as everybody is to use them from now on. */
  watch(lines: BalancedRequestQueues): BalancedRequestQueues {
    const run = new RequestQueueRun(this.#report, this.#sight, lines)
    this.#run = run
    return run
  }

  /** The server has ended, and all that its lines had with it. */
  serverGone(): void {
    this.#run?.end()
    this.#run = null
  }

  /** How many requests of an endpoint wait for any worker, and how many there are with those that have one. */
  requests(endpoint: EndpointId): { readonly waiting: number; readonly all: number } {
    return this.#run?.requests(endpoint) ?? { waiting: 0, all: 0 }
  }

  /** Nothing is on its way any more. */
  settled(): void {
    this.#run?.settled()
  }

  /** Looks for those who wait although a worker is well; while the server is up and its store is not slow. */
  look(programs: readonly ProgramSight[]): void {
    this.#run?.look(programs)
  }

  /** A client was refused. */
  refused(status: number, text: string, retryAfter: string | null, nonce: string): void {
    this.#sight.count(`refusals: ${status} ${text.slice(0, 40)}`)
    // The store was asked whether a worker can be started again, and failed.
    if (status === 500 || status === 503) return
    if (REFUSALS[status]?.test(text) !== true) this.#report(`request ${nonce} was refused with ${status} ${text}`)
    else if (status !== 404 && !(Number(retryAfter) > 0))
      this.#report(`request ${nonce} was refused with ${status} ${text}, and not told when to try again`)
  }
}

/** One run of the server, seen from outside: who waits, and what is in flight where. */
class RequestQueueRun implements BalancedRequestQueues {
  readonly #report: (problem: string) => void
  readonly #sight: RequestQueueSight
  readonly #lines: BalancedRequestQueues
  readonly #startMs: number
  readonly #waiting = new Map<EndpointId, Set<Asked>>()
  readonly #inFlight = new Map<WorkerId, number>()
  readonly #failedMs = new Map<WorkerId, number>()
  readonly #kept = new Map<EndpointId, Kept>()
  #count = 0
  #over = false

  constructor(report: (problem: string) => void, sight: RequestQueueSight, lines: BalancedRequestQueues) {
    this.#report = problem => {
      if (!this.#over) report(problem)
    }
    this.#sight = sight
    this.#lines = lines
    this.#startMs = sight.nowMs()
  }

  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void {
    this.#kept.set(endpoint.id, { endpoint, targets: new Map(targets.map(target => [target.workerId, target])) })
    this.#lines.keep(endpoint, targets)
  }

  setCircuit(id: EndpointId, circuit: OpenCircuit | null): void {
    this.#lines.setCircuit(id, circuit)
    if (circuit === null) return
    this.#sight.count('lines that are refused since no worker can start')
    const left = [...(this.#kept.get(id)?.targets.values() ?? [])].filter(({ state }) => state !== 'draining')
    if (left.length > 0)
      this.#report(
        `nobody is said to serve endpoint ${id} (${circuit.cause}), but worker ${left[0]!.workerId} is ${left[0]!.state}`,
      )
  }

  forget(id: EndpointId): void {
    this.#kept.delete(id)
    this.#lines.forget(id)
  }

  busyMs(id: EndpointId, worker: WorkerId): number {
    return this.#lines.busyMs(id, worker)
  }

  load(id: EndpointId): ReturnType<Traffic['load']> {
    return this.#lines.load(id)
  }

  async reserve(wanted: WorkerRequest): Promise<Reservation> {
    const { endpointId, affinity, avoid, signal } = wanted
    this.#count += 1
    const named = affinity === null || affinity.kind === 'soft' ? null : affinity.workerId
    const plain = affinity === null && avoid.length === 0
    const sinceMs = this.#sight.nowMs()
    const asked: Asked = { n: this.#count, endpointId, sinceMs, named, plain, left: false, told: false }
    const line = this.#waiting.get(endpointId) ?? new Set()
    this.#waiting.set(endpointId, line)
    line.add(asked)
    const leave = () => {
      asked.left = true
      line.delete(asked)
    }
    signal.addEventListener('abort', leave, { once: true })
    try {
      return this.#given(asked, await this.#lines.reserve(wanted))
    } finally {
      line.delete(asked)
      signal.removeEventListener('abort', leave)
    }
  }

  end(): void {
    this.#over = true
  }

  requests(endpoint: EndpointId): { readonly waiting: number; readonly all: number } {
    const line = [...(this.#waiting.get(endpoint) ?? [])]
    const workers = [...(this.#kept.get(endpoint)?.targets.keys() ?? [])]
    const flights = workers.reduce((sum, worker) => sum + this.#flights(worker), 0)
    return { waiting: line.filter(({ named }) => named === null).length, all: line.length + flights }
  }

  settled(): void {
    for (const [id, line] of this.#waiting) {
      if (line.size > this.#sight.limits.perEndpoint)
        this.#report(
          `${line.size} requests wait at endpoint ${id}, and no more than ${this.#sight.limits.perEndpoint} may`,
        )
      for (const asked of line) this.#checkWaiting(asked)
    }
    for (const id of this.#kept.keys()) this.#checkLoad(id)
  }

  look(programs: readonly ProgramSight[]): void {
    const nowMs = this.#sight.nowMs()
    if (nowMs - this.#startMs < WELL_MS) return
    for (const { id, endpoint, wellSinceMs, terminatedMs } of programs) {
      if (wellSinceMs === null || terminatedMs !== null || nowMs - wellSinceMs < WELL_MS) continue
      const kept = this.#kept.get(endpoint as EndpointId)
      if (kept === undefined || kept.endpoint.paused || !this.#hasRoom(id, kept.endpoint) || this.#isDoubtful(id))
        continue
      if (kept.targets.get(id)?.state === 'draining') continue
      const first = [...(this.#waiting.get(kept.endpoint.id) ?? [])].find(({ plain }) => plain)
      if (first !== undefined && !first.told && nowMs - first.sinceMs > WELL_MS)
        this.#tell(first, `waits although worker ${id} is well since ${nowMs - wellSinceMs} ms and has room`)
    }
  }

  #given(asked: Asked, reservation: Reservation): Reservation {
    const { workerId } = reservation
    const { endpointId, named, sinceMs } = asked
    const what = `request ${asked.n} of endpoint ${endpointId} was given worker ${workerId}`
    const kept = this.#kept.get(endpointId)
    const state = kept?.targets.get(workerId)?.state ?? 'unknown'
    if (asked.left) this.#report(`${what} after its client had gone`)
    if (state !== 'ready') this.#report(`${what}, which is ${state}`)
    if (named !== null && workerId !== named) this.#report(`${what} and insists on worker ${named}`)
    this.#checkOrder(asked, what)
    this.#checkProgram(workerId, what)
    const flights = this.#flights(workerId) + 1
    this.#inFlight.set(workerId, flights)
    const max = kept?.endpoint.maxConcurrency ?? null
    if (max !== null && flights > max)
      this.#report(`${what}, which then has ${flights} requests, and its limit is ${max}`)
    this.#sight.count(this.#sight.nowMs() === sinceMs ? 'requests sent at once' : 'requests that have waited')
    let isOver = false
    const release = (outcome: RequestOutcome) => {
      if (!isOver) this.#released(workerId, outcome)
      isOver = true
      reservation.release(outcome)
    }
    return { workerId, servedAt: reservation.servedAt, waitedMs: reservation.waitedMs, release }
  }

  #released(workerId: WorkerId, outcome: RequestOutcome): void {
    this.#sight.count(`requests that were ${outcome}`)
    this.#inFlight.set(workerId, this.#flights(workerId) - 1)
    if (outcome === 'broken' || outcome === 'unreachable') this.#failedMs.set(workerId, this.#sight.nowMs())
  }

  #checkOrder({ plain, endpointId, n }: Asked, what: string): void {
    if (!plain) return
    const passed = [...(this.#waiting.get(endpointId) ?? [])].find(other => other.plain && other.n < n)
    if (passed !== undefined) this.#report(`${what} before request ${passed.n}, which was there first`)
  }

  #checkProgram(worker: WorkerId, what: string): void {
    const program = this.#sight.program(worker)
    const nowMs = this.#sight.nowMs()
    if (program?.firstWellMs == null) this.#report(`${what}, which was never well`)
    else if (program.endedMs !== null && nowMs - Math.max(program.endedMs, this.#startMs) > NOTICE_MS)
      this.#report(`${what}, which has ended ${nowMs - program.endedMs} ms before`)
  }

  #checkWaiting(asked: Asked): void {
    const { endpointId, named, plain, sinceMs, told } = asked
    if (told) return
    const { waitMs, namedWaitMs } = this.#sight.limits
    const waitedMs = this.#sight.nowMs() - sinceMs
    if (waitedMs > (named === null ? waitMs : namedWaitMs) + SLACK_MS) this.#tell(asked, `waits for ${waitedMs} ms`)
    const kept = this.#kept.get(endpointId)
    if (kept === undefined) return
    if (kept.endpoint.paused) this.#tell(asked, 'waits although its endpoint is paused')
    for (const { workerId, state, servedAt } of kept.targets.values()) {
      if (state !== 'ready' || servedAt === null || !this.#hasRoom(workerId, kept.endpoint)) continue
      const isMeant = named === null ? plain && !this.#isDoubtful(workerId) : named === workerId
      if (isMeant) this.#tell(asked, `waits although worker ${workerId} is ready and has room`)
    }
  }

  #checkLoad(id: EndpointId): void {
    const load = this.#lines.load(id)
    for (const { workerId, inFlight } of load.workers) {
      const flights = this.#flights(workerId)
      if (inFlight !== flights)
        this.#report(`worker ${workerId} is said to have ${inFlight} requests in flight, and has ${flights}`)
    }
    const waiting = [...(this.#waiting.get(id) ?? [])].filter(({ named }) => named === null).length
    if (load.waiting !== waiting)
      this.#report(`${load.waiting} requests are said to wait at endpoint ${id}, and ${waiting} do`)
  }

  #tell(asked: Asked, problem: string): void {
    asked.told = true
    this.#report(`request ${asked.n} of endpoint ${asked.endpointId} ${problem}`)
  }

  #hasRoom(worker: WorkerId, { maxConcurrency }: BalancedEndpoint): boolean {
    return maxConcurrency === null || this.#flights(worker) < maxConcurrency
  }

  #isDoubtful(worker: WorkerId): boolean {
    return this.#sight.nowMs() - (this.#failedMs.get(worker) ?? Number.NEGATIVE_INFINITY) < DOUBT_MS
  }

  #flights(worker: WorkerId): number {
    return this.#inFlight.get(worker) ?? 0
  }
}

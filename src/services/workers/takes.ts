import { AppError } from '../../core/errors.ts'
import type { JobId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import { TAKE_AHEAD } from '../../core/jobs/take-ahead.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { takeHoldMs } from '../../core/workers/worker-liveness.ts'
import { beginsJobsLate, takesJobsAhead } from '../../core/workers/worker-sdk.ts'
import type { Ports } from '../../ports/ports.ts'
import type { ClaimRequest } from '../../ports/store/claims.ts'
import type { QueueDemand } from '../../ports/store/store.ts'
import type { ClaimAnswer, Jobs } from '../jobs/jobs.ts'
import { PollQueues } from '../jobs/poll-queue.ts'
import type { Fleet } from './fleet.ts'
import { type JobStops, mayWait } from './job-stops.ts'
import type { LostJobs } from './lost-jobs.ts'
import type { Prestarts } from './prestarts.ts'
import type { PendingTake, RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'
import type { ShortRuns } from './short-runs.ts'

/** A worker's request for jobs. */
export interface TakeRequest {
  /** Maximum number of jobs that it wants. */
  readonly limit: number
  readonly sdk: string | null
  /** True when it says that it works on no job at all; null when it says nothing of it. */
  readonly idle: boolean | null
  /** Aborts when the worker's connection is gone. */
  readonly signal: AbortSignal
}

/** A take on its way, with what is known of its worker. */
interface TakeInProgress {
  readonly worker: Worker
  readonly running: RunningWorker
  readonly request: TakeRequest
  readonly pending: PendingTake
  /** Number of jobs that the worker was asked to stop, at the time of the take. */
  readonly sentStops: number
  /** True once no job waited. */
  sawNone: boolean
}

/**
 * Takes of workers: each is recorded, claims jobs or waits for some, and is settled once the response was written or
 * lost.
 */
export class Takes {
  readonly #ports
  readonly #parts
  readonly #ends
  readonly #polls

  /** @param ends `stopping` aborts when dispatch ends, `closed` when held takes have to end */
  constructor(
    ports: Ports,
    parts: {
      readonly jobs: Jobs
      readonly fleet: Fleet
      readonly running: RunningWorkers
      readonly stops: JobStops
      readonly lostJobs: LostJobs
      readonly prestarts: Prestarts
      readonly shortRuns: ShortRuns
    },
    ends: { readonly stopping: AbortSignal; readonly closed: AbortSignal },
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#ends = ends
    this.#polls = new PollQueues(ports, parts.jobs.coming)
  }

  /**
   * Jobs for an authenticated worker: immediately when some wait, else as soon as one arrives, else an empty list
   * after {@link takeHoldMs}.
   * @throws AppError `rate_limited` for a worker that has ended, which slows it down until it is gone
   */
  async take(worker: Worker, request: TakeRequest): Promise<ClaimedJob[]> {
    if (worker.state === 'EXITED') throw new AppError('rate_limited', 'this worker was ended', { retryAfterSeconds: 5 })
    const running = this.#parts.running.of(worker)
    const pending = running.beginTake()
    try {
      await this.#record(worker, running, request)
      const holdMs = await this.#holdMs(worker, running, request)
      const take = { worker, running, request, pending, sentStops: running.sentStops, sawNone: false }
      using place = this.#polls.join({
        endpointId: worker.endpointId,
        workerId: worker.id,
        holdMs,
        completedAtMs: running.completedAtMs,
        signals: [request.signal, this.#ends.closed],
      })
      for (;;) {
        const answer = await this.#claim(take, place.takers)
        if (answer.kind === 'jobs') return answer.jobs
        if (answer.kind === 'over' || hasMoreToStop(take) || !(await place.next(answer.kind))) return []
      }
    } finally {
      running.endTake(pending)
    }
  }

  /**
   * Records what the take says about its worker: that it holds nothing, that it is ready, how many jobs it wants, and
   * its SDK.
   */
  async #record(worker: Worker, running: RunningWorker, { idle, limit, sdk }: TakeRequest): Promise<void> {
    const { store, clock } = this.#ports
    const { fleet, stops, lostJobs, prestarts } = this.#parts
    if (idle === true) {
      await stops.letGoAll(worker, running)
      await lostJobs.afterIdleTake(worker, sdk)
    }
    const capacity = running.asks({ limit, idle, sdk: sdk ?? worker.sdk }, worker.capacity)
    if (await prestarts.holdBack(worker, { capacity, sdk })) return
    if (worker.state === 'STARTING' || worker.capacity !== capacity || worker.sdk !== sdk) {
      const move = await store.workers.seen(worker.id, capacity, sdk, clock.now())
      if (move !== null) fleet.moved(move)
    }
  }

  async #holdMs(worker: Worker, { isConcurrent }: RunningWorker, { idle }: TakeRequest): Promise<number> {
    const isBusy = idle === false
    const isStopping = isBusy && isConcurrent && (await this.#ports.store.stops.pending(worker.id)).length > 0
    return takeHoldMs({ isBusy, isStopping, isConcurrent })
  }

  /** One try of a take: jobs for it, or the reason for which it gets none. */
  async #claim(take: TakeInProgress, takers: number): Promise<ClaimAnswer> {
    const { store } = this.#ports
    const { jobs } = this.#parts
    const { worker, running, request, pending } = take
    const { id: workerId, endpointId } = worker
    for (;;) {
      const { isSerial } = running
      if (running.isLoading || worker.problem !== null || (isSerial && (await this.#isBusy(worker)))) {
        return (await mayWait(store, workerId)) ? BARRED : OVER
      }
      const come = this.#isForTheOneComing(take) ? await this.#claimJobs(take, { limit: 1 }) : NOTHING
      if (come.kind === 'jobs' && come.jobs.length > 0) return come
      const demand = await store.endpoints.demand(endpointId, workerId, jobs.coming.count(endpointId))
      if (request.signal.aborted || running.hasEnded) return OVER
      if (this.#ends.stopping.aborted) return (await mayWait(store, workerId)) ? NOTHING : OVER
      if (demand.takerState === 'FROZEN') return BARRED
      // While it is still being frozen its next take would be stale, too.
      if (pending.isStale) return running.frozen === false ? OVER : BARRED
      if (demand.takerState === 'DRAINING') return BARRED
      if (demand.takerState !== 'STARTING' && demand.takerState !== 'READY') return OVER
      // A claim is a transaction. A job that comes now wakes the take, which is in the poll queue.
      take.sawNone = demand.queued === 0
      if (take.sawNone) return NOTHING
      const numbers = takers > 1 || isSerial ? { limit: 1 } : await this.#numbers(take, demand)
      const answer = await this.#claimJobs(take, numbers)
      if (answer.kind !== 'jobs' || answer.jobs.length > 0) return answer
    }
  }

  /**
   * True for a take that saw an empty queue and was woken by the one job that comes: it claims that job without a look
   * at the queue. Where it gets none, the look says why.
   */
  #isForTheOneComing({ worker, running, request, pending, sawNone }: TakeInProgress): boolean {
    if (!sawNone || this.#parts.jobs.coming.count(worker.endpointId) !== 1) return false
    return !request.signal.aborted && !running.hasEnded && !pending.isStale && !this.#ends.stopping.aborted
  }

  async #claimJobs(
    { worker, running, request, pending }: TakeInProgress,
    numbers: Pick<ClaimRequest, 'limit' | 'beginsByMs'>,
  ): Promise<ClaimAnswer> {
    const { id: workerId, endpointId } = worker
    const letGoFirst = beginsJobsLate(request.sdk ?? worker.sdk)
    const answer = await this.#claimed(running, { endpointId, ...numbers, letGoFirst })
    if (answer === null) return NOTHING
    pending.waitsForLess ||= answer.kind === 'held_back' || answer.kind === 'for_others'
    if (answer.kind === 'jobs') this.#ports.logs.mark(workerId, 'begin')
    return answer
  }

  /**
   * The answer of a claim; null where it failed together with the insert of a job that was on its way. Its client was
   * refused, and the take waits for the next job.
   */
  async #claimed(running: RunningWorker, request: Parameters<Jobs['claim']>[1]): Promise<ClaimAnswer | null> {
    const { jobs } = this.#parts
    const isJoint = jobs.coming.count(request.endpointId) > 0
    try {
      return await jobs.claim(running, request)
    } catch (thrown) {
      if (isJoint && thrown instanceof AppError && thrown.code === 'unavailable') return null
      throw thrown
    }
  }

  /** Maximum number of jobs of a claim; more than the take asks for where they are short. */
  async #numbers(
    { worker, running, request }: TakeInProgress,
    demand: QueueDemand,
  ): Promise<Pick<ClaimRequest, 'limit' | 'beginsByMs'>> {
    const { limit, idle, sdk } = request
    if (limit > 1) return { limit: claimShare(demand, limit) }
    // One that has completed a job does not end after each.
    const isFit = idle === true && running.completedAtMs > 0 && !running.isConcurrent
    const isAble = isFit && takesJobsAhead(sdk ?? worker.sdk)
    const share = claimShare(demand, TAKE_AHEAD.jobs)
    const ahead = await this.#parts.shortRuns.countJobsAhead(worker.endpointId, { isAble, share })
    return ahead > 1 ? { limit: ahead, beginsByMs: this.#ports.clock.now() + TAKE_AHEAD.beginsWithinMs } : { limit }
  }

  async #isBusy({ id }: Worker): Promise<boolean> {
    const { store } = this.#ports
    return (await store.jobs.heldBy(id)).length > 0 || (await store.stops.pending(id)).length > 0
  }

  /**
   * Notes that the response with these jobs was written, or was not. Then they are given back, and the attempt does
   * not count.
   * @throws AppError `unavailable`; then the jobs stay with the worker until a rule or its end gives them back
   */
  async settled(worker: Worker, claimed: readonly ClaimedJob[], delivered: boolean): Promise<void> {
    const { jobs, running } = this.#parts
    const ids = claimed.map(({ id }) => id)
    try {
      if (!delivered) for (const { id, attempt } of claimed) await jobs.undeliver(id, attempt, worker.id)
    } finally {
      running.of(worker).settled(ids, delivered)
    }
  }

  /**
   * Fails a job whose large input cannot be read for good. With any other error the job is given back, and a worker
   * gets it again.
   * @param thrown the error of the text
   */
  async unreadable(worker: Worker, jobId: JobId, thrown: unknown): Promise<void> {
    if (!(thrown instanceof AppError) || (thrown.code !== 'internal' && thrown.code !== 'not_found')) return
    const outcome = { status: 'FAILED', output: null, error: thrown.message, warning: null } as const
    await this.#parts.jobs.finish(worker.endpointId, jobId, worker.id, outcome, { beginsNext: true })
  }

  /**
   * Gives back the jobs that were claimed for a worker after an instant, because no response has reached it since. The
   * attempts do not count.
   * @param atMs the instant (Unix time in ms)
   * @param sent time at which this was sent, by the clock that shows the instant (null: the server's time) and by the
   *   machine's monotonic clock (null where the sender does not say it)
   */
  async undelivered(
    worker: Worker,
    atMs: number,
    sent: { readonly relayNowMs: number | null; readonly monotonicMs: number | null },
  ): Promise<void> {
    const { store, clock } = this.#ports
    const { jobs, running } = this.#parts
    const delayMs = clock.monotonic() - (sent.monotonicMs ?? clock.monotonic())
    // Any other delay is that of the clock of another machine.
    const isDelay = delayMs > 0 && delayMs < LONGEST_DELAY_MS
    const agoMs = (sent.relayNowMs ?? clock.now()) - atMs + (isDelay ? delayMs : 0)
    // Times of claims are whole milliseconds, rounded down.
    const claimedAfterMs = Math.floor(clock.now() - agoMs) - (sent.relayNowMs === null ? 0 : 1)
    for (const jobId of await store.jobs.heldBy(worker.id)) {
      if (await jobs.giveBack(worker, jobId, { claimedAfterMs })) running.of(worker).settled([jobId], false)
    }
  }
}

/** Longest time between a report of the relay and its reading by a server that starts. */
const LONGEST_DELAY_MS = 60_000

/** The worker gets no job in its present state, which may change. */
const BARRED: ClaimAnswer = { kind: 'barred' }
/** No job waits. */
const NOTHING: ClaimAnswer = { kind: 'none' }
/** The worker gets no more jobs, and a wait would keep it from ending. */
const OVER: ClaimAnswer = { kind: 'over' }

/** True once the worker of a take has more to stop: only its next take can say that it let go of the jobs. */
function hasMoreToStop({ running, sentStops, request }: TakeInProgress): boolean {
  return running.sentStops > sentStops && request.idle === false
}

/**
 * Maximum number of jobs that a take claims: at most what it wants, and no more than an equal share of the queue for
 * each worker of the endpoint.
 */
function claimShare({ queued, takers }: QueueDemand, maxJobs: number): number {
  return Math.min(maxJobs, Math.max(1, Math.ceil(queued / Math.max(1, takers))))
}

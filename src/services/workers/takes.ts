import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import { takeHoldMs } from '../../core/workers/take-hold.ts'
import type { Worker } from '../../core/workers/worker.ts'
import { beginsJobsLate } from '../../core/workers/worker-sdk.ts'
import type { Ports } from '../../ports/ports.ts'
import type { QueueDemand } from '../../ports/store/store.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { type Claimed, PollQueues } from '../jobs/poll-queue.ts'
import type { Fleet } from './fleet.ts'
import { type JobStops, mayWait } from './job-stops.ts'
import type { LostJobs } from './lost-jobs.ts'
import type { Prestarts } from './prestarts.ts'
import type { PendingTake, RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'

/** A worker's request for jobs. */
export interface TakeRequest {
  /** How many jobs it wants at most. */
  readonly limit: number
  readonly sdk: string | null
  /** Whether it says that it works on no job at all; null when it does not say. */
  readonly idle: boolean | null
  /** Aborts when the worker's connection is gone. */
  readonly signal: AbortSignal
}

/** The services that {@link Takes} uses. */
export interface TakeParts {
  readonly jobs: Jobs
  readonly fleet: Fleet
  readonly running: RunningWorkers
  readonly stops: JobStops
  readonly lostJobs: LostJobs
  readonly prestarts: Prestarts
}

/** A take on its way, with what is known of its worker. */
interface TakeInProgress {
  readonly worker: Worker
  readonly running: RunningWorker
  readonly request: TakeRequest
  readonly pending: PendingTake
  /** How many jobs the worker was told to stop when the take came. */
  readonly toldStops: number
}

/** Takes of workers: each is recorded, claims jobs or waits for some, and is settled once the response was written or lost. */
export class Takes {
  readonly #ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'emit' | 'logs'>
  readonly #parts: TakeParts
  readonly #ends: { readonly stopping: AbortSignal; readonly closed: AbortSignal }
  readonly #polls: PollQueues

  /** @param ends `stopping` aborts when no more jobs are to be dispatched, `closed` when held takes have to end */
  constructor(
    ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'emit' | 'logs'>,
    parts: TakeParts,
    ends: { readonly stopping: AbortSignal; readonly closed: AbortSignal },
  ) {
    this.#ports = ports
    this.#parts = parts
    this.#ends = ends
    this.#polls = new PollQueues(ports.clock, ports.notifier)
  }

  /**
   * Jobs for an authenticated worker: immediately when some wait, else as soon as one arrives, else an empty list after {@link takeHoldMs}.
   * @throws AppError `rate_limited` for a worker that has ended, which slows it down until it is gone
   */
  async take(worker: Worker, request: TakeRequest): Promise<ClaimedJob[]> {
    if (worker.state === 'EXITED') throw new AppError('rate_limited', 'this worker was ended', { retryAfterSeconds: 5 })
    const running = this.#parts.running.of(worker)
    const pending = running.beginTake()
    try {
      await this.#record(worker, running, request)
      const holdMs = await this.#holdMs(worker, running, request)
      const take = { worker, running, request, pending, toldStops: running.toldStops }
      return await this.#polls.take({
        endpointId: worker.endpointId,
        workerId: worker.id,
        holdMs,
        completedAtMs: running.completedAtMs,
        signals: [request.signal, this.#ends.closed],
        claim: takers => this.#claimOrEnd(take, takers),
      })
    } finally {
      running.endTake(pending)
    }
  }

  /** What the take says about its worker: that it holds nothing, that it is ready, how many jobs it wants, and which SDK it has. */
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

  /** Claims; ends the wait for jobs once the worker has more to stop, since only its next take can say that it let go of them. */
  async #claimOrEnd(take: TakeInProgress, takers: number): Promise<Claimed> {
    const claimed = await this.#claim(take, takers)
    const hasMoreToStop = take.running.toldStops > take.toldStops && take.request.idle === false
    if (Array.isArray(claimed) && claimed.length > 0) return claimed
    return hasMoreToStop ? null : claimed
  }

  /** Null ends the wait with nothing: the worker will get no more jobs, and waiting would keep it from ending. */
  async #claim(take: TakeInProgress, takers: number): Promise<Claimed> {
    const { store, clock } = this.#ports
    const { worker, running, request } = take
    const { id: workerId, endpointId } = worker
    const { isSerial } = running
    if (running.isLoading || worker.problem !== null || (isSerial && (await this.#isBusy(worker)))) {
      return (await mayWait(store, workerId)) ? 'barred' : null
    }
    const demand = await store.endpoints.demand(endpointId, workerId)
    if (request.signal.aborted || running.hasEnded) return null
    if (this.#ends.stopping.aborted) return (await mayWait(store, workerId)) ? [] : null
    if (demand.takerState === 'FROZEN') return 'barred'
    // While it is still being frozen its next take would be stale, too.
    if (take.pending.isStale) return running.frozen === false ? null : 'barred'
    if (demand.takerState === 'DRAINING') return 'barred'
    if (demand.takerState !== 'STARTING' && demand.takerState !== 'READY') return null
    const limit = takers > 1 || isSerial ? 1 : claimShare(demand, request.limit)
    const letGoFirst = beginsJobsLate(request.sdk ?? worker.sdk)
    const claim = await store.jobs.claim({ endpointId, workerId, limit, nowMs: clock.now(), letGoFirst })
    if (claim.jobs.length > 0) {
      this.#dispatch(running, endpointId, claim.jobs)
      const whole = await this.#withoutChanged(running, endpointId, claim.jobs)
      return whole.length > 0 ? whole : await this.#claim(take, takers)
    }
    if (claim.holdsBack || claim.leavesSuspect) take.pending.waitsForLess = true
    if (claim.holdsBack) return 'held_back'
    return claim.leavesSuspect ? 'left' : []
  }

  /** Jobs without those whose input was changed on the disk: they fail, and no worker runs another input than was submitted. */
  async #withoutChanged(running: RunningWorker, endpointId: EndpointId, claimed: readonly ClaimedJob[]) {
    for (const { id, inputProblem } of claimed) {
      if (inputProblem === null) continue
      const outcome = { status: 'FAILED', output: null, error: inputProblem, warning: null } as const
      await this.#parts.jobs.finish(endpointId, id, running.id, outcome)
      running.settled([id], false)
    }
    return claimed.filter(({ inputProblem }) => inputProblem === null)
  }

  async #isBusy({ id }: Worker): Promise<boolean> {
    const { store } = this.#ports
    return (await store.jobs.heldBy(id)).length > 0 || (await store.stops.pending(id)).length > 0
  }

  #dispatch(running: RunningWorker, endpointId: EndpointId, claimed: readonly ClaimedJob[]): void {
    const { emit, notifier, logs } = this.#ports
    const { id: workerId } = running
    logs.mark(workerId, 'begin')
    running.claimed(claimed.map(({ id }) => id))
    for (const { id: jobId, attempt, waitedMs, queuedAtMs, position, traceparent } of claimed) {
      const traced = { endpointId, jobId, queuedAtMs, position, traceparent }
      const states = { from: 'IN_QUEUE', to: 'IN_PROGRESS' } as const
      emit('job.moved', { ...traced, transition: 'claim', ...states, workerId, attempt, waitedMs })
      notifier.publish(`job:${jobId}`)
    }
    notifier.publish(`load:${endpointId}`)
  }

  /**
   * Notes whether the response with these jobs was written. If not, they are given back, and the attempt does not count.
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
   * Gives back what was claimed for a worker after an instant (in ms), because no response has reached it since. The attempts do
   * not count.
   * @param byClockMs what the clock shows that it is an instant of; null for the time of the server
   */
  async undelivered(worker: Worker, atMs: number, byClockMs: number | null): Promise<void> {
    const { store, clock } = this.#ports
    const { jobs, running } = this.#parts
    const sinceMs = byClockMs === null ? atMs : clock.now() - (byClockMs - atMs)
    for (const jobId of await store.jobs.heldBy(worker.id)) {
      const job = await store.jobs.find(worker.endpointId, jobId, clock.now())
      if (job === null || job.workerId !== worker.id || (job.startedAtMs ?? 0) <= sinceMs) continue
      await jobs.undeliver(jobId, job.attempt, worker.id)
      running.of(worker).settled([jobId], false)
    }
  }
}

/** How many jobs a take may claim: at most what it wants, and no more than an equal share of the queue for each worker of the endpoint. */
function claimShare({ queued, takers }: QueueDemand, wanted: number): number {
  return Math.min(wanted, Math.max(1, Math.ceil(queued / Math.max(1, takers))))
}

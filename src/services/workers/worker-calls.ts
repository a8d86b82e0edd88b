import type { Body } from '../../core/bodies/body-readings.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import { readChunk } from '../../core/jobs/chunk.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'
import {
  CHUNK_BYTES,
  type DroppedBody,
  droppedChunk,
  droppedResult,
  oversizedResult,
  readResult,
} from '../../core/jobs/result.ts'
import { unhealthyProblem, type Worker } from '../../core/workers/worker.ts'
import { HOLD_MS } from '../../core/workers/worker-liveness.ts'
import { beginsJobsLate } from '../../core/workers/worker-sdk.ts'
import type { Ports } from '../../ports/ports.ts'
import { InvalidKeyError } from '../accounts/failed-keys.ts'
import { InOrder } from '../in-order.ts'
import { claimShare } from '../jobs/claim-share.ts'
import type { Jobs } from '../jobs/jobs.ts'
import { mayFinishLate } from '../jobs/late-results.ts'
import type { LostJobs } from '../jobs/lost-jobs.ts'
import { type Claimed, PollQueues } from '../jobs/poll-queue.ts'
import type { LongPoll } from '../long-poll.ts'
import type { Fleet } from './fleet.ts'
import type { HeldTake, RunningWorker } from './running-worker.ts'
import type { RunningWorkers } from './running-workers.ts'

/** How long a take is held while the worker has jobs to stop: with its next one it may say that it holds none. */
const STOPPING_HOLD_MS = 1_000

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

/** What a worker's ping says. */
export interface Ping {
  readonly listed: readonly string[]
  /** Name and version of its SDK, where it says them. */
  readonly sdk: string | null
  /** Why it says that it cannot work; null when it does not. */
  readonly unhealthy: { readonly check: string; readonly reason: string } | null
}

/** The services that {@link WorkerCalls} uses. */
export interface WorkerCallParts {
  readonly jobs: Jobs
  readonly fleet: Fleet
  readonly waiting: LongPoll
  readonly running: RunningWorkers
  readonly lostJobs: LostJobs
}

/** A body that was read up to a limit. `bytes` is its size as far as it was read. */
export interface LimitedBody {
  /** Null when it was over the limit. */
  readonly content: Body | null
  readonly bytes: number
  readonly ended: boolean
}

/** What workers ask and report: the six calls of the worker protocol (docs/internals/worker-protocol.md). */
export class WorkerCalls {
  readonly #ports: Pick<Ports, 'store' | 'clock' | 'bodies' | 'vault' | 'notifier' | 'emit'>
  readonly #jobs: Jobs
  readonly #fleet: Fleet
  readonly #waiting: LongPoll
  readonly #running: RunningWorkers
  readonly #lostJobs: LostJobs
  readonly #polls: PollQueues
  /** Chunks and results of a job that are read in a thread, and what came behind them. */
  readonly #order = new InOrder<JobId>()
  readonly #ends: { readonly stopping: AbortSignal; readonly closed: AbortSignal }

  /** @param ends `stopping` aborts when no more jobs are to be handed out, `closed` when held polls have to end */
  constructor(
    ports: Pick<Ports, 'store' | 'clock' | 'bodies' | 'vault' | 'notifier' | 'emit'>,
    services: WorkerCallParts,
    ends: { readonly stopping: AbortSignal; readonly closed: AbortSignal },
  ) {
    this.#ports = ports
    this.#jobs = services.jobs
    this.#fleet = services.fleet
    this.#waiting = services.waiting
    this.#running = services.running
    this.#lostJobs = services.lostJobs
    this.#polls = new PollQueues(ports.clock, ports.notifier)
    this.#ends = ends
  }

  /**
   * The worker that a token belongs to; it opens the routes of its own endpoint only.
   * @throws InvalidKeyError
   */
  async authenticate(token: string | null, endpointId: EndpointId): Promise<Worker> {
    const worker = token === null ? null : await this.#ports.store.workers.findByToken(this.#ports.vault.hash(token))
    if (worker === null || worker.endpointId !== endpointId) {
      throw new InvalidKeyError('worker_token', 'this is not the token of a worker of this endpoint')
    }
    return worker
  }

  /**
   * Jobs for a worker: at once when some wait, else as soon as one comes, else none after {@link HOLD_MS}.
   * @throws AppError `rate_limited` for a worker that has ended, which slows it down until it is gone
   */
  async take(worker: Worker, request: TakeRequest): Promise<ClaimedJob[]> {
    const { store, clock } = this.#ports
    if (worker.state === 'EXITED') throw new AppError('rate_limited', 'this worker was ended', { retryAfterSeconds: 5 })
    const running = this.#running.of(worker)
    const take = running.beginTake()
    try {
      if (request.idle === true) {
        await this.#letGoAll(worker, running)
        await this.#lostJobs.afterIdleTake(worker, request.sdk)
      }
      if (worker.state === 'STARTING' || worker.capacity < request.limit || worker.sdk !== request.sdk) {
        const move = await store.workers.seen(worker.id, request.limit, request.sdk, clock.now())
        if (move !== null) this.#fleet.moved(move)
      }
      const stopping = request.idle === false && (await store.stops.pending(worker.id)).length > 0
      return await this.#polls.take({
        endpointId: worker.endpointId,
        workerId: worker.id,
        holdMs: stopping ? STOPPING_HOLD_MS : HOLD_MS,
        signals: [request.signal, this.#ends.closed],
        claim: this.#claimUntilTold(worker, running, request, take),
      })
    } finally {
      running.endTake(take)
    }
  }

  /** Claims, and gives up a wait for jobs once the worker has more to stop, since it can say so only with its next take. */
  #claimUntilTold(worker: Worker, running: RunningWorker, request: TakeRequest, take: HeldTake) {
    const toldBefore = running.toldStops
    return async (takers: number) => {
      const claimed = await this.#claim(worker, running, request, take, takers)
      const isMore = running.toldStops > toldBefore && request.idle === false
      if (Array.isArray(claimed) && claimed.length > 0) return claimed
      return isMore ? null : claimed
    }
  }

  /**
   * Notes whether the answer with these jobs was written. If not, they are given back, and the attempt does not count.
   * @throws AppError `unavailable`; then the jobs stay with the worker until a rule or its end gives them back
   */
  async settled(worker: Worker, claimed: readonly ClaimedJob[], delivered: boolean): Promise<void> {
    const ids = claimed.map(({ id }) => id)
    try {
      if (!delivered) for (const { id, attempt } of claimed) await this.#jobs.undeliver(id, attempt, worker.id)
    } finally {
      this.#running.of(worker).settled(ids, delivered)
    }
  }

  /**
   * Gives back what was claimed for a worker after an instant (Unix time in ms), because no answer has reached it since. The attempts do
   * not count.
   */
  async undelivered(worker: Worker, sinceMs: number): Promise<void> {
    const { store, clock } = this.#ports
    for (const jobId of await store.jobs.heldBy(worker.id)) {
      const job = await store.jobs.find(worker.endpointId, jobId, clock.now())
      if (job === null || job.workerId !== worker.id || (job.startedAtMs ?? 0) <= sinceMs) continue
      await this.#jobs.undeliver(jobId, job.attempt, worker.id)
      this.#running.of(worker).settled([jobId], false)
    }
  }

  /** The jobs that a worker should stop: at once when there are some, else held like a take. */
  async stops(worker: Worker, signal: AbortSignal): Promise<JobId[]> {
    const { store } = this.#ports
    const running = this.#running.of(worker)
    running.heard()
    const read = async () => {
      const pending = (await store.stops.pending(worker.id)).filter(jobId => running.toldStop(jobId) !== 'told')
      if (pending.length > 0) return pending
      return (await this.#mayWait(worker.id)) ? null : []
    }
    const signals = [signal, this.#ends.closed]
    const jobs = (await this.#waiting.until({ topics: [`worker:${worker.id}`], read, forMs: HOLD_MS, signals })) ?? []
    for (const jobId of jobs) running.tellStop(jobId, 'told')
    // An open take would keep it from saying soon that it has let go.
    if (jobs.length > 0) this.#ports.notifier.publish(`worker:${worker.id}`)
    return jobs
  }

  /** Takes what a worker posts to job-done: a progress update or the final result. Never refuses it. */
  async done(worker: Worker, jobId: JobId, body: LimitedBody): Promise<void> {
    this.#running.of(worker).worked()
    return this.#order.run(jobId, isLarge(body), () => this.#done(worker, jobId, body))
  }

  async #done(worker: Worker, jobId: JobId, { content, bytes, ended }: LimitedBody): Promise<void> {
    const reading =
      content === null
        ? { kind: 'final' as const, refresh: false, outcome: oversizedResult(bytes, !ended) }
        : typeof content === 'string'
          ? readResult(content)
          : await this.#ports.bodies.read('result', content)
    if (reading.kind === 'progress') {
      const kept = await this.#ports.store.jobs.setProgress(jobId, worker.id, reading.output)
      if (kept) this.#ports.notifier.publish(`job:${jobId}`)
      return
    }
    if (reading.refresh) await this.#fleet.drain(worker.id, 'refresh')
    await this.#jobs.finish(worker.endpointId, jobId, worker.id, reading.outcome)
    this.#tellOfLess(this.#running.of(worker))
  }

  /** Whether a worker that was ended may still post the result of a job; see {@link mayFinishLate}. */
  mayFinishLate(worker: Worker, jobId: JobId): Promise<boolean> {
    return mayFinishLate(this.#ports, worker, jobId)
  }

  /**
   * Takes note of a result or chunk that the relay did not pass on because servers have died of it. A result fails its job, which is never lost silently.
   */
  async dropped(worker: Worker, jobId: JobId, what: 'result' | 'chunk', body: DroppedBody): Promise<void> {
    const { store, clock, emit } = this.#ports
    this.#running.of(worker).worked()
    emit('job.body_dropped', { endpointId: worker.endpointId, jobId, workerId: worker.id, what, ...body })
    if (what === 'result') await this.#jobs.finish(worker.endpointId, jobId, worker.id, droppedResult(body))
    else await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, droppedChunk(body))
  }

  /**
   * Keeps a chunk of a worker's stream. Never refuses it; one that is not kept leaves a diagnostic.
   * @param copies how many of it in a row there are if it was kept already, by a call that was cut off; 0 when there was none
   */
  async chunk(worker: Worker, jobId: JobId, body: LimitedBody, copies = 0): Promise<void> {
    this.#running.of(worker).worked()
    return this.#order.run(jobId, isLarge(body), () => this.#chunk(worker, jobId, body, copies))
  }

  async #chunk(worker: Worker, jobId: JobId, { content, bytes }: LimitedBody, copies: number): Promise<void> {
    const { store, notifier, clock, bodies } = this.#ports
    const reading =
      content === null ? null : typeof content === 'string' ? readChunk(content) : await bodies.read('chunk', content)
    const items = reading !== null && 'items' in reading ? reading.items : null
    const kept = items !== null && (await this.#append(worker, jobId, items, copies))
    if (kept) {
      notifier.publish(`job:${jobId}`)
      return
    }
    const because = reading !== null && 'problem' in reading ? `: ${reading.problem}` : ''
    const reason = `a chunk of ${bytes} bytes was not kept${because}`
    await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, reason)
  }

  /**
   * Notes which jobs a worker says it works on. Jobs that it was told to stop and lists no more are let go of; those that it still lists
   * are told again, because the Python SDK does not hear of a job that it has not begun. Jobs that it has forgotten are given back.
   */
  async ping(worker: Worker, { listed, sdk, unhealthy }: Ping): Promise<void> {
    const { store } = this.#ports
    if (worker.state === 'EXITED') return
    if (unhealthy !== null) {
      await this.#fleet.noteProblem(worker, unhealthyProblem(unhealthy.check, unhealthy.reason))
      return
    }
    const running = this.#running.of(worker)
    for (const jobId of await store.stops.pending(worker.id)) {
      if (running.toldStop(jobId) === null) continue
      if (!listed.includes(jobId)) await this.#letGo(worker, running, jobId)
      else {
        running.tellStop(jobId, 'again')
        this.#ports.notifier.publish(`worker:${worker.id}`)
      }
    }
    await this.#lostJobs.afterPing(worker, listed, worker.sdk ?? sdk)
  }

  /** Null ends the wait with nothing: the worker will get no more jobs, and waiting would keep it from ending. */
  async #claim(
    worker: Worker,
    running: RunningWorker,
    request: TakeRequest,
    take: HeldTake,
    takers: number,
  ): Promise<Claimed> {
    const { store, clock } = this.#ports
    const { id: workerId, endpointId } = worker
    const { isSerial } = running
    if (worker.problem !== null || (isSerial && (await this.#isBusy(workerId)))) {
      return (await this.#mayWait(workerId)) ? 'barred' : null
    }
    const limit = takers > 1 || isSerial ? 1 : await claimShare(this.#ports.store, endpointId, request.limit)
    if (request.signal.aborted || running.hasEnded) return null
    if (this.#ends.stopping.aborted) return (await this.#mayWait(workerId)) ? [] : null
    const letGoFirst = beginsJobsLate(request.sdk ?? worker.sdk)
    const claim = await store.jobs.claim({ endpointId, workerId, limit, nowMs: clock.now(), letGoFirst })
    if (claim.jobs.length > 0) {
      this.#claimed(running, endpointId, claim.jobs)
      return claim.jobs
    }
    const state = (await store.workers.find(workerId))?.state
    if (state === 'DRAINING') return 'barred'
    if (state !== 'STARTING' && state !== 'READY') return null
    if (claim.holdsBack || claim.leavesSuspect) take.waitsForLess = true
    if (claim.holdsBack) return 'held_back'
    return claim.leavesSuspect ? 'left' : []
  }

  async #isBusy(workerId: WorkerId): Promise<boolean> {
    const { store } = this.#ports
    return (await store.jobs.heldBy(workerId)).length > 0 || (await store.stops.pending(workerId)).length > 0
  }

  /** A job that it waits for may be there for it now. */
  #tellOfLess({ id, mayClaimMore }: RunningWorker): void {
    if (mayClaimMore) this.#ports.notifier.publish(`worker:${id}`)
  }

  async #mayWait(workerId: WorkerId): Promise<boolean> {
    const worker = await this.#ports.store.workers.find(workerId)
    return worker !== null && worker.state !== 'STOPPING' && worker.state !== 'EXITED'
  }

  #claimed(running: RunningWorker, endpointId: EndpointId, claimed: readonly ClaimedJob[]): void {
    const { emit, notifier } = this.#ports
    const workerId = running.id
    running.claimed(claimed.map(({ id }) => id))
    for (const { id: jobId, attempt, waitedMs } of claimed) {
      const states = { from: 'IN_QUEUE', to: 'IN_PROGRESS' } as const
      emit('job.moved', { endpointId, jobId, transition: 'claim', ...states, workerId, attempt, waitedMs })
      notifier.publish(`job:${jobId}`)
    }
    notifier.publish(`load:${endpointId}`)
  }

  async #append(worker: Worker, jobId: JobId, items: readonly string[], copies: number): Promise<boolean> {
    const { store } = this.#ports
    const running = this.#running.of(worker)
    const again = running.isChunkAgain(jobId, items)
    try {
      return await store.streams.append(jobId, worker.id, items, CHUNK_BYTES.all, Math.max(copies, again ? 1 : 0))
    } catch (error) {
      this.#running.chunkFailed(running, jobId, items)
      throw error
    }
  }

  async #letGoAll(worker: Worker, running: RunningWorker): Promise<void> {
    if ((await this.#ports.store.stops.pending(worker.id)).length === 0) return
    await this.#ports.store.stops.letGo(worker.id, 'all')
    running.letGo('all')
    this.#tellOfRoom(worker.endpointId)
  }

  async #letGo(worker: Worker, running: RunningWorker, jobId: JobId): Promise<void> {
    await this.#ports.store.stops.letGo(worker.id, jobId)
    running.letGo(jobId)
    this.#tellOfRoom(worker.endpointId)
    this.#tellOfLess(running)
  }

  /** The job may wait again, and may be this worker's from now on. */
  #tellOfRoom(endpointId: EndpointId): void {
    this.#ports.notifier.publish(`queue:${endpointId}`)
    this.#ports.notifier.publish(`load:${endpointId}`)
  }
}

function isLarge({ content }: LimitedBody): boolean {
  return content !== null && typeof content !== 'string'
}

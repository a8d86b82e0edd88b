import type { JobUsage } from '../../core/billing/usage.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, notFound } from '../../core/errors.ts'
import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import {
  type ClaimedJob,
  expiredJob,
  isFinal,
  type Job,
  type JobOutcome,
  type JobStatus,
  lossWords,
  type Transition,
} from '../../core/jobs/job.ts'
import { JOB_RECORD_RULES, type JobRecordRules, onlyRecordLeft } from '../../core/jobs/job-record.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import type { TracedJob } from '../../core/observing/job-spans.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { ClaimRequest } from '../../ports/store/claims.ts'
import type { BegunJob, JobMove, QueuePart } from '../../ports/store/store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { LongPoll } from '../long-poll.ts'
import { ComingJobs } from './coming-jobs.ts'
import { JobEnds } from './job-ends.ts'
import { newJob, type SubmissionOrigin } from './new-job.ts'

/** Maximum number of overdue jobs of one kind that one step of the reaper moves; other calls wait during a step. */
const SWEEP = 100

/** Time for which an Idempotency-Key stands for the job of its first submission, in ms. */
export const IDEMPOTENCY_MS = 24 * 60 * 60_000

/** Maximum number of jobs that one step of a purge reads; other calls are served between the steps. */
const PURGE_STEP = 100

/** Result of a cancellation. */
export type CancelResult = 'cancelled' | 'was_cancelled'

/** A worker that claims jobs, as this server knows it. */
export interface Claimant {
  readonly id: WorkerId
  /** Notes jobs that it got, before any other caller can see that it has them. */
  claimed(jobs: readonly JobId[]): void
  /** Notes that these jobs have reached it, or never will. */
  settled(jobs: readonly JobId[], delivered: boolean): void
}

/** Answer to a worker that asks for jobs. */
export type ClaimAnswer =
  | { readonly kind: 'jobs'; readonly jobs: ClaimedJob[] }
  /** No job waits. */
  | { readonly kind: 'none' }
  /** Jobs wait that only another worker can claim. */
  | { readonly kind: 'for_others' }
  /** The worker gets no job before it holds less. */
  | { readonly kind: 'held_back' }
  /** The worker gets no job in its present state, which may change. */
  | { readonly kind: 'barred' }
  /** The worker gets no job, and must not wait for one. */
  | { readonly kind: 'over' }

/**
 * The life of jobs. Every transition is made here and in the same way: the store's guarded change, then events and
 * notifications.
 */
export class Jobs {
  readonly #ports
  readonly #longPoll
  readonly #quotas
  readonly #records
  readonly #ends = new JobEnds()
  /** Jobs that are being stored. */
  readonly coming
  /** Number of ends before jobs were accepted, by the jobs as their callers got them. */
  readonly #endsWhenAccepted = new WeakMap<Job, number>()
  /** Jobs as their callers got them that are on stable storage once they are final, or are kept. */
  readonly #mayBeUndone = new WeakSet<Job>()
  #lastPosition = 0

  /** @param records rules for the records of removed jobs */
  constructor(ports: Ports, longPoll: LongPoll, quotas: Quotas, records: JobRecordRules = JOB_RECORD_RULES) {
    this.#records = records
    this.#ports = ports
    this.coming = new ComingJobs(ports.store)
    this.#longPoll = longPoll
    this.#quotas = quotas
  }

  /**
   * Accepts a job. It is on stable storage when this returns, or later as `awaitsEnd` says: accepted means kept.
   * @throws AppError `not_found` when the endpoint is gone, `unavailable` when the store failed, `conflict` when the
   * first job of the idempotency key has expired, `rate_limited` past a limit of the account
   */
  async submit(endpoint: Endpoint, submission: Submission, origin: SubmissionOrigin): Promise<Job> {
    const measured = this.#quotas.admit(endpoint.owner, [submission])
    if (measured !== null) await measured
    const nowMs = this.#ports.clock.now()
    const job = newJob(this.#ports, endpoint, submission, { ...origin, nowMs, position: this.#nextPosition(nowMs) })
    const { jobs } = this.#ports.store
    const key = origin.idempotencyKey
    const mayBeUndone = origin.awaitsEnd === true && key === undefined && job.webhook === null
    const endsBefore = this.#ends.count
    let firstId: JobId | null
    using _insert = this.coming.begin(endpoint.id)
    try {
      // Nothing may come between the insert and its event: a claim in the same commit emits its event right after.
      if (key === undefined) firstId = (await jobs.insert(job, mayBeUndone)) ? job.id : null
      else firstId = await jobs.insertOnce(job, key, job.queuedAtMs + IDEMPOTENCY_MS)
    } catch (error) {
      // The job may be stored all the same.
      this.#queueGrew(endpoint.id)
      throw error
    }
    if (firstId === null) throw notFound('endpoint', endpoint.id)
    if (firstId !== job.id) return this.#firstJob(endpoint.id, firstId)
    this.accepted([job])
    // Thousands of callers may hold their job while they wait, so the input is not kept.
    const { largeInput: _, ...accepted } = { ...job, input: '' }
    this.#endsWhenAccepted.set(accepted, endsBefore)
    if (mayBeUndone) this.#mayBeUndone.add(accepted)
    return accepted
  }

  async #firstJob(endpointId: EndpointId, jobId: JobId): Promise<Job> {
    const job = await this.#ports.store.jobs.find(endpointId, jobId, this.#ports.clock.now())
    if (job !== null) return job
    throw new AppError(
      'conflict',
      `the job ${jobId} of this Idempotency-Key has expired; use another key for a new job`,
    )
  }

  /** @throws AppError `not_found` when the job does not exist, is of another endpoint, or is past its expiry */
  async find(endpointId: EndpointId, jobId: JobId): Promise<Job> {
    const job = await this.#ports.store.jobs.find(endpointId, jobId, this.#ports.clock.now())
    if (job === null) throw notFound('job', jobId)
    return job
  }

  /**
   * The job as soon as it is final, or as it is when the time is over or a signal comes. A job that expires during the
   * wait is returned as TIMED_OUT, one whose endpoint is deleted as CANCELLED, although both are gone by then.
   * @throws AppError `unavailable` when the store failed
   */
  async whenFinal(job: Job, forMs: number, signals: readonly AbortSignal[]): Promise<Job> {
    const { clock, store, notifier } = this.#ports
    const accepted = this.#endsWhenAccepted.get(job)
    const end: { job: Job | null; isUnsure: boolean } = {
      job: null,
      isUnsure: accepted === undefined || this.#ends.mayHaveEndedSince(job.id, accepted),
    }
    let latest = job
    const endMs = clock.monotonic() + forMs
    for (;;) {
      const waitMs = Math.max(0, Math.min(endMs - clock.monotonic(), latest.expiresAtMs + 1 - clock.now()))
      using call = this.#longPoll.hold({ topics: [], forMs: waitMs, signals })
      const noteEnd = (final: Job | null) => {
        if (final === null) end.isUnsure = true
        else end.job = final
        call.wake()
      }
      call.atEnd(this.#ends.listen(job.id, noteEnd))
      call.atEnd(notifier.subscribe(`deleted:${job.endpointId}`, () => noteEnd(null)))
      for (;;) {
        const isLastRead = call.isOver
        if (end.job === null && (end.isUnsure || isLastRead)) {
          end.isUnsure = false
          const stored = await store.jobs.find(job.endpointId, job.id, clock.now())
          if (stored === null) return end.job ?? this.endRemoved(latest)
          latest = stored
          if (isFinal(stored.status)) return stored
        }
        if (end.job !== null) return end.job
        if (isLastRead) break
        await call.next()
      }
      // Otherwise the ttl of the job was extended during the wait.
      if (signals.some(signal => signal.aborted) || clock.monotonic() >= endMs) break
    }
    // Its client may get its id now. Every other return is that of a final job, whose end was flushed.
    if (this.#mayBeUndone.has(job)) await store.jobs.keep(job.id)
    return latest
  }

  /** @throws AppError `not_found` as {@link find} */
  async setTtl(endpointId: EndpointId, jobId: JobId, ttlMs: number): Promise<Job> {
    const nowMs = this.#ports.clock.now()
    const job = await this.#ports.store.jobs.setExpiry(endpointId, jobId, nowMs + ttlMs, nowMs)
    if (job === null) throw notFound('job', jobId)
    return job
  }

  /**
   * Ends a job that is not final. A running one is final at once, and its worker gets a stop for it.
   * @throws AppError `not_found`, or `conflict` when the job has another final state
   */
  async cancel(endpointId: EndpointId, jobId: JobId): Promise<CancelResult> {
    const { store, clock } = this.#ports
    const move = await store.jobOutcomes.cancel(endpointId, jobId, clock.now())
    if (move !== null) {
      this.moved('cancel', [move])
      return 'cancelled'
    }
    const job = await this.find(endpointId, jobId)
    if (job.status === 'CANCELLED') return 'was_cancelled'
    throw new AppError('conflict', `job ${jobId} is ${job.status} and cannot be cancelled`)
  }

  /**
   * Queues a FAILED or TIMED_OUT job again, at the end, with its original input; ttl, attempts and chunks start again.
   * @throws AppError `not_found`, or `conflict` in any other state
   */
  async retry(endpointId: EndpointId, jobId: JobId): Promise<Job> {
    const { store, clock } = this.#ports
    const nowMs = clock.now()
    const move = await store.jobOutcomes.retry(endpointId, jobId, this.#nextPosition(nowMs), nowMs)
    if (move === null) throw await this.#retryRefusal(endpointId, jobId)
    this.moved('retry', [move])
    return move.job
  }

  /** The error of a retry that was refused. */
  async #retryRefusal(endpointId: EndpointId, jobId: JobId): Promise<AppError> {
    const { store, clock } = this.#ports
    const nowMs = clock.now()
    const job = await store.jobs.find(endpointId, jobId, nowMs)
    if (job !== null)
      return new AppError('conflict', `job ${jobId} is ${job.status}; only FAILED and TIMED_OUT jobs can be retried`)
    const record = await store.jobRecords.find(endpointId, jobId, nowMs, this.#records.keptMs > 0)
    return record === null ? notFound('job', jobId) : new AppError('not_found', onlyRecordLeft(record))
  }

  /**
   * Cancels all jobs that wait now, in small steps. Running and later jobs stay. Each step is final; if the server
   * ends between two steps, the rest stays in the queue.
   * @returns number of cancelled jobs
   */
  async purge(endpointId: EndpointId): Promise<number> {
    const { store, clock } = this.#ports
    let removed = 0
    for (let parts: readonly QueuePart[] = await store.jobOutcomes.waiting(endpointId); parts.length > 0; ) {
      const { moves, left: remainingParts } = await store.jobOutcomes.purge(endpointId, clock.now(), PURGE_STEP, parts)
      this.moved('purge', moves)
      removed += moves.length
      parts = remainingParts
    }
    return removed
  }

  /**
   * Claims jobs for a worker. A job whose input was changed on the disk fails, so that no worker runs another input
   * than the client submitted.
   * @returns `jobs` is empty when all that were claimed have failed so; the caller claims again
   */
  async claim(worker: Claimant, request: Omit<ClaimRequest, 'workerId' | 'nowMs'>): Promise<ClaimAnswer> {
    const { store, clock, emit, notifier } = this.#ports
    const { id: workerId } = worker
    const { endpointId } = request
    const { jobs, holdsBack, leavesSuspect } = await store.jobs.claim({ ...request, workerId, nowMs: clock.now() })
    if (jobs.length === 0) return { kind: holdsBack ? 'held_back' : leavesSuspect ? 'for_others' : 'none' }
    worker.claimed(jobs.map(({ id }) => id))
    for (const [index, { id: jobId, attempt, waitedMs, queuedAtMs, position, traceparent }] of jobs.entries()) {
      const trace = { endpointId, jobId, queuedAtMs, position, traceparent }
      const states = { from: 'IN_QUEUE', to: 'IN_PROGRESS' } as const
      const begin = index > 0 && request.beginsByMs !== undefined ? { unbegun: true } : { waitedMs }
      emit('job.moved', { ...trace, transition: 'claim', ...states, workerId, attempt, ...begin })
      notifier.publish(`job:${jobId}`)
    }
    notifier.publish(`load:${endpointId}`)
    for (const { id, inputProblem } of jobs) {
      if (inputProblem === null) continue
      const outcome = { status: 'FAILED', output: null, error: inputProblem, warning: null } as const
      await this.finish(endpointId, id, workerId, outcome, { beginsNext: true })
      worker.settled([id], false)
    }
    return { kind: 'jobs', jobs: jobs.filter(({ inputProblem }) => inputProblem === null) }
  }

  /**
   * Notes that a worker begins the next one of the jobs that it got in one take, if it runs none: it runs them one
   * after another.
   * @param shown the job of which a call of the worker shows that it runs or ran it
   */
  async begin(workerId: WorkerId, shown: JobId): Promise<void> {
    this.#begun(workerId, await this.#ports.store.jobs.begin(workerId, shown, this.#ports.clock.now()))
  }

  /**
   * Stores a worker's final result. A result that no longer counts leaves a diagnostic and changes nothing.
   * @param beginsNext true for a worker that may have more jobs, which it runs one after another: the next one begins
   * with the end of this one, in the same transaction
   * @param counts false for a result that is known to count no longer
   */
  async finish(
    endpointId: EndpointId,
    jobId: JobId,
    workerId: WorkerId,
    outcome: JobOutcome,
    { beginsNext = false, counts = true }: { readonly beginsNext?: boolean; readonly counts?: boolean } = {},
  ): Promise<void> {
    const { store, clock } = this.#ports
    const request = { jobId, workerId, outcome, nowMs: clock.now(), beginsNext }
    const finish = counts ? await store.jobOutcomes.finish(request) : null
    if (finish === null) {
      await this.#noteLateResult(endpointId, jobId, workerId, outcome)
      if (beginsNext) await this.begin(workerId, jobId)
      return
    }
    this.moved('finish', [finish])
    this.#begun(workerId, finish.begun)
  }

  async #noteLateResult(endpointId: EndpointId, jobId: JobId, workerId: WorkerId, outcome: JobOutcome): Promise<void> {
    const { store } = this.#ports
    await store.stops.letGo(workerId, jobId)
    // The job may be queued again, and this worker may claim it now that it has let go.
    this.#queueGrew(endpointId)
    // This may be the same result again, sent because the store failed after it had stored the first.
    this.#ends.note(jobId, null)
    this.#ports.notifier.publish(`job:${jobId}`)
    const reason = `a ${outcome.status} result came when the job was no longer this worker's`
    await this.#ignoreResult(endpointId, jobId, workerId, reason)
  }

  /**
   * True when a worker that was ended may still post the result of a job, which only the last holder may
   * (docs/adr/0005-late-results.md). A refused result of a job that is not final leaves a diagnostic.
   */
  async mayFinishLate({ id, endpointId }: Pick<Worker, 'id' | 'endpointId'>, jobId: JobId): Promise<boolean> {
    const { store, clock } = this.#ports
    const job = await store.jobs.find(endpointId, jobId, clock.now())
    if (job === null || job.workerId === id) return job !== null
    const reason = "a result came from a worker that was ended, when the job was no longer this worker's"
    if (!isFinal(job.status)) await this.#ignoreResult(endpointId, jobId, id, reason)
    return false
  }

  async #ignoreResult(endpointId: EndpointId, jobId: JobId, workerId: WorkerId, reason: string): Promise<void> {
    const { store, clock, emit } = this.#ports
    await store.jobs.addDiagnostic(jobId, clock.now(), workerId, reason)
    emit('job.result_ignored', { endpointId, jobId, workerId, reason })
  }

  /** Gives back a job whose response never reached the worker; the attempt does not count. */
  async undeliver(jobId: JobId, attempt: number, workerId: WorkerId): Promise<void> {
    const moves = await this.#ports.store.jobOutcomes.release(workerId, { jobId, attempt })
    this.moved('release', moves, { undelivered: true })
  }

  /**
   * Gives back a job that its worker did not begin; the attempt does not count.
   * @param why the reason, a clause; without it the job never reached its worker. `claimedAfterMs` (Unix time): only a
   * later claim
   * @returns false, without effect, when the job is not this worker's
   */
  async giveBack(
    { id: workerId, endpointId }: Pick<Worker, 'id' | 'endpointId'>,
    jobId: JobId,
    { reason, claimedAfterMs = -1 }: { readonly reason?: string; readonly claimedAfterMs?: number } = {},
  ): Promise<boolean> {
    const { store, clock } = this.#ports
    const job = await store.jobs.find(endpointId, jobId, clock.now())
    if (job?.status !== 'IN_PROGRESS' || job.workerId !== workerId) return false
    // One that is not begun came with the last response.
    if ((job.startedAtMs ?? Number.POSITIVE_INFINITY) <= claimedAfterMs) return false
    const moves = await store.jobOutcomes.release(workerId, { jobId, attempt: job.attempt })
    this.moved('release', moves, reason === undefined ? { undelivered: true } : { reason })
    return true
  }

  /**
   * Gives back the jobs that a worker has and has not begun; the attempts do not count. Its results of them count as
   * long as no other worker claims them.
   * @param reason a clause
   */
  async takeBack(workerId: WorkerId, reason: string): Promise<void> {
    const { store, clock } = this.#ports
    const moves = await store.jobOutcomes.takeBack(workerId, clock.now())
    this.moved('release', moves, { reason, unbegun: true })
  }

  /**
   * Queues again, or fails, the jobs of a worker that ended, or one job that a worker lost. Those that it had not
   * begun are given back.
   * @param cause a sentence without a full stop
   * @param lastLines the last lines of the worker's output, for the error of a job that gets no other attempt
   */
  async requeueLost(
    workerId: WorkerId,
    cause: string,
    { only, lastLines = [] }: { readonly only?: JobId; readonly lastLines?: readonly string[] } = {},
  ): Promise<void> {
    const { store, clock } = this.#ports
    await this.takeBack(workerId, cause)
    const words = lossWords(cause, workerId, lastLines)
    const moves = await store.jobOutcomes.requeueLost(workerId, words, clock.now(), only)
    this.moved('requeue', moves, { reason: cause })
  }

  /** Gives back all jobs of a worker that the server stops; the attempts do not count. */
  async releaseAll(workerId: WorkerId): Promise<void> {
    this.moved('release', await this.#ports.store.jobOutcomes.release(workerId, 'all'))
  }

  /** Times out and expires overdue jobs, and gives back those that have not begun in time. True for more of them. */
  async sweep(): Promise<boolean> {
    const { store, clock } = this.#ports
    const unbegun = await store.jobOutcomes.takeBackOverdue(clock.now(), SWEEP)
    this.moved('release', unbegun, { reason: 'its worker did not begin it in time', unbegun: true })
    const late = await store.jobOutcomes.timeOutOverdue(clock.now(), SWEEP)
    this.moved('timeOut', late)
    const records = this.#records.keptMs === 0 ? undefined : this.#records
    const expired = await store.jobOutcomes.removeExpired(clock.now(), SWEEP, records)
    this.removed(expired.jobs)
    this.moved('cancel', expired.canceled)
    return unbegun.length === SWEEP || late.length === SWEEP || expired.more
  }

  /**
   * Removes a part of the rows of a deleted endpoint; its waiting and running jobs are cancelled.
   * @param limit maximum number of rows
   * @returns number of removed rows; `more` is true if some are left
   */
  async removePart(endpointId: EndpointId, limit: number): Promise<{ rows: number; more: boolean }> {
    const { canceled, rows, more } = await this.#ports.store.removals.removePart(
      endpointId,
      this.#ports.clock.now(),
      limit,
    )
    this.moved('cancel', canceled)
    return { rows, more }
  }

  /** Emits and publishes that the store has removed jobs. */
  removed(
    jobs: readonly {
      job: Job | Pick<Job, 'id' | 'endpointId' | 'status' | 'workerId' | 'webhook'>
      usage: JobUsage
    }[],
  ): void {
    const { emit, notifier } = this.#ports
    for (const { job, usage } of jobs) {
      const { endpointId, id: jobId, status, workerId, webhook } = job
      const isUndone = !isFinal(status) && 'attempt' in job
      const undone = isUndone ? { undone: { ...traced(job), attempt: job.attempt } } : {}
      emit('job.expired', { endpointId, jobId, from: status, workerId, usage, ...undone })
      this.#ends.note(jobId, null)
      notifier.publish(`job:${jobId}`)
      if (!isFinal(status)) notifier.publish(`load:${endpointId}`)
      if (!isFinal(status) && webhook !== null) notifier.publish('webhooks')
      if (status === 'IN_PROGRESS' && workerId !== null) notifier.publish(`worker:${workerId}`)
    }
  }

  /** Emits and publishes that the store has added jobs. */
  accepted(jobs: readonly Pick<Job, 'id' | 'endpointId'>[]): void {
    for (const { id: jobId, endpointId } of jobs) this.#ports.emit('job.accepted', { endpointId, jobId })
    for (const endpointId of new Set(jobs.map(job => job.endpointId))) this.#queueGrew(endpointId)
  }

  /** Emits and publishes transitions that the store has made. */
  moved(
    transition: Transition,
    moves: readonly JobMove[],
    because: { readonly reason?: string; readonly undelivered?: true; readonly unbegun?: true } = {},
  ): void {
    const { emit, notifier } = this.#ports
    for (const { job, from, usage } of moves) {
      this.#quotas.noteResult(job.owner, usage)
      const { endpointId, id: jobId, status: to, workerId, attempt } = job
      emit('job.moved', { ...traced(job), transition, from, to, workerId, attempt, usage, ...because })
      if (isFinal(to)) this.#ends.note(jobId, job)
      notifier.publish(`job:${jobId}`)
      if (to === 'IN_QUEUE') this.#queueGrew(endpointId)
      else notifier.publish(`load:${endpointId}`)
      if (isFinal(to) && (job.webhook !== null || job.batchId !== null)) notifier.publish('webhooks')
      if (workerId !== null && notifiesWorker(transition, from)) notifier.publish(`worker:${workerId}`)
    }
  }

  /**
   * The end of a removed job, for a caller that still waits for it: its final state, TIMED_OUT, or CANCELLED when its
   * endpoint was deleted.
   */
  async endRemoved(job: Job): Promise<Job> {
    if (isFinal(job.status)) return job
    const finishedAtMs = this.#ports.clock.now()
    const deleted = (await this.#ports.store.endpoints.find(job.endpointId)) === null
    if (deleted) return { ...job, status: 'CANCELLED', finishedAtMs }
    return expiredJob(job, finishedAtMs)
  }

  #begun(workerId: WorkerId, begun: BegunJob | null): void {
    if (begun === null) return
    const { job, waitedMs } = begun
    this.#ports.emit('job.begun', { ...traced(job), workerId, attempt: job.attempt, waitedMs })
    this.#ports.notifier.publish(`job:${job.id}`)
  }

  #queueGrew(endpointId: EndpointId): void {
    this.#ports.notifier.publish(`queue:${endpointId}`)
    this.#ports.notifier.publish(`load:${endpointId}`)
  }

  /**
   * Positions grow with time, so that jobs are first in, first out across restarts, and by one within a millisecond.
   */
  #nextPosition(nowMs: number): number {
    this.#lastPosition = Math.max(this.#lastPosition + 1, nowMs * 1024)
    return this.#lastPosition
  }
}

/** Facts from which the trace of a job follows. */
function traced({ id: jobId, endpointId, queuedAtMs, position, traceparent }: Job): TracedJob {
  return { endpointId, jobId, queuedAtMs, position, traceparent }
}

function notifiesWorker(transition: Transition, from: JobStatus): boolean {
  return from === 'IN_PROGRESS' && (transition === 'cancel' || transition === 'timeOut')
}

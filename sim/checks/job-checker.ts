import type { BatchId, EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import { isFinal, isLegal, type JobStatus, type Transition } from '../../src/core/jobs/job.ts'
import type { Events } from '../../src/events.ts'
import type { Change, Commit } from '../ledger.ts'

/** The state of a job by the committed changes. */
export interface CommittedJob {
  readonly id: JobId
  readonly endpointId: EndpointId
  status: JobStatus
  /** The holder while it runs, the last holder while it is queued. */
  worker: WorkerId | null
  attempt: number
  /** True if it was removed by its ttl, its retention, or with its endpoint. */
  gone: boolean
}

/** The transition that a change of a job makes; a purge counts as a cancel. */
export function transitionFromChange({ was, now, was_lost, lost }: Change): Transition | null {
  if (was === null || now === null || was === now) return null
  if (now === 'IN_PROGRESS') return 'claim'
  if (now === 'CANCELLED') return 'cancel'
  if (now === 'TIMED_OUT') return 'timeOut'
  if (now === 'COMPLETED') return 'finish'
  if (now === 'FAILED') return lost > was_lost ? 'requeue' : 'finish'
  if (was !== 'IN_PROGRESS') return 'retry'
  return lost > was_lost ? 'requeue' : 'release'
}

/**
 * Follows every job through the commits of the store and the events of the server. Reports transitions
 * that are not allowed, two holders at once, results from a worker that is not the holder, jobs that are removed
 * early, events without a commit, and commits without an event.
 */
export class JobChecker {
  readonly jobs = new Map<JobId, CommittedJob>()
  readonly #report: (problem: string) => void
  readonly #latestMs: () => number
  readonly #isBatchOver: (batch: BatchId) => boolean
  /** Committed changes whose event was not published yet. */
  readonly #unpublished = new Map<JobId, Change[]>()
  /** Results that reached the server, as `<worker> <job>`. */
  readonly #posted = new Set<string>()
  /** Workers that ended and whose jobs were requeued. */
  readonly #lost = new Set<WorkerId>()

  /**
   * @param report receives one sentence per problem
   * @param latestMs the latest time that the wall clock has shown
   * @param isBatchOver true if the retention of a batch and its jobs is over
   */
  constructor(report: (problem: string) => void, latestMs: () => number, isBatchOver: (batch: BatchId) => boolean) {
    this.#isBatchOver = isBatchOver
    this.#report = report
    this.#latestMs = latestMs
  }

  /** The final result of a worker reached the server. */
  posted(worker: WorkerId, job: JobId): void {
    this.#posted.add(`${worker} ${job}`)
  }

  /** The server detected that this worker has ended. */
  lost(worker: WorkerId): void {
    this.#lost.add(worker)
  }

  /** The store committed changes. */
  committed({ changes, acknowledged }: Commit): void {
    for (const change of changes) {
      this.#apply(change)
      if (!acknowledged || !hasEvent(change)) continue
      const unpublished = this.#unpublished.get(change.job)
      if (unpublished === undefined) this.#unpublished.set(change.job, [change])
      else unpublished.push(change)
    }
  }

  /** The event that a job was accepted. */
  accepted({ jobId }: Events['job.accepted']): void {
    const change = this.#takeUnpublished(jobId)
    if (change?.kind !== 'insert') this.#report(`job ${jobId} has an event that it was accepted, and was not stored`)
  }

  /** The event that a job has another status. */
  moved({
    jobId,
    transition,
    from,
    to,
    workerId,
    attempt,
  }: Omit<Events['job.moved'], 'queuedAtMs' | 'position' | 'traceparent'>): void {
    const move = `${transition} of job ${jobId} from ${from} to ${to}`
    if (!isLegal(transition, from, to)) this.#report(`${move} is not in the table of transitions`)
    const change = this.#takeUnpublished(jobId)
    if (change === undefined) {
      this.#report(`${move} has an event and was never stored`)
      return
    }
    const { was, worker } = change
    // A job that goes with its endpoint is cancelled and removed in one change.
    const now = goesWithEndpoint(change) ? 'CANCELLED' : change.now
    const name = transition === 'purge' ? 'cancel' : transition
    if (was !== from || now !== to || transitionFromChange({ ...change, now }) !== name || worker !== workerId) {
      this.#report(
        `the event says ${move} by ${workerId}, and ${change.kind} from ${was} to ${now} by ${worker} was stored`,
      )
    }
    if (change.attempt !== attempt)
      this.#report(`the event says ${move} with attempt ${attempt}, not ${change.attempt}`)
  }

  /** The event that a job was removed by its ttl or its retention. */
  expired({ jobId, from }: Events['job.expired']): void {
    const change = this.#takeUnpublished(jobId)
    if (change?.kind !== 'delete') this.#report(`job ${jobId} has an event that it expired, and was not removed`)
    else if (change.was !== from) this.#report(`job ${jobId} expired as ${change.was}, and its event says ${from}`)
  }

  /** The server ended: it publishes no event for its last commits. */
  serverEnded(): void {
    this.#unpublished.clear()
  }

  /** No operation is under way: every change must have had its event. */
  settled(): void {
    for (const [id, [change]] of this.#unpublished) {
      this.#report(`job ${id}: there was no event for its ${change!.kind} from ${change!.was} to ${change!.now}`)
    }
    this.#unpublished.clear()
  }

  /** Jobs that have not ended yet. */
  unfinished(): CommittedJob[] {
    return [...this.jobs.values()].filter(job => !job.gone && !isFinal(job.status))
  }

  #takeUnpublished(id: JobId): Change | undefined {
    const unpublished = this.#unpublished.get(id)
    const change = unpublished?.shift()
    if (unpublished?.length === 0) this.#unpublished.delete(id)
    return change
  }

  #apply(change: Change): void {
    const { kind, job: id, endpoint: endpointId, worker, attempt } = change
    const job = this.jobs.get(id)
    if (kind === 'insert') {
      if (job !== undefined) this.#report(`job ${id} was stored twice`)
      if (change.now !== 'IN_QUEUE' || attempt !== 0) this.#report(`job ${id} began as ${change.now}`)
      this.jobs.set(id, { id, endpointId, status: 'IN_QUEUE', worker: null, attempt: 0, gone: false })
    } else if (job === undefined || job.gone) {
      this.#report(`job ${id}, which was removed or never stored, was changed`)
    } else if (kind === 'delete') {
      if (goesWithEndpoint(change)) job.status = 'CANCELLED'
      const mayGo = change.batch !== null && this.#isBatchOver(change.batch)
      if (change.endpoint_there === 1 && !mayGo && change.expires_at_ms > this.#latestMs()) {
        this.#report(`job ${id} was removed as ${change.was}, ${change.expires_at_ms - this.#latestMs()} ms too early`)
      }
      job.gone = true
    } else {
      this.#checkMove(job, change)
      Object.assign(job, { status: change.now, attempt, worker })
    }
  }

  #checkMove(job: CommittedJob, change: Change): void {
    const { was, now, worker } = change
    const transition = transitionFromChange(change)
    const move = `${transition} of job ${job.id} from ${was} to ${now}`
    if (was === now) {
      if (worker !== change.was_worker || change.attempt !== change.was_attempt)
        this.#report(`job ${job.id} changed its worker from ${change.was_worker} to ${worker} while it stayed ${now}`)
      return
    }
    if (transition === null || !isLegal(transition, was!, now!)) {
      this.#report(`${move} is not in the table of transitions`)
      return
    }
    this.#checkAttempt(change, move, transition)
    if (transition === 'claim' && worker !== null && this.#lost.has(worker))
      this.#report(`${move} dispatched the job to ${worker}, which was lost`)
    if (transition === 'retry' && (worker !== null || change.output !== null || change.error !== null))
      this.#report(`${move} kept the result of the last attempt`)
    if (transition !== 'finish') return
    if (worker !== change.was_worker)
      this.#report(`${move} came from ${worker}, but its holder was ${change.was_worker}`)
    if (!this.#posted.has(`${worker} ${job.id}`)) this.#report(`${move} has worker ${worker}, which sent no result`)
  }

  #checkAttempt({ was_attempt, attempt, was_lost, lost }: Change, move: string, transition: Transition): void {
    const step = transition === 'claim' ? 1 : transition === 'release' ? -1 : 0
    const expectedAttempt = transition === 'retry' ? 0 : was_attempt + step
    if (attempt !== expectedAttempt) this.#report(`${move} has attempt ${attempt} after attempt ${was_attempt}`)
    const wantedLost = transition === 'retry' ? 0 : was_lost + (transition === 'requeue' ? 1 : 0)
    if (lost !== wantedLost) this.#report(`${move} has lost ${lost} attempts after ${was_lost}`)
  }
}

/**
 * True if a change has an event. A change of the expiry alone has no event. A job that ended and is removed with its
 * endpoint has no event of its own.
 */
function hasEvent(change: Change): boolean {
  if (change.kind === 'update') return change.was !== change.now
  return change.kind === 'insert' || change.endpoint_there === 1 || !isFinal(change.was!)
}

/** True if a job that did not end is removed because its endpoint was deleted. */
export function goesWithEndpoint({ kind, was, endpoint_there }: Change): boolean {
  return kind === 'delete' && endpoint_there === 0 && was !== null && !isFinal(was)
}

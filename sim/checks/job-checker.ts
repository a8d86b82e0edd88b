import type { BatchId, EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import { isFinal, isLegal, type JobStatus, type Transition } from '../../src/core/jobs/job.ts'
import type { Events } from '../../src/events.ts'
import type { Change, Commit } from '../ledger.ts'

/** What is known of a job from the changes that were committed. */
export interface KnownJob {
  readonly id: JobId
  readonly endpointId: EndpointId
  status: JobStatus
  /** The holder while it runs, the last holder while it waits. */
  worker: WorkerId | null
  attempt: number
  /** Removed by its ttl, its retention, or with its endpoint. */
  gone: boolean
}

/** The transitions that a change of a job's state can be; a purge looks like a cancel. */
export function transitionOf({ was, now, was_lost, lost }: Change): Transition | null {
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
 * Follows every job through the commits of the store and the events of the server, and reports what must not be: moves
 * that the table does not have, two holders at once, outcomes from somebody else, two fates, jobs that vanish, events
 * that tell of nothing, and commits that nobody is told of.
 */
export class JobChecker {
  readonly jobs = new Map<JobId, KnownJob>()
  readonly #report: (problem: string) => void
  readonly #latestMs: () => number
  readonly #isBatchOver: (batch: BatchId) => boolean
  /** Changes that an event has yet to tell of. */
  readonly #untold = new Map<JobId, Change[]>()
  /** Results that have reached the server, as `<worker> <job>`. */
  readonly #posted = new Set<string>()
  /** Workers whose jobs were taken back after their end. */
  readonly #lost = new Set<WorkerId>()

  /**
   * @param report is given one sentence per problem
   * @param latestMs the latest that the clock on the wall has shown
   * @param isBatchOver whether a batch may go by now, and its jobs with it
   */
  constructor(report: (problem: string) => void, latestMs: () => number, isBatchOver: (batch: BatchId) => boolean) {
    this.#isBatchOver = isBatchOver
    this.#report = report
    this.#latestMs = latestMs
  }

  /** A worker's final result has reached the server. */
  posted(worker: WorkerId, job: JobId): void {
    this.#posted.add(`${worker} ${job}`)
  }

  /** The server has seen that this worker has ended. */
  lost(worker: WorkerId): void {
    this.#lost.add(worker)
  }

  /** The store has committed something. */
  committed({ changes, told }: Commit): void {
    for (const change of changes) {
      this.#apply(change)
      if (!told || !isTold(change)) continue
      const untold = this.#untold.get(change.job)
      if (untold === undefined) this.#untold.set(change.job, [change])
      else untold.push(change)
    }
  }

  /** An event says that a job was accepted. */
  accepted({ jobId }: Events['job.accepted']): void {
    const change = this.#nextOf(jobId)
    if (change?.kind !== 'insert') this.#report(`job ${jobId} was said to be accepted, and was not stored then`)
  }

  /** An event says that a job has moved. */
  moved({ jobId, transition, from, to, workerId, attempt }: Events['job.moved']): void {
    const what = `${transition} of job ${jobId} from ${from} to ${to}`
    if (!isLegal(transition, from, to)) this.#report(`${what} is not in the table of transitions`)
    const change = this.#nextOf(jobId)
    if (change === undefined) {
      this.#report(`${what} was told and never stored`)
      return
    }
    const { was, worker } = change
    // With its endpoint a job is cancelled and removed in one.
    const now = goesWithEndpoint(change) ? 'CANCELLED' : change.now
    const name = transition === 'purge' ? 'cancel' : transition
    if (was !== from || now !== to || transitionOf({ ...change, now }) !== name || worker !== workerId) {
      this.#report(`${what} by ${workerId} was told, and ${change.kind} from ${was} to ${now} by ${worker} was stored`)
    }
    if (change.attempt !== attempt) this.#report(`${what} was told with attempt ${attempt}, not ${change.attempt}`)
  }

  /** An event says that a job is gone by its ttl or its retention. */
  expired({ jobId, from }: Events['job.expired']): void {
    const change = this.#nextOf(jobId)
    if (change?.kind !== 'delete') this.#report(`job ${jobId} was said to have expired, and was not removed then`)
    else if (change.was !== from) this.#report(`job ${jobId} has expired as ${change.was}, and is said to be ${from}`)
  }

  /** A server has ended in the middle of things: what it did not tell is never told. */
  serverGone(): void {
    this.#untold.clear()
  }

  /** Nothing is on its way: every change must have been told. */
  settled(): void {
    for (const [id, [change]] of this.#untold) {
      this.#report(`job ${id}: no event has told of its ${change!.kind} from ${change!.was} to ${change!.now}`)
    }
    this.#untold.clear()
  }

  /** Jobs that have no fate yet. */
  unfinished(): KnownJob[] {
    return [...this.jobs.values()].filter(job => !job.gone && !isFinal(job.status))
  }

  #nextOf(id: JobId): Change | undefined {
    const untold = this.#untold.get(id)
    const change = untold?.shift()
    if (untold?.length === 0) this.#untold.delete(id)
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
      this.#report(`job ${id}, which is not there, was changed`)
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

  #checkMove(job: KnownJob, change: Change): void {
    const { was, now, worker } = change
    const transition = transitionOf(change)
    const what = `${transition} of job ${job.id} from ${was} to ${now}`
    if (was === now) {
      if (worker !== change.was_worker || change.attempt !== change.was_attempt)
        this.#report(`job ${job.id} has gone from ${change.was_worker} to ${worker} while it stayed ${now}`)
      return
    }
    if (transition === null || !isLegal(transition, was!, now!)) {
      this.#report(`${what} is not in the table of transitions`)
      return
    }
    this.#checkAttempt(change, what, transition)
    if (transition === 'claim' && worker !== null && this.#lost.has(worker))
      this.#report(`${what} gave the job to ${worker}, who was lost`)
    if (transition === 'retry' && (worker !== null || change.output !== null || change.error !== null))
      this.#report(`${what} has kept what the last attempt left`)
    if (transition !== 'finish') return
    if (worker !== change.was_worker)
      this.#report(`${what} came from ${worker}, but its holder was ${change.was_worker}`)
    if (!this.#posted.has(`${worker} ${job.id}`))
      this.#report(`${what} is said to be from ${worker}, who sent no result`)
  }

  #checkAttempt({ was_attempt, attempt, was_lost, lost }: Change, what: string, transition: Transition): void {
    const step = transition === 'claim' ? 1 : transition === 'release' ? -1 : 0
    const wanted = transition === 'retry' ? 0 : was_attempt + step
    if (attempt !== wanted) this.#report(`${what} has attempt ${attempt} after attempt ${was_attempt}`)
    const wantedLost = transition === 'retry' ? 0 : was_lost + (transition === 'requeue' ? 1 : 0)
    if (lost !== wantedLost) this.#report(`${what} has lost ${lost} attempts after ${was_lost}`)
  }
}

/** A change of the expiry alone is told by nothing, and a job that had ended by its endpoint's event when it goes with that. */
function isTold(change: Change): boolean {
  if (change.kind === 'update') return change.was !== change.now
  return change.kind === 'insert' || change.endpoint_there === 1 || !isFinal(change.was!)
}

/** Whether a job that was not done is removed because its endpoint was deleted. */
export function goesWithEndpoint({ kind, was, endpoint_there }: Change): boolean {
  return kind === 'delete' && endpoint_there === 0 && was !== null && !isFinal(was)
}

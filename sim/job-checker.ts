import type { EndpointId, JobId, WorkerId } from '../src/core/ids.ts'
import { isFinal, isLegal, type JobStatus, type Transition } from '../src/core/job.ts'
import type { Events } from '../src/events.ts'

/** A job as the store has it. */
export interface JobRow {
  readonly id: JobId
  readonly endpoint_id: EndpointId
  readonly status: JobStatus
  readonly worker_id: WorkerId | null
  readonly attempt: number
}

/** What is known of a job from the events about it. */
export interface KnownJob {
  readonly id: JobId
  readonly endpointId: EndpointId
  status: JobStatus
  /** The holder while it runs, the last holder while it waits. */
  worker: WorkerId | null
  attempt: number
  /** Removed by its ttl or its retention. */
  expired: boolean
}

/**
 * Follows every job through the events and reports what must not be: moves that the table does not have, two holders
 * at once, outcomes from somebody else, two fates, jobs that vanish.
 */
export class JobChecker {
  readonly jobs = new Map<JobId, KnownJob>()
  readonly #report: (problem: string) => void
  /** Results that have reached the server, as `<worker> <job>`. */
  readonly #posted = new Set<string>()
  /** Workers whose jobs were taken back after their end. */
  readonly #lost = new Set<WorkerId>()

  /** @param report is given one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** A worker's final result has reached the server. */
  posted(worker: WorkerId, job: JobId): void {
    this.#posted.add(`${worker} ${job}`)
  }

  /** The server has seen that this worker has ended. */
  lost(worker: WorkerId): void {
    this.#lost.add(worker)
  }

  /** A job was accepted. */
  accepted({ endpointId, jobId }: Events['job.accepted']): void {
    if (this.jobs.has(jobId)) this.#report(`job ${jobId} was accepted twice`)
    this.jobs.set(jobId, {
      ...{ id: jobId, endpointId, status: 'IN_QUEUE', worker: null, attempt: 0, expired: false },
    })
  }

  /** A job has moved. */
  moved(move: Events['job.moved']): void {
    const { jobId, transition, from, to, workerId, attempt } = move
    const job = this.jobs.get(jobId)
    if (job === undefined) {
      this.#report(`job ${jobId}, which nobody submitted, made the move ${transition}`)
      return
    }
    const what = `${transition} of job ${jobId} from ${from} to ${to}`
    if (!isLegal(transition, from, to)) this.#report(`${what} is not in the table of transitions`)
    if (job.expired) this.#report(`${what} came after the job had expired`)
    if (from !== job.status) this.#report(`${what}, but the job was ${job.status}, held by ${job.worker}`)
    this.#checkHolder(job, transition, what, workerId)
    this.#checkAttempt(job, transition, what, attempt)
    job.status = to
    job.attempt = attempt
    job.worker = workerId
  }

  /** A job is gone by its ttl or its retention. */
  expired({ jobId, from }: Events['job.expired']): void {
    const job = this.jobs.get(jobId)
    if (job === undefined) this.#report(`job ${jobId}, which nobody submitted, has expired`)
    if (job === undefined) return
    if (job.expired) this.#report(`job ${jobId} has expired twice`)
    if (job.status !== from) this.#report(`job ${jobId} has expired as ${from}, but it was ${job.status}`)
    job.expired = true
  }

  /** Compares with the store, when nothing is on its way: every event must have been told, and no other. */
  compare(rows: readonly JobRow[]): void {
    const left = new Set(this.jobs.keys())
    for (const row of rows) {
      left.delete(row.id)
      const job = this.jobs.get(row.id)
      if (job === undefined) this.#report(`job ${row.id} is in the store, but no event has told of it`)
      else if (job.expired) this.#report(`job ${row.id} is in the store although it has expired`)
      else if (job.status !== row.status || (row.status === 'IN_PROGRESS' && job.worker !== row.worker_id)) {
        const told = `${job.status} with ${job.worker}`
        this.#report(`job ${row.id} is ${row.status} with ${row.worker_id} in the store, and ${told} by the events`)
      }
    }
    for (const id of left) if (!this.jobs.get(id)!.expired) this.#report(`job ${id} has vanished from the store`)
  }

  /** After a crash, which may have swallowed events: what the store says is what has happened. */
  resync(rows: readonly JobRow[]): void {
    const left = new Set(this.jobs.keys())
    for (const { id, endpoint_id: endpointId, status, worker_id: worker, attempt } of rows) {
      left.delete(id)
      const job = this.jobs.get(id)
      if (job !== undefined && isFinal(job.status) && job.status !== status) {
        this.#report(`job ${id} was ${job.status} before the crash and is ${status} after it`)
      }
      this.jobs.set(id, { id, endpointId, status, worker, attempt, expired: false })
    }
    for (const id of left) this.jobs.get(id)!.expired = true
  }

  /** Jobs that have no fate yet. */
  unfinished(): KnownJob[] {
    return [...this.jobs.values()].filter(job => !job.expired && !isFinal(job.status))
  }

  #checkHolder(job: KnownJob, transition: Transition, what: string, worker: WorkerId | null): void {
    if (transition === 'claim') {
      if (worker !== null && this.#lost.has(worker)) this.#report(`${what} gave the job to ${worker}, who was lost`)
      if (job.status === 'IN_PROGRESS') this.#report(`${what} gave the job to ${worker} while ${job.worker} held it`)
      return
    }
    if (transition !== 'finish') return
    if (worker !== job.worker) this.#report(`${what} came from ${worker}, but its holder was ${job.worker}`)
    if (!this.#posted.has(`${worker} ${job.id}`))
      this.#report(`${what} is said to be from ${worker}, who sent no result`)
  }

  #checkAttempt(job: KnownJob, transition: Transition, what: string, attempt: number): void {
    const step = transition === 'claim' ? 1 : transition === 'release' ? -1 : 0
    if (attempt !== job.attempt + step) this.#report(`${what} has attempt ${attempt} after attempt ${job.attempt}`)
  }
}

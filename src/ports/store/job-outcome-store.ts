import type { JobUsage } from '../../core/billing/usage.ts'
import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import type { Job, JobOutcome, JobStatus } from '../../core/jobs/job.ts'
import type { JobRecordRules } from '../../core/jobs/job-record.ts'

/** A transition of a job. */
export interface JobMove {
  readonly job: Job
  readonly from: JobStatus
  /** Usage that the transition counted, in the same transaction. */
  readonly usage: JobUsage
}

/** A job that has expired, as it was but for its texts: those are left out, since they may be large. */
export interface Expired {
  readonly job: Job
  /** Usage that its end counted; nothing for a job that ended earlier. */
  readonly usage: JobUsage
}

/** Jobs past their expiry that were removed, the oldest first. */
export interface RemovedJobs {
  readonly jobs: readonly Expired[]
  /** Those that were not done when their endpoint was deleted: they were CANCELLED then, and did not expire. */
  readonly canceled: readonly JobMove[]
  /** True where there may be more to remove. */
  readonly more: boolean
}

/** A worker's final result. */
export interface FinishRequest {
  readonly jobId: JobId
  readonly workerId: WorkerId
  readonly outcome: JobOutcome
  readonly nowMs: number
  /**
   * True to begin the next job of a worker that runs its jobs one after another, as `jobs.begin` does; by
   * default none begins.
   */
  readonly beginsNext?: boolean
}

/** The end of a job by its result. */
export interface Finish extends JobMove {
  /** The job that its worker began by that; null where none did. */
  readonly begun: BegunJob | null
}

/** A job that its worker has begun. */
export interface BegunJob {
  readonly job: Job
  /** Wait for this attempt, in milliseconds. */
  readonly waitedMs: number
}

/** Ends of jobs and their returns to the queue: each a guarded change that returns the moved jobs. */
export interface JobOutcomeStore {
  /**
   * Takes a result from the holder, or from the last holder while no other worker has claimed the job since; else
   * null, and no job begins.
   */
  finish(request: FinishRequest): Promise<Finish | null>
  /** Null when the job is final already or gone. */
  cancel(endpointId: EndpointId, jobId: JobId, nowMs: number): Promise<JobMove | null>
  /** TIMED_OUT for running jobs that are past their execution timeout; at most `limit`. */
  timeOutOverdue(nowMs: number, limit: number): Promise<JobMove[]>
  /**
   * All jobs that the worker holds, or the given one if it holds it: back to the head of the queue, or FAILED past
   * the limit of lost attempts.
   */
  requeueLost(workerId: WorkerId, cause: string, nowMs: number, only?: JobId): Promise<JobMove[]>
  /** Gives one job, or all that the worker holds, back as if never taken: the attempt does not count. */
  release(workerId: WorkerId, attempt: { jobId: JobId; attempt: number } | 'all'): Promise<JobMove[]>
  /**
   * Gives back all jobs that a worker holds and has not begun: the attempts do not count, and it stays their last
   * holder.
   */
  takeBack(workerId: WorkerId, nowMs: number): Promise<JobMove[]>
  /** As {@link takeBack}, for jobs that should have begun by now; at most `limit`. */
  takeBackOverdue(nowMs: number, limit: number): Promise<JobMove[]>
  /**
   * A FAILED or TIMED_OUT job back to `position` in the queue, with all its times and attempts afresh; null
   * otherwise.
   */
  retry(endpointId: EndpointId, jobId: JobId, position: number, nowMs: number): Promise<JobMove | null>
  /** The parts of an endpoint's queue in which jobs wait now, requests of batches included; for {@link purge}. */
  waiting(endpointId: EndpointId): Promise<QueuePart[]>
  /**
   * CANCELLED for the first jobs that wait in parts of the queue, at most `limit`, and of large ones only a few.
   * Nothing once the endpoint is gone.
   */
  purge(endpointId: EndpointId, nowMs: number, limit: number, parts: readonly QueuePart[]): Promise<PurgedPart>
  /**
   * Removes jobs and idempotency keys past their expiry: at most `limit` of each, and of large jobs only a few. Jobs
   * that wait for their removal with their endpoint are removed as described in removal-store.ts.
   * @param records rules of the records of jobs whose endpoint exists; by default no records
   */
  removeExpired(nowMs: number, limit: number, records?: JobRecordRules): Promise<RemovedJobs>
  /** The time at which the next job times out or expires; null without one. */
  nextDeadline(): Promise<number | null>
}

/**
 * A part of a queue: jobs of one priority that stand by themselves (''), that run alone, or that are requests of one
 * batch, between two places.
 */
export interface QueuePart {
  readonly queue: string
  /** 1 for low priority, else 0. */
  readonly priority: number
  /** It begins behind this place. */
  readonly after: { readonly position: number; readonly id: string }
  /** Its last place. */
  readonly last: { readonly position: number; readonly id: string }
}

/** Result of one step of a purge. */
export interface PurgedPart {
  readonly moves: readonly JobMove[]
  /** Parts for the next step; none at the end. */
  readonly left: readonly QueuePart[]
}

import type { EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { JobFilter, JobRecord, JobRecordRules, JobSummary } from '../../core/jobs/job-record.ts'
import type { PagePosition, Slice } from '../../core/pages.ts'
import type { Expired } from './job-outcome-store.ts'

/** Request for a list of jobs. */
export interface JobListRequest {
  readonly endpointId: EndpointId
  readonly filter: JobFilter
  readonly slice: Slice
  /** Limit of jobs that are read, and of records. */
  readonly maxRead: number
  readonly nowMs: number
  /** True to list jobs whose result is gone, too; else those past their expiry are left out. */
  readonly withRecords: boolean
}

/** Filter of the jobs of all endpoints of an account. */
export interface OwnerJobListRequest extends Omit<JobListRequest, 'endpointId'> {
  readonly owner: OwnerId
}

/** A part of a list of jobs. */
export interface JobListPart {
  readonly jobs: JobSummary[]
  /** The last place that was read; null when everything was. */
  readonly readUntil: PagePosition | null
}

/**
 * Jobs as people look for them: those that are kept, and behind them the records of those that were removed. A job
 * becomes a record in the transaction that removes it ({@link JobOutcomeStore.removeExpired}), so it is in a list
 * once at any time.
 */
export interface JobRecordStore {
  /** Jobs of an endpoint, newest first, without input and output. */
  list(request: JobListRequest): Promise<JobListPart>
  /** Jobs of all existing endpoints of an account, newest first, without input and output. */
  listOfOwner(request: OwnerJobListRequest): Promise<JobListPart>
  /** One job with everything that is kept of it; null when nothing is, or its endpoint is gone. */
  find(endpointId: EndpointId, jobId: JobId, nowMs: number, withRecords: boolean): Promise<JobRecord | null>
  /** The endpoint of a record; null when it is not there, or of another owner. */
  endpointOf(owner: OwnerId, jobId: JobId): Promise<EndpointId | null>
  /**
   * Removes a job that has ended, with everything that is kept of it, or its record.
   * @returns the job that was kept until then; `record` where only that was left, `unfinished` for a job that waits
   * or runs, null for none
   */
  remove(endpointId: EndpointId, jobId: JobId, nowMs: number): Promise<Expired | 'record' | 'unfinished' | null>
  /** Removes records past the limits, at most `limit`. True when there may be more. */
  trim(rules: JobRecordRules, nowMs: number, limit: number): Promise<boolean>
}

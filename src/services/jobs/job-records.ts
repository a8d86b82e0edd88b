import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { AppError, notFound, toAppError } from '../../core/errors.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import { type ErrorGroup, ErrorGroups } from '../../core/jobs/error-groups.ts'
import { isLegal, JOB_STATUSES, type Job, type JobStatus } from '../../core/jobs/job.ts'
import { type JobListing, MAX_JOBS_READ } from '../../core/jobs/job-list.ts'
import {
  ANY_JOB,
  inputGone,
  type JobFilter,
  type JobRecord,
  type JobRecordRules,
  type JobSummary,
} from '../../core/jobs/job-record.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import { cursorAfter, type Page, pageFromRows, readSlice } from '../../core/pages.ts'
import type { Ports } from '../../ports/ports.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import type { Jobs } from './jobs.ts'
import type { LargeInputs } from './large-inputs.ts'
import type { SubmissionOrigin } from './new-job.ts'

/** Limit of jobs that one call changes. */
export const MAX_CHANGED = 1_000
/** Limit of parts of a list that one call looks through for them. */
const MAX_PARTS = 20
const CONCURRENCY = 16
/** Number of ids in the outcome. */
const NAMED = 10

/** Limit of jobs whose errors are grouped. */
export const MAX_FAILURES = 10_000
/** Number of jobs of one read: their fingerprints are computed between reads, when the store serves others. */
const FAILURES_OF_PART = 500
/** Limit of groups. */
const MAX_GROUPS = 500

/** Failed jobs by their errors. */
export interface GroupedErrors {
  readonly groups: readonly ErrorGroup[]
  /** Number of failed jobs that were read. */
  readonly looked: number
  /** False where there are more failed jobs, or groups. */
  readonly isComplete: boolean
}

/** A change of many jobs. */
export type BulkChange = 'cancel' | 'retry'

/** Result of a change of the jobs that a filter means. */
export interface BulkResult {
  /** Number of jobs that can be changed: those in a state that allows it, whose result still exists. */
  readonly matched: number
  /** Number of jobs that were changed; 0 in a dry run. */
  readonly changed: number
  /** The first of them, at most 10. */
  readonly ids: readonly JobId[]
  /** Cursor of the next call; null when no job is left. */
  readonly nextCursor: string | null
}

/** Jobs as people look for them: kept ones and the records of others, and what can be done again with them. */
export class JobRecords {
  readonly #ports
  readonly #jobs
  readonly #largeInputs
  readonly #withRecords: boolean

  constructor(
    ports: Ports,
    { jobs, largeInputs }: { readonly jobs: Jobs; readonly largeInputs: LargeInputs },
    { keptMs }: JobRecordRules,
  ) {
    this.#ports = ports
    this.#jobs = jobs
    this.#largeInputs = largeInputs
    this.#withRecords = keptMs > 0
  }

  /**
   * Jobs of an endpoint, the last submitted or retried first. A page of a filter may have fewer jobs than the limit,
   * or none, without being the last.
   * @throws AppError `invalid` for a cursor that no page had
   */
  async list(endpointId: EndpointId, { filter, page }: JobListing): Promise<Page<JobSummary>> {
    const { store, clock } = this.#ports
    const slice = readSlice(page)
    const { jobs, readUntil } = await store.jobRecords.list({
      endpointId,
      filter,
      slice,
      maxRead: MAX_JOBS_READ,
      nowMs: clock.now(),
      withRecords: this.#withRecords,
    })
    const { items, nextCursor } = pageFromRows(jobs, slice)
    return { items, nextCursor: nextCursor ?? (readUntil === null ? null : cursorAfter(readUntil)) }
  }

  /**
   * The failed and timed out jobs of a time by their errors, the newest error first. Of at most {@link MAX_FAILURES}
   * jobs, the newest.
   * @param range times between which they were submitted or retried
   */
  async errorGroups(endpointId: EndpointId, range: Pick<JobFilter, 'fromMs' | 'untilMs'>): Promise<GroupedErrors> {
    const filter: JobFilter = { ...ANY_JOB, ...range, statuses: ['FAILED', 'TIMED_OUT'] }
    const groups = new ErrorGroups()
    let [looked, cursor]: [number, string | null | undefined] = [0, undefined]
    for (let part = 0; part < MAX_PARTS && cursor !== null && looked < MAX_FAILURES; part += 1) {
      const limit = Math.min(FAILURES_OF_PART, MAX_FAILURES - looked)
      const page: Page<JobSummary> = await this.list(endpointId, { filter, page: { limit, cursor } })
      for (const job of page.items) groups.add(job)
      looked += page.items.length
      cursor = page.nextCursor
    }
    const all = groups.newestFirst()
    const isComplete = cursor === null && all.length <= MAX_GROUPS
    return { groups: all.slice(0, MAX_GROUPS), looked, isComplete }
  }

  /** @throws AppError `not_found` when nothing is known of the job, or it is of another endpoint */
  async find(endpointId: EndpointId, jobId: JobId): Promise<JobRecord> {
    const { store, clock } = this.#ports
    const record = await store.jobRecords.find(endpointId, jobId, clock.now(), this.#withRecords)
    if (record === null) throw notFound('job', jobId)
    return record
  }

  /**
   * Removes a job that has ended, with everything that is kept of it.
   * @throws AppError `not_found` as {@link find}, `conflict` for a job that waits or runs
   */
  async remove(endpointId: EndpointId, jobId: JobId): Promise<void> {
    const { store, clock } = this.#ports
    const removed = await store.jobRecords.remove(endpointId, jobId, clock.now())
    if (removed === null) throw notFound('job', jobId)
    if (removed === 'unfinished') throw new AppError('conflict', `job ${jobId} waits or runs; cancel it first`)
    if (removed !== 'record') this.#jobs.removed([removed])
  }

  /**
   * A new job with the input, the times and the priority of an old one. Its webhook and its `s3Config` are not taken
   * over.
   * @throws AppError `not_found` as {@link find}, `conflict` where the input was not kept, or as {@link Jobs.submit}
   */
  async replay(endpoint: Endpoint, jobId: JobId, origin: Omit<SubmissionOrigin, 'kind'>): Promise<Job> {
    const record = await this.find(endpoint.id, jobId)
    const { input, largeInput, executionTimeoutMs, ttlMs, lowPriority } = record
    const policy = JSON.stringify({ executionTimeout: executionTimeoutMs, ttl: ttlMs, lowPriority })
    const payload = { input: input ?? '', policy, executionTimeoutMs, ttlMs, lowPriority }
    const submission: Submission = { ...payload, webhook: null, s3Config: null }
    const submit = (whole: Submission) => this.#jobs.submit(endpoint, whole, { ...origin, kind: 'run' })
    if (input !== null) return submit(submission)
    if (largeInput === null) throw new AppError('conflict', inputGone(jobId))
    return this.#largeInputs.copy(endpoint.owner, largeInput, submission, submit)
  }

  /**
   * Cancels or retries the jobs that a filter means, at most {@link MAX_CHANGED}. A job that moves during the call
   * stays as it is.
   * @param cursor cursor of an earlier call
   * @param dryRun only says which jobs those are
   * @throws AppError `invalid` for states from which there is no such change
   */
  async changeMany(
    endpointId: EndpointId,
    change: BulkChange,
    filter: JobFilter,
    { cursor, dryRun }: { readonly cursor?: string | undefined; readonly dryRun: boolean },
  ): Promise<BulkResult> {
    const statuses = statusesFor(change, filter.statuses)
    const ids: JobId[] = []
    let next: string | null | undefined = cursor
    for (let part = 0; part < MAX_PARTS && next !== null && ids.length < MAX_CHANGED; part += 1) {
      const page = { limit: MAX_CHANGED - ids.length, ...(next === undefined ? {} : { cursor: next }) }
      const { items, nextCursor } = await this.list(endpointId, { filter: { ...filter, statuses }, page })
      ids.push(...items.filter(({ expiresAtMs }) => expiresAtMs !== null).map(({ id }) => id))
      next = nextCursor
    }
    const outcomes = dryRun ? [] : await mapConcurrently(ids, CONCURRENCY, id => this.#change(endpointId, change, id))
    return {
      matched: ids.length,
      changed: outcomes.filter(Boolean).length,
      ids: ids.slice(0, NAMED),
      nextCursor: next ?? null,
    }
  }

  /** False where the job has moved or is gone. */
  async #change(endpointId: EndpointId, change: BulkChange, id: JobId): Promise<boolean> {
    try {
      await this.#jobs[change](endpointId, id)
      return true
    } catch (thrown) {
      if (['conflict', 'not_found'].includes(toAppError(thrown).code)) return false
      throw thrown
    }
  }
}

/** The states from which there is such a change, of those that were asked for. */
function statusesFor(change: BulkChange, statuses: readonly JobStatus[]): JobStatus[] {
  const target = change === 'cancel' ? 'CANCELLED' : 'IN_QUEUE'
  const possible = JOB_STATUSES.filter(status => isLegal(change, status, target))
  const impossible = statuses.filter(status => !possible.includes(status))
  if (impossible.length > 0) {
    const problem = `jobs that are ${impossible.join(' or ')} cannot be ${change === 'cancel' ? 'cancelled' : 'retried'}; those that are ${possible.join(' or ')} can`
    throw new AppError('invalid', problem)
  }
  return statuses.length === 0 ? possible : [...statuses]
}

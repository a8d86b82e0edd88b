import type { EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import { isFinal, JOB_STATUSES } from '../../../core/jobs/job.ts'
import type { JobFilter, JobRecord, JobRecordRules } from '../../../core/jobs/job-record.ts'
import { newestFirst, type PagePosition } from '../../../core/pages.ts'
import type { Expired } from '../../../ports/store/job-outcome-store.ts'
import type {
  JobListPart,
  JobListRequest,
  JobRecordStore,
  OwnerJobListRequest,
} from '../../../ports/store/job-record-store.ts'
import * as sql from '../../tables/job-records.ts'
import {
  type ListedBy,
  type ListedRow,
  type ListedTable,
  type PlaceRow,
  type RecordRow,
  recordFromRow,
  type SizeRow,
  summaryFromRow,
} from '../../tables/job-records.ts'
import type { RemovedRow } from '../../tables/jobs.ts'
import { giveUpTexts } from '../../tables/large-texts.ts'
import { jobToRemove } from '../../tables/removed-jobs.ts'
import type { SqlValue } from '../../tables/statement.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { deleteRecords, dropFailedInputs, readNotes, trimOwner } from './kept-records.ts'
import { removeJobs } from './removed-jobs.ts'

/** Accounts whose records one pass of upkeep looks at. */
const OWNERS = 10

/** Jobs in lists, also those of which only the record is kept, and the records. */
export const jobRecords = {
  list: read(function* (request: JobListRequest): Steps<JobListPart> {
    return yield* listed('endpoint_id', request.endpointId, request)
  }),

  listOfOwner: read(function* (request: OwnerJobListRequest): Steps<JobListPart> {
    return yield* listed('owner', request.owner, request)
  }),

  find: read(function* (
    endpointId: EndpointId,
    jobId: JobId,
    nowMs: number,
    withRecords: boolean,
  ): Steps<JobRecord | null> {
    const hiddenMs = withRecords ? 0 : nowMs
    const row = yield* queryOne<RecordRow>(sql.findKept, [endpointId, jobId, hiddenMs, nowMs])
    if (row !== null) return recordFromRow(row, yield* readNotes(jobId))
    const record = withRecords ? yield* queryOne<RecordRow>(sql.findRecord, [endpointId, jobId]) : null
    return record === null ? null : recordFromRow(record, [])
  }),

  endpointOf: read(function* (owner: OwnerId, jobId: JobId): Steps<EndpointId | null> {
    const row = yield* queryOne<{ endpoint_id: EndpointId }>(sql.endpointOfRecord, [owner, jobId])
    return row?.endpoint_id ?? null
  }),

  remove: write(function* (
    endpointId: EndpointId,
    jobId: JobId,
    nowMs: number,
  ): Steps<Expired | 'record' | 'unfinished' | null> {
    const row = yield* queryOne<RemovedRow>(jobToRemove, [endpointId, jobId])
    if (row !== null && !isFinal(row.status)) return 'unfinished'
    if (row !== null) {
      // Otherwise a client that deletes its jobs would fill the disk with texts that count for nobody.
      yield* perform(giveUpTexts, [jobId])
      return (yield* removeJobs([row], nowMs)).expired[0] ?? null
    }
    const records = yield* query<SizeRow>(sql.recordToRemove, [endpointId, jobId])
    yield* deleteRecords(records)
    return records.length > 0 ? 'record' : null
  }),

  trim: write(function* (rules: JobRecordRules, nowMs: number, limit: number): Steps<boolean> {
    const inputs = [nowMs - rules.failedInputsKeptMs, rules.failedInputsMaxBytes]
    const limits = [nowMs - rules.keptMs, rules.maxRecords, rules.maxBytes, OWNERS, ...inputs]
    const owners = yield* query<{ owner: OwnerId }>(sql.ownersOverLimit, limits)
    let rowsLeft = limit
    let isCut = owners.length === OWNERS
    for (const { owner } of owners) {
      rowsLeft -= yield* trimOwner(owner, rules, nowMs, rowsLeft)
      const inputsOfOwner = yield* dropFailedInputs(owner, rules, nowMs, rowsLeft)
      rowsLeft -= inputsOfOwner.dropped
      isCut ||= inputsOfOwner.isCut
    }
    return isCut || rowsLeft <= 0
  }),
} satisfies PortOperations<JobRecordStore>

const NOTHING: JobListPart = { jobs: [], readUntil: null }

type ListRequest = Omit<JobListRequest, 'endpointId'>

function* listed(by: ListedBy, id: EndpointId | OwnerId, request: ListRequest): Steps<JobListPart> {
  const live = yield* readPart('jobs', by, id, request)
  const recorded = request.withRecords ? yield* readPart('job_records', by, id, request) : NOTHING
  return merged(live, recorded, request.slice.limit)
}

/** The jobs of one table that a request asks for. */
function* readPart(
  table: ListedTable,
  by: ListedBy,
  id: EndpointId | OwnerId,
  request: ListRequest,
): Steps<JobListPart> {
  const { filter, slice, maxRead, nowMs, withRecords } = request
  const start = placeBefore(slice.after, filter.untilMs)
  // Also without a filter: without this bound PostgreSQL may plan to sort all jobs.
  const last = yield* queryOne<PlaceRow>(sql.jobByAge(table, by), [id, ...start, maxRead - 1])
  const begins = filter.fromMs ?? -1
  const isBounded = last !== null && last.queued_at_ms >= begins
  const until = isBounded ? [last.queued_at_ms, last.id] : [begins, '']
  const params = [id, ...start, nowMs, ...until, withRecords ? 0 : nowMs, slice.limit, ...filterParams(filter)]
  const rows = yield* query<ListedRow>(sql.listJobs(table, by), params)
  const jobs = rows.map(summaryFromRow)
  const readUntil = isBounded ? { createdAtMs: last.queued_at_ms, id: last.id } : null
  const isCut = rows.length === slice.limit
  // A fingerprint of a job that is kept is known only here, so a full page may lose some of its jobs.
  const matching = filter.fingerprint === null ? jobs : jobs.filter(job => job.fingerprint === filter.fingerprint)
  return matching.length < jobs.length && isCut
    ? { jobs: matching, readUntil: jobs.at(-1)! }
    : { jobs: matching, readUntil }
}

function placeBefore(after: PagePosition | null, untilMs: number | null): [number, string] {
  const place = after ?? { createdAtMs: Number.MAX_SAFE_INTEGER, id: '' }
  return untilMs !== null && untilMs <= place.createdAtMs ? [untilMs, ''] : [place.createdAtMs, place.id]
}

function filterParams({ workerId, error, fingerprint, statuses }: JobFilter): SqlValue[] {
  const pattern = error === null ? null : `%${error.replaceAll(/[!%_]/g, '!$&')}%`
  const statusParams = JOB_STATUSES.map(status => (statuses.length === 0 || statuses.includes(status) ? status : ''))
  return [workerId, pattern, fingerprint, ...statusParams]
}

/**
 * Both parts in one order, as far as both were read. A job that became a record between the two reads counts once.
 */
function merged(live: JobListPart, recorded: JobListPart, limit: number): JobListPart {
  const bounds = [live.readUntil, recorded.readUntil].filter(place => place !== null).sort(newestFirst)
  const readUntil = bounds[0] ?? null
  const ids = new Set(live.jobs.map(({ id }) => id))
  const jobs = [...live.jobs, ...recorded.jobs.filter(({ id }) => !ids.has(id))].sort(newestFirst)
  const within = readUntil === null ? jobs : jobs.filter(job => newestFirst(job, readUntil) <= 0)
  return { jobs: within.slice(0, limit), readUntil }
}

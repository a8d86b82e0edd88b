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
import { jobToRemove } from '../../tables/removed-jobs.ts'
import type { SqlValue } from '../../tables/statement.ts'
import { type PortOperations, query, queryOne, read, type Steps, write } from '../operation.ts'
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
    const kept = yield* queryOne<RecordRow>(sql.findKept, [endpointId, jobId, hiddenMs, nowMs])
    if (kept !== null) return recordFromRow(kept, yield* readNotes(jobId))
    const past = withRecords ? yield* queryOne<RecordRow>(sql.findRecord, [endpointId, jobId]) : null
    return past === null ? null : recordFromRow(past, [])
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
    const kept = yield* queryOne<RemovedRow>(jobToRemove, [endpointId, jobId])
    if (kept !== null && !isFinal(kept.status)) return 'unfinished'
    if (kept !== null) return (yield* removeJobs([kept], nowMs)).expired[0] ?? null
    const records = yield* query<SizeRow>(sql.recordToRemove, [endpointId, jobId])
    yield* deleteRecords(records)
    return records.length > 0 ? 'record' : null
  }),

  trim: write(function* (rules: JobRecordRules, nowMs: number, limit: number): Steps<boolean> {
    const inputs = [nowMs - rules.failedInputsKeptMs, rules.failedInputsMaxBytes]
    const asked = [nowMs - rules.keptMs, rules.maxRecords, rules.maxBytes, OWNERS, ...inputs]
    const owners = yield* query<{ owner: OwnerId }>(sql.ownersOverLimit, asked)
    let left = limit
    let isCut = owners.length === OWNERS
    for (const { owner } of owners) {
      left -= yield* trimOwner(owner, rules, nowMs, left)
      const inputsOfOwner = yield* dropFailedInputs(owner, rules, nowMs, left)
      left -= inputsOfOwner.dropped
      isCut ||= inputsOfOwner.isCut
    }
    return isCut || left <= 0
  }),
} satisfies PortOperations<JobRecordStore>

const NOTHING: JobListPart = { jobs: [], readUntil: null }

type ListRequest = Omit<JobListRequest, 'endpointId'>

function* listed(by: ListedBy, whose: EndpointId | OwnerId, request: ListRequest): Steps<JobListPart> {
  const kept = yield* readPart('jobs', by, whose, request)
  const past = request.withRecords ? yield* readPart('job_records', by, whose, request) : NOTHING
  return merged(kept, past, request.slice.limit)
}

/** The jobs of one table that a request asks for. */
function* readPart(
  table: ListedTable,
  by: ListedBy,
  whose: EndpointId | OwnerId,
  request: ListRequest,
): Steps<JobListPart> {
  const { filter, slice, maxRead, nowMs, withRecords } = request
  const start = placeBefore(slice.after, filter.untilMs)
  // Also without a filter: without this bound PostgreSQL may plan to sort all jobs.
  const last = yield* queryOne<PlaceRow>(sql.jobByAge(table, by), [whose, ...start, maxRead - 1])
  const begins = filter.fromMs ?? -1
  const isBounded = last !== null && last.queued_at_ms >= begins
  const until = isBounded ? [last.queued_at_ms, last.id] : [begins, '']
  const given = [whose, ...start, nowMs, ...until, withRecords ? 0 : nowMs, slice.limit, ...filterParams(filter)]
  const rows = yield* query<ListedRow>(sql.listJobs(table, by), given)
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
  const asked = JOB_STATUSES.map(status => (statuses.length === 0 || statuses.includes(status) ? status : ''))
  return [workerId, pattern, fingerprint, ...asked]
}

/**
 * Both parts in one order, as far as both were read. A job that became a record between the two reads counts once.
 */
function merged(kept: JobListPart, past: JobListPart, limit: number): JobListPart {
  const bounds = [kept.readUntil, past.readUntil].filter(place => place !== null).sort(newestFirst)
  const readUntil = bounds[0] ?? null
  const ids = new Set(kept.jobs.map(({ id }) => id))
  const all = [...kept.jobs, ...past.jobs.filter(({ id }) => !ids.has(id))].sort(newestFirst)
  const within = readUntil === null ? all : all.filter(job => newestFirst(job, readUntil) <= 0)
  return { jobs: within.slice(0, limit), readUntil }
}

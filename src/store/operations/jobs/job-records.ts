import type { EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import { errorFingerprint } from '../../../core/jobs/error-fingerprint.ts'
import { JOB_STATUSES } from '../../../core/jobs/job.ts'
import {
  type JobFilter,
  type JobNote,
  type JobRecord,
  type JobRecordRules,
  recordBytes,
  recordedEnd,
} from '../../../core/jobs/job-record.ts'
import type { Position } from '../../../core/pages.ts'
import type { JobListPart, JobListRequest, JobRecordStore } from '../../../ports/store/job-record-store.ts'
import * as sql from '../../tables/job-records.ts'
import {
  type ListedRow,
  type ListedTable,
  type PlaceRow,
  type RecordRow,
  type SizeRow,
  toRecord,
  toSummary,
} from '../../tables/job-records.ts'
import { diagnosticsOf, type RemovedRow } from '../../tables/jobs.ts'
import { type OperationsOf, perform, query, queryOne, read, type SqlValue, type Steps, write } from '../operation.ts'

/** Accounts whose records one pass of upkeep looks at. */
const OWNERS = 10

/** Jobs in lists, whether they are kept or only their record is, and the records. */
export const jobRecords = {
  list: read(function* (request: JobListRequest): Steps<JobListPart> {
    const kept = yield* partOf('jobs', request)
    const past = request.withRecords ? yield* partOf('job_records', request) : NOTHING
    return merged(kept, past, request.slice.limit)
  }),

  find: read(function* (
    endpointId: EndpointId,
    jobId: JobId,
    nowMs: number,
    withRecords: boolean,
  ): Steps<JobRecord | null> {
    const hiddenMs = withRecords ? 0 : nowMs
    const kept = yield* queryOne<RecordRow>(sql.findKept, [endpointId, jobId, hiddenMs, nowMs])
    if (kept !== null) return toRecord(kept, yield* notesOf(jobId))
    const past = withRecords ? yield* queryOne<RecordRow>(sql.findRecord, [endpointId, jobId]) : null
    return past === null ? null : toRecord(past, [])
  }),

  trim: write(function* (rules: JobRecordRules, nowMs: number, limit: number): Steps<boolean> {
    const asked = [nowMs - rules.keptMs, rules.maxRecords, rules.maxBytes, OWNERS]
    const owners = yield* query<{ owner: OwnerId }>(sql.ownersOverLimit, asked)
    let left = limit
    for (const { owner } of owners) left -= yield* trimOwner(owner, rules, nowMs, left)
    return owners.length === OWNERS || left <= 0
  }),
} satisfies OperationsOf<JobRecordStore>

const NOTHING: JobListPart = { jobs: [], readUntil: null }

/** The jobs of one table that a request asks for. */
function* partOf(table: ListedTable, request: JobListRequest): Steps<JobListPart> {
  const { endpointId, filter, slice, maxRead, nowMs, withRecords } = request
  const before = placeBefore(slice.after, filter.untilMs)
  // Also without a filter: without this bound PostgreSQL may plan to sort all jobs.
  const last = yield* queryOne<PlaceRow>(sql.jobByAge(table), [endpointId, ...before, maxRead - 1])
  const begins = filter.fromMs ?? -1
  const isBounded = last !== null && last.queued_at_ms >= begins
  const until = isBounded ? [last.queued_at_ms, last.id] : [begins, '']
  const given = [endpointId, ...before, nowMs, ...until, withRecords ? 0 : nowMs, slice.limit, ...conditionsOf(filter)]
  const rows = yield* query<ListedRow>(sql.listJobs(table), given)
  const jobs = rows.map(toSummary)
  const readUntil = isBounded ? { createdAtMs: last.queued_at_ms, id: last.id } : null
  const isCut = rows.length === slice.limit
  // A fingerprint of a job that is kept is known only here, so a full page may lose some of its jobs.
  const matching = filter.fingerprint === null ? jobs : jobs.filter(job => job.fingerprint === filter.fingerprint)
  return matching.length < jobs.length && isCut
    ? { jobs: matching, readUntil: jobs.at(-1)! }
    : { jobs: matching, readUntil }
}

function placeBefore(after: Position | null, untilMs: number | null): [number, string] {
  const place = after ?? { createdAtMs: Number.MAX_SAFE_INTEGER, id: '' }
  return untilMs !== null && untilMs <= place.createdAtMs ? [untilMs, ''] : [place.createdAtMs, place.id]
}

function conditionsOf({ workerId, error, fingerprint, statuses }: JobFilter): SqlValue[] {
  const pattern = error === null ? null : `%${error.replaceAll(/[!%_]/g, '!$&')}%`
  const asked = JOB_STATUSES.map(status => (statuses.length === 0 || statuses.includes(status) ? status : ''))
  return [workerId, pattern, fingerprint, ...asked]
}

/** Both parts in one order, as far as both were read. A job that became a record between the two reads counts once. */
function merged(kept: JobListPart, past: JobListPart, limit: number): JobListPart {
  const bounds = [kept.readUntil, past.readUntil].filter(place => place !== null).sort(newestFirst)
  const readUntil = bounds[0] ?? null
  const ids = new Set(kept.jobs.map(({ id }) => id))
  const all = [...kept.jobs, ...past.jobs.filter(({ id }) => !ids.has(id))].sort(newestFirst)
  const within = readUntil === null ? all : all.filter(job => newestFirst(job, readUntil) <= 0)
  return { jobs: within.slice(0, limit), readUntil }
}

function newestFirst(a: Position, b: Position): number {
  return b.createdAtMs - a.createdAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}

function* notesOf(jobId: JobId): Steps<JobNote[]> {
  const rows = yield* query<{ at_ms: number; worker_id: JobNote['workerId']; text: string }>(diagnosticsOf, [jobId])
  return rows.map(({ at_ms: atMs, worker_id: workerId, text }) => ({ atMs, workerId, text }))
}

/** Keeps records of jobs that are about to be removed, and removes as many old ones of their accounts as are too many then. */
export function* keepRecords(rows: readonly RemovedRow[], rules: JobRecordRules, nowMs: number): Steps<void> {
  const more = new Map<OwnerId, { records: number; bytes: number }>()
  for (const row of rows) {
    const bytes = yield* keepRecord(row, rules, nowMs)
    const sum = more.get(row.owner) ?? { records: 0, bytes: 0 }
    more.set(row.owner, { records: sum.records + 1, bytes: sum.bytes + bytes })
  }
  for (const [owner, { records, bytes }] of more) {
    yield* query(sql.addToSizes, [owner, records, bytes])
    // Twice as many as came, so that a limit that was lowered is reached soon.
    yield* trimOwner(owner, rules, nowMs, 2 * records)
  }
}

/** Returns what the record counts as. */
function* keepRecord(row: RemovedRow, rules: JobRecordRules, nowMs: number): Steps<number> {
  const job = { status: row.status, error: row.error, finishedAtMs: row.finished_at_ms }
  const { status, error, finishedAtMs } = recordedEnd(job, nowMs)
  const notes = row.notes === 0 ? null : JSON.stringify(yield* notesOf(row.id))
  const payloads = rules.payloads ? row.input_bytes + row.output_bytes : 0
  const bytes = recordBytes(error, notes, payloads)
  const fingerprint = error === null ? null : errorFingerprint(error)
  const kept = rules.payloads ? 1 : 0
  yield* perform(sql.insertRecord, [row.id, status, finishedAtMs, error, fingerprint, notes, bytes, kept])
  return bytes
}

/** Removes records of an account past the limits, the oldest first. Returns how many. @param limit maximum number */
function* trimOwner(owner: OwnerId, rules: JobRecordRules, nowMs: number, limit: number): Steps<number> {
  if (limit < 1) return 0
  const sizes = yield* queryOne<{ records: number; bytes: number }>(sql.addToSizes, [owner, 0, 0])
  const oldest = yield* query<SizeRow>(sql.oldestRecords, [owner, limit])
  let [records, bytes] = [sizes?.records ?? 0, sizes?.bytes ?? 0]
  const gone: SizeRow[] = []
  for (const row of oldest) {
    const isOver = records > rules.maxRecords || bytes > rules.maxBytes
    if (!isOver && row.finished_at_ms >= nowMs - rules.keptMs) break
    gone.push(row)
    records -= 1
    bytes -= row.bytes
  }
  yield* deleteRecords(gone.map(row => ({ ...row, owner })))
  return gone.length
}

/** Removes records, and what they count as. */
function* deleteRecords(rows: readonly Pick<SizeRow, 'id' | 'owner' | 'bytes'>[]): Steps<void> {
  if (rows.length === 0) return
  yield* perform(sql.deleteRecords, [JSON.stringify(rows.map(({ id }) => id))])
  const sums = Map.groupBy(rows, ({ owner }) => owner)
  for (const [owner, removed] of sums) {
    const bytes = removed.reduce((sum, row) => sum + row.bytes, 0)
    yield* query(sql.addToSizes, [owner, -removed.length, -bytes])
    yield* perform(sql.dropEmptySizes, [owner])
  }
}

/** Removes records of a deleted endpoint. Returns how many. */
export function* removeRecords(endpointId: EndpointId, limit: number): Steps<number> {
  const rows = yield* query<SizeRow>(sql.recordsLeft, [endpointId, limit])
  yield* deleteRecords(rows)
  return rows.length
}

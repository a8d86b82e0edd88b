import type { EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import { errorFingerprint } from '../../../core/jobs/error-fingerprint.ts'
import { type JobNote, type JobRecordRules, recordBytes, recordedEnd } from '../../../core/jobs/job-record.ts'
import type { SizeRow } from '../../tables/job-records.ts'
import * as sql from '../../tables/job-records.ts'
import { diagnosticsOf, type RemovedRow } from '../../tables/jobs.ts'
import { perform, query, queryOne, type Steps } from '../operation.ts'

/** The notes on a job that is kept, oldest first. */
export function* notesOf(jobId: JobId): Steps<JobNote[]> {
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
export function* trimOwner(owner: OwnerId, rules: JobRecordRules, nowMs: number, limit: number): Steps<number> {
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
export function* deleteRecords(rows: readonly Pick<SizeRow, 'id' | 'owner' | 'bytes'>[]): Steps<void> {
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

import type { EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import { errorFingerprint } from '../../../core/jobs/error-fingerprint.ts'
import {
  failedInputBytes,
  type JobNote,
  type JobRecordRules,
  payloadBytes,
  recordBytes,
  recordedEnd,
} from '../../../core/jobs/job-record.ts'
import { ONE_ROW_BYTES } from '../../../core/jobs/large-text.ts'
import type { SizeRow, SumRow } from '../../tables/job-records.ts'
import * as sql from '../../tables/job-records.ts'
import { listDiagnostics, type RemovedRow } from '../../tables/jobs.ts'
import { giveUpRecordedInput, keepLargeInput } from '../../tables/large-texts.ts'
import { perform, query, queryOne, type Steps } from '../operation.ts'

/** The notes on a job that is kept, oldest first. */
export function* readNotes(jobId: JobId): Steps<JobNote[]> {
  const rows = yield* query<{ at_ms: number; worker_id: JobNote['workerId']; text: string }>(listDiagnostics, [jobId])
  return rows.map(({ at_ms: atMs, worker_id: workerId, text }) => ({ atMs, workerId, text }))
}

/** Minimum number of inputs that one step drops, where so many are past a limit. */
const MIN_DROPPED = 100
/** Approximate maximum of bytes of inputs that one step drops; it drops one input at least. */
const DROPPED_BYTES = 16 * 1024 * 1024

/** Additions to the sums of an account. */
interface Sum {
  readonly records: number
  readonly bytes: number
  readonly inputBytes: number
}

const NOTHING: Sum = { records: 0, bytes: 0, inputBytes: 0 }

/**
 * Keeps records of jobs that are about to be removed, and removes old ones of their accounts past the limits.
 */
export function* keepRecords(rows: readonly RemovedRow[], rules: JobRecordRules, nowMs: number): Steps<void> {
  const sums = new Map<OwnerId, Sum>()
  for (const row of rows) {
    const { bytes, inputBytes } = yield* keepRecord(row, rules, nowMs)
    const sum = sums.get(row.owner) ?? NOTHING
    sums.set(row.owner, {
      records: sum.records + 1,
      bytes: sum.bytes + bytes,
      inputBytes: sum.inputBytes + inputBytes,
    })
  }
  for (const [owner, { records, bytes, inputBytes }] of sums) {
    yield* query(sql.addToSizes, [owner, records, bytes, inputBytes])
    // Twice as many as came, so that a limit that was lowered is reached soon.
    yield* trimOwner(owner, rules, nowMs, 2 * records)
    if (inputBytes > 0) yield* dropFailedInputs(owner, rules, nowMs, Math.max(MIN_DROPPED, 2 * records))
  }
}

/** Keeps a record of a job. @returns the bytes that it and its input count as */
function* keepRecord(row: RemovedRow, rules: JobRecordRules, nowMs: number): Steps<Omit<Sum, 'records'>> {
  const job = { status: row.status, error: row.error, finishedAtMs: row.finished_at_ms }
  const { status, error, finishedAtMs } = recordedEnd(job, nowMs)
  const notes = row.notes === 0 ? null : JSON.stringify(yield* readNotes(row.id))
  const payloads = payloadBytes({ inputBytes: row.input_bytes, outputBytes: row.output_bytes }, rules)
  const bytes = recordBytes(error, notes, payloads.input + payloads.output)
  const inputBytes = failedInputBytes(status, row.input_bytes, rules)
  const fingerprint = error === null ? null : errorFingerprint(error)
  const hasPayloads = rules.payloads ? 1 : 0
  const params = [row.id, status, finishedAtMs, error, fingerprint, notes, bytes, hasPayloads, inputBytes]
  yield* perform(sql.insertRecord, params)
  if (row.input_bytes > ONE_ROW_BYTES && payloads.input + inputBytes > 0) yield* perform(keepLargeInput, [row.id])
  return { bytes, inputBytes }
}

/** Removes records of an account past the limits, the oldest first, at most `limit`. @returns their number */
export function* trimOwner(owner: OwnerId, rules: JobRecordRules, nowMs: number, limit: number): Steps<number> {
  if (limit < 1) return 0
  const sizes = yield* readSizes(owner)
  const oldest = yield* query<SizeRow>(sql.oldestRecords, [owner, limit])
  let { records, bytes } = sizes
  const removed: SizeRow[] = []
  for (const row of oldest) {
    const isOver = records > rules.maxRecords || bytes > rules.maxBytes
    if (!isOver && row.finished_at_ms >= nowMs - rules.keptMs) break
    removed.push(row)
    records -= 1
    bytes -= row.bytes
  }
  yield* deleteRecords(removed.map(row => ({ ...row, owner })))
  return removed.length
}

/**
 * Drops inputs of failed jobs of an account that are past their time or the limit of bytes, the oldest first; their
 * records stay. Returns their number, and true where further ones remain.
 * @param limit maximum number
 */
export function* dropFailedInputs(
  owner: OwnerId,
  rules: JobRecordRules,
  nowMs: number,
  limit: number,
): Steps<{ readonly dropped: number; readonly isCut: boolean }> {
  if (limit < 1) return { dropped: 0, isCut: true }
  let { failed_input_bytes: bytesLeft } = yield* readSizes(owner)
  const oldest = yield* query<Omit<SizeRow, 'bytes'>>(sql.oldestFailedInputs, [owner, limit])
  const droppedBytes = new Map<JobId, number>()
  let freed = 0
  for (const { id, finished_at_ms, failed_input_bytes } of oldest) {
    const isOver = bytesLeft > rules.failedInputsMaxBytes
    if (freed > DROPPED_BYTES || (!isOver && finished_at_ms >= nowMs - rules.failedInputsKeptMs)) break
    droppedBytes.set(id, failed_input_bytes)
    freed += failed_input_bytes
    bytesLeft -= failed_input_bytes
  }
  if (droppedBytes.size === 0) return { dropped: 0, isCut: false }
  const rows = yield* query<{ id: JobId }>(sql.dropFailedInputs, [JSON.stringify([...droppedBytes.keys()])])
  yield* giveUpLarge([...droppedBytes].filter(([, bytes]) => bytes > ONE_ROW_BYTES).map(([id]) => id))
  const dropped = rows.reduce((sum, { id }) => sum + (droppedBytes.get(id) ?? 0), 0)
  yield* query(sql.addToSizes, [owner, 0, 0, -dropped])
  return { dropped: droppedBytes.size, isCut: freed > DROPPED_BYTES }
}

/** The sums of an account. Concurrent changes of them wait until this step is over. */
function* readSizes(owner: OwnerId): Steps<SumRow> {
  const row = yield* queryOne<SumRow>(sql.addToSizes, [owner, 0, 0, 0])
  return row ?? { records: 0, bytes: 0, failed_input_bytes: 0 }
}

/** Removes records, and what they count as. */
export function* deleteRecords(
  rows: readonly Pick<SizeRow, 'id' | 'owner' | 'bytes' | 'failed_input_bytes'>[],
): Steps<void> {
  if (rows.length === 0) return
  yield* giveUpLarge(rows.filter(row => row.bytes + row.failed_input_bytes > ONE_ROW_BYTES).map(({ id }) => id))
  yield* perform(sql.deleteRecords, [JSON.stringify(rows.map(({ id }) => id))])
  const sums = Map.groupBy(rows, ({ owner }) => owner)
  for (const [owner, removed] of sums) {
    const bytes = removed.reduce((sum, row) => sum + row.bytes, 0)
    const inputBytes = removed.reduce((sum, row) => sum + row.failed_input_bytes, 0)
    yield* query(sql.addToSizes, [owner, -removed.length, -bytes, -inputBytes])
    yield* perform(sql.dropEmptySizes, [owner])
  }
}

/** Gives up large inputs of records, which are removed soon. */
function* giveUpLarge(ids: readonly JobId[]): Steps<void> {
  for (const id of ids) yield* perform(giveUpRecordedInput, [id])
}

/** Removes records of a deleted endpoint. @returns their number */
export function* removeRecords(endpointId: EndpointId, limit: number): Steps<number> {
  const rows = yield* query<SizeRow>(sql.recordsLeft, [endpointId, limit])
  yield* deleteRecords(rows)
  return rows.length
}

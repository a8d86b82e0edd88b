import { NO_JOB_USAGE, usageFromMove } from '../../../core/billing/usage.ts'
import { expiredJob, isFinal, type Job } from '../../../core/jobs/job.ts'
import type { JobRecordRules } from '../../../core/jobs/job-record.ts'
import { ONE_ROW_BYTES } from '../../../core/jobs/large-text.ts'
import type { Expired, JobMove } from '../../../ports/store/store.ts'
import { type RemovedRow, removedJobFromRow } from '../../tables/jobs.ts'
import { giveUpTexts } from '../../tables/large-texts.ts'
import { deleteJobs } from '../../tables/removed-jobs.ts'
import { countJobUsage } from '../accounts/usage.ts'
import { perform, type Steps } from '../operation.ts'
import { stopWork } from '../workers/stops.ts'
import { countInBatches } from './batch-counts.ts'
import { keepRecords } from './kept-records.ts'
import { addDeliveries } from './webhooks.ts'

/**
 * Approximate bytes of rows that one transaction removes, at least one row: freeing more rows takes longer.
 */
export const REMOVED_BYTES = 8 * 1024 * 1024
/** Bytes that a chunk counts on top of its text: many small ones take long, too. */
const CHUNK_BYTES = 1_024

/** Outcome for jobs that were removed. */
export interface RemovedRows {
  /** Those whose endpoint exists. */
  readonly expired: Expired[]
  /** Those that were not done when their endpoint was deleted. */
  readonly cancelled: JobMove[]
  /** Number of removed rows: not all of them where they are large. */
  readonly rows: number
}

/**
 * Removes the first of these jobs, and ends those that were not done: CANCELLED where their endpoint is gone, else
 * expired.
 * @param records rules for the records of those whose endpoint exists; by default no records
 */
export function* removeJobs(
  candidates: readonly RemovedRow[],
  nowMs: number,
  records?: JobRecordRules,
): Steps<RemovedRows> {
  const rows = candidates.slice(0, lengthWithin(candidates.map(storedBytes), REMOVED_BYTES))
  if (rows.length === 0) return { expired: [], cancelled: [], rows: 0 }
  const recorded = rows.filter(row => row.endpoint_gone === 0)
  if (records !== undefined && recorded.length > 0) yield* keepRecords(recorded, records, nowMs)
  // Nobody reads texts of a deleted endpoint any more. Those of expired jobs stay for readers that have begun.
  for (const row of rows) if (row.endpoint_gone === 1 && mayHaveLarge(row)) yield* perform(giveUpTexts, [row.id])
  yield* perform(deleteJobs, [JSON.stringify(rows.map(({ id }) => id))])
  const expired = rows.filter(row => row.endpoint_gone === 0).map(row => expiredWithUsage(row, nowMs))
  const cancelled = rows.filter(row => row.endpoint_gone === 1).flatMap(row => cancelMoves(row, nowMs))
  const undone = expired
    .filter(({ job }) => !isFinal(job.status))
    .map(({ job, usage }) => ({ job: expiredJob(job, nowMs), from: job.status, usage }))
  const ended = [...undone, ...cancelled]
  yield* countJobUsage(ended, nowMs)
  // The batches of a deleted endpoint go with it.
  yield* countInBatches(undone, nowMs)
  yield* stopWork(ended, nowMs)
  yield* addDeliveries(
    ended.map(({ job }) => job),
    nowMs,
  )
  return { expired, cancelled, rows: rows.length }
}

function mayHaveLarge(row: RemovedRow): boolean {
  return row.input_bytes > ONE_ROW_BYTES || row.output_bytes > ONE_ROW_BYTES
}

/** The number of first items that fit into a number of bytes, at least one. */
export function lengthWithin(sizes: readonly number[], maxBytes: number): number {
  let bytes = 0
  const beyond = sizes.findIndex(size => {
    bytes += size
    return bytes > maxBytes
  })
  return beyond === -1 ? sizes.length : Math.max(1, beyond)
}

function storedBytes(row: RemovedRow): number {
  return row.input_bytes + row.output_bytes + (row.stream_bytes ?? 0) + (row.last_chunk ?? 0) * CHUNK_BYTES
}

function expiredWithUsage(row: RemovedRow, nowMs: number): Expired {
  const job = removedJobFromRow(row)
  return { job, usage: isFinal(job.status) ? NO_JOB_USAGE : removalUsage(row, 'expired', nowMs) }
}

function cancelMoves(row: RemovedRow, nowMs: number): JobMove[] {
  const previous = removedJobFromRow(row)
  if (isFinal(previous.status)) return []
  const job: Job = { ...previous, status: 'CANCELLED', finishedAtMs: nowMs }
  return [{ job, from: previous.status, usage: removalUsage(row, 'CANCELLED', nowMs) }]
}

function removalUsage(row: RemovedRow, to: 'expired' | 'CANCELLED', nowMs: number) {
  const { waiting_since_ms: waitingSinceMs, started_at_ms, paused_at_ms, paused_ms, input_bytes: inputBytes } = row
  const pausedMs = paused_ms + Math.max(0, nowMs - (paused_at_ms ?? nowMs))
  const startedAtMs = started_at_ms === null ? null : started_at_ms + pausedMs
  const span = { waitingSinceMs, startedAtMs, inputBytes, outputBytes: 0, streamBytes: row.stream_bytes ?? 0 }
  return usageFromMove(to === 'expired' ? 'expire' : 'cancel', to, span, nowMs)
}

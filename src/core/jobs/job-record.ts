/** Job records: the facts of a job that stay after its result was deleted. */
import type { EndpointId, JobId, OwnerId, WorkerId } from '../ids.ts'
import { ERROR_READ } from './error-fingerprint.ts'
import { EXPIRED_ERROR, isFinal, type Job, type JobStatus } from './job.ts'
import { type LargeText, ONE_ROW_BYTES } from './large-text.ts'

/** Retention of job records. */
export interface JobRecordRules {
  /** Retention after the end of a job; 0 for no records. */
  readonly keptMs: number
  /** Limit of records of an account. Beyond it the oldest are deleted. */
  readonly maxRecords: number
  /** Limit of bytes of the records of an account. */
  readonly maxBytes: number
  /** True if a record includes input and output. */
  readonly payloads: boolean
  /** Retention of the input of a failed or timed out job, in its record, without `payloads`; 0 keeps no input. */
  readonly failedInputsKeptMs: number
  /** Limit of bytes of these inputs of an account. Beyond it the oldest are deleted, and their records stay. */
  readonly failedInputsMaxBytes: number
}

/** The rules of a server without settings. */
export const JOB_RECORD_RULES: JobRecordRules = {
  keptMs: 7 * 24 * 60 * 60_000,
  maxRecords: 500_000,
  maxBytes: 512 * 1024 * 1024,
  payloads: false,
  failedInputsKeptMs: 24 * 60 * 60_000,
  failedInputsMaxBytes: 128 * 1024 * 1024,
}

/** Bytes that a record counts beside its texts: the row and its places in indexes. */
const ROW_BYTES = 400

/** A job of a list: one that still has its result, or a job record. Instants are epoch milliseconds. */
export interface JobSummary {
  readonly id: JobId
  readonly endpointId: EndpointId
  readonly status: JobStatus
  /** Instant of its submission, or of its last retry. */
  readonly createdAtMs: number
  readonly queuedAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  /** Last instant at which `/status` finds it; null if only its record is left. */
  readonly expiresAtMs: number | null
  readonly attempt: number
  readonly lostAttempts: number
  readonly workerId: WorkerId | null
  readonly inputBytes: number
  readonly outputBytes: number | null
  /** The first characters of its error. */
  readonly error: string | null
  /** See error-fingerprint.ts; null without an error. */
  readonly fingerprint: string | null
}

/** An event of a job that is not its result: a lost attempt, a result that came too late. */
export interface JobNote {
  readonly atMs: number
  readonly workerId: WorkerId
  readonly text: string
}

/** All facts of one job. */
export interface JobRecord extends JobSummary {
  readonly owner: OwnerId
  readonly executionTimeoutMs: number
  readonly ttlMs: number
  readonly lowPriority: boolean
  /** JSON texts; null if missing or not kept. */
  readonly input: string | null
  /** The input where it is too large for {@link input}, which is null then. */
  readonly largeInput: LargeText | null
  readonly output: string | null
  /** True where the output is too large for {@link output}, and `/status` has it. */
  readonly hasLargeOutput: boolean
  /** Chunks that the last attempt streamed; null if only the record is left. */
  readonly chunks: number | null
  /** Oldest first. */
  readonly notes: readonly JobNote[]
}

/** A filter of jobs; null or empty matches all. */
export interface JobFilter {
  readonly statuses: readonly JobStatus[]
  readonly workerId: WorkerId | null
  /** A part of the error, in lower case. */
  readonly error: string | null
  readonly fingerprint: string | null
  /** Submitted or retried at this instant or later. */
  readonly fromMs: number | null
  /** Submitted or retried before this instant. */
  readonly untilMs: number | null
}

/** All jobs. */
export const ANY_JOB: JobFilter = {
  statuses: [],
  workerId: null,
  error: null,
  fingerprint: null,
  fromMs: null,
  untilMs: null,
}

/** The end of a job that leaves a record: that of a job past its ttl is TIMED_OUT. */
export function recordedEnd(
  { status, error, finishedAtMs }: Pick<Job, 'status' | 'error' | 'finishedAtMs'>,
  nowMs: number,
): { status: JobStatus; error: string | null; finishedAtMs: number } {
  if (isFinal(status))
    return { status, error: error?.slice(0, ERROR_READ) ?? null, finishedAtMs: finishedAtMs ?? nowMs }
  return { status: 'TIMED_OUT', error: error?.slice(0, ERROR_READ) ?? EXPIRED_ERROR, finishedAtMs: nowMs }
}

/**
 * Bytes of the input that the record of a failed or timed out job keeps; 0 if it keeps none.
 * @param status the state in which the job ended
 */
export function failedInputBytes(status: JobStatus, inputBytes: number, rules: JobRecordRules): number {
  const isKept = (status === 'FAILED' || status === 'TIMED_OUT') && !rules.payloads && rules.failedInputsKeptMs > 0
  // A larger one would displace all others and then itself.
  return isKept && inputBytes <= rules.failedInputsMaxBytes ? inputBytes : 0
}

/**
 * Bytes of the texts that a record includes with `payloads`. It has no output above the size of one row, and no input
 * above that size and the limit of all records.
 */
export function payloadBytes(
  { inputBytes, outputBytes }: { readonly inputBytes: number; readonly outputBytes: number },
  rules: JobRecordRules,
): { readonly input: number; readonly output: number } {
  if (!rules.payloads) return { input: 0, output: 0 }
  // A larger one would displace the records of all other jobs and then its own.
  const isKept = inputBytes <= Math.max(ONE_ROW_BYTES, rules.maxBytes)
  return { input: isKept ? inputBytes : 0, output: outputBytes <= ONE_ROW_BYTES ? outputBytes : 0 }
}

/** The refusal of a replay without a kept input, with the remedy. */
export function inputGone(jobId: JobId): string {
  const kept = 'inputs of failed jobs are kept for --failed-input-hours, all of later jobs with --keep-payloads'
  return `the input of job ${jobId} is no longer kept; give one, as with runyard jobs replay --input (${kept})`
}

/** The refusal of a retry of a job with nothing left but its record, with the remedy. */
export function onlyRecordLeft({ id, input, largeInput }: Pick<JobRecord, 'id' | 'input' | 'largeInput'>): string {
  const instead =
    input === null && largeInput === null
      ? inputGone(id)
      : `submit its input as a new job: runyard jobs replay ${id} (POST /requests/${id}/replay)`
  return `the result of job ${id} was deleted, so it cannot be retried; ${instead}`
}

/**
 * Bytes of a record that count towards the limit of its account.
 * @param payloads bytes of the texts that it includes
 */
export function recordBytes(error: string | null, notes: string | null, payloads: number): number {
  return ROW_BYTES + (error?.length ?? 0) + (notes?.length ?? 0) + payloads
}

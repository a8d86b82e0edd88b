/** Job records: what is kept of a job after its result is gone. */
import type { EndpointId, JobId, OwnerId, WorkerId } from '../ids.ts'
import { ERROR_READ } from './error-fingerprint.ts'
import { EXPIRED_ERROR, isFinal, type Job, type JobStatus } from './job.ts'

/** How many job records are kept, and for how long. */
export interface JobRecordRules {
  /** How long after the end of a job; 0 for no records. */
  readonly keptMs: number
  /** Limit of records of an account. Past it the oldest go. */
  readonly maxRecords: number
  /** Limit of bytes of the records of an account. */
  readonly maxBytes: number
  /** Whether input and output are kept with the record. */
  readonly payloads: boolean
  /** Time that the record of a failed or timed out job keeps its input after the end, without `payloads`; 0 keeps no input. */
  readonly failedInputsKeptMs: number
  /** Limit of bytes of these inputs of an account. Past it the oldest go, and their records stay. */
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

/** What a record counts as beside its texts, in bytes: the row and its places in indexes. */
const ROW_BYTES = 400

/** A job of a list: one whose result is still there, or the record of one. Instants are epoch milliseconds. */
export interface JobSummary {
  readonly id: JobId
  readonly endpointId: EndpointId
  readonly status: JobStatus
  /** When it was submitted, or retried last. */
  readonly createdAtMs: number
  readonly queuedAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  /** Until when `/status` knows it; null where only its record is left. */
  readonly expiresAtMs: number | null
  readonly attempt: number
  readonly lostAttempts: number
  readonly workerId: WorkerId | null
  readonly inputBytes: number
  readonly outputBytes: number | null
  /** The first characters of its error. */
  readonly error: string | null
  /** See error-fingerprint.ts; null where there is no error. */
  readonly fingerprint: string | null
}

/** Something that happened to a job and was no result: an attempt that was lost, a result that came too late. */
export interface JobNote {
  readonly atMs: number
  readonly workerId: WorkerId
  readonly text: string
}

/** All that is known of one job. */
export interface JobRecord extends JobSummary {
  readonly owner: OwnerId
  readonly executionTimeoutMs: number
  readonly ttlMs: number
  readonly lowPriority: boolean
  /** JSON texts; null where there is none, or where it was not kept. */
  readonly input: string | null
  readonly output: string | null
  /** Chunks that the last attempt streamed; null where only the record is left. */
  readonly chunks: number | null
  /** Oldest first. */
  readonly notes: readonly JobNote[]
}

/** Which jobs are meant. What is null or empty means all of them. */
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
 * The bytes of the input of a job that its record keeps for a while because the job failed or timed out; 0 where it keeps none.
 * @param status the state in which the job ended
 */
export function failedInputBytes(status: JobStatus, inputBytes: number, rules: JobRecordRules): number {
  const isKept = (status === 'FAILED' || status === 'TIMED_OUT') && !rules.payloads && rules.failedInputsKeptMs > 0
  // A larger one would drop all others and then itself.
  return isKept && inputBytes <= rules.failedInputsMaxBytes ? inputBytes : 0
}

/** The refusal of a replay without a kept input, with the remedy. */
export function inputGone(jobId: JobId): string {
  const kept = 'inputs of failed jobs are kept for --failed-input-hours, all of later jobs with --keep-payloads'
  return `the input of job ${jobId} is not kept any more; give one, as with runyard jobs replay --input (${kept})`
}

/** The refusal of a retry of a job with nothing left but its record, with the remedy. */
export function onlyRecordLeft({ id, input }: Pick<JobRecord, 'id' | 'input'>): string {
  const instead =
    input === null
      ? inputGone(id)
      : `submit its input as a new job: runyard jobs replay ${id} (POST /requests/${id}/replay)`
  return `the result of job ${id} is gone, so it cannot be retried; ${instead}`
}

/** What a record counts as towards the limit of its account, in bytes. @param payloads bytes of the texts that are kept with it */
export function recordBytes(error: string | null, notes: string | null, payloads: number): number {
  return ROW_BYTES + (error?.length ?? 0) + (notes?.length ?? 0) + payloads
}

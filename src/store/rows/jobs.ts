import type { UsageSpan } from '../../core/billing/usage.ts'
import type { BatchId, EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob, Job, JobKind, JobStatus, JobSummary } from '../../core/jobs/job.ts'
import type { SqlValue } from '../operations/operation.ts'
import { SMALL_BYTES } from '../sql/jobs.ts'

/** A job with its payloads as statements return it. Its input only goes to workers. */
export interface JobRow {
  readonly id: JobId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly kind: JobKind
  readonly status: JobStatus
  readonly input: string
  readonly policy: string | null
  readonly webhook: string | null
  readonly s3_config: string | null
  readonly execution_timeout_ms: number
  readonly low_priority: number
  readonly position: number
  readonly ttl_ms: number
  readonly retention_ms: number
  readonly queued_at_ms: number
  readonly started_at_ms: number | null
  readonly finished_at_ms: number | null
  readonly expires_at_ms: number
  readonly attempt: number
  readonly lost_attempts: number
  readonly worker_id: WorkerId | null
  readonly output: string | null
  readonly error: string | null
  readonly progress: string | null
  readonly warning: string | null
  readonly batch_id: BatchId | null
}

/** What a claim returns of each row. */
export interface ClaimedRow
  extends Pick<
    JobRow,
    'id' | 'attempt' | 'input' | 'policy' | 'webhook' | 's3_config' | 'low_priority' | 'position' | 'batch_id'
  > {
  readonly waited_ms: number
}

/** What a list returns of each row. */
export type SummaryRow = Pick<
  JobRow,
  'id' | 'status' | 'queued_at_ms' | 'started_at_ms' | 'finished_at_ms' | 'lost_attempts' | 'worker_id'
>

/** Where a job stands in a list. */
export type PlaceRow = Pick<JobRow, 'queued_at_ms' | 'id'>

/** What the usage of an attempt is counted from. */
export interface SpanRow {
  readonly started_at_ms: number | null
  readonly waiting_since_ms: number
  readonly input_bytes: number
  readonly stream_bytes: number | null
}

/** A row of a job that was just moved. */
export interface MovedRow extends JobRow {
  /** Whether a large progress of its attempt is still there, 0 or 1. */
  readonly has_progress: number
}

/** A row of a job that has ended, with what its usage is counted from. */
export interface EndedRow extends MovedRow {
  readonly waiting_since_ms: number | null
  readonly input_bytes: number
  readonly output_bytes: number | null
  readonly stream_bytes: number | null
}

/** A row of a job that is removed, without its texts. */
export interface RemovedRow extends SpanRow, Omit<JobRow, 'input' | 'output' | 'policy' | 's3_config' | 'progress'> {
  readonly started_at_ms: number | null
  readonly input_bytes: number
  readonly output_bytes: number
  readonly last_chunk: number | null
  readonly endpoint_gone: number
}

/** A row as a job. */
export function toJob(row: JobRow): Job {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    kind: row.kind,
    status: row.status,
    input: row.input,
    policy: row.policy,
    webhook: row.webhook,
    s3Config: row.s3_config,
    executionTimeoutMs: row.execution_timeout_ms,
    lowPriority: row.low_priority === 1,
    position: row.position,
    ttlMs: row.ttl_ms,
    retentionMs: row.retention_ms,
    queuedAtMs: row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    expiresAtMs: row.expires_at_ms,
    attempt: row.attempt,
    lostAttempts: row.lost_attempts,
    workerId: row.worker_id,
    output: row.output,
    error: row.error,
    progress: row.progress,
    warning: row.warning,
    batchId: row.batch_id,
  }
}

/** A row as what a worker gets. */
export function toClaimedJob(row: ClaimedRow): ClaimedJob {
  const { id, attempt, input, policy, webhook } = row
  const { s3_config: s3Config, batch_id: batchId } = row
  return { id, attempt, input, policy, webhook, s3Config, batchId, waitedMs: Math.max(0, row.waited_ms) }
}

/** A row as an item of a list. */
export function toSummary(row: SummaryRow): JobSummary {
  return {
    id: row.id,
    status: row.status,
    createdAtMs: row.queued_at_ms,
    queuedAtMs: row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    finishedAtMs: row.finished_at_ms,
    lostAttempts: row.lost_attempts,
    workerId: row.worker_id,
  }
}

/** A row as the job that it was. What its texts were is not known any more. */
export function toRemovedJob(row: RemovedRow): Job {
  return toJob({ ...row, input: '{}', output: null, policy: null, s3_config: null, progress: null })
}

/** What the usage of the job of a row is counted from. */
export function toSpan(row: EndedRow): UsageSpan {
  return {
    waitingSinceMs: row.waiting_since_ms ?? row.queued_at_ms,
    startedAtMs: row.started_at_ms,
    inputBytes: row.input_bytes,
    outputBytes: row.output_bytes ?? 0,
    streamBytes: row.stream_bytes ?? 0,
  }
}

/** A text of a job as it is stored: small ones beside its state, large ones apart. */
export interface Payload {
  readonly small: string | null
  readonly large: string | null
  readonly bytes: number | null
}

/** A text as it is stored. */
export function ofPayload(text: string | null): Payload {
  if (text === null) return { small: null, large: null, bytes: null }
  const bytes = Buffer.byteLength(text)
  return bytes <= SMALL_BYTES ? { small: text, large: null, bytes } : { small: null, large: text, bytes }
}

/** The parameters of `insertJob`. What a job has only after its first attempt is not among them. */
export function newJobParams(job: Job, input: Payload): SqlValue[] {
  return [
    job.id,
    job.owner,
    job.endpointId,
    job.kind,
    input.small,
    job.policy,
    job.webhook,
    job.s3Config,
    job.executionTimeoutMs,
    job.lowPriority ? 1 : 0,
    job.position,
    job.ttlMs,
    job.retentionMs,
    job.queuedAtMs,
    job.expiresAtMs,
    input.bytes,
  ]
}

/** The columns of a job that a worker holds. */
export interface RunningRow {
  readonly id: JobId
  readonly worker_id: WorkerId
  readonly started_at_ms: number
}

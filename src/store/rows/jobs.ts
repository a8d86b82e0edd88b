import type { EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob, Job, JobKind, JobStatus } from '../../core/job.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `jobs`. */
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
}

/** What a claim returns of each row. */
export type ClaimedRow = Pick<
  JobRow,
  'id' | 'attempt' | 'input' | 'policy' | 'webhook' | 's3_config' | 'low_priority' | 'position'
>

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
  }
}

/** A row as what a worker gets. */
export function toClaimedJob(row: ClaimedRow): ClaimedJob {
  const { id, attempt, input, policy, webhook } = row
  return { id, attempt, input, policy, webhook, s3Config: row.s3_config }
}

/** The parameters of `insertJob`. What a job has only after its first attempt is not among them. */
export function ofNewJob(job: Job): SqlValue[] {
  return [
    job.id,
    job.owner,
    job.endpointId,
    job.kind,
    job.input,
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
  ]
}

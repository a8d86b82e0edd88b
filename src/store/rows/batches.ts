import type { BatchId, EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { Batch, BatchRequest, StoredBatchStatus } from '../../core/jobs/batch.ts'
import type { BatchDraftRequest } from '../../ports/store/batch-store.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `batches`. */
export interface BatchRow {
  readonly id: BatchId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly status: StoredBatchStatus
  readonly name: string | null
  readonly webhook: string | null
  readonly total: number
  readonly in_progress: number
  readonly completed: number
  readonly failed: number
  readonly created_at_ms: number
  readonly finalized_at_ms: number | null
  readonly finished_at_ms: number | null
  readonly expires_at_ms: number | null
}

/** A row of a list of requests, from `jobs` or `batch_requests`. */
export interface BatchRequestRow {
  readonly id: JobId
  readonly status: BatchRequest['status']
  readonly output: string | null
  readonly error: string | null
  readonly started_at_ms: number | null
  readonly finished_at_ms: number | null
}

/** A row as a batch. */
export function toBatch(row: BatchRow): Batch {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    status: row.status,
    name: row.name,
    webhook: row.webhook,
    total: row.total,
    inProgress: row.in_progress,
    completed: row.completed,
    failed: row.failed,
    createdAtMs: row.created_at_ms,
    finalizedAtMs: row.finalized_at_ms,
    finishedAtMs: row.finished_at_ms,
    expiresAtMs: row.expires_at_ms,
  }
}

/** A row as a request. */
export function toBatchRequest(row: BatchRequestRow): BatchRequest {
  const { id, status, output, error, started_at_ms, finished_at_ms } = row
  return { id, status, output, error, startedAtMs: started_at_ms, finishedAtMs: finished_at_ms }
}

/** The parameters of a request in `insertRequests`. */
export function ofRequest(request: BatchDraftRequest, seq: number): SqlValue[] {
  const { id, executionTimeoutMs, ttlMs, lowPriority, webhook, s3Config, policy, input } = request
  const bytes = input.length + (policy?.length ?? 0) + (s3Config?.length ?? 0)
  return [seq, id, executionTimeoutMs, ttlMs, lowPriority ? 1 : 0, bytes, webhook, s3Config, policy, input]
}

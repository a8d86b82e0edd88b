import type { ErrorCode } from '../errors.ts'
import type { BatchId, EndpointId, JobId, OwnerId } from '../ids.ts'
import type { JobStatus } from './job.ts'
import { JOB_TIMES } from './retention.ts'

const HOUR_MS = 60 * 60_000

/** Limits of batches; times in milliseconds. */
export const BATCH = {
  /** Batches of one endpoint that are drafts or have unfinished requests. */
  active: 10,
  /** Requests of one batch. */
  requests: 5_000,
  /** Unfinished requests of all batches of an endpoint, including those of drafts. */
  unfinished: 50_000,
  nameLength: 255,
  /** Longest wait of a draft for its finalization after its last request was added. */
  draftMs: 24 * HOUR_MS,
  /** Lifetime of requests after the finalization, unless their own ttl is shorter. */
  requestTtlMs: JOB_TIMES.ttlMs.max,
  /** Retention of a batch and its results after its last request ended. */
  keptMs: 24 * HOUR_MS,
} as const

/** States of a batch as it is stored. A batch that is done stays FINALIZED. */
export type StoredBatchStatus = 'DRAFT' | 'FINALIZED' | 'CANCELLED'
/** States of a batch as clients see them. */
export type BatchStatus = StoredBatchStatus | 'FAILED'

/** Requests that are handed over together. Instants are epoch milliseconds. */
export interface Batch {
  readonly id: BatchId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  readonly status: StoredBatchStatus
  readonly name: string | null
  /** Receiver of a message when it is finished or cancelled. */
  readonly webhook: string | null
  readonly total: number
  readonly inProgress: number
  readonly completed: number
  /** Requests that ended in any other way: FAILED, TIMED_OUT, CANCELLED, or past their ttl. */
  readonly failed: number
  readonly createdAtMs: number
  readonly finalizedAtMs: number | null
  /** Instant at which all requests were final; null while one is not. */
  readonly finishedAtMs: number | null
  /** End of the batch's retention; null while requests are unfinished. */
  readonly expiresAtMs: number | null
}

/** A request of a batch as the list shows it. `status` is DRAFT before the batch was finalized. */
export interface BatchRequest {
  readonly id: JobId
  readonly status: JobStatus | 'DRAFT'
  /** A JSON text. */
  readonly output: string | null
  /** True where the output is too large for {@link output}, and `/status` has it. */
  readonly hasLargeOutput: boolean
  readonly error: string | null
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
}

/** The refusal of an operation on a batch: a code and a sentence. */
export interface BatchRefusal {
  readonly code: ErrorCode
  readonly message: string
}

/** State that clients see: FAILED if every request has ended and none succeeded. */
export function batchStatus({ status, total, failed, finishedAtMs }: Batch): BatchStatus {
  return status === 'FINALIZED' && finishedAtMs !== null && failed >= total ? 'FAILED' : status
}

/** Refusal of one more batch for an endpoint; null if it may have it. @param active number of its active batches */
export function refusalToCreate(active: number): BatchRefusal | null {
  if (active < BATCH.active) return null
  const message = `the endpoint has ${active} unfinished batches, and may have ${BATCH.active}; wait for one or cancel one`
  return { code: 'rate_limited', message }
}

/**
 * Refusal of more requests for a batch; null if it may have them.
 * @param more their number
 * @param unfinished number of unfinished requests of all batches of the endpoint
 */
export function refusalToAdd(batch: Batch, more: number, unfinished: number): BatchRefusal | null {
  const notDraft = refusalUnlessDraft(batch, 'take requests')
  if (notDraft !== null) return notDraft
  if (batch.total + more > BATCH.requests) {
    const message = `batch ${batch.id} has ${batch.total} requests and may have ${BATCH.requests}, so ${more} more do not fit`
    return { code: 'conflict', message }
  }
  return refusalToQueue(more, unfinished)
}

/** Refusal of more requests in batches of an endpoint; null if it may have them. See {@link refusalToAdd}. */
export function refusalToQueue(more: number, unfinished: number): BatchRefusal | null {
  if (unfinished + more <= BATCH.unfinished) return null
  const limit = `the batches of the endpoint have ${unfinished} unfinished requests and may have ${BATCH.unfinished}`
  return { code: 'rate_limited', message: `${limit}; wait until some are done` }
}

/** Refusal of an operation because the batch is not a draft; null for a draft. @param what as in "can ..." */
export function refusalUnlessDraft(batch: Batch, what: string): BatchRefusal | null {
  if (batch.status === 'DRAFT') return null
  return { code: 'conflict', message: `batch ${batch.id} is ${batchStatus(batch)}; only a DRAFT can ${what}` }
}

/** Refusal to finalize a batch. */
export function refusalToFinalize(batch: Batch): BatchRefusal {
  const refusal = refusalUnlessDraft(batch, 'be finalized')
  return refusal ?? { code: 'conflict', message: `batch ${batch.id} has no requests; add some before you finalize it` }
}

/** Refusal to cancel a batch that has ended; null if it is already cancelled. */
export function refusalToCancel(batch: Batch): BatchRefusal | null {
  if (batch.status === 'CANCELLED') return null
  const message = `batch ${batch.id} is ${batchStatus(batch)} and all its requests have ended; it cannot be cancelled`
  return { code: 'conflict', message }
}

/** A batch for clients, as a JSON text. */
export function batchView(batch: Batch): string {
  const { id, endpointId, name, total, inProgress, completed, failed, createdAtMs } = batch
  return JSON.stringify({
    id,
    endpointId,
    ...(name === null ? {} : { name }),
    status: batchStatus(batch),
    requestTotal: total,
    requestInProgress: inProgress,
    requestCompleted: completed,
    requestFailed: failed,
    createdAt: createdAtMs,
  })
}

/** A request of a batch for clients, as a JSON text; its output is passed on unchanged. */
export function batchRequestView(
  { id, status, output, hasLargeOutput, error, startedAtMs, finishedAtMs }: BatchRequest,
  statusUrl: (id: JobId) => string,
): string {
  const members = [`"id":${JSON.stringify(id)}`, `"status":"${status}"`]
  if (output !== null) members.push(`"output":${output}`)
  if (hasLargeOutput) members.push(`"outputUrl":${JSON.stringify(statusUrl(id))}`)
  if (error !== null) members.push(`"error":${JSON.stringify(error)}`)
  members.push(`"startedAt":${startedAtMs}`, `"completedAt":${finishedAtMs}`)
  return `{${members.join(',')}}`
}

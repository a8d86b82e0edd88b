import type { ErrorCode } from '../errors.ts'
import type { BatchId, EndpointId, JobId, OwnerId } from '../ids.ts'
import type { JobStatus } from './job.ts'
import { JOB_TIMES } from './retention.ts'

const HOUR_MS = 60 * 60_000

/** Limits of batches and the times that they are kept, in milliseconds where it is a time. */
export const BATCH = {
  /** Batches of one endpoint that are drafts or have unfinished requests. */
  active: 10,
  /** Requests of one batch. */
  requests: 5_000,
  /** Unfinished requests of all batches of an endpoint, those of drafts among them. */
  unfinished: 50_000,
  nameLength: 255,
  /** Since its last request was added, a draft waits this long for its finalization. */
  draftMs: 24 * HOUR_MS,
  /** How long requests exist, counted from the finalization, unless their own ttl says less. */
  requestTtlMs: JOB_TIMES.ttlMs.max,
  /** Since the last request ended, a batch and its results are kept this long. */
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
  /** Receiver of a call when it is finished or cancelled. */
  readonly webhook: string | null
  readonly total: number
  readonly inProgress: number
  readonly completed: number
  /** Requests that ended in any other way: FAILED, TIMED_OUT, CANCELLED, or past their ttl. */
  readonly failed: number
  readonly createdAtMs: number
  readonly finalizedAtMs: number | null
  /** Since when all requests are final; null while one is not. */
  readonly finishedAtMs: number | null
  /** After this instant the batch is gone; null while requests are unfinished. */
  readonly expiresAtMs: number | null
}

/** A request of a batch as the list shows it. `status` is DRAFT before the batch was finalized. */
export interface BatchRequest {
  readonly id: JobId
  readonly status: JobStatus | 'DRAFT'
  /** A JSON text. */
  readonly output: string | null
  readonly error: string | null
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
}

/** Why something cannot be done with a batch: a code and a sentence. */
export interface BatchRefusal {
  readonly code: ErrorCode
  readonly message: string
}

/** The state that clients see: FAILED when every request has ended and none of them succeeded. */
export function batchStatus({ status, total, failed, finishedAtMs }: Batch): BatchStatus {
  return status === 'FINALIZED' && finishedAtMs !== null && failed >= total ? 'FAILED' : status
}

/** Why an endpoint cannot have one more batch; null when it can. @param active how many it has */
export function refusalToCreate(active: number): BatchRefusal | null {
  if (active < BATCH.active) return null
  const message = `the endpoint has ${active} unfinished batches, and may have ${BATCH.active}; wait for one or cancel one`
  return { code: 'rate_limited', message }
}

/**
 * Why requests cannot be added to a batch; null when they can.
 * @param more how many
 * @param unfinished requests of all batches of the endpoint that have not ended
 */
export function refusalToAdd(batch: Batch, more: number, unfinished: number): BatchRefusal | null {
  const notDraft = refusalUnlessDraft(batch, 'take requests')
  if (notDraft !== null) return notDraft
  if (batch.total + more > BATCH.requests) {
    const message = `batch ${batch.id} has ${batch.total} requests and may have ${BATCH.requests}, so ${more} more do not fit`
    return { code: 'conflict', message }
  }
  return refusalOfQueue(more, unfinished)
}

/** Why an endpoint cannot have that many more requests in batches; null when it can. See {@link refusalToAdd}. */
export function refusalOfQueue(more: number, unfinished: number): BatchRefusal | null {
  if (unfinished + more <= BATCH.unfinished) return null
  const limit = `the batches of the endpoint have ${unfinished} unfinished requests and may have ${BATCH.unfinished}`
  return { code: 'rate_limited', message: `${limit}; wait until some are done` }
}

/** Why this cannot be done because the batch is no draft; null when it is one. @param what as in "can ..." */
export function refusalUnlessDraft(batch: Batch, what: string): BatchRefusal | null {
  if (batch.status === 'DRAFT') return null
  return { code: 'conflict', message: `batch ${batch.id} is ${batchStatus(batch)}; only a DRAFT can ${what}` }
}

/** Why a batch cannot be finalized. */
export function refusalToFinalize(batch: Batch): BatchRefusal {
  const refusal = refusalUnlessDraft(batch, 'be finalized')
  return refusal ?? { code: 'conflict', message: `batch ${batch.id} has no requests; add some before you finalize it` }
}

/** Why a batch cannot be cancelled any more; null when it was cancelled already. */
export function refusalToCancel(batch: Batch): BatchRefusal | null {
  if (batch.status === 'CANCELLED') return null
  const message = `batch ${batch.id} is ${batchStatus(batch)} and all its requests have ended; it cannot be cancelled`
  return { code: 'conflict', message }
}

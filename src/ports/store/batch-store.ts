import type { JobUsage } from '../../core/billing/usage.ts'
import type { BatchId, EndpointId, JobId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { Batch, BatchRefusal, BatchRequest } from '../../core/jobs/batch.ts'
import type { Job, JobStatus } from '../../core/jobs/job.ts'
import type { Slice } from '../../core/pages.ts'

/** A request as it is added to a draft. Texts are as those of a job. */
export interface BatchDraftRequest {
  /** The id that its job will have. */
  readonly id: JobId
  readonly input: string
  readonly policy: string | null
  readonly webhook: string | null
  readonly s3Config: string | null
  readonly executionTimeoutMs: number
  readonly ttlMs: number
  readonly lowPriority: boolean
}

/** A new batch, a draft. */
export interface BatchDraft {
  readonly id: BatchId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  readonly name: string | null
  readonly webhook: string | null
}

/** A client's key for a change: the same one stands for the first change that it came with until it expires. */
export interface OnceKey {
  readonly key: string
  readonly expiresAtMs: number
}

/** A batch after a change, why there was none, or null when the batch or its endpoint is gone. */
export type BatchAnswer = { readonly batch: Batch } | { readonly refused: BatchRefusal } | null

/** A part of a list, and the length of the whole. */
export interface BatchPage<Item> {
  readonly items: readonly Item[]
  readonly total: number
}

/** A request that has just become a job. */
export interface ReleasedJob {
  readonly id: JobId
  readonly endpointId: EndpointId
}

/** A job of a cancelled batch that was dropped from the queue. */
export interface DroppedJob {
  readonly job: Job
  readonly from: JobStatus
  /** Usage that its end counted. */
  readonly usage: JobUsage
}

/** A job that was removed with its batch. */
export interface RemovedJob {
  readonly id: JobId
  readonly endpointId: EndpointId
  readonly status: JobStatus
  readonly workerId: WorkerId | null
}

/**
 * Batches. Requests of a draft are no jobs. When it is finalized they become jobs in parts, each a transaction of its
 * own; a server that finds a finalized batch with requests left goes on. Ends and
 * expiries of jobs count its requests in their own transaction.
 */
export interface BatchStore {
  /** Adds a draft with its first requests, within the limits of core/batch. */
  create(
    draft: BatchDraft,
    requests: readonly BatchDraftRequest[],
    nowMs: number,
    once: OnceKey | null,
  ): Promise<BatchAnswer>
  /** Adds requests to a draft, all or none, within the limits of core/batch. */
  add(
    endpointId: EndpointId,
    batchId: BatchId,
    requests: readonly BatchDraftRequest[],
    nowMs: number,
    once: OnceKey | null,
  ): Promise<BatchAnswer>
  /** True when {@link create} or {@link add} was called with this key before, and the key has not expired. */
  hasKey(endpointId: EndpointId, key: string, nowMs: number): Promise<boolean>
  /** Takes a request out of a draft. `absent` when the draft does not have it. */
  drop(endpointId: EndpointId, batchId: BatchId, requestId: JobId, nowMs: number): Promise<BatchAnswer | 'absent'>
  rename(endpointId: EndpointId, batchId: BatchId, name: string | null, nowMs: number): Promise<Batch | null>
  /** Makes a draft FINALIZED; its requests wait for {@link release}. */
  finalize(endpointId: EndpointId, batchId: BatchId, nowMs: number): Promise<BatchAnswer>
  /** Makes a batch CANCELLED; its waiting jobs stay until {@link cancelWaiting}, its running ones continue. */
  cancel(endpointId: EndpointId, batchId: BatchId, nowMs: number): Promise<BatchAnswer>
  find(endpointId: EndpointId, batchId: BatchId, nowMs: number): Promise<Batch | null>
  /** Batches of an endpoint, newest first. */
  list(endpointId: EndpointId, nowMs: number, offset: number, limit: number): Promise<BatchPage<Batch>>
  /** Batches of one endpoint, or of all existing endpoints of an account, newest first. */
  listBefore(
    of: { readonly owner: OwnerId } | { readonly endpointId: EndpointId },
    nowMs: number,
    slice: Slice,
  ): Promise<Batch[]>
  /**
   * Requests in the order in which they were added. A part ends before its results pass `maxBytes`, but has at least
   * one request when there is one.
   */
  requests(batchId: BatchId, offset: number, limit: number, maxBytes: number): Promise<BatchPage<BatchRequest>>
  /** Makes jobs of at most `limit` requests of a batch that was finalized; in their order. */
  release(batchId: BatchId, limit: number): Promise<ReleasedJob[]>
  /** CANCELLED for jobs that wait in a cancelled batch, at most `limit`. */
  cancelWaiting(batchId: BatchId, nowMs: number, limit: number): Promise<DroppedJob[]>
  /** Batches that {@link release} or {@link cancelWaiting} have to go on with, at most `limit`. */
  unsettled(limit: number): Promise<Pick<Batch, 'id' | 'endpointId'>[]>
  /** Removes jobs and requests of expired batches, at most `limit` of each, and batches of which nothing is left. */
  removeExpired(nowMs: number, limit: number): Promise<{ jobs: RemovedJob[]; more: boolean }>
  /**
   * The batch for whose turn a job waits, and the number of its requests before the job, counted to `limit`; null when
   * it waits for no turn.
   */
  before(jobId: JobId, limit: number): Promise<{ batchId: BatchId; requestsAhead: number } | null>
}

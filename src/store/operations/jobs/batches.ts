import type { BatchId, EndpointId, JobId, OwnerId } from '../../../core/ids.ts'
import {
  BATCH,
  type Batch,
  type BatchRefusal,
  type BatchRequest,
  refusalToAdd,
  refusalToCancel,
  refusalToCreate,
  refusalToFinalize,
  refusalToQueue,
  refusalUnlessDraft,
} from '../../../core/jobs/batch.ts'
import type { Slice } from '../../../core/pages.ts'
import type {
  BatchAnswer,
  BatchDraft,
  BatchDraftRequest,
  BatchPage,
  BatchStore,
  DroppedJob,
  OnceKey,
  ReleasedJob,
  RemovedJob,
} from '../../../ports/store/batch-store.ts'
import * as sql from '../../tables/batches.ts'
import {
  type BatchRequestRow,
  type BatchRow,
  batchFromRow,
  batchRequestFromRow,
  requestParams,
} from '../../tables/batches.ts'
import { lockEndpoint } from '../../tables/endpoints.ts'
import { dropJobsOfBatch, dropSuspectsOfBatch } from '../../tables/job-outcomes.ts'
import type { EndedRow } from '../../tables/jobs.ts'
import { claimKey, findKey } from '../../tables/jobs.ts'
import { countJobUsage } from '../accounts/usage.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { countInBatches, deliverEnd } from './batch-counts.ts'
import { endMove } from './job-outcomes.ts'
import { addDeliveries } from './webhooks.ts'

/** Limit of characters of the requests that become jobs in one transaction; a larger request goes alone. */
const RELEASE_CHARACTERS = 16 * 1024 * 1024
/** Limit of expired batches of one transaction. */
const EXPIRED_AT_ONCE = 20

/** Batches and their requests. */
export const batches = {
  create: write(function* (
    draft: BatchDraft,
    requests: readonly BatchDraftRequest[],
    nowMs: number,
    once: OnceKey | null,
  ): Steps<BatchAnswer> {
    const { id, owner, endpointId, name, webhook } = draft
    yield* lock(lockEndpoint, [endpointId])
    const first = yield* findFirst(endpointId, once, nowMs)
    if (first !== null)
      return yield* answerFor(endpointId, first, nowMs, `batch ${first} of this Idempotency-Key is gone`)
    const { active, unfinished } = yield* readLoad(endpointId, nowMs)
    const refused = refusalToCreate(active) ?? refusalToQueue(requests.length, unfinished)
    if (refused !== null) return { refused }
    const inserted = yield* query(sql.insertBatch, [id, owner, endpointId, name, webhook, nowMs, nowMs + BATCH.draftMs])
    if (inserted.length === 0) return null
    if (once !== null) yield* perform(claimKey, [endpointId, once.key, owner, id, once.expiresAtMs, nowMs])
    yield* put(draft, requests, nowMs)
    return yield* answerFor(endpointId, id, nowMs)
  }),

  add: write(function* (
    endpointId: EndpointId,
    batchId: BatchId,
    requests: readonly BatchDraftRequest[],
    nowMs: number,
    once: OnceKey | null,
  ): Steps<BatchAnswer> {
    yield* lock(lockEndpoint, [endpointId])
    yield* lock(sql.lockBatch, [batchId])
    const batch = yield* find(endpointId, batchId, nowMs)
    if (batch === null) return null
    if ((yield* findFirst(endpointId, once, nowMs)) !== null) return { batch }
    const { unfinished } = yield* readLoad(endpointId, nowMs)
    const refused = refusalToAdd(batch, requests.length, unfinished)
    if (refused !== null) return { refused }
    if (once !== null) yield* perform(claimKey, [endpointId, once.key, batch.owner, batchId, once.expiresAtMs, nowMs])
    yield* put(batch, requests, nowMs)
    return yield* answerFor(endpointId, batchId, nowMs)
  }),

  hasKey: read(function* (endpointId: EndpointId, key: string, nowMs: number): Steps<boolean> {
    return (yield* findFirst(endpointId, { key }, nowMs)) !== null
  }),

  drop: write(function* (
    endpointId: EndpointId,
    batchId: BatchId,
    requestId: JobId,
    nowMs: number,
  ): Steps<BatchAnswer | 'absent'> {
    yield* lock(sql.lockBatch, [batchId])
    const batch = yield* find(endpointId, batchId, nowMs)
    if (batch === null) return null
    const refused = refusalUnlessDraft(batch, 'lose requests')
    if (refused !== null) return { refused }
    if ((yield* query(sql.deleteRequest, [batchId, requestId])).length === 0) return 'absent'
    yield* perform(sql.shrinkBatch, [batchId])
    return yield* answerFor(endpointId, batchId, nowMs)
  }),

  rename: write(function* (
    endpointId: EndpointId,
    batchId: BatchId,
    name: string | null,
    nowMs: number,
  ): Steps<Batch | null> {
    const row = yield* queryOne<BatchRow>(sql.renameBatch, [endpointId, batchId, nowMs, name])
    return row === null ? null : batchFromRow(row)
  }),

  finalize: write(function* (endpointId: EndpointId, batchId: BatchId, nowMs: number): Steps<BatchAnswer> {
    const row = yield* queryOne<BatchRow>(sql.finalizeBatch, [endpointId, batchId, nowMs])
    if (row !== null) return { batch: batchFromRow(row) }
    const batch = yield* find(endpointId, batchId, nowMs)
    return batch === null ? null : { refused: refusalToFinalize(batch) }
  }),

  cancel: write(function* (endpointId: EndpointId, batchId: BatchId, nowMs: number): Steps<BatchAnswer> {
    const row = yield* queryOne<BatchRow>(sql.cancelBatch, [endpointId, batchId, nowMs, nowMs + BATCH.keptMs])
    const batch = row === null ? yield* find(endpointId, batchId, nowMs) : batchFromRow(row)
    if (batch === null) return null
    if (row !== null && batch.finishedAtMs !== null) yield* deliverEnd(batch, nowMs)
    const refused = refusalToCancel(batch)
    return refused === null ? { batch } : { refused }
  }),

  find: read(find),

  list: read(function* (endpointId: EndpointId, nowMs: number, offset: number, limit: number): Steps<BatchPage<Batch>> {
    const rows = yield* query<BatchRow>(sql.listBatches, [endpointId, nowMs, limit, offset])
    const [count] = yield* query<{ total: number }>(sql.countBatches, [endpointId, nowMs])
    return { items: rows.map(batchFromRow), total: count!.total }
  }),

  listBefore: read(function* (
    of: { readonly owner: OwnerId } | { readonly endpointId: EndpointId },
    nowMs: number,
    { after, limit }: Slice,
  ): Steps<Batch[]> {
    const [statement, filterId] =
      'owner' in of ? [sql.listBatchesOfOwner, of.owner] : [sql.listBatchesBefore, of.endpointId]
    const { createdAtMs, id } = after ?? { createdAtMs: Number.MAX_SAFE_INTEGER, id: '' }
    const rows = yield* query<BatchRow>(statement, [filterId, nowMs, createdAtMs, id, limit])
    return rows.map(batchFromRow)
  }),

  requests: read(function* (
    batchId: BatchId,
    offset: number,
    limit: number,
    maxBytes: number,
  ): Steps<BatchPage<BatchRequest>> {
    const [count] = yield* query<{ total: number }>(sql.countRequests, [batchId])
    const places = yield* query<{ seq: number }>(sql.placesOfRequests, [batchId, limit, offset])
    const first = places[0]?.seq
    if (first === undefined) return { items: [], total: count!.total }
    const sizes = yield* query<Sized>(sql.sizesOfRequests, [batchId, first, places.at(-1)!.seq])
    const last = lastWithin(sizes, maxBytes, places.at(-1)!.seq)
    const rows = yield* query<BatchRequestRow>(sql.readRequests, [batchId, first, last])
    return { items: rows.map(batchRequestFromRow), total: count!.total }
  }),

  release: write(function* (batchId: BatchId, limit: number): Steps<ReleasedJob[]> {
    yield* lock(sql.lockBatch, [batchId])
    const head = yield* query<Sized>(sql.firstRequests, [batchId, limit])
    if (head.length === 0) return []
    const last = lastWithin(head, RELEASE_CHARACTERS, head.at(-1)!.seq)
    const rows = yield* query<{ id: JobId; endpoint_id: EndpointId; batch_seq: number }>(sql.releaseRequests, [
      ...[batchId, last, BATCH.requestTtlMs],
    ])
    if (rows.length > 0) {
      yield* perform(sql.releaseInputs, [batchId, last])
      yield* perform(sql.deleteRequests, [batchId, last])
    }
    const jobs = [...rows].sort((a, b) => a.batch_seq - b.batch_seq)
    return jobs.map(({ id, endpoint_id }) => ({ id, endpointId: endpoint_id }))
  }),

  cancelWaiting: write(function* (batchId: BatchId, nowMs: number, limit: number): Steps<DroppedJob[]> {
    const state = yield* queryOne<Pick<BatchRow, 'endpoint_id' | 'status'>>(sql.batchState, [batchId])
    if (state?.status !== 'CANCELLED') return []
    const waiting = yield* query<EndedRow>(dropJobsOfBatch, [state.endpoint_id, nowMs, limit, batchId])
    const rowsLeft = limit - waiting.length
    const suspects =
      rowsLeft > 0 ? yield* query<EndedRow>(dropSuspectsOfBatch, [state.endpoint_id, nowMs, rowsLeft, batchId]) : []
    const dropped = [...waiting, ...suspects]
      .map(row => endMove('purge', row, nowMs))
      .sort((a, b) => a.job.position - b.job.position)
    yield* countJobUsage(dropped, nowMs)
    yield* countInBatches(dropped, nowMs)
    yield* addDeliveries(
      dropped.map(({ job }) => job),
      nowMs,
    )
    return dropped
  }),

  unsettled: read(function* (limit: number): Steps<Pick<Batch, 'id' | 'endpointId'>[]> {
    const rows = yield* query<Pick<BatchRow, 'id' | 'endpoint_id'>>(sql.unsettledBatches, [limit])
    return rows.map(({ id, endpoint_id }) => ({ id, endpointId: endpoint_id }))
  }),

  removeExpired: write(function* (nowMs: number, limit: number): Steps<{ jobs: RemovedJob[]; more: boolean }> {
    const expired = yield* query<{ id: BatchId }>(sql.expiredBatches, [nowMs, EXPIRED_AT_ONCE])
    const jobs: RemovedJob[] = []
    let rowsLeft = limit
    for (const { id } of expired) {
      if (rowsLeft <= 0) break
      const rows = yield* query<RemovedRow>(sql.deleteJobsOfBatch, [id, rowsLeft, nowMs])
      jobs.push(...rows.map(removedJobFromRow))
      const requests = yield* query<Sized>(sql.firstRequests, [id, rowsLeft])
      if (requests.length > 0) yield* perform(sql.deleteRequests, [id, requests.at(-1)!.seq])
      rowsLeft -= rows.length + requests.length
      yield* perform(sql.deleteBatch, [id, nowMs])
    }
    return { jobs, more: rowsLeft <= 0 || expired.length === EXPIRED_AT_ONCE }
  }),

  before: read(function* (jobId: JobId, limit: number): Steps<{ batchId: BatchId; requestsAhead: number } | null> {
    const row = yield* queryOne<{ batch_id: BatchId; before: number }>(sql.requestsBefore, [jobId, limit])
    return row === null ? null : { batchId: row.batch_id, requestsAhead: row.before }
  }),
} satisfies PortOperations<BatchStore>

function* find(endpointId: EndpointId, batchId: BatchId, nowMs: number): Steps<Batch | null> {
  const row = yield* queryOne<BatchRow>(sql.findBatch, [endpointId, batchId, nowMs])
  return row === null ? null : batchFromRow(row)
}

function* answerFor(endpointId: EndpointId, id: BatchId, nowMs: number, goneMessage?: string): Steps<BatchAnswer> {
  const batch = yield* find(endpointId, id, nowMs)
  if (batch !== null) return { batch }
  return goneMessage === undefined
    ? null
    : { refused: { code: 'conflict', message: goneMessage } satisfies BatchRefusal }
}

function* readLoad(endpointId: EndpointId, nowMs: number): Steps<{ active: number; unfinished: number }> {
  const [load] = yield* query<{ active: number; unfinished: number }>(sql.batchLoad, [endpointId, nowMs])
  return load!
}

/** The batch that a key stands for; null when it is new. */
function* findFirst(endpointId: EndpointId, once: Pick<OnceKey, 'key'> | null, nowMs: number): Steps<BatchId | null> {
  if (once === null) return null
  const row = yield* queryOne<{ job_id: string; expires_at_ms: number }>(findKey, [endpointId, once.key])
  return row === null || row.expires_at_ms <= nowMs ? null : (row.job_id as BatchId)
}

/** Adds requests to a draft that is known to have room. */
function* put(
  { id, owner }: Pick<Batch, 'id' | 'owner'>,
  requests: readonly BatchDraftRequest[],
  nowMs: number,
): Steps<void> {
  if (requests.length === 0) return
  const grown = yield* queryOne<{ last_seq: number }>(sql.growBatch, [id, requests.length, nowMs + BATCH.draftMs])
  if (grown === null) return
  const firstSeq = grown.last_seq - requests.length + 1
  for (let at = 0; at < requests.length; ) {
    const count = sql.REQUESTS_AT_ONCE.find(size => size <= requests.length - at)!
    const part = requests.slice(at, at + count)
    const values = part.flatMap((request, index) => requestParams(request, firstSeq + at + index))
    yield* perform(sql.insertRequests(count), [id, owner, ...values])
    at += count
  }
}

interface Sized {
  readonly seq: number
  readonly bytes: number
}

/** The last place of the first requests that fit into a number of bytes; at least the first one. */
function lastWithin(sizes: readonly Sized[], most: number, whenAllFit: number): number {
  let sum = 0
  for (const [index, { bytes }] of sizes.entries()) {
    sum += bytes
    if (sum > most && index > 0) return sizes[index - 1]!.seq
  }
  return whenAllFit
}

interface RemovedRow {
  readonly id: JobId
  readonly endpoint_id: EndpointId
  readonly status: RemovedJob['status']
  readonly worker_id: RemovedJob['workerId']
}

function removedJobFromRow({ id, endpoint_id, status, worker_id }: RemovedRow): RemovedJob {
  return { id, endpointId: endpoint_id, status, workerId: worker_id }
}

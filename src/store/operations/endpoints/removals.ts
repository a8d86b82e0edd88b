import type { BatchId, EndpointId } from '../../../core/ids.ts'
import type { RemovalStore, RemovedPart } from '../../../ports/store/removal-store.ts'
import type { JobMove } from '../../../ports/store/store.ts'
import { deleteRequests, firstRequests } from '../../tables/batches.ts'
import { lockEndpointId } from '../../tables/endpoints.ts'
import type { RemovedRow } from '../../tables/jobs.ts'
import { jobsLeft, runningJobsLeft } from '../../tables/removed-jobs.ts'
import { removeRecords } from '../jobs/kept-records.ts'
import { lengthWithin, REMOVED_BYTES, removeJobs } from '../jobs/removed-jobs.ts'
import { removeBlocks } from '../observing/attempt-times.ts'
import { removeBuckets } from '../observing/metrics.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** $1 the endpoint after which they come, $2 limit. Deleted endpoints of which something is left. */
export const deletedEndpoints = `
  SELECT id FROM endpoint_ids WHERE deleted_at_ms IS NOT NULL AND id > $1 ORDER BY id LIMIT $2`

/** $1 endpoint. A row when it was deleted and something of it is left. */
export const deletedEndpoint = 'SELECT id FROM endpoint_ids WHERE id = $1 AND deleted_at_ms IS NOT NULL'

/** $1 endpoint. */
export const batchLeft = 'SELECT id FROM batches WHERE endpoint_id = $1 ORDER BY created_at_ms, id LIMIT 1'

/** $1 batch. */
export const deleteBatchLeft = 'DELETE FROM batches WHERE id = $1'

/** $1 endpoint, $2 limit. */
export const deleteKeysLeft = `
  DELETE FROM idempotency_keys WHERE endpoint_id = $1 AND key IN (
    SELECT key FROM idempotency_keys WHERE endpoint_id = $1 ORDER BY key LIMIT $2 {{skip_locked}})
  RETURNING key`

/** $1 endpoint. The last of it, once nothing refers to it. */
export const deleteEndpointId = `
  DELETE FROM endpoint_ids WHERE id = $1 AND deleted_at_ms IS NOT NULL
    AND (SELECT queued_at_ms FROM jobs WHERE endpoint_id = $1 ORDER BY queued_at_ms, id LIMIT 1) IS NULL
    AND NOT EXISTS (SELECT 1 FROM batches WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM idempotency_keys WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM metric_buckets WHERE endpoint_id = $1)
    AND NOT EXISTS (SELECT 1 FROM attempt_times WHERE endpoint_id = $1)
    AND (SELECT queued_at_ms FROM job_records WHERE endpoint_id = $1 ORDER BY queued_at_ms, id LIMIT 1) IS NULL
  RETURNING id`

/** Rests of endpoints that were deleted. */
export const removals = {
  endpoints: read(function* (after: EndpointId | null, limit: number): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(deletedEndpoints, [after ?? '', limit])).map(({ id }) => id)
  }),

  removePart: write(function* (endpointId: EndpointId, nowMs: number, limit: number): Steps<RemovedPart> {
    const cancelled: JobMove[] = []
    let rows = 0
    if ((yield* queryOne(deletedEndpoint, [endpointId])) === null) return { canceled: cancelled, rows, more: false }
    // Running jobs first, so that their workers get a stop soon.
    for (const statement of [runningJobsLeft, jobsLeft]) {
      const jobRows = yield* query<RemovedRow>(statement, [endpointId, limit - rows])
      const removed = yield* removeJobs(jobRows, nowMs)
      cancelled.push(...removed.cancelled)
      rows += removed.rows
      if (rows >= limit || removed.rows < jobRows.length) return { canceled: cancelled, rows, more: true }
    }
    for (const removeMore of [removeRequests, removeKeys, removeRecords, removeBuckets, removeBlocks]) {
      rows += yield* removeMore(endpointId, limit - rows)
      if (rows >= limit) return { canceled: cancelled, rows, more: true }
    }
    // Waits for operations that add something to it; the next statement sees what they added.
    yield* lock(lockEndpointId, [endpointId])
    const isGone = (yield* query(deleteEndpointId, [endpointId])).length > 0
    return { canceled: cancelled, rows, more: !isGone }
  }),
} satisfies PortOperations<RemovalStore>

/** Removes requests and batches. @returns their number */
function* removeRequests(endpointId: EndpointId, limit: number): Steps<number> {
  let removed = 0
  let bytes = 0
  while (removed < limit && bytes < REMOVED_BYTES) {
    const batch = yield* queryOne<{ id: BatchId }>(batchLeft, [endpointId])
    if (batch === null) break
    const requests = yield* query<{ seq: number; bytes: number }>(firstRequests, [batch.id, limit - removed])
    const sizes = requests.map(request => request.bytes)
    const count = lengthWithin(sizes, REMOVED_BYTES - bytes)
    if (count > 0) yield* perform(deleteRequests, [batch.id, requests[count - 1]!.seq])
    else yield* perform(deleteBatchLeft, [batch.id])
    removed += Math.max(1, count)
    for (const size of sizes.slice(0, count)) bytes += size
  }
  return removed
}

/** Removes idempotency keys. @returns their number */
function* removeKeys(endpointId: EndpointId, limit: number): Steps<number> {
  return (yield* query(deleteKeysLeft, [endpointId, limit])).length
}

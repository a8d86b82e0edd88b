import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { QueuedWorker, Resource } from '../../core/workers/placement.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `queued_workers`. */
export interface QueuedWorkerRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly queued_at_ms: number
  readonly resource: Resource
  readonly reason: string
}

/** A row as a worker that waits for a place. */
export function toQueuedWorker(row: QueuedWorkerRow): QueuedWorker {
  const { id, owner, version, resource, reason } = row
  return { id, owner, endpointId: row.endpoint_id, version, queuedAtMs: row.queued_at_ms, resource, reason }
}

/** The parameters of `insertQueuedWorker`. */
export function ofQueuedWorker(worker: QueuedWorker): SqlValue[] {
  const { id, owner, endpointId, version, queuedAtMs, resource, reason } = worker
  return [id, owner, endpointId, version, queuedAtMs, resource, reason]
}

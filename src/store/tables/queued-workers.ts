/** Statements and rows of workers that wait for a place. */
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { QueuedWorker, Resource } from '../../core/workers/placement.ts'
import type { WaitingWorkers } from '../../ports/store/queued-worker-store.ts'
import type { SqlValue } from './statement.ts'

/** The columns; see queued-workers.ts. */
const COLUMNS =
  'id, owner, endpoint_id, version, queued_at_ms, resource, reason, download_started_at_ms, download_ended_at_ms'

/** $1 endpoint. Those of its version, the first one first. */
export const queuedWorkersOfEndpoint = `
  SELECT ${COLUMNS} FROM queued_workers WHERE endpoint_id = $1
    AND version = (SELECT version FROM endpoints WHERE id = $1)
  ORDER BY queued_at_ms, id`

/** $1 ids of endpoints, as a JSON list. As {@link queuedWorkersOfEndpoint}. */
export const queuedWorkersOfThese = `
  SELECT ${COLUMNS} FROM queued_workers WHERE endpoint_id IN ({{id_list}})
    AND version = (SELECT version FROM endpoints WHERE id = queued_workers.endpoint_id)
  ORDER BY queued_at_ms, id`

/** $1 owner. Those of all its endpoints. */
export const queuedWorkersOfOwner = `
  SELECT ${COLUMNS} FROM queued_workers WHERE owner = $1
    AND version = (SELECT version FROM endpoints WHERE id = queued_workers.endpoint_id)
  ORDER BY endpoint_id, queued_at_ms, id`

/** $1 limit. Workers of all endpoints, counted by the reason of their wait. */
export const waitingWorkers = `
  SELECT endpoints.id, endpoints.owner, endpoints.name, resource, reason, COUNT(*) AS workers, MIN(queued_at_ms) AS since_ms
  FROM queued_workers JOIN endpoints ON endpoints.id = queued_workers.endpoint_id AND endpoints.version = queued_workers.version
  GROUP BY endpoints.id, endpoints.owner, endpoints.name, resource, reason ORDER BY since_ms, endpoints.id, reason LIMIT $1`

/** A row of {@link waitingWorkers}. */
export interface WaitingRow {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly name: string
  readonly resource: Resource
  readonly reason: string
  readonly workers: number
  readonly since_ms: number
}

/** A row as workers that wait. */
export function waitingWorkersFromRow(row: WaitingRow): WaitingWorkers {
  const { id: endpointId, name: endpointName, owner: account, workers, resource, reason, since_ms: sinceMs } = row
  return { endpointId, endpointName, account, workers, resource, reason, sinceMs }
}

/** $1 endpoint. Of all versions. */
export const queuedWorkerIds = 'SELECT id FROM queued_workers WHERE endpoint_id = $1 ORDER BY id'

/** $1 worker. */
export const deleteQueuedWorker = 'DELETE FROM queued_workers WHERE id = $1'

/** $1 endpoint. */
export const deleteQueuedWorkers = 'DELETE FROM queued_workers WHERE endpoint_id = $1'

/** $1 worker, $2 version, $3 resource, $4 reason, $5 and $6 begin and end of the download of its models. */
export const updateQueuedWorker = `
  UPDATE queued_workers SET resource = $3, reason = $4, download_started_at_ms = $5, download_ended_at_ms = $6
  WHERE id = $1 AND version = $2 RETURNING id`

/** $1 endpoint. */
export const countQueuedWorkers = 'SELECT COUNT(*) AS n FROM queued_workers WHERE endpoint_id = $1'

/** A new one; no row for an id that a worker has already. */
export const insertQueuedWorker = `
  INSERT INTO queued_workers (${COLUMNS})
  SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE NOT EXISTS (SELECT 1 FROM workers WHERE id = $1)`

/** A row of `queued_workers`. */
export interface QueuedWorkerRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly queued_at_ms: number
  readonly resource: Resource
  readonly reason: string
  readonly download_started_at_ms: number | null
  readonly download_ended_at_ms: number | null
}

/** A row as a worker that waits for a place. */
export function queuedWorkerFromRow(row: QueuedWorkerRow): QueuedWorker {
  const { id, owner, version, resource, reason } = row
  const [downloadStartedAtMs, downloadEndedAtMs] = [row.download_started_at_ms, row.download_ended_at_ms]
  const times = { queuedAtMs: row.queued_at_ms, downloadStartedAtMs, downloadEndedAtMs }
  return { id, owner, endpointId: row.endpoint_id, version, ...times, resource, reason }
}

/** The parameters of `insertQueuedWorker`. */
export function queuedWorkerParams(worker: QueuedWorker): SqlValue[] {
  const { id, owner, endpointId, version, queuedAtMs, resource, reason } = worker
  const { downloadStartedAtMs, downloadEndedAtMs } = worker
  return [id, owner, endpointId, version, queuedAtMs, resource, reason, downloadStartedAtMs, downloadEndedAtMs]
}

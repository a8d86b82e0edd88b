import type { EndpointId, OwnerId, WorkerId } from '../../../core/ids.ts'
import { MAX_QUEUED_WORKERS, type QueuedWorker } from '../../../core/workers/placement.ts'
import type { QueuedWorkerStore, WaitingWorkers } from '../../../ports/store/queued-worker-store.ts'
import type { EndpointRow } from '../../tables/endpoints.ts'
import { findEndpoint, lockEndpoint } from '../../tables/endpoints.ts'
import * as sql from '../../tables/queued-workers.ts'
import {
  type QueuedWorkerRow,
  queuedWorkerFromRow,
  queuedWorkerParams,
  type WaitingRow,
  waitingWorkersFromRow,
} from '../../tables/queued-workers.ts'
import type { WorkerRow } from '../../tables/workers.ts'
import { aliveWorkersOfEndpoint } from '../../tables/workers.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Workers that wait for a place. */
export const queuedWorkers = {
  replace: write(function* (endpointId: EndpointId, queued: readonly QueuedWorker[]): Steps<void> {
    yield* lock(lockEndpoint, [endpointId])
    const endpoint = yield* queryOne<EndpointRow>(findEndpoint, [endpointId])
    const keptIds = new Set(queued.map(({ id }) => id))
    for (const { id } of yield* query<{ id: WorkerId }>(sql.queuedWorkerIds, [endpointId])) {
      if (!keptIds.has(id)) yield* perform(sql.deleteQueuedWorker, [id])
    }
    if (endpoint === null) return
    const alive = (yield* query<WorkerRow>(aliveWorkersOfEndpoint, [endpointId])).length
    const room = Math.max(0, endpoint.workers_max - alive)
    for (const [index, worker] of queued.slice(0, MAX_QUEUED_WORKERS).entries()) {
      const { id, version, resource, reason, downloadStartedAtMs, downloadEndedAtMs } = worker
      const state = [id, version, resource, reason, downloadStartedAtMs, downloadEndedAtMs]
      if (index >= room || version !== endpoint.version) yield* perform(sql.deleteQueuedWorker, [id])
      else if ((yield* query(sql.updateQueuedWorker, state)).length === 0) {
        yield* perform(sql.insertQueuedWorker, queuedWorkerParams(worker))
      }
    }
  }),

  list: read(function* (owner: OwnerId): Steps<QueuedWorker[]> {
    return (yield* query<QueuedWorkerRow>(sql.queuedWorkersOfOwner, [owner])).map(queuedWorkerFromRow)
  }),

  waiting: read(function* (limit: number): Steps<WaitingWorkers[]> {
    return (yield* query<WaitingRow>(sql.waitingWorkers, [limit])).map(waitingWorkersFromRow)
  }),
} satisfies PortOperations<QueuedWorkerStore>

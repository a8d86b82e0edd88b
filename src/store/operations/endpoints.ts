import type { Endpoint } from '../../core/endpoint.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { EndpointLoad, EndpointSnapshot } from '../../core/scale.ts'
import type { DeletedEndpoint, EndpointStore } from '../../ports/store.ts'
import {
  type CountersRow,
  conditionOf,
  type EndpointRow,
  ofChangedEndpoint,
  ofEndpoint,
  type QueueRow,
  toCounters,
  toEndpoint,
  toQueueLoad,
  type WorkerCountRow,
} from '../rows/endpoints.ts'
import type { EndedRow } from '../rows/jobs.ts'
import { toWorker, type WorkerRow } from '../rows/workers.ts'
import { lockBatchesOfEndpoint } from '../sql/batches.ts'
import * as sql from '../sql/endpoints.ts'
import { cancelJobsOfEndpoint } from '../sql/job-outcomes.ts'
import { aliveWorkersOf, exitsOf, workerLoads } from '../sql/workers.ts'
import { endMove, stopWork } from './job-outcomes.ts'
import { lock, type OperationsOf, query, queryOne, read, type Steps, write } from './operation.ts'
import { countJobUsage } from './usage.ts'
import { addDeliveries } from './webhooks.ts'

const EXITS_IN_SNAPSHOT = 20

/** Endpoints and what is known of them. */
export const endpoints = {
  insert: write(function* (endpoint: Endpoint): Steps<void> {
    yield* query(sql.insertEndpoint, ofEndpoint(endpoint))
    yield* query(sql.insertCounters, [endpoint.id, endpoint.owner])
  }),

  replace: write(function* (endpoint: Endpoint, expectedVersion: number): Steps<boolean> {
    return (yield* query(sql.replaceEndpoint, ofChangedEndpoint(endpoint, expectedVersion))).length > 0
  }),

  find: read(function* (id: EndpointId): Steps<Endpoint | null> {
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    return row === null ? null : toEndpoint(row)
  }),

  list: read(function* (owner: OwnerId): Steps<Endpoint[]> {
    return (yield* query<EndpointRow>(sql.listEndpoints, [owner])).map(toEndpoint)
  }),

  ids: read(function* (): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(sql.endpointIds)).map(row => row.id)
  }),

  loads: read(function* (after: EndpointId | null, limit: number): Steps<EndpointLoad[]> {
    const lines = yield* query<QueueRow & { id: EndpointId }>(sql.queueLoads, [after ?? '', limit])
    if (lines.length === 0) return []
    const counts = yield* query<WorkerCountRow>(sql.workerCounts, [lines[0]!.id, lines.at(-1)!.id])
    return lines.map(line => {
      const workers = { starting: 0, idle: 0, running: 0, draining: 0, stopping: 0 }
      for (const row of counts) if (row.endpoint_id === line.id) workers[conditionOf(row)] += row.workers
      return { endpointId: line.id, queue: toQueueLoad(line), workers }
    })
  }),

  snapshot: read(function* (id: EndpointId): Steps<EndpointSnapshot | null> {
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (row === null) return null
    const counters = yield* queryOne<CountersRow>(sql.findCounters, [id])
    const [load] = yield* query<QueueRow>(sql.queueLoad, [id])
    const workers = yield* query<WorkerRow & { held: number }>(workerLoads, [id])
    const exits = yield* query<WorkerRow>(exitsOf, [id, EXITS_IN_SNAPSHOT])
    return {
      endpoint: toEndpoint(row),
      counters: toCounters(counters),
      queue: toQueueLoad(load!),
      workers: workers.map(worker => ({ ...toWorker(worker), held: worker.held })),
      exits: exits.map(toWorker),
    }
  }),

  remove: write(function* (id: EndpointId, nowMs: number): Steps<DeletedEndpoint | null> {
    yield* lock(sql.lockEndpointKey, [id])
    if ((yield* queryOne(sql.findEndpoint, [id])) === null) return null
    const rows = yield* query<EndedRow>(cancelJobsOfEndpoint, [id, nowMs])
    const cancelled = rows.map(row => endMove('cancel', row, nowMs))
    yield* countJobUsage(cancelled, nowMs)
    yield* lock(lockBatchesOfEndpoint, [id])
    yield* stopWork(cancelled, nowMs)
    yield* addDeliveries(
      cancelled.map(({ job }) => job),
      nowMs,
    )
    yield* query(sql.deleteEndpoint, [id])
    const workers = (yield* query<WorkerRow>(aliveWorkersOf, [id])).map(toWorker)
    return { cancelled, workers }
  }),
} satisfies OperationsOf<EndpointStore>

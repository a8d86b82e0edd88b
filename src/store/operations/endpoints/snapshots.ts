import type { Endpoint, EndpointCounters } from '../../../core/endpoints/endpoint.ts'
import type { KeptConfiguration } from '../../../core/endpoints/release.ts'
import { ROLLED_OUT, type RolloutFacts } from '../../../core/endpoints/rollout-facts.ts'
import type { EndpointId, OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { ListedEndpoint, ListedKind } from '../../../ports/store/store.ts'
import {
  type CountersRow,
  countersFromRow,
  countersOfThese,
  type EndpointRow,
  endpointFromRow,
  listEndpoints,
  type QueueRow,
  queueLoadFromRow,
  queueLoadsOfThese,
} from '../../tables/endpoints.ts'
import { type QueuedWorkerRow, queuedWorkerFromRow, queuedWorkersOfThese } from '../../tables/queued-workers.ts'
import { type OpenRolloutRow, openRollouts, readStop } from '../../tables/releases.ts'
import { sliceParams } from '../../tables/statement.ts'
import { type TemplateRow, templateFromRow, templatesOfThese } from '../../tables/templates.ts'
import { lastExitsOfThese, type WorkerRow, workerFromRow, workerLoadsOfThese } from '../../tables/workers.ts'
import { query, type Steps } from '../operation.ts'

/**
 * A slice of an owner's endpoints with their facts, in one statement for each kind of fact and not for each
 * endpoint.
 */
export function* listedEndpoints(
  owner: OwnerId,
  slice: Slice,
  kind: ListedKind = 'endpoints',
): Steps<ListedEndpoint[]> {
  const rows = yield* query<EndpointRow>(listEndpoints[kind], [owner, ...sliceParams(slice)])
  const endpoints = rows.map(endpointFromRow)
  if (endpoints.length === 0) return []
  const ids = [JSON.stringify(endpoints.map(({ id }) => id))]
  const counters = yield* countersById(ids)
  const queues = new Map(
    (yield* query<QueueRow & { id: EndpointId }>(queueLoadsOfThese, ids)).map(row => [row.id, row]),
  )
  const loads = (yield* query<WorkerRow & { held: number }>(workerLoadsOfThese, ids)).map(row => ({
    ...workerFromRow(row),
    held: row.held,
  }))
  const workers = Map.groupBy(loads, ({ endpointId }) => endpointId)
  const waiting = (yield* query<QueuedWorkerRow>(queuedWorkersOfThese, ids)).map(queuedWorkerFromRow)
  const queuedWorkers = Map.groupBy(waiting, ({ endpointId }) => endpointId)
  const exits = Map.groupBy(
    (yield* query<WorkerRow>(lastExitsOfThese, ids)).map(workerFromRow),
    ({ endpointId }) => endpointId,
  )
  const rollouts = yield* rolloutsById(ids)
  const images = yield* imagesById(endpoints)
  return endpoints.map(endpoint => {
    const { id } = endpoint
    return {
      image: images.get(endpoint.templateId) ?? null,
      snapshot: {
        endpoint,
        counters: counters.get(id) ?? countersFromRow(null),
        queue: queueLoadFromRow(queues.get(id)!),
        workers: workers.get(id) ?? [],
        queuedWorkers: queuedWorkers.get(id) ?? [],
        exits: exits.get(id) ?? [],
        rollout: rollouts.get(id) ?? ROLLED_OUT,
      },
    }
  })
}

function* countersById(ids: readonly string[]): Steps<Map<EndpointId, EndpointCounters>> {
  const rows = yield* query<CountersRow & { endpoint_id: EndpointId }>(countersOfThese, ids)
  return new Map(rows.map(row => [row.endpoint_id, countersFromRow(row)]))
}

function* rolloutsById(ids: readonly string[]): Steps<Map<EndpointId, RolloutFacts>> {
  const rows = yield* query<OpenRolloutRow>(openRollouts, ids)
  return new Map(rows.map(row => [row.endpoint_id, rolloutFromRow(row)]))
}

function rolloutFromRow(row: OpenRolloutRow): RolloutFacts {
  const { working_version: version, working_config: config } = row
  return {
    wasReady: row.ready_at_ms !== null,
    crashes: row.crashes,
    canary: row.canary,
    stop: readStop(row.stop),
    working:
      version === null || config === null ? null : { version, configuration: JSON.parse(config) as KeptConfiguration },
  }
}

function* imagesById(endpoints: readonly Endpoint[]): Steps<Map<string, string>> {
  const ids = [JSON.stringify([...new Set(endpoints.map(({ templateId }) => templateId))])]
  const rows = yield* query<TemplateRow>(templatesOfThese, ids)
  return new Map(rows.map(row => [row.id, templateFromRow(row).image]))
}

import type { Endpoint, EndpointCounters } from '../../../core/endpoints/endpoint.ts'
import type { KeptConfiguration } from '../../../core/endpoints/release.ts'
import { ROLLED_OUT, type RolloutFacts } from '../../../core/endpoints/rollout-facts.ts'
import type { EndpointId, OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { ListedEndpoint } from '../../../ports/store/store.ts'
import {
  type CountersRow,
  countersOf,
  type EndpointRow,
  listEndpoints,
  type QueueRow,
  queueLoadsOf,
  toCounters,
  toEndpoint,
  toQueueLoad,
} from '../../tables/endpoints.ts'
import { type QueuedWorkerRow, queuedWorkersOfThese, toQueuedWorker } from '../../tables/queued-workers.ts'
import { type OpenRolloutRow, openRollouts, toStop } from '../../tables/releases.ts'
import { ofSlice } from '../../tables/slices.ts'
import { type TemplateRow, templatesOfThese, toTemplate } from '../../tables/templates.ts'
import { lastExitsOf, toWorker, type WorkerRow, workerLoadsOf } from '../../tables/workers.ts'
import { query, type Steps } from '../operation.ts'

/**
 * A slice of an owner's endpoints with their facts, in one statement for each kind of fact and not for each
 * endpoint.
 */
export function* listedEndpoints(owner: OwnerId, slice: Slice): Steps<ListedEndpoint[]> {
  const endpoints = (yield* query<EndpointRow>(listEndpoints, [owner, ...ofSlice(slice)])).map(toEndpoint)
  if (endpoints.length === 0) return []
  const ids = [JSON.stringify(endpoints.map(({ id }) => id))]
  const counters = yield* countersById(ids)
  const queues = new Map((yield* query<QueueRow & { id: EndpointId }>(queueLoadsOf, ids)).map(row => [row.id, row]))
  const loads = (yield* query<WorkerRow & { held: number }>(workerLoadsOf, ids)).map(row => ({
    ...toWorker(row),
    held: row.held,
  }))
  const workers = Map.groupBy(loads, ({ endpointId }) => endpointId)
  const waiting = (yield* query<QueuedWorkerRow>(queuedWorkersOfThese, ids)).map(toQueuedWorker)
  const queuedWorkers = Map.groupBy(waiting, ({ endpointId }) => endpointId)
  const exits = Map.groupBy((yield* query<WorkerRow>(lastExitsOf, ids)).map(toWorker), ({ endpointId }) => endpointId)
  const rollouts = yield* rolloutsById(ids)
  const images = yield* imagesById(endpoints)
  return endpoints.map(endpoint => {
    const { id } = endpoint
    return {
      image: images.get(endpoint.templateId) ?? null,
      snapshot: {
        endpoint,
        counters: counters.get(id) ?? toCounters(null),
        queue: toQueueLoad(queues.get(id)!),
        workers: workers.get(id) ?? [],
        queuedWorkers: queuedWorkers.get(id) ?? [],
        exits: exits.get(id) ?? [],
        rollout: rollouts.get(id) ?? ROLLED_OUT,
      },
    }
  })
}

function* countersById(ids: readonly string[]): Steps<Map<EndpointId, EndpointCounters>> {
  const rows = yield* query<CountersRow & { endpoint_id: EndpointId }>(countersOf, ids)
  return new Map(rows.map(row => [row.endpoint_id, toCounters(row)]))
}

function* rolloutsById(ids: readonly string[]): Steps<Map<EndpointId, RolloutFacts>> {
  const rows = yield* query<OpenRolloutRow>(openRollouts, ids)
  return new Map(rows.map(row => [row.endpoint_id, rolloutOf(row)]))
}

function rolloutOf(row: OpenRolloutRow): RolloutFacts {
  const { working_version: version, working_config: config } = row
  return {
    wasReady: row.ready_at_ms !== null,
    crashes: row.crashes,
    canary: row.canary,
    stop: toStop(row.stop),
    working:
      version === null || config === null ? null : { version, configuration: JSON.parse(config) as KeptConfiguration },
  }
}

function* imagesById(endpoints: readonly Endpoint[]): Steps<Map<string, string>> {
  const ids = [JSON.stringify([...new Set(endpoints.map(({ templateId }) => templateId))])]
  const rows = yield* query<TemplateRow>(templatesOfThese, ids)
  return new Map(rows.map(row => [row.id, toTemplate(row).image]))
}

import type { Endpoint } from '../../core/endpoint.ts'
import type { EndpointId, VolumeId } from '../../core/ids.ts'
import type { Caller } from '../../core/permission.ts'
import type { Template } from '../../core/template.ts'
import type { NetworkVolume } from '../../core/volume.ts'
import type { Worker } from '../../core/worker.ts'
import type { PricedGpu } from '../../services/catalog.ts'
import { Batch, inGroups } from './batch.ts'
import type { GraphqlParts } from './parts.ts'

/** From so many on, one read of all is cheaper than a read of each. */
const FEW = 3
/** So many reads at once where there is one for each. */
const AT_ONCE = 16

/** What belongs to endpoints, read for a whole list of them at once. All of it is the caller's own. */
export interface Loaders {
  template(endpoint: Endpoint): Promise<Template | null>
  /** Those that have not ended. */
  workers(endpoint: Endpoint): Promise<readonly Worker[]>
  key(endpoint: Endpoint): Promise<string | null>
  volume(id: VolumeId): Promise<NetworkVolume | null>
  gpus(): Promise<readonly PricedGpu[]>
}

/** The loaders of one request. */
export function loadersFor(parts: GraphqlParts, caller: Caller | null): Loaders {
  const templates = new Batch((endpoints: readonly Endpoint[]) => readTemplates(parts, endpoints))
  const workers = new Batch((endpoints: readonly Endpoint[]) => readWorkers(parts, endpoints))
  const keys = new Batch(async (endpoints: readonly Endpoint[]) => {
    const found = await inGroups(endpoints, AT_ONCE, endpoint => parts.keys.ofEndpoint(caller!, endpoint))
    return new Map(endpoints.map((endpoint, index) => [endpoint, found[index] ?? null]))
  })
  const volumes = new Batch(async (ids: readonly VolumeId[]) => {
    const owner = caller!.owner
    const found =
      ids.length <= FEW
        ? await inGroups(ids, FEW, id => parts.store.volumes.find(owner, id))
        : await parts.store.volumes.list(owner)
    return new Map(found.flatMap(volume => (volume === null ? [] : [[volume.id, volume]])))
  })
  let gpus: Promise<readonly PricedGpu[]> | null = null
  return {
    template: endpoint => templates.load(endpoint),
    workers: async endpoint => (await workers.load(endpoint)) ?? [],
    key: async endpoint => (caller === null ? null : keys.load(endpoint)),
    volume: id => volumes.load(id),
    gpus: () => (gpus ??= parts.catalog.gpus()),
  }
}

async function readTemplates(
  { store }: GraphqlParts,
  endpoints: readonly Endpoint[],
): Promise<ReadonlyMap<Endpoint, Template>> {
  const many = endpoints.length > FEW ? await store.templates.ofEndpoints(endpoints[0]!.owner) : []
  const known = new Map(many.map(template => [template.id, template]))
  // Where they are few, and where an endpoint was linked to another one between the two reads.
  const missing = new Map(endpoints.map(endpoint => [endpoint.templateId, endpoint.owner]))
  for (const id of known.keys()) missing.delete(id)
  for (const found of await inGroups([...missing], AT_ONCE, ([id, owner]) => store.templates.find(owner, id))) {
    if (found !== null) known.set(found.id, found)
  }
  return new Map(
    endpoints.flatMap(endpoint => {
      const template = known.get(endpoint.templateId)
      return template === undefined ? [] : [[endpoint, template] as const]
    }),
  )
}

async function readWorkers(
  { store, endpoints: service }: GraphqlParts,
  endpoints: readonly Endpoint[],
): Promise<ReadonlyMap<Endpoint, readonly Worker[]>> {
  if (endpoints.length <= FEW) {
    const lists = await inGroups(endpoints, FEW, endpoint => service.workersOf(endpoint))
    return new Map(endpoints.map((endpoint, index) => [endpoint, lists[index] ?? []]))
  }
  const byEndpoint = new Map<EndpointId, Worker[]>()
  for (const worker of await store.workers.alive()) {
    const workers = byEndpoint.get(worker.endpointId)
    if (workers === undefined) byEndpoint.set(worker.endpointId, [worker])
    else workers.push(worker)
  }
  return new Map(endpoints.map(endpoint => [endpoint, byEndpoint.get(endpoint.id) ?? []]))
}

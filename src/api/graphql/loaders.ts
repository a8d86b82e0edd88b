import type { Caller } from '../../core/accounts/permission.ts'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { Template } from '../../core/endpoints/template.ts'
import type { Volume } from '../../core/endpoints/volume.ts'
import type { EndpointId, OwnerId, VolumeId } from '../../core/ids.ts'
import type { QueuedWorker } from '../../core/workers/placement.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { PricedGpu } from '../../services/hardware/catalog.ts'
import { mapConcurrently } from '../../services/map-concurrently.ts'
import type { ApiParts } from '../parts.ts'

/** Up to this number of items, reading each is cheaper than reading all. */
const MAX_SINGLE_READS = 3
/** Maximum concurrent reads of single items. */
const CONCURRENCY = 16

/** Loads objects of endpoints, for a whole list at once. All of them belong to the caller. */
export interface Loaders {
  template(endpoint: Endpoint): Promise<Template | null>
  /** Workers that have not ended. */
  workers(endpoint: Endpoint): Promise<readonly Worker[]>
  /** Workers that wait for placement. */
  queued(endpoint: Endpoint): Promise<readonly QueuedWorker[]>
  key(endpoint: Endpoint): Promise<string | null>
  volume(id: VolumeId): Promise<Volume | null>
  gpus(): Promise<readonly PricedGpu[]>
}

/** The loaders of one request. */
export function loadersFor(parts: ApiParts, caller: Caller | null): Loaders {
  const templates = new OperationBatch((endpoints: readonly Endpoint[]) => parts.endpoints.readTemplates(endpoints))
  const workers = new OperationBatch((endpoints: readonly Endpoint[]) => readWorkers(parts, endpoints))
  const keys = new OperationBatch(async (endpoints: readonly Endpoint[]) => {
    const keyLists = await mapConcurrently(endpoints, CONCURRENCY, endpoint => parts.keys.ofEndpoint(caller!, endpoint))
    return new Map(endpoints.map((endpoint, index) => [endpoint, keyLists[index] ?? null]))
  })
  const volumes = new OperationBatch(async (ids: readonly VolumeId[]) => {
    const owner = caller!.owner
    const rows =
      ids.length <= MAX_SINGLE_READS
        ? await mapConcurrently(ids, MAX_SINGLE_READS, id => parts.ports.store.volumes.find(owner, id))
        : await parts.ports.store.volumes.list(owner)
    return new Map(rows.flatMap(volume => (volume === null ? [] : [[volume.id, volume]])))
  })
  let waiting: Promise<readonly QueuedWorker[]> | null = null
  const queued = (owner: OwnerId) => (waiting ??= parts.ports.store.queuedWorkers.list(owner))
  let gpus: Promise<readonly PricedGpu[]> | null = null
  return {
    template: endpoint => templates.load(endpoint),
    workers: async endpoint => (await workers.load(endpoint)) ?? [],
    queued: async ({ id, owner }) => (await queued(owner)).filter(({ endpointId }) => endpointId === id),
    key: async endpoint => (caller === null ? null : keys.load(endpoint)),
    volume: id => volumes.load(id),
    gpus: () => (gpus ??= parts.catalog.gpus()),
  }
}

async function readWorkers(
  { ports: { store }, endpoints: service }: ApiParts,
  endpoints: readonly Endpoint[],
): Promise<ReadonlyMap<Endpoint, readonly Worker[]>> {
  if (endpoints.length <= MAX_SINGLE_READS) {
    const lists = await mapConcurrently(endpoints, MAX_SINGLE_READS, endpoint => service.listWorkers(endpoint))
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

/**
 * Collects the keys loaded in the same tick and reads them together. It caches nothing: a later load sees
 * later changes.
 */
class OperationBatch<Key, Value> {
  readonly #read
  #open: { readonly keys: Set<Key>; readonly values: Promise<ReadonlyMap<Key, Value>> } | null = null

  constructor(read: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Value>>) {
    this.#read = read
  }

  /** Loads one key. Null: the read did not find it. */
  async load(key: Key): Promise<Value | null> {
    this.#open ??= this.#begin()
    const { keys, values } = this.#open
    keys.add(key)
    return (await values).get(key) ?? null
  }

  #begin() {
    const keys = new Set<Key>()
    // Resolvers of one list run in the same tick, so this read has the keys of all of them.
    const values = Promise.resolve().then(() => {
      this.#open = null
      return this.#read([...keys])
    })
    return { keys, values }
  }
}

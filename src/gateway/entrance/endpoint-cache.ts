import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { readServing, reservedPaths } from '../../core/endpoints/serving.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import { textBefore } from '../../core/text-parts.ts'
import type { Ports } from '../../ports/ports.ts'
import { runsSentSource } from '../../services/endpoints/live-endpoints.ts'
import { ServingVariables } from '../../services/endpoints/serving-variables.ts'

/** Fields of an endpoint that admission uses. */
export interface CachedEndpoint {
  readonly endpoint: Endpoint
  /** The path of health checks, without a query. */
  readonly healthPath: string
  /** Paths that only the server may ask its workers for, as `comparablePath` has them. */
  readonly reserved: readonly string[]
  /** True for one whose workers run the source that a request brings, as processes of the machine. */
  readonly runsSentSource: boolean
}

/** Time for which an entry is used without a notification of a change, in milliseconds; notifications may be lost. */
const FRESH_MS = 5_000
/** Time for which an entry is used while the store is unavailable, in milliseconds. */
const STALE_MS = 300_000
const MAX_ENTRIES = 10_000

interface Entry {
  readonly cached: CachedEndpoint | null
  readonly readMs: number
  freshUntilMs: number
  /** The number of changes at which the entry was read or extended; an entry of another number is out of date. */
  changes: number
}

/** Caches endpoints, so that a request for a known one does not wait for the store. */
export class EndpointCache {
  readonly #ports
  readonly #entries = new Map<EndpointId, Entry>()
  readonly #reading = new Map<
    EndpointId,
    { readonly changes: number; readonly endpoint: Promise<CachedEndpoint | null> }
  >()
  readonly #unsubscribe: () => void
  readonly #variables
  /** Grows with each change of any endpoint or template. */
  #changes = 0

  constructor(ports: Ports) {
    this.#ports = ports
    this.#variables = new ServingVariables(ports)
    this.#unsubscribe = ports.notifier.subscribe('endpoints', () => {
      this.#changes += 1
    })
  }

  /**
   * The endpoint; null if it does not exist. Synchronous if it is cached.
   * @throws AppError `unavailable` if it is not cached and the store is unavailable
   */
  find(id: EndpointId): CachedEndpoint | null | Promise<CachedEndpoint | null> {
    const entry = this.#entries.get(id)
    if (entry !== undefined && this.#isFresh(entry)) return entry.cached
    const pending = this.#reading.get(id)
    if (pending?.changes === this.#changes) return pending.endpoint
    const endpoint = this.#read(id).finally(() => {
      if (this.#reading.get(id) === reading) this.#reading.delete(id)
    })
    const reading = { changes: this.#changes, endpoint }
    this.#reading.set(id, reading)
    return endpoint
  }

  /** Stops following changes. */
  close(): void {
    this.#unsubscribe()
    this.#variables.close()
  }

  #isFresh({ freshUntilMs, changes }: Entry): boolean {
    return changes === this.#changes && this.#ports.clock.monotonic() < freshUntilMs
  }

  async #read(id: EndpointId): Promise<CachedEndpoint | null> {
    const { store, clock } = this.#ports
    const changes = this.#changes
    try {
      const endpoint = await store.endpoints.find(id)
      const template = endpoint === null ? null : await store.templates.find(endpoint.owner, endpoint.templateId)
      const env = { ...template?.env, ...endpoint?.env }
      const variables = endpoint === null ? {} : await this.#variables.of(endpoint.owner, env)
      const healthPath = textBefore(readServing(variables).healthPath, '?')
      const cached =
        endpoint === null
          ? null
          : {
              endpoint,
              healthPath,
              reserved: reservedPaths(variables),
              runsSentSource: template !== null && runsSentSource(this.#ports, endpoint, template),
            }
      if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear()
      const readMs = clock.monotonic()
      this.#entries.set(id, { cached, readMs, freshUntilMs: readMs + FRESH_MS, changes })
      return cached
    } catch (error) {
      const entry = this.#entries.get(id)
      const nowMs = clock.monotonic()
      const isUnavailable = error instanceof AppError && error.code === 'unavailable'
      if (!isUnavailable || entry === undefined || nowMs - entry.readMs >= STALE_MS) throw error
      entry.freshUntilMs = nowMs + FRESH_MS
      entry.changes = changes
      return entry.cached
    }
  }
}

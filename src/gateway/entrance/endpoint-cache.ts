import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { servingOf } from '../../core/endpoints/serving.ts'
import { AppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import { ServingVariables } from '../../services/endpoints/serving-variables.ts'

/** What the gateway has to know of an endpoint before it lets a request pass. */
export interface CachedEndpoint {
  readonly endpoint: Endpoint
  /** Without a query. */
  readonly healthPath: string
}

/** For so long what was read is taken for true where no notification says otherwise; those may be lost. */
const FRESH_MS = 5_000
/** For so long it serves while the store is away. */
const STALE_MS = 300_000
const MAX_ENTRIES = 10_000

interface Entry {
  readonly known: CachedEndpoint | null
  readonly readMs: number
  freshUntilMs: number
  /** What {@link EndpointCache} had heard when it was read or had to do. */
  changes: number
}

/** The endpoints that requests name, remembered: a request whose endpoint is known waits for no store. */
export class EndpointCache {
  readonly #ports: Pick<Ports, 'store' | 'clock'>
  readonly #entries = new Map<EndpointId, Entry>()
  readonly #reading = new Map<
    EndpointId,
    { readonly changes: number; readonly known: Promise<CachedEndpoint | null> }
  >()
  readonly #unsubscribe: () => void
  readonly #variables: ServingVariables
  /** Grows with each change of any endpoint or template. */
  #changes = 0

  constructor(ports: Pick<Ports, 'store' | 'clock' | 'notifier' | 'vault'>) {
    this.#ports = ports
    this.#variables = new ServingVariables(ports)
    this.#unsubscribe = ports.notifier.subscribe('endpoints', () => {
      this.#changes += 1
    })
  }

  /**
   * The endpoint; null when there is none. At once where it is known.
   * @throws AppError `unavailable` when it is not, and the store is away
   */
  find(id: EndpointId): CachedEndpoint | null | Promise<CachedEndpoint | null> {
    const entry = this.#entries.get(id)
    if (entry !== undefined && this.#isFresh(entry)) return entry.known
    const pending = this.#reading.get(id)
    if (pending?.changes === this.#changes) return pending.known
    const known = this.#read(id).finally(() => {
      if (this.#reading.get(id) === reading) this.#reading.delete(id)
    })
    const reading = { changes: this.#changes, known }
    this.#reading.set(id, reading)
    return known
  }

  /** Listens to no changes any more. */
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
      const path = endpoint === null ? '' : servingOf(await this.#variables.of(endpoint.owner, env)).healthPath
      const known = endpoint === null ? null : { endpoint, healthPath: path.replace(/\?.*$/, '') }
      if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear()
      const readMs = clock.monotonic()
      this.#entries.set(id, { known, readMs, freshUntilMs: readMs + FRESH_MS, changes })
      return known
    } catch (error) {
      const entry = this.#entries.get(id)
      const nowMs = clock.monotonic()
      const isUnavailable = error instanceof AppError && error.code === 'unavailable'
      if (!isUnavailable || entry === undefined || nowMs - entry.readMs >= STALE_MS) throw error
      entry.freshUntilMs = nowMs + FRESH_MS
      entry.changes = changes
      return entry.known
    }
  }
}

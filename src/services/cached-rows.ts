import type { Endpoint } from '../core/endpoints/endpoint.ts'
import { notFound } from '../core/errors.ts'
import type { EndpointId, OwnerId } from '../core/ids.ts'
import type { Worker } from '../core/workers/worker.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ports } from '../ports/ports.ts'
import type { StoreLayer } from '../ports/store/operations.ts'

/**
 * Time for which a row is used without a read, in ms. A change whose response was lost may happen after its failure
 * was reported.
 */
const FRESH_MS = 5_000
const MAX_ROWS = 10_000

/**
 * Rows of the store in memory, for calls that would read the same row each time. All changes of them go through
 * {@link remembering}; then a call that begins after a change has returned never gets the previous row: one server
 * acts on a database.
 */
export class CachedRows<Key, Row> {
  readonly #read
  readonly #clock
  readonly #rows = new Map<Key, { readonly row: Row; readonly readMs: number }>()
  #changes = 0

  /** @param read reads a row from the store; null for one that does not exist, which is read again each time */
  constructor(read: (key: Key) => Promise<Row | null>, clock: Clock) {
    this.#read = read
    this.#clock = clock
  }

  /** The row, from memory where it is cached. @throws as the read of the store */
  async find(key: Key): Promise<Row | null> {
    const readMs = this.#clock.monotonic()
    const cached = this.#rows.get(key)
    if (cached !== undefined && readMs - cached.readMs < FRESH_MS) return cached.row
    const changes = this.#changes
    const row = await this.#read(key)
    if (row === null || changes !== this.#changes) return row
    if (this.#rows.size >= MAX_ROWS) this.#rows.clear()
    this.#rows.set(key, { row, readMs })
    return row
  }

  /** A method that changes rows. Rows that are read between its begin and its result are not kept. */
  changing<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Promise<Value>,
  ): (...args: Args) => Promise<Value> {
    const forget = () => {
      this.#changes += 1
      this.#rows.clear()
    }
    return async (...args) => {
      forget()
      try {
        return await run(...args)
      } finally {
        forget()
      }
    }
  }
}

/** Endpoints in memory, so that the calls of a job do not read its endpoint each time. */
export class CachedEndpoints {
  /** The rows, for the layer that drops them after a change. */
  readonly rows: CachedRows<EndpointId, Endpoint>

  constructor({ store, clock }: Ports) {
    this.rows = new CachedRows(id => store.endpoints.find(id), clock)
  }

  /**
   * Origins of the web pages that may call an endpoint; empty for an endpoint that does not exist.
   * @throws AppError `unavailable`
   */
  async corsOrigins(id: EndpointId): Promise<readonly string[]> {
    return (await this.rows.find(id))?.corsOrigins ?? []
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner; `unavailable` */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.rows.find(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }
}

/** Rows in memory for {@link remembering}. */
export interface RowCaches {
  readonly endpoint: CachedRows<EndpointId, Endpoint>
  /** By the hashes of their tokens. */
  readonly worker: CachedRows<string, Worker>
}

/**
 * Layer around the store through which all changes go: drops rows that an operation changes, and finds workers by
 * their tokens in memory.
 */
export function remembering(caches: RowCaches): StoreLayer {
  return (call, name, { changes = [] }) => {
    if (name === 'workers.findByToken') return tokenHash => caches.worker.find(tokenHash as string)
    return changes.reduce((inner, row) => caches[row].changing(inner), call)
  }
}

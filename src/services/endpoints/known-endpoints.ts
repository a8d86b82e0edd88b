import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Store } from '../../ports/store/store.ts'

/** How long an endpoint is used without a read, in ms. A change whose response was lost may happen after its failure was reported. */
const FRESH_MS = 5_000
const MAX_ENDPOINTS = 10_000

/**
 * Endpoints in memory, so that the calls of a job do not read its endpoint each time. A change through `store` is seen by each call that
 * begins after it has returned: one server acts on a database.
 */
export class KnownEndpoints {
  /** The store, through which all changes go. */
  readonly store: Store
  readonly #given: Store
  readonly #clock: Clock
  readonly #known = new Map<EndpointId, { readonly endpoint: Endpoint; readonly readMs: number }>()
  #changes = 0

  constructor(store: Store, clock: Clock) {
    const { endpoints, templates } = store
    this.#given = store
    this.#clock = clock
    this.store = {
      ...store,
      endpoints: inheriting(endpoints, {
        replace: this.#changing(endpoints.replace),
        remove: this.#changing(endpoints.remove),
      }),
      // A change of a template makes a new version of its endpoints.
      templates: inheriting(templates, { replace: this.#changing(templates.replace) }),
    }
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner; `unavailable` */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const entry = this.#known.get(id)
    const isFresh = entry !== undefined && this.#clock.monotonic() - entry.readMs < FRESH_MS
    const endpoint = isFresh ? entry.endpoint : await this.#read(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }

  async #read(id: EndpointId): Promise<Endpoint | null> {
    const changes = this.#changes
    const readMs = this.#clock.monotonic()
    const endpoint = await this.#given.endpoints.find(id)
    if (endpoint === null || changes !== this.#changes) return endpoint
    if (this.#known.size >= MAX_ENDPOINTS) this.#known.clear()
    this.#known.set(id, { endpoint, readMs })
    return endpoint
  }

  /** A change is under way from before it begins until its result is known: what is read meanwhile is not kept. */
  #changing<Args extends readonly unknown[], Value>(
    run: (...args: Args) => Promise<Value>,
  ): (...args: Args) => Promise<Value> {
    const forget = () => {
      this.#changes += 1
      this.#known.clear()
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

/** An object with some methods of its own, and otherwise those of another one. */
function inheriting<Methods extends object>(methods: Methods, own: Partial<Methods>): Methods {
  return Object.assign(Object.create(methods) as Methods, own)
}

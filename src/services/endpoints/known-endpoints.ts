import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Store } from '../../ports/store/store.ts'
import { inheriting, KnownRows } from '../known-rows.ts'

/**
 * Endpoints in memory, so that the calls of a job do not read its endpoint each time. A change through `store` is seen by each call that
 * begins after it has returned.
 */
export class KnownEndpoints {
  /** The store, through which all changes go. */
  readonly store: Store
  readonly #rows: KnownRows<EndpointId, Endpoint>

  constructor(store: Store, clock: Clock) {
    const { endpoints, templates } = store
    this.#rows = new KnownRows(id => endpoints.find(id), clock)
    this.store = {
      ...store,
      endpoints: inheriting(endpoints, {
        replace: this.#rows.changing(endpoints.replace),
        remove: this.#rows.changing(endpoints.remove),
      }),
      // A change of a template makes a new version of its endpoints.
      templates: inheriting(templates, { replace: this.#rows.changing(templates.replace) }),
    }
  }

  /** Origins of the web pages that may call an endpoint; none where there is no such endpoint. @throws AppError `unavailable` */
  async corsOrigins(id: EndpointId): Promise<readonly string[]> {
    return (await this.#rows.find(id))?.corsOrigins ?? []
  }

  /** @throws AppError `not_found`, also for an endpoint of another owner; `unavailable` */
  async find(owner: OwnerId, id: EndpointId): Promise<Endpoint> {
    const endpoint = await this.#rows.find(id)
    if (endpoint === null || endpoint.owner !== owner) throw notFound('endpoint', id)
    return endpoint
  }
}

import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { notFound } from '../../core/errors.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import { CachedRows } from '../known-rows.ts'

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

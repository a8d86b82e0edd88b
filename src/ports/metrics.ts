import type { EndpointId } from '../core/ids.ts'
import type { EndpointLoad } from '../core/scaling/scale.ts'

/** All metrics as Prometheus reads them. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

/** What passes through the gateway right now, of one load-balancing endpoint. */
export interface GatewayPassing {
  /** Requests that were let in and are not over, those in the line too. */
  readonly requests: number
  /** The same of WebSockets and other upgrades. */
  readonly sockets: number
  /** Those of both that wait for a worker. */
  readonly waiting: number
  /** Workers that have some of them, which the store knows nothing about. */
  readonly busyWorkers: number
}

/** Counts what the event stream tells, and shows it together with the present state. */
export interface Metrics {
  /**
   * @param loads the present state of all endpoints; null when it could not be read, which shows as `runyard_store_up 0`
   * @param passing what passes through the gateway to an endpoint
   */
  expose(loads: readonly EndpointLoad[] | null, passing: (id: EndpointId) => GatewayPassing): Promise<Exposition>
}

import type { OpenCircuit } from '../core/balancing/circuit-breaker.ts'
import type { TrafficLoad } from '../core/balancing/traffic.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import type { BalancedEndpoint, Target } from '../core/workers/socket-address.ts'

/** Receives from the control loops the workers that requests may be sent to. */
export interface Targets {
  /** Replaces an endpoint and its workers. @param targets all workers of the endpoint that did not end */
  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void
  /**
   * The circuit breaker of the endpoint opens: requests that wait are refused, and those that come within the next
   * second, unless a worker appears before that. Null when it closes.
   */
  setCircuit(id: EndpointId, circuit: OpenCircuit | null): void
  /**
   * Removes an endpoint that was deleted or changed its type: waiting requests are refused, those in flight may end.
   */
  forget(id: EndpointId): void
}

/**
 * The load of requests, for the control loops. The topic `load:<endpoint>` is published whenever another
 * number of workers may be needed: a request waits while no worker is ready, a worker is above its target,
 * or has nothing more to do.
 */
export interface Traffic {
  load(id: EndpointId): TrafficLoad
  /**
   * Total time for which a worker had requests in flight, in milliseconds; 0 for an unknown worker. It only grows, and
   * starts at 0 again for a worker that ended and is started again.
   */
  busyMs(id: EndpointId, workerId: WorkerId): number
}

import type { OpenCircuit } from '../core/balancing/circuit-breaker.ts'
import type { TrafficLoad } from '../core/balancing/traffic.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import type { BalancedEndpoint, Target } from '../core/workers/socket-address.ts'

/** Learns from the control loops which workers requests may be sent to. */
export interface Targets {
  /** The endpoint as it is now with all its workers that have not ended; replaces what was known before. */
  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void
  /**
   * The circuit breaker of the endpoint opens: requests that wait are refused, and those that come within the next second, unless a
   * worker appears before that. Null when it closes.
   */
  setCircuit(id: EndpointId, circuit: OpenCircuit | null): void
  /** The endpoint is gone, or is no load-balancing endpoint any more: waiting requests are refused. Those in flight may end. */
  forget(id: EndpointId): void
}

/**
 * The load of requests, for the control loops. The topic `load:<endpoint>` is published whenever another number of workers may be
 * needed: a request waits while no worker is ready, a worker is above its target, or has nothing more to do.
 */
export interface Traffic {
  load(id: EndpointId): TrafficLoad
  /**
   * How long a worker has had requests in flight since it became known, in milliseconds; 0 for an unknown one. It only grows, and
   * starts at 0 again for a worker that has ended and is started again.
   */
  busyMs(id: EndpointId, workerId: WorkerId): number
}

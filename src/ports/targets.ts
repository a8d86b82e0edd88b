import type { OpenCircuit } from '../core/balancing/circuit-breaker.ts'
import type { TrafficLoad } from '../core/balancing/traffic.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import type { BalancedEndpoint, Target } from '../core/workers/socket-address.ts'

/** Is told by the control loops which workers requests may be sent to. */
export interface Targets {
  /** The endpoint as it is now with all its workers that have not ended; replaces what was told before. */
  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void
  /**
   * Nobody can serve the requests of the endpoint: those that wait are refused, and those that come within the next second, unless a
   * worker is told of before that. Null when it is so no more.
   */
  setCircuit(id: EndpointId, outage: OpenCircuit | null): void
  /** The endpoint is gone, or balances nothing any more: who waits is refused. What is in flight may end. */
  forget(id: EndpointId): void
}

/**
 * Tells the control loops about requests. Whenever something changes that may need another number of workers, the topic
 * `load:<endpoint>` is published: one waits while none is ready, a worker is above its target, or has nothing more to do.
 */
export interface Traffic {
  load(id: EndpointId): TrafficLoad
  /**
   * For how long a worker had requests in flight, altogether since it was told of, in milliseconds; 0 for one that is not known.
   * It only grows, and begins anew for a worker that has ended and is started again.
   */
  busyMs(id: EndpointId, workerId: WorkerId): number
}

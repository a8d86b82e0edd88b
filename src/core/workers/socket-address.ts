import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'

/** Address of a listening server. */
export interface SocketAddress {
  readonly host: string
  readonly port: number
  /** Path of a socket that leads to it; absent if the port is directly reachable. */
  readonly socket?: string
}

/** Addresses of a worker of a load-balancing endpoint; both are equal if its PORT and PORT_HEALTH are. */
export interface ServedAt {
  readonly traffic: SocketAddress
  readonly health: SocketAddress
}

/** The part of a load-balancing endpoint that concerns the distribution of requests over its workers. */
export interface BalancedEndpoint {
  readonly id: EndpointId
  readonly owner: OwnerId
  /** Preferred version of workers; null for none, as while a canary shares the requests. */
  readonly version: number | null
  /** Requests in flight per worker above which more workers are needed. */
  readonly requestCount: number
  /** Maximum number of requests in flight per worker; null for no limit. */
  readonly maxConcurrency: number | null
  /** True if its max is 0: no request waits, all are refused. */
  readonly paused: boolean
}

/**
 * Permitted requests of a worker: `starting` none yet, `ready` all, `draining` no new ones, while it finishes
 * those that it has. An unhealthy worker is `starting` until it is healthy.
 */
export type TargetState = 'starting' | 'ready' | 'draining'

/** A worker that can receive requests, now or soon. */
export interface Target {
  readonly workerId: WorkerId
  readonly version: number
  readonly state: TargetState
  /** Null while it is unknown. */
  readonly servedAt: ServedAt | null
}

import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'

/** Where a server listens. */
export interface SocketAddress {
  readonly host: string
  readonly port: number
  /** The path of a socket that leads there; none where the port is reached as it is. */
  readonly socket?: string
}

/** Where a worker of a load-balancing endpoint serves; both are the same when its PORT and PORT_HEALTH are. */
export interface ServedAt {
  readonly traffic: SocketAddress
  readonly health: SocketAddress
}

/** What of a load-balancing endpoint concerns how its requests are spread over its workers. */
export interface BalancedEndpoint {
  readonly id: EndpointId
  readonly owner: OwnerId
  /** Workers of this version are preferred; null for none, as while a canary shares the requests. */
  readonly version: number | null
  /** Requests in flight per worker above which more workers are wanted. */
  readonly requestCount: number
  /** Maximum number of requests in flight per worker; null for no limit. */
  readonly maxConcurrency: number | null
  /** Whether there is never a worker, since its max is 0: nothing waits, all is refused. */
  readonly paused: boolean
}

/**
 * What a worker may get: `starting` nothing yet, `ready` everything, `draining` nothing more, while it finishes what it has.
 * One that is unhealthy is `starting` again until it is well.
 */
export type TargetState = 'starting' | 'ready' | 'draining'

/** A worker that requests can be sent to, now or soon. */
export interface Target {
  readonly workerId: WorkerId
  readonly version: number
  readonly state: TargetState
  /** Null while it is not known. */
  readonly servedAt: ServedAt | null
}

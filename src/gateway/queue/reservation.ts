import type { Affinity } from '../../core/balancing/balance.ts'
import type { RequestOutcome } from '../../core/balancing/outlier-ejection.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { WorkerSlot } from '../threads/worker-slots.ts'

export type { Affinity } from '../../core/balancing/balance.ts'
export type { RequestOutcome } from '../../core/balancing/outlier-ejection.ts'

/** Facts about a request or socket that decide its worker. */
export interface WorkerRequest {
  readonly endpointId: EndpointId
  readonly affinity: Affinity | null
  /** Workers that failed this request; chosen only if no other is left. */
  readonly avoid: readonly WorkerId[]
  /** Limit of its wait in the request queue, in milliseconds; the limit of the queue when left out or longer. */
  readonly maxWaitMs?: number
  /** Part of that limit that it has waited before, for workers that failed it; 0 when left out. */
  readonly waitedMs?: number
  /**
   * True if the caller has no key, so that errors do not describe the problem of the endpoint; false when left out.
   */
  readonly isAnonymous?: boolean
  /** Aborts when the client is gone: the request leaves the queue. */
  readonly signal: AbortSignal
}

/** A worker that is claimed for one request, which counts as in flight there until it is released. */
export interface Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  /** Milliseconds that it waited in the request queue. */
  readonly waitedMs: number
  /** The slot in shared memory that counts it; null, or left out, if one thread has all requests. */
  readonly slot?: WorkerSlot | null
  /** To be called once, at the last byte, with any outcome; further calls do nothing. */
  release(outcome: RequestOutcome): void
}

/** Claims workers for requests: first come, first served. */
export interface Reservations {
  /**
   * The worker for a request, at once or in its turn. Rejects with the reason of the signal if that aborts.
   * @throws AppError `invalid` "no workers available" if its wait is over, the endpoint is paused, or no worker can
   * start, with the cause; `rate_limited` if the queue is full or too slow for it; `not_found` "affinity_worker_gone"
   * and `invalid` "worker_timeout" for the worker that its affinity requires; `not_found` if the endpoint is removed;
   * `unavailable` if the server stops. All but `not_found` have the seconds until a retry
   */
  reserve(wanted: WorkerRequest): Promise<Reservation>
}

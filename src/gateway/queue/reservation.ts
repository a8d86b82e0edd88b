import type { Affinity } from '../../core/balancing/balance.ts'
import type { RequestOutcome } from '../../core/balancing/outlier-ejection.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'

export type { Affinity } from '../../core/balancing/balance.ts'
export type { RequestOutcome } from '../../core/balancing/outlier-ejection.ts'

/** A request, or a socket, as far as it concerns which worker gets it. */
export interface WorkerRequest {
  readonly endpointId: EndpointId
  readonly affinity: Affinity | null
  /** Workers that it was sent to in vain, which are taken only when there is no other. */
  readonly avoid: readonly WorkerId[]
  /** For how long it may wait in the line, in milliseconds; as long as the line allows when left out, and never longer. */
  readonly patienceMs?: number
  /** Whether anybody may ask, so that it is not told what is wrong with the endpoint; no when left out. */
  readonly isStranger?: boolean
  /** The client is gone, so that it leaves the line. */
  readonly signal: AbortSignal
}

/** A worker that was claimed for one request. It counts as in flight there until it is released. */
export interface Reservation {
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  /** How long it waited in the line. */
  readonly waitedMs: number
  /** To be called once, at the last byte, whatever happened; further calls do nothing. */
  release(outcome: RequestOutcome): void
}

/** Claims workers for requests: first come, first served. */
export interface Reservations {
  /**
   * The worker for a request, at once or when its turn has come. When the signal aborts it rejects with the reason of that.
   * @throws AppError `invalid` "no workers available" when its time in the line is over, the endpoint is paused, or no worker can
   *   start, with the cause;
   *   `rate_limited` when the line is full, or moves too slowly for it; `not_found` "affinity_worker_gone" and `invalid`
   *   "worker_timeout" for the worker that it insists on; `not_found` when the endpoint goes; `unavailable` when the
   *   server stops. All but `not_found` say after how many seconds to try again
   */
  reserve(wanted: WorkerRequest): Promise<Reservation>
}

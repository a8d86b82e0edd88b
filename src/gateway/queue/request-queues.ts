import type { OpenCircuit } from '../../core/balancing/circuit-breaker.ts'
import { NO_TRAFFIC, type TrafficLoad } from '../../core/balancing/traffic.ts'
import type { AppError } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { BalancedEndpoint, Target } from '../../core/workers/socket-address.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Targets, Traffic } from '../../ports/targets.ts'
import { serverStopping } from '../entrance/refusal.ts'
import type { QueueSharing } from '../threads/queue-sharing.ts'
import type { WorkerSlot } from '../threads/worker-slots.ts'
import { RequestQueue, type RequestQueueLimits, type SharedQueueState } from './request-queue.ts'
import type { RequestOutcome, Reservation, Reservations, WorkerRequest } from './reservation.ts'

/** Default limits of request queues. */
export const REQUEST_QUEUE_LIMITS: RequestQueueLimits = {
  perEndpoint: 1_000,
  inAll: 10_000,
  waitMs: 120_000,
  namedWaitMs: 300_000,
}

/** Options of {@link RequestQueues}. */
export interface RequestQueuesOptions {
  readonly limits?: Partial<RequestQueueLimits>
  /**
   * True if an ended worker was one of this endpoint and can be started again under its id, for requests that insist
   * on it with `strict-resume`; always false when left out. Called once for all requests that wait for it.
   */
  readonly canResume?: SharedQueueState['canResume']
  /** Counts that other threads share; null, as by default, where one thread has all requests. */
  readonly sharing?: QueueSharing | null
}

/**
 * The requests for load-balancing endpoints of this server: an exact table of requests in flight by worker, and a
 * request queue for each endpoint. The control loops report the workers, and get events that ask for workers.
 */
export class RequestQueues implements Targets, Traffic, Reservations {
  readonly #queues = new Map<EndpointId, RequestQueue>()
  readonly #shared: SharedQueueState
  #closed: AppError | null = null

  constructor(ports: Ports, { limits, canResume = async () => false, sharing = null }: RequestQueuesOptions = {}) {
    const discarded = (id: EndpointId) => void this.#queues.delete(id)
    const counts = { waiting: 0, places: 0, uses: 0 }
    const allLimits = { ...REQUEST_QUEUE_LIMITS, ...limits }
    this.#shared = { ports, limits: allLimits, canResume, sharing, discarded, ...counts }
  }

  /** Number of waiting requests, over all endpoints. */
  get waiting(): number {
    return this.#shared.waiting
  }

  reserve(request: WorkerRequest): Promise<Reservation> {
    if (this.#closed !== null) return Promise.reject(this.#closed)
    return this.#ensureQueue(request.endpointId).reserve(request)
  }

  /**
   * A request that another thread sent to a worker is over, and is counted no longer.
   * @param slot that of the worker
   */
  released(id: EndpointId, workerId: WorkerId, slot: WorkerSlot, outcome: RequestOutcome): void {
    this.#queues.get(id)?.released(workerId, slot, outcome)
  }

  keep(endpoint: BalancedEndpoint, targets: readonly Target[]): void {
    this.#ensureQueue(endpoint.id).keep(endpoint, targets)
  }

  setCircuit(id: EndpointId, circuit: OpenCircuit | null): void {
    this.#queues.get(id)?.setCircuit(circuit)
  }

  forget(id: EndpointId): void {
    this.#queues.get(id)?.forget()
  }

  load(id: EndpointId): TrafficLoad {
    return this.#queues.get(id)?.load() ?? NO_TRAFFIC
  }

  busyMs(id: EndpointId, workerId: WorkerId): number {
    return this.#queues.get(id)?.busyMs(workerId) ?? 0
  }

  /** Refuses waiting and new requests, since the server stops. Requests in flight continue. */
  close(): void {
    if (this.#closed !== null) return
    this.#closed = serverStopping()
    for (const queue of [...this.#queues.values()]) queue.refuseAll(this.#closed)
  }

  #ensureQueue(id: EndpointId): RequestQueue {
    let queue = this.#queues.get(id)
    if (queue === undefined) {
      queue = new RequestQueue(id, this.#shared)
      this.#queues.set(id, queue)
    }
    return queue
  }
}

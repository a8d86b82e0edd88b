import type { WorkerId } from '../ids.ts'

/** Requests of one worker of a load-balancing endpoint. */
export interface WorkerTraffic {
  readonly workerId: WorkerId
  /** Requests and sockets that were sent to it and have not ended. */
  readonly inFlight: number
  /**
   * Start of its idle time in epoch milliseconds: the last byte of its last request, or its readiness. The present
   * time while requests wait for it by name, so that it is kept. Null while it has requests.
   */
  readonly idleSinceMs: number | null
}

/** The requests of one load-balancing endpoint at one instant. */
export interface TrafficLoad {
  /** Requests in the queue, without those that wait for one worker by name: other workers cannot serve these. */
  readonly waiting: number
  /** Start of the first wait; null if nothing waits. */
  readonly waitingSinceMs: number | null
  /** All workers in the gateway's list; after the endpoint's deletion, those with requests in flight. */
  readonly workers: readonly WorkerTraffic[]
  /** Ended workers that requests wait for by name (`strict-resume`). */
  readonly resumed: readonly WorkerId[]
  /** All workers that requests wait for by name. */
  readonly named: readonly WorkerId[]
}

/** Load without any traffic. */
export const NO_TRAFFIC: TrafficLoad = { waiting: 0, waitingSinceMs: null, workers: [], resumed: [], named: [] }

import type { WorkerId } from '../ids.ts'

/** What one worker of a load-balancing endpoint has to do with requests. */
export interface WorkerTraffic {
  readonly workerId: WorkerId
  /** Requests and sockets that were sent to it and have not ended. */
  readonly inFlight: number
  /**
   * Since when it has none, in epoch milliseconds: the end of the last byte of the last one, or since when it is ready; now as long
   * as some wait for it by name, so that it is kept. Null while it has some.
   */
  readonly idleSinceMs: number | null
}

/** The requests of one load-balancing endpoint at one instant. */
export interface TrafficLoad {
  /** Requests in the queue, without those that wait for one worker by name, which other workers do not help. */
  readonly waiting: number
  /** Since when the first of them waits; null when none does. */
  readonly waitingSinceMs: number | null
  /** Every worker that the gateway knows; where the endpoint is gone, those with something in flight. */
  readonly workers: readonly WorkerTraffic[]
  /** Workers that have ended and that requests wait for by name (`strict-resume`). */
  readonly resumed: readonly WorkerId[]
  /** All workers that requests wait for by name. */
  readonly named: readonly WorkerId[]
}

/** Nothing at all. */
export const NO_TRAFFIC: TrafficLoad = { waiting: 0, waitingSinceMs: null, workers: [], resumed: [], named: [] }

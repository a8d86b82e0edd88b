/**
 * How fast a line moves, measured between places that become free. Only as long as the same workers serve it: more of them
 * make it faster, and nobody knows by how much before they do.
 */
export interface QueueThroughput {
  /** The mean time between two free places, recent ones counting more. */
  readonly everyMs: number
  readonly measured: number
}

/** Nothing measured yet. */
export const NO_THROUGHPUT: QueueThroughput = { everyMs: 0, measured: 0 }

/** With fewer measurements nothing is said. */
const ENOUGH = 10
/** How much the latest measurement counts. */
const WEIGHT = 0.1
/** A request is refused only if the queue would have to move this many times faster than it does. */
const MARGIN = 2

/** The throughput after a place became free that long after the one before. */
export function throughputAfter(pace: QueueThroughput, sinceLastMs: number): QueueThroughput {
  const weight = Math.max(WEIGHT, 1 / (pace.measured + 1))
  return { everyMs: pace.everyMs + weight * (sinceLastMs - pace.everyMs), measured: pace.measured + 1 }
}

/**
 * The expected wait of a new request for a place, in milliseconds; null while unknown.
 * @param ahead how many wait already
 */
export function expectedWaitMs(pace: QueueThroughput, ahead: number): number | null {
  return pace.measured < ENOUGH ? null : pace.everyMs * (ahead + 1)
}

/** Whether a request with that maximum wait will surely get no place in time. */
export function isHopelessWait(expectedMs: number | null, patienceMs: number): boolean {
  return expectedMs !== null && expectedMs > MARGIN * patienceMs
}

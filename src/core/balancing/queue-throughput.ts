/**
 * The speed of a queue, from the times between places that become free. Valid only while the same workers serve it:
 * more workers make it faster by an unknown factor.
 */
export interface QueueThroughput {
  /** Mean time between two free places; recent ones count more. */
  readonly everyMs: number
  readonly measured: number
}

/** No measurement yet. */
export const NO_THROUGHPUT: QueueThroughput = { everyMs: 0, measured: 0 }

/** Fewest measurements for an estimate. */
const ENOUGH = 10
/** Weight of the latest measurement. */
const WEIGHT = 0.1
/** A request is refused only if the queue would have to move this many times faster than it does. */
const MARGIN = 2

/** The throughput after a place became free. @param sinceLastMs time since the previous one */
export function throughputAfter(pace: QueueThroughput, sinceLastMs: number): QueueThroughput {
  const weight = Math.max(WEIGHT, 1 / (pace.measured + 1))
  return { everyMs: pace.everyMs + weight * (sinceLastMs - pace.everyMs), measured: pace.measured + 1 }
}

/**
 * The expected wait of a new request for a place, in milliseconds; null while unknown.
 * @param ahead number of requests that wait already
 */
export function expectedWaitMs(pace: QueueThroughput, ahead: number): number | null {
  return pace.measured < ENOUGH ? null : pace.everyMs * (ahead + 1)
}

/** True if a request with this maximum wait will surely get no place in time. */
export function isHopelessWait(expectedMs: number | null, patienceMs: number): boolean {
  return expectedMs !== null && expectedMs > MARGIN * patienceMs
}

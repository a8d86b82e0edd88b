/**
 * Times at which the stop of a job is sent to its worker again. The Python SDK ignores a stop for a job that it
 * has taken and not begun, which lasts 100 ms and longer on a busy machine, and no response reports that it did.
 * Instants are of a monotonic clock, in milliseconds.
 */

/** Time after its delivery in which the SDK may not have begun a job. */
const UNBEGUN_MS = 1_000
/** Pause before the first stop of a job after its delivery, and before the second of one that may not have begun. */
const EARLY_PAUSE_MS = 250
/**
 * Pause before the second stop of a job that had begun: each stop cancels the handler again, even during its
 * cleanup.
 */
const PAUSE_MS = 2_000
/** Maximum pause; each is twice the previous one. */
const MAX_PAUSE_MS = 10_000

/** A stop of a job that was sent to the worker. */
export interface SentStop {
  readonly firstAtMs: number
  /** True if the worker may not have begun the job at the first stop. */
  readonly isEarly: boolean
  /** Time of the next stop, unless the worker has released the job. */
  readonly againAtMs: number
  readonly pauseMs: number
}

/**
 * Earliest time of the first stop of a job. A stop that comes between the creation of the job's task and the first
 * step of it ends the task without its cleanup, and the SDK lists the job for good.
 * @param deliveredAtMs as of {@link firstStop}
 */
export function firstStopDueMs(deliveredAtMs: number | null | undefined, nowMs: number): number {
  return deliveredAtMs === undefined ? 0 : (deliveredAtMs ?? nowMs) + EARLY_PAUSE_MS
}

/**
 * The first stop of a job.
 * @param deliveredAtMs instant at which the worker received the job; null while it is on its way, undefined if unknown
 */
export function firstStop(deliveredAtMs: number | null | undefined, nowMs: number): SentStop {
  const isEarly = deliveredAtMs === null || (deliveredAtMs !== undefined && nowMs - deliveredAtMs < UNBEGUN_MS)
  const pauseMs = isEarly ? EARLY_PAUSE_MS : PAUSE_MS
  return { firstAtMs: nowMs, isEarly, againAtMs: nowMs + pauseMs, pauseMs }
}

/** The stop of a job after it was sent once more. */
export function nextStop(stop: SentStop, nowMs: number): SentStop {
  const pauseMs = Math.min(MAX_PAUSE_MS, 2 * stop.pauseMs)
  return { ...stop, againAtMs: nowMs + pauseMs, pauseMs }
}

/**
 * True if a ping without the job shows that the worker has released it. A ping soon after the delivery may have
 * been sent before the worker had the job.
 */
export function showsRelease(stop: SentStop, nowMs: number): boolean {
  return !stop.isEarly || nowMs - stop.firstAtMs >= UNBEGUN_MS
}

/** Jobs that a worker runs at once, from its takes. */

/**
 * Minimum time for which a requested number of jobs counts after its last request, in ms; the maximum is twice as
 * long.
 */
export const ASKED_WINDOW_MS = 60_000

/** Numbers of jobs that a worker recently requested. */
export interface AskedConcurrency {
  readonly sinceMs: number
  /** Maximum of the present window. */
  readonly most: number
  /** Maximum of the previous window; null for the first one. */
  readonly previousMost: number | null
}

/**
 * The requested numbers after one more take.
 * @param asked the jobs of this take and those that the worker already holds
 */
export function afterAsking(previous: AskedConcurrency | null, asked: number, nowMs: number): AskedConcurrency {
  if (previous === null) return { sinceMs: nowMs, most: asked, previousMost: null }
  if (nowMs - previous.sinceMs < ASKED_WINDOW_MS) return { ...previous, most: Math.max(previous.most, asked) }
  return { sinceMs: nowMs, most: asked, previousMost: previous.most }
}

/**
 * Concurrency of a worker: the maximum that it recently requested. A number from before this observation is valid
 * until a whole window has passed.
 */
export function concurrencyAsked({ most, previousMost }: AskedConcurrency, noted: number): number {
  return Math.max(most, previousMost ?? noted)
}

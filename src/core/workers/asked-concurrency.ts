/** How many jobs a worker runs at once, as its takes show. */

/** How long a number of jobs counts after the worker has asked for it last, at least, in ms; at most twice as long. */
export const ASKED_WINDOW_MS = 60_000

/** What a worker has asked for lately. */
export interface AskedConcurrency {
  readonly sinceMs: number
  /** The most within the present window. */
  readonly most: number
  /** The most within the window before; null for the first one. */
  readonly before: number | null
}

/**
 * What was asked for after one more take.
 * @param asked the jobs of this take and those that the worker holds besides
 */
export function afterAsking(known: AskedConcurrency | null, asked: number, nowMs: number): AskedConcurrency {
  if (known === null) return { sinceMs: nowMs, most: asked, before: null }
  if (nowMs - known.sinceMs < ASKED_WINDOW_MS) return { ...known, most: Math.max(known.most, asked) }
  return { sinceMs: nowMs, most: asked, before: known.most }
}

/**
 * The concurrency of a worker: the most that it asked for lately. A number that was noted before this was watched holds until a whole window has
 * passed.
 */
export function concurrencyAsked({ most, before }: AskedConcurrency, noted: number): number {
  return Math.max(most, before ?? noted)
}

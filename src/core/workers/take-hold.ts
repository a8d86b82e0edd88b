/** How long a take is held while there is no job for its worker. */

import { HOLD_MS } from './worker-liveness.ts'

/** How long a take is held whose end the worker may wait for, in ms. */
export const SHORT_HOLD_MS = 1_000

/** What is known of a worker as its take comes. */
export interface HoldFacts {
  /** Whether the take says that the worker works on a job. */
  readonly isBusy: boolean
  /** Whether the worker has yet to let go of a job that was stopped: its next take may say that it has. */
  readonly isStopping: boolean
  /** Whether the worker runs several jobs at once, or sends results while a take is open. */
  readonly isConcurrent: boolean
}

/**
 * How long a take is held without a job, in ms. A worker that works on a job and was never seen to run several may send
 * its result only when the take has ended.
 */
export function takeHoldMs({ isBusy, isStopping, isConcurrent }: HoldFacts): number {
  return isBusy && (isStopping || !isConcurrent) ? SHORT_HOLD_MS : HOLD_MS
}

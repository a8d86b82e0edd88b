/** The maximum wait of a take without a job. */

import { HOLD_MS } from './worker-liveness.ts'

/** Maximum wait of a take whose end may delay the result of a running job, in ms. */
export const SHORT_HOLD_MS = 1_000

/** The state of a worker when its take arrives. */
export interface HoldFacts {
  /** True if the take reports a running job. */
  readonly isBusy: boolean
  /** True until the worker reports the end of a stopped job, which its next take may do. */
  readonly isStopping: boolean
  /** True for a worker that runs several jobs at the same time, or sends results while a take is open. */
  readonly isConcurrent: boolean
}

/**
 * Maximum wait of a take without a job, in ms. A worker with a running job that never ran several may send
 * its result only after the take has ended.
 */
export function takeHoldMs({ isBusy, isStopping, isConcurrent }: HoldFacts): number {
  return isBusy && (isStopping || !isConcurrent) ? SHORT_HOLD_MS : HOLD_MS
}

/** Choice between the two ways in which an idle worker leaves its card for a waiting one: a suspend, or its end. */
import { type CopyRates, roundTripMs } from '../hardware/copy-times.ts'

/** The copies of GPU memory that this machine can make. */
export interface Copying {
  readonly rates: CopyRates
  /** Memory of the machine that further copies may take, without the end of a suspended worker, in MiB. */
  readonly roomMb: number
}

/**
 * Reason why a worker that could be suspended ends: its next start is faster than the copy of its memory and the copy
 * back, or another suspended worker would have to end for its copy.
 */
export type EndReason = 'start_is_faster' | 'no_copy_memory'

/** The facts about a worker that decide; see `Occupant`. */
interface LeavingWorker {
  readonly copyMb: number | null
  readonly startMs: number | null
}

/** Reason why an idle worker ends to make room, although it could be suspended; null if it is suspended. */
export function whyEnds({ copyMb, startMs }: LeavingWorker, { rates, roomMb }: Copying): EndReason | null {
  if (copyMb === null) return null
  if (copyMb > roomMb) return 'no_copy_memory'
  return startMs !== null && startMs < roundTripMs(copyMb, rates) ? 'start_is_faster' : null
}

/** A reason as a clause. */
export const END_REASONS: Readonly<Record<EndReason, string>> = {
  start_is_faster: 'since its next start is faster than a copy of its GPU memory and back',
  no_copy_memory: 'since the memory for suspended workers has no room for a copy of its GPU memory',
}

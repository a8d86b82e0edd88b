import type { EndpointId } from '../../core/ids.ts'
import type { AttemptTimes, TimesBlock } from '../../core/jobs/attempt-times.ts'

/** Times of attempts of an endpoint that are not stored yet, in the order of their ends. */
export interface NewTimes {
  readonly endpointId: EndpointId
  readonly times: readonly AttemptTimes[]
}

/** Times of attempts, see core/jobs/attempt-times.ts, in blocks. */
export interface AttemptTimesStore {
  /**
   * Adds times behind the stored ones, and removes the oldest blocks past the limits. Those of an endpoint that
   * is gone are dropped.
   */
  add(added: readonly NewTimes[]): Promise<void>
  /**
   * Blocks of an endpoint that begin before `beforeMs` and end at `fromMs` or later, newest first; at most `limit`.
   */
  read(endpointId: EndpointId, fromMs: number, beforeMs: number, limit: number): Promise<TimesBlock[]>
  /** Removes blocks that ended before the instant, at most `limit`. @returns their number */
  removeOld(beforeMs: number, limit: number): Promise<number>
}

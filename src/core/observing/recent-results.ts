/** Recent results of the requests of an endpoint, for lists of many endpoints: fewer numbers than metrics have. */
import type { MetricBucket, MetricResult } from './metric-bucket.ts'

/** Requests that ended with any result, and those of them that were cancelled or failed. */
export interface ResultCounts {
  readonly ended: number
  readonly failed: number
  readonly canceled: number
}

/** Requests of an endpoint in the last hour. */
export interface RequestRate {
  /** Requests that ended per minute, averaged over the last five. */
  readonly perMinute: number
  /**
   * Part of the last hour's requests that failed, timed out or expired, from 0 to 1; null if only cancelled ones
   * ended.
   */
  readonly errorShare: number | null
  /** The same of the last {@link LATE_MINUTES} minutes; null if none of them ended then. */
  readonly recentErrorShare: number | null
  /** Requests that ended in each {@link POINT_MINUTES} of the last hour, oldest first; the last one is not over. */
  readonly points: readonly number[]
}

const MINUTE_MS = 60_000
/** Minutes of the last hour, including the present one. */
export const RECENT_MINUTES = 60
/** Minutes of a point of {@link RequestRate}. */
export const POINT_MINUTES = 2
/** Minutes of the recent share of errors, which shows if the share of the hour rises. */
const LATE_MINUTES = 10
/** Minutes over which the rate is averaged. */
const RATE_MINUTES = 5

const FAILED: ReadonlySet<MetricResult> = new Set(['failed', 'timedOut', 'expired'])

const FAILURE: ResultCounts = { ended: 1, failed: 1, canceled: 0 }
const CANCELLATION: ResultCounts = { ended: 1, failed: 0, canceled: 1 }
const SUCCESS: ResultCounts = { ended: 1, failed: 0, canceled: 0 }

/** One request with this result. */
export function oneResult(result: MetricResult): ResultCounts {
  return FAILED.has(result) ? FAILURE : result === 'cancelled' ? CANCELLATION : SUCCESS
}

/** The requests of a bucket. */
export function resultsFromBucket({ results }: MetricBucket): ResultCounts {
  const { completed, failed, timedOut, cancelled, expired } = results
  const wrong = failed + timedOut + expired
  return { ended: completed + wrong + cancelled, failed: wrong, canceled: cancelled }
}

/** The sum of two counts. */
export function addResults(a: ResultCounts, b: ResultCounts): ResultCounts {
  return { ended: a.ended + b.ended, failed: a.failed + b.failed, canceled: a.canceled + b.canceled }
}

/**
 * The rate of an endpoint.
 * @param minutes its {@link RECENT_MINUTES}, oldest first; undefined for a minute without an ended request
 */
export function requestRate(minutes: readonly (ResultCounts | undefined)[], nowMs: number): RequestRate {
  const points: number[] = []
  for (const [index, counts] of minutes.entries()) {
    if (index % POINT_MINUTES === 0) points.push(0)
    points[points.length - 1]! += counts?.ended ?? 0
  }
  const lately = minutes.slice(-RATE_MINUTES).reduce((sum, counts) => sum + (counts?.ended ?? 0), 0)
  const overMinutes = RATE_MINUTES - 1 + (nowMs % MINUTE_MS) / MINUTE_MS
  return {
    perMinute: Math.round((lately / overMinutes) * 100) / 100,
    errorShare: errorShare(minutes),
    recentErrorShare: errorShare(minutes.slice(-LATE_MINUTES)),
    points,
  }
}

/** Part of the requests that failed, without the cancelled ones; null if none of the others ended. */
function errorShare(minutes: readonly (ResultCounts | undefined)[]): number | null {
  const known = minutes.filter(counts => counts !== undefined)
  const ended = known.reduce((sum, counts) => sum + counts.ended - counts.canceled, 0)
  const failed = known.reduce((sum, counts) => sum + counts.failed, 0)
  return ended === 0 ? null : Math.round((failed / ended) * 10_000) / 10_000
}

import { type FieldProblem, pairProblem } from '../field-problem.ts'
import { addBucket, addReleases, emptyBucket, type MetricBucket, type ReleaseCounts } from './metric-bucket.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Spans of the stored buckets, each with its length and its retention, in milliseconds. */
export const METRIC_SPANS = {
  minute: { lengthMs: MINUTE_MS, keptMs: 7 * DAY_MS },
  hour: { lengthMs: HOUR_MS, keptMs: 90 * DAY_MS },
} as const
/** One of {@link METRIC_SPANS}. */
export type MetricSpan = keyof typeof METRIC_SPANS

/** Intervals of metrics: the span of their buckets, their length, and the default range of a read. */
export const METRIC_INTERVALS = {
  '1m': { span: 'minute', lengthMs: MINUTE_MS, standardMs: HOUR_MS },
  '1h': { span: 'hour', lengthMs: HOUR_MS, standardMs: DAY_MS },
  '1d': { span: 'hour', lengthMs: DAY_MS, standardMs: 30 * DAY_MS },
} as const
/** A name of {@link METRIC_INTERVALS}. */
export type MetricInterval = keyof typeof METRIC_INTERVALS

/** Limit of intervals of one read. */
export const MAX_INTERVALS = 1_500

/** The requested metrics. Times are epoch milliseconds, undefined if they were left out. */
export interface MetricRequest {
  readonly interval: MetricInterval
  readonly fromMs: number | undefined
  readonly toMs: number | undefined
}

/** The bounds of a read: `fromMs` is the beginning of an interval. */
export interface MetricRange {
  readonly interval: MetricInterval
  readonly fromMs: number
  readonly toMs: number
}

/** One interval. */
export interface MetricPoint {
  readonly atMs: number
  readonly bucket: MetricBucket
}

/** The range of a request, or its problems. */
export function metricRange(
  { interval, fromMs, toMs }: MetricRequest,
  nowMs: number,
): MetricRange | { readonly problems: readonly FieldProblem[] } {
  const { lengthMs, standardMs } = METRIC_INTERVALS[interval]
  const endMs = toMs ?? nowMs
  const startMs = spanStart(fromMs ?? endMs - standardMs, lengthMs)
  if (startMs >= endMs) return { problems: [pairProblem('fromMs', 'toMs', 'must be before {other}')] }
  if (endMs - startMs > MAX_INTERVALS * lengthMs) {
    const why = `must be at most ${MAX_INTERVALS} intervals of ${interval} before {other}; take a longer interval`
    return { problems: [pairProblem('fromMs', 'toMs', why)] }
  }
  return { interval, fromMs: startMs, toMs: endMs }
}

/** The beginning of the span that contains a time. */
export function spanStart(atMs: number, lengthMs: number): number {
  return Math.floor(atMs / lengthMs) * lengthMs
}

/** Limit of releases of one read, the newest. */
const MAX_RELEASES = 50

/** The counts of each release in some buckets, by version, the newest first; at most {@link MAX_RELEASES}. */
export function releasesFromBuckets(buckets: readonly MetricPoint[]): (readonly [number, ReleaseCounts])[] {
  const sums = new Map<number, ReleaseCounts>()
  for (const { bucket } of buckets) addReleases(sums, bucket.releases)
  return [...sums].sort(([a], [b]) => b - a).slice(0, MAX_RELEASES)
}

/** Buckets of a span as points of an interval, in order, without empty ones. */
export function pointsFromBuckets(buckets: readonly MetricPoint[], interval: MetricInterval): MetricPoint[] {
  const { lengthMs } = METRIC_INTERVALS[interval]
  const points = new Map<number, MetricBucket>()
  for (const { atMs, bucket } of buckets) {
    const startMs = spanStart(atMs, lengthMs)
    const sum = points.get(startMs) ?? emptyBucket()
    addBucket(sum, bucket)
    points.set(startMs, sum)
  }
  return [...points].sort(([a], [b]) => a - b).map(([atMs, bucket]) => ({ atMs, bucket }))
}

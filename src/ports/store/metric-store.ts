import type { JobUsage } from '../../core/billing/usage.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { MetricBucket, MetricQueue } from '../../core/observing/metric-bucket.ts'
import type { MetricPoint, MetricSpan } from '../../core/observing/metric-series.ts'
import type { ResultCounts } from '../../core/observing/recent-results.ts'

/** Counts of an endpoint in one minute that are not stored yet. */
export interface MetricCount {
  readonly endpointId: EndpointId
  readonly minuteMs: number
  readonly bucket: MetricBucket
  /**
   * Usage of the requests of a load-balancing endpoint in that minute: they are in no other count, unlike jobs, whose
   * own transactions count them. Omitted or null without requests.
   */
  readonly requests?: JobUsage | null
}

/** Results of requests of an endpoint in one minute. */
export interface MinuteResults {
  readonly endpointId: EndpointId
  readonly minuteMs: number
  readonly results: ResultCounts
}

/** The present queue of an endpoint. */
export interface EndpointQueue extends Readonly<MetricQueue> {
  readonly endpointId: EndpointId
}

/** Metrics of endpoints over time, in buckets of a minute and of an hour. */
export interface MetricStore {
  /**
   * Adds counts to the buckets of their minute and their hour, and requests to the counters and the usage of their
   * endpoint, in one transaction. Those of an endpoint that is gone are dropped.
   */
  add(counts: readonly MetricCount[]): Promise<void>
  /** The buckets of an endpoint that begin from `fromMs` on and before `toMs`, in order; at most `limit`. */
  read(endpointId: EndpointId, span: MetricSpan, fromMs: number, toMs: number, limit: number): Promise<MetricPoint[]>
  /**
   * The minutes of all endpoints in which requests ended, from `fromMs` on and before `toMs`, the newest first; of at
   * most `limit` buckets.
   */
  results(fromMs: number, toMs: number, limit: number): Promise<MinuteResults[]>
  /** The queues in which jobs wait or are in progress, the longest first; at most `limit`. */
  queues(limit: number): Promise<EndpointQueue[]>
  /** Removes buckets that began before the instant, at most `limit`. @returns their number */
  removeOld(span: MetricSpan, beforeMs: number, limit: number): Promise<number>
}

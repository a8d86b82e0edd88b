import type { JobUsage } from '../../../core/billing/usage.ts'
import type { EndpointId, OwnerId } from '../../../core/ids.ts'
import { addBucket, bucketText, readBucket } from '../../../core/observing/metric-bucket.ts'
import { METRIC_SPANS, type MetricPoint, type MetricSpan, spanStart } from '../../../core/observing/metric-series.ts'
import { resultsFromBucket } from '../../../core/observing/recent-results.ts'
import type { EndpointQueue, MetricCount, MetricStore, MinuteResults } from '../../../ports/store/metric-store.ts'
import { addToCounters } from '../../tables/endpoints.ts'
import { countJobUsage } from '../accounts/usage.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Statements on the metrics of endpoints over time. */

/** $1 endpoint, $2 length of the span, $3 its beginning. */
export const findBucket = `
  SELECT counts FROM metric_buckets WHERE endpoint_id = $1 AND span_ms = $2 AND at_ms = $3 {{lock}}`

/** $1 endpoint, $2 length of the span, $3 its beginning, $4 the counts. Nothing when the endpoint is gone. */
export const putBucket = `
  INSERT INTO metric_buckets (endpoint_id, span_ms, at_ms, owner, counts)
  SELECT id, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}), owner, $4 FROM endpoints WHERE id = $1
  ON CONFLICT (endpoint_id, span_ms, at_ms) DO UPDATE SET counts = excluded.counts`

/** $1 endpoint. */
export const findOwner = 'SELECT owner FROM endpoints WHERE id = $1'

/** $1 endpoint, $2 length of the spans, $3 and $4 bounds, $5 limit. */
export const readBuckets = `
  SELECT at_ms, counts FROM metric_buckets
  WHERE endpoint_id = $1 AND span_ms = $2 AND at_ms >= $3 AND at_ms < $4 ORDER BY at_ms LIMIT $5`

/** $1 length of the spans, $2 and $3 bounds, $4 limit. Of all endpoints, the newest first. */
export const recentBuckets = `
  SELECT endpoint_id, at_ms, counts FROM metric_buckets
  WHERE span_ms = $1 AND at_ms >= $2 AND at_ms < $3 ORDER BY at_ms DESC LIMIT $4`

/** $1 limit. The table has a few rows for each endpoint, and the row of one connection may be below zero. */
export const longestQueues = `
  SELECT endpoint_id, CAST(SUM(queued + queued_low_priority) AS {{integer}}) AS waiting,
    CAST(SUM(in_progress) AS {{integer}}) AS in_progress
  FROM queue_counts GROUP BY endpoint_id
  HAVING SUM(queued + queued_low_priority + in_progress) > 0
  ORDER BY SUM(queued + queued_low_priority + in_progress) DESC, endpoint_id LIMIT $1`

/** $1 length of the spans, $2 the instant before which they began, $3 limit. */
export const deleteOldBuckets = `
  DELETE FROM metric_buckets WHERE (endpoint_id, span_ms, at_ms) IN (
    SELECT endpoint_id, span_ms, at_ms FROM metric_buckets WHERE span_ms = $1 AND at_ms < $2 ORDER BY at_ms LIMIT $3 {{skip_locked}})
  RETURNING at_ms`

/** $1 endpoint, $2 limit. */
export const deleteBucketsLeft = `
  DELETE FROM metric_buckets WHERE endpoint_id = $1 AND (span_ms, at_ms) IN (
    SELECT span_ms, at_ms FROM metric_buckets WHERE endpoint_id = $1 ORDER BY span_ms, at_ms LIMIT $2 {{skip_locked}})
  RETURNING at_ms`

/** A row. */
interface BucketRow {
  readonly at_ms: number
  readonly counts: string
}

/** Metrics of endpoints over time. */
export const metrics = {
  add: write(function* (counts: readonly MetricCount[]): Steps<void> {
    for (const count of counts) {
      for (const { lengthMs } of Object.values(METRIC_SPANS)) yield* addTo(count, lengthMs)
      if (count.requests != null) yield* addRequests(count, count.requests)
    }
  }),

  read: read(function* (
    endpointId: EndpointId,
    span: MetricSpan,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Steps<MetricPoint[]> {
    const params = [endpointId, METRIC_SPANS[span].lengthMs, fromMs, toMs, limit]
    const rows = yield* query<BucketRow>(readBuckets, params)
    return rows.map(row => ({ atMs: row.at_ms, bucket: readBucket(row.counts) }))
  }),

  results: read(function* (fromMs: number, toMs: number, limit: number): Steps<MinuteResults[]> {
    const params = [METRIC_SPANS.minute.lengthMs, fromMs, toMs, limit]
    const rows = yield* query<BucketRow & { endpoint_id: EndpointId }>(recentBuckets, params)
    const all = rows.map(row => ({
      endpointId: row.endpoint_id,
      minuteMs: row.at_ms,
      results: resultsFromBucket(readBucket(row.counts)),
    }))
    return all.filter(({ results }) => results.ended > 0)
  }),

  queues: read(function* (limit: number): Steps<EndpointQueue[]> {
    const rows = yield* query<{ endpoint_id: EndpointId; waiting: number; in_progress: number }>(longestQueues, [limit])
    return rows.map(row => ({ endpointId: row.endpoint_id, waiting: row.waiting, inProgress: row.in_progress }))
  }),

  removeOld: write(function* (span: MetricSpan, beforeMs: number, limit: number): Steps<number> {
    return (yield* query(deleteOldBuckets, [METRIC_SPANS[span].lengthMs, beforeMs, limit])).length
  }),
} satisfies PortOperations<MetricStore>

function* addTo({ endpointId, minuteMs, bucket }: MetricCount, lengthMs: number): Steps<void> {
  const place = [endpointId, lengthMs, spanStart(minuteMs, lengthMs)]
  const previous = yield* queryOne<BucketRow>(findBucket, place)
  const sum = previous === null ? bucket : readBucket(previous.counts)
  if (previous !== null) addBucket(sum, bucket)
  yield* perform(putBucket, [...place, bucketText(sum)])
}

function* addRequests({ endpointId, minuteMs }: MetricCount, usage: JobUsage): Steps<void> {
  const row = yield* queryOne<{ owner: OwnerId }>(findOwner, [endpointId])
  if (row === null) return
  yield* perform(addToCounters, [endpointId, usage.completed, usage.failed, 0])
  yield* countJobUsage([{ job: { endpointId, owner: row.owner }, usage }], minuteMs)
}

/** Removes buckets of a deleted endpoint. @returns their number */
export function* removeBuckets(endpointId: EndpointId, limit: number): Steps<number> {
  return (yield* query(deleteBucketsLeft, [endpointId, limit])).length
}

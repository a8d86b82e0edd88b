import type { EndpointId } from '../../../core/ids.ts'
import { addBucket, bucketText, readBucket } from '../../../core/observing/metric-bucket.ts'
import { METRIC_SPANS, type MetricPoint, type MetricSpan, startOf } from '../../../core/observing/metric-series.ts'
import { resultsOf } from '../../../core/observing/recent-results.ts'
import type { MetricCount, MetricStore, MinuteResults } from '../../../ports/store/metric-store.ts'
import * as sql from '../../tables/metrics.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Metrics of endpoints over time. */
export const metrics = {
  add: write(function* (counts: readonly MetricCount[]): Steps<void> {
    for (const count of counts) {
      for (const { lengthMs } of Object.values(METRIC_SPANS)) yield* addTo(count, lengthMs)
    }
  }),

  read: read(function* (
    endpointId: EndpointId,
    span: MetricSpan,
    fromMs: number,
    toMs: number,
    limit: number,
  ): Steps<MetricPoint[]> {
    const asked = [endpointId, METRIC_SPANS[span].lengthMs, fromMs, toMs, limit]
    const rows = yield* query<sql.BucketRow>(sql.readBuckets, asked)
    return rows.map(row => ({ atMs: row.at_ms, bucket: readBucket(row.counts) }))
  }),

  results: read(function* (fromMs: number, toMs: number, limit: number): Steps<MinuteResults[]> {
    const asked = [METRIC_SPANS.minute.lengthMs, fromMs, toMs, limit]
    const rows = yield* query<sql.BucketRow & { endpoint_id: EndpointId }>(sql.recentBuckets, asked)
    const all = rows.map(row => ({
      endpointId: row.endpoint_id,
      minuteMs: row.at_ms,
      results: resultsOf(readBucket(row.counts)),
    }))
    return all.filter(({ results }) => results.ended > 0)
  }),

  removeOld: write(function* (span: MetricSpan, beforeMs: number, limit: number): Steps<number> {
    return (yield* query(sql.deleteOldBuckets, [METRIC_SPANS[span].lengthMs, beforeMs, limit])).length
  }),
} satisfies OperationsOf<MetricStore>

function* addTo({ endpointId, minuteMs, bucket }: MetricCount, lengthMs: number): Steps<void> {
  const place = [endpointId, lengthMs, startOf(minuteMs, lengthMs)]
  const before = yield* queryOne<sql.BucketRow>(sql.findBucket, place)
  const sum = before === null ? bucket : readBucket(before.counts)
  if (before !== null) addBucket(sum, bucket)
  yield* perform(sql.putBucket, [...place, bucketText(sum)])
}

/** Removes buckets of a deleted endpoint. Returns how many. */
export function* removeBuckets(endpointId: EndpointId, limit: number): Steps<number> {
  return (yield* query(sql.deleteBucketsLeft, [endpointId, limit])).length
}

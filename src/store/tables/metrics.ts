/** Statements on the metrics of endpoints over time. */

/** $1 endpoint, $2 length of the span, $3 its beginning. */
export const findBucket = `
  SELECT counts FROM metric_buckets WHERE endpoint_id = $1 AND span_ms = $2 AND at_ms = $3 {{lock}}`

/** $1 endpoint, $2 length of the span, $3 its beginning, $4 the counts. Nothing when the endpoint is gone. */
export const putBucket = `
  INSERT INTO metric_buckets (endpoint_id, span_ms, at_ms, owner, counts)
  SELECT id, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}), owner, $4 FROM endpoints WHERE id = $1
  ON CONFLICT (endpoint_id, span_ms, at_ms) DO UPDATE SET counts = excluded.counts`

/** $1 endpoint, $2 length of the spans, $3 and $4 bounds, $5 how many. */
export const readBuckets = `
  SELECT at_ms, counts FROM metric_buckets
  WHERE endpoint_id = $1 AND span_ms = $2 AND at_ms >= $3 AND at_ms < $4 ORDER BY at_ms LIMIT $5`

/** $1 length of the spans, $2 and $3 bounds, $4 how many. Of all endpoints, the newest first. */
export const recentBuckets = `
  SELECT endpoint_id, at_ms, counts FROM metric_buckets
  WHERE span_ms = $1 AND at_ms >= $2 AND at_ms < $3 ORDER BY at_ms DESC LIMIT $4`

/** $1 length of the spans, $2 the instant before which they began, $3 how many. */
export const deleteOldBuckets = `
  DELETE FROM metric_buckets WHERE (endpoint_id, span_ms, at_ms) IN (
    SELECT endpoint_id, span_ms, at_ms FROM metric_buckets WHERE span_ms = $1 AND at_ms < $2 ORDER BY at_ms LIMIT $3 {{skip_locked}})
  RETURNING at_ms`

/** $1 endpoint, $2 how many. */
export const deleteBucketsLeft = `
  DELETE FROM metric_buckets WHERE endpoint_id = $1 AND (span_ms, at_ms) IN (
    SELECT span_ms, at_ms FROM metric_buckets WHERE endpoint_id = $1 ORDER BY span_ms, at_ms LIMIT $2 {{skip_locked}})
  RETURNING at_ms`

/** A row. */
export interface BucketRow {
  readonly at_ms: number
  readonly counts: string
}

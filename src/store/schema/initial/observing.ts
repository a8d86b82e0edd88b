/** Tables of metrics and of times of attempts. */

/**
 * Metrics of endpoints over time: one row for an endpoint and a span in which something was counted. `counts` is a
 * text of core/observing/metric-bucket.
 */
export const metricBuckets = [
  `CREATE TABLE metric_buckets (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id),
    span_ms {{integer}} NOT NULL,
    at_ms {{integer}} NOT NULL,
    owner TEXT NOT NULL,
    counts TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, span_ms, at_ms)
  ) {{strict}}`,
  'CREATE INDEX metric_buckets_by_age ON metric_buckets (span_ms, at_ms)',
]

/**
 * Times of attempts that ended: one row for a block of them. It begins with the end of its first attempt and ends
 * with that of its last; `packed` is a text of core/jobs/attempt-times with the times of so many `attempts`.
 */
export const attemptTimes = [
  `CREATE TABLE attempt_times (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id),
    at_ms {{integer}} NOT NULL,
    to_ms {{integer}} NOT NULL,
    owner TEXT NOT NULL,
    attempts {{integer}} NOT NULL,
    packed TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, at_ms)
  ) {{strict}}`,
  'CREATE INDEX attempt_times_by_age ON attempt_times (to_ms)',
  'CREATE INDEX attempt_times_by_owner ON attempt_times (owner, to_ms)',
]

/** Metrics of endpoints over time: one row for an endpoint and a span in which something was counted. `counts` is a text of core/observing/metric-bucket. */
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

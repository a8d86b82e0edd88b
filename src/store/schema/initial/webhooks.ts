/** Tables of webhooks, which outlive their job and its endpoint. */

/**
 * Only deliveries that wait for a try are due and have their payload. Receivers have numbers: see
 * core/jobs/webhook.ts.
 */
export const webhookDeliveries = [
  `CREATE TABLE webhook_deliveries (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    seq {{integer}} NOT NULL,
    job_status TEXT NOT NULL CHECK (job_status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')),
    state TEXT NOT NULL CHECK (state IN ('PENDING', 'DELIVERED', 'FAILED')),
    url TEXT NOT NULL,
    receiver {{integer}} NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    due_at_ms {{integer}},
    over_at_ms {{integer}},
    payload TEXT,
    traceparent TEXT,
    UNIQUE (job_id, seq),
    CHECK ((state = 'PENDING') = (due_at_ms IS NOT NULL)),
    CHECK (state = 'FAILED' OR (state = 'PENDING') = (payload IS NOT NULL)),
    CHECK ((state = 'PENDING') = (over_at_ms IS NULL))
  ) {{strict}}`,
  `CREATE INDEX webhook_deliveries_of_account ON webhook_deliveries (owner, due_at_ms, id) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_of_receiver ON webhook_deliveries (owner, receiver, due_at_ms, id) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint_id) WHERE state = 'PENDING'`,
  'CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (endpoint_id, created_at_ms, id)',
  'CREATE INDEX webhook_deliveries_by_account_age ON webhook_deliveries (owner, created_at_ms, id)',
  `CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (due_at_ms) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (over_at_ms) WHERE state <> 'PENDING'`,
]

export const webhookTries = `CREATE TABLE webhook_tries (
  delivery_id TEXT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
  number {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  at_ms {{integer}} NOT NULL,
  took_ms {{integer}} NOT NULL,
  status {{integer}},
  error TEXT,
  PRIMARY KEY (delivery_id, number),
  CHECK ((status IS NULL) = (error IS NOT NULL))
) {{strict}}`

/** Keys that sign deliveries. A key outlives its endpoint for as long as a delivery waits. */
export const webhookKeys = `CREATE TABLE webhook_keys (
  endpoint_id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  sealed TEXT NOT NULL
) {{strict}}`

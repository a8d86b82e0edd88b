/** Tables of alerts and their receivers. */

/** Receivers of the alerts of an account, with their sealed addresses. */
export const alertReceivers = [
  `CREATE TABLE alert_receivers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('webhook', 'slack', 'email')),
    shown TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    sent_at_ms {{integer}},
    problem TEXT
  ) {{strict}}`,
  'CREATE INDEX alert_receivers_by_owner ON alert_receivers (owner, created_at_ms, id)',
]

/** Endpoints that need attention, one row each; raised once somebody was told. */
export const alerts = `CREATE TABLE alerts (
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  name TEXT NOT NULL,
  cause TEXT NOT NULL,
  text TEXT NOT NULL,
  first_seen_at_ms {{integer}} NOT NULL,
  last_seen_at_ms {{integer}} NOT NULL,
  raised_at_ms {{integer}},
  PRIMARY KEY (owner, endpoint_id)
) {{strict}}`

/** Messages that their receivers have not taken. */
export const alertMessages = [
  `CREATE TABLE alert_messages (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    receiver_id TEXT NOT NULL REFERENCES alert_receivers (id) ON DELETE CASCADE,
    content TEXT NOT NULL,
    attempts {{integer}} NOT NULL,
    due_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX alert_messages_due ON alert_messages (due_at_ms, id)',
  'CREATE INDEX alert_messages_by_receiver ON alert_messages (receiver_id, due_at_ms, id)',
]

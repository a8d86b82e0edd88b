import type { Migration } from './migration.ts'

/** `position` is the batch's own place in the line of its endpoint, where it stands as one job. */
const batches = `CREATE TABLE batches (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('DRAFT', 'FINALIZED', 'CANCELLED')),
  name TEXT,
  webhook TEXT,
  total {{integer}} NOT NULL,
  completed {{integer}} NOT NULL CHECK (completed >= 0),
  failed {{integer}} NOT NULL CHECK (failed >= 0),
  last_seq {{integer}} NOT NULL,
  position {{integer}} NOT NULL,
  turn_at_ms {{integer}} NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  finalized_at_ms {{integer}},
  finished_at_ms {{integer}},
  expires_at_ms {{integer}},
  CHECK (completed + failed <= total),
  CHECK (status <> 'DRAFT' OR (finalized_at_ms IS NULL AND finished_at_ms IS NULL)),
  CHECK (status <> 'FINALIZED' OR finalized_at_ms IS NOT NULL),
  CHECK ((expires_at_ms IS NULL) = (finalized_at_ms IS NOT NULL AND finished_at_ms IS NULL))
) {{strict}}`

/** Requests that are no jobs yet: those of drafts, and for a moment those of a batch that was just finalized. */
const requests = `CREATE TABLE batch_requests (
  batch_id TEXT NOT NULL REFERENCES batches (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  execution_timeout_ms {{integer}} NOT NULL,
  ttl_ms {{integer}} NOT NULL,
  low_priority {{integer}} NOT NULL CHECK (low_priority IN (0, 1)),
  bytes {{integer}} NOT NULL,
  webhook TEXT,
  s3_config TEXT,
  policy TEXT,
  input TEXT NOT NULL,
  PRIMARY KEY (batch_id, seq)
) {{strict}}`

/** Batches, the batch and the place in it of each job, and the line that a job waits in: '' or that of its batch. */
export const batching: Migration = {
  version: 2,
  name: 'batches',
  statements: [
    batches,
    requests,
    'ALTER TABLE jobs ADD COLUMN batch_id TEXT',
    'ALTER TABLE jobs ADD COLUMN batch_seq {{integer}}',
    `ALTER TABLE jobs ADD COLUMN line TEXT NOT NULL DEFAULT ''`,
    'CREATE INDEX jobs_in_lines ON jobs (endpoint_id, status, line, low_priority, position, id)',
    'DROP INDEX jobs_in_line',
    'CREATE INDEX jobs_of_batch ON jobs (batch_id, batch_seq) WHERE batch_id IS NOT NULL',
    `CREATE INDEX jobs_running_of_batch ON jobs (batch_id) WHERE batch_id IS NOT NULL AND status = 'IN_PROGRESS'`,
    'CREATE INDEX batches_of_endpoint ON batches (endpoint_id, created_at_ms, id)',
    'CREATE INDEX batches_unfinished ON batches (endpoint_id, position, id) WHERE finished_at_ms IS NULL',
    'CREATE INDEX batches_by_expiry ON batches (expires_at_ms) WHERE expires_at_ms IS NOT NULL',
  ],
}

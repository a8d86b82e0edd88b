import type { Migration } from './migration.ts'

const templates = `CREATE TABLE templates (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  listed {{integer}} NOT NULL CHECK (listed IN (0, 1)),
  created_at_ms {{integer}} NOT NULL,
  config TEXT NOT NULL,
  UNIQUE (owner, name)
) {{strict}}`

const endpoints = `CREATE TABLE endpoints (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  template_id TEXT NOT NULL REFERENCES templates (id),
  version {{integer}} NOT NULL,
  workers_min {{integer}} NOT NULL,
  workers_max {{integer}} NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  config TEXT NOT NULL
) {{strict}}`

const counters = `CREATE TABLE endpoint_counters (
  endpoint_id TEXT PRIMARY KEY REFERENCES endpoints (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  completed {{integer}} NOT NULL,
  failed {{integer}} NOT NULL,
  retried {{integer}} NOT NULL,
  average_execution_ms {{real}}
) {{strict}}`

/** The checks repeat the life of a job as core/job has it, so that no statement can leave it by mistake. */
const jobs = `CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('run', 'runsync')),
  status TEXT NOT NULL
    CHECK (status IN ('IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')),
  low_priority {{integer}} NOT NULL CHECK (low_priority IN (0, 1)),
  position {{integer}} NOT NULL,
  execution_timeout_ms {{integer}} NOT NULL,
  ttl_ms {{integer}} NOT NULL,
  retention_ms {{integer}} NOT NULL,
  queued_at_ms {{integer}} NOT NULL,
  started_at_ms {{integer}},
  deadline_ms {{integer}},
  finished_at_ms {{integer}},
  expires_at_ms {{integer}} NOT NULL,
  attempt {{integer}} NOT NULL CHECK (attempt >= 0),
  lost_attempts {{integer}} NOT NULL,
  streamed_seq {{integer}} NOT NULL,
  worker_id TEXT,
  webhook TEXT,
  s3_config TEXT,
  policy TEXT,
  warning TEXT,
  error TEXT,
  progress TEXT,
  input TEXT NOT NULL,
  output TEXT,
  CHECK ((status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')) = (finished_at_ms IS NOT NULL)),
  CHECK (status <> 'IN_QUEUE' OR started_at_ms IS NULL),
  CHECK (status <> 'IN_PROGRESS' OR (started_at_ms IS NOT NULL AND worker_id IS NOT NULL AND attempt > 0)),
  CHECK ((started_at_ms IS NULL) = (deadline_ms IS NULL)),
  CHECK (lost_attempts BETWEEN 0 AND attempt),
  CHECK (progress IS NULL OR status = 'IN_PROGRESS'),
  CHECK (output IS NULL OR status IN ('COMPLETED', 'FAILED')),
  CHECK (error IS NULL OR status IN ('COMPLETED', 'FAILED', 'TIMED_OUT'))
) {{strict}}`

const chunks = `CREATE TABLE chunks (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  total_bytes {{integer}} NOT NULL,
  chunk TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** The first job of each Idempotency-Key. It may be gone before its key is. */
const idempotencyKeys = `CREATE TABLE idempotency_keys (
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  owner TEXT NOT NULL,
  job_id TEXT NOT NULL,
  expires_at_ms {{integer}} NOT NULL,
  PRIMARY KEY (endpoint_id, key)
) {{strict}}`

const diagnostics = `CREATE TABLE diagnostics (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  at_ms {{integer}} NOT NULL,
  worker_id TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** Workers outlive their endpoint until they have ended and are forgotten. */
const workers = `CREATE TABLE workers (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  version {{integer}} NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('STARTING', 'READY', 'DRAINING', 'STOPPING', 'EXITED')),
  driver TEXT NOT NULL,
  handle TEXT,
  base_url TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  created_at_ms {{integer}} NOT NULL,
  started_at_ms {{integer}},
  ready_at_ms {{integer}},
  idle_since_ms {{integer}},
  stop_requested_at_ms {{integer}},
  exited_at_ms {{integer}},
  stop_reason TEXT,
  exit TEXT,
  capacity {{integer}} NOT NULL,
  jobs_finished {{integer}} NOT NULL,
  sdk TEXT,
  CHECK ((state = 'EXITED') = (exited_at_ms IS NOT NULL)),
  CHECK ((state = 'EXITED') = (exit IS NOT NULL)),
  CHECK ((stop_reason IS NULL) = (stop_requested_at_ms IS NULL)),
  CHECK (state NOT IN ('DRAINING', 'STOPPING') OR stop_reason IS NOT NULL)
) {{strict}}`

const stops = `CREATE TABLE stops (
  worker_id TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
  job_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  since_ms {{integer}} NOT NULL,
  PRIMARY KEY (worker_id, job_id)
) {{strict}}`

/** Deliveries outlive their job and its endpoint. Only those that wait for a try are due and have their payload. */
const deliveries = `CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  seq {{integer}} NOT NULL,
  job_status TEXT NOT NULL CHECK (job_status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')),
  state TEXT NOT NULL CHECK (state IN ('PENDING', 'DELIVERED', 'FAILED')),
  url TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  due_at_ms {{integer}},
  over_at_ms {{integer}},
  payload TEXT,
  UNIQUE (job_id, seq),
  CHECK ((state = 'PENDING') = (due_at_ms IS NOT NULL)),
  CHECK ((state = 'PENDING') = (payload IS NOT NULL)),
  CHECK ((state = 'PENDING') = (over_at_ms IS NULL))
) {{strict}}`

const tries = `CREATE TABLE webhook_tries (
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

/** Keys outlive their endpoint for as long as a delivery waits. */
const webhookKeys = `CREATE TABLE webhook_keys (
  endpoint_id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  sealed TEXT NOT NULL
) {{strict}}`

const secrets = `CREATE TABLE secrets (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  created_at_ms {{integer}} NOT NULL,
  sealed TEXT NOT NULL,
  UNIQUE (owner, name)
) {{strict}}`

const keys = `CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scope TEXT NOT NULL,
  exempt {{integer}} NOT NULL CHECK (exempt IN (0, 1)),
  disabled {{integer}} NOT NULL CHECK (disabled IN (0, 1)),
  expires_at_ms {{integer}},
  created_at_ms {{integer}} NOT NULL
) {{strict}}`

const windows = `CREATE TABLE rate_windows (
  owner TEXT NOT NULL,
  place {{integer}} NOT NULL,
  start_ms {{integer}} NOT NULL,
  used {{integer}} NOT NULL,
  PRIMARY KEY (owner, place)
) {{strict}}`

const indexes = [
  'CREATE INDEX endpoints_by_template ON endpoints (template_id)',
  'CREATE INDEX endpoints_by_owner ON endpoints (owner)',
  'CREATE INDEX jobs_in_line ON jobs (endpoint_id, status, low_priority, position, id)',
  'CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)',
  `CREATE INDEX jobs_by_deadline ON jobs (deadline_ms) WHERE status = 'IN_PROGRESS'`,
  `CREATE INDEX jobs_by_holder ON jobs (worker_id) WHERE status = 'IN_PROGRESS'`,
  'CREATE INDEX workers_of_endpoint ON workers (endpoint_id, created_at_ms)',
  `CREATE INDEX workers_alive ON workers (endpoint_id, created_at_ms) WHERE state <> 'EXITED'`,
  `CREATE INDEX workers_exited ON workers (endpoint_id, exited_at_ms) WHERE state = 'EXITED'`,
  `CREATE INDEX workers_by_exit ON workers (exited_at_ms) WHERE state = 'EXITED'`,
  'CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms)',
  `CREATE INDEX webhook_deliveries_in_line ON webhook_deliveries (endpoint_id, due_at_ms, id) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (due_at_ms) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (over_at_ms) WHERE state <> 'PENDING'`,
  'CREATE INDEX api_keys_by_owner ON api_keys (owner)',
]

/** All tables of the first version. */
export const initial: Migration = {
  version: 1,
  name: 'initial',
  statements: [
    templates,
    endpoints,
    counters,
    jobs,
    chunks,
    idempotencyKeys,
    diagnostics,
    workers,
    stops,
    deliveries,
    tries,
    webhookKeys,
    secrets,
    keys,
    windows,
    ...indexes,
  ],
}

/** The data model. Every table has the owner of its rows; `docs/internals/schema.md` has a picture of it. */
import type { Migration } from './migration.ts'

// Accounts, their keys and limits.

/** The first account is there from the first start on. `limits` is a JSON object; what is not in it is that of the installation. */
const accounts = `CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  ssh_keys TEXT NOT NULL DEFAULT '[]',
  delete_running_endpoints {{integer}} NOT NULL DEFAULT 0,
  limits TEXT NOT NULL DEFAULT '{}'
) {{strict}}`

/** Keys are hashed. The key of an endpoint can be read by its owner, so it is sealed as well. */
const apiKeys = [
  `CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'user' CHECK (kind IN ('user', 'server', 'endpoint')),
    endpoint_id TEXT REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    hint TEXT NOT NULL DEFAULT '',
    sealed TEXT,
    scope TEXT NOT NULL,
    exempt {{integer}} NOT NULL CHECK (exempt IN (0, 1)),
    disabled {{integer}} NOT NULL CHECK (disabled IN (0, 1)),
    expires_at_ms {{integer}},
    created_at_ms {{integer}} NOT NULL,
    last_used_at_ms {{integer}}
  ) {{strict}}`,
  'CREATE INDEX api_keys_by_owner ON api_keys (owner, created_at_ms, id)',
  'CREATE UNIQUE INDEX api_keys_of_endpoint ON api_keys (endpoint_id)',
]

/** Requests of an account in the current windows of its rate limits. */
const rateWindows = `CREATE TABLE rate_windows (
  owner TEXT NOT NULL,
  place {{integer}} NOT NULL,
  start_ms {{integer}} NOT NULL,
  used {{integer}} NOT NULL,
  PRIMARY KEY (owner, place)
) {{strict}}`

// What endpoints are made of.

const secrets = [
  `CREATE TABLE secrets (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    sealed TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    value_updated_at_ms {{integer}},
    UNIQUE (owner, name)
  ) {{strict}}`,
  'CREATE INDEX secrets_by_owner ON secrets (owner, created_at_ms, id)',
]

/** Credentials for private images. */
const registries = [
  `CREATE TABLE registries (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    username TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX registries_by_owner ON registries (owner, created_at_ms, id)',
]

const networkVolumes = [
  `CREATE TABLE network_volumes (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    size_gb {{integer}} NOT NULL CHECK (size_gb > 0),
    data_center TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('STANDARD', 'HIGH_PERFORMANCE')),
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX network_volumes_by_owner ON network_volumes (owner, created_at_ms, id)',
]

/** A template that is not listed belongs to one endpoint. */
const templates = [
  `CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    listed {{integer}} NOT NULL CHECK (listed IN (0, 1)),
    is_public {{integer}} NOT NULL DEFAULT 0,
    registry_id TEXT REFERENCES registries (id),
    config TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    UNIQUE (owner, name)
  ) {{strict}}`,
  'CREATE INDEX templates_by_owner ON templates (owner, created_at_ms, id) WHERE listed = 1',
  'CREATE INDEX templates_public ON templates (created_at_ms, id) WHERE is_public = 1',
  'CREATE INDEX templates_by_registry ON templates (registry_id) WHERE registry_id IS NOT NULL',
]

// Endpoints.

/**
 * What refers to an endpoint refers to its id, which stays until nothing is left of a deleted one: its rows are removed a few at a time.
 * The table of endpoints has only those that are there, so that no statement has to leave out deleted ones.
 */
const endpoints = [
  `CREATE TABLE endpoint_ids (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    deleted_at_ms {{integer}}
  ) {{strict}}`,
  'CREATE INDEX endpoint_ids_deleted ON endpoint_ids (id) WHERE deleted_at_ms IS NOT NULL',
  `CREATE TABLE endpoints (
    id TEXT PRIMARY KEY REFERENCES endpoint_ids (id),
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    template_id TEXT NOT NULL REFERENCES templates (id),
    version {{integer}} NOT NULL,
    workers_min {{integer}} NOT NULL,
    workers_max {{integer}} NOT NULL,
    config TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX endpoints_by_template ON endpoints (template_id)',
  'CREATE INDEX endpoints_by_owner ON endpoints (owner, created_at_ms, id)',
]

/** Repeats what is in the configuration of endpoints, so that a volume in use cannot be removed. */
const endpointVolumes = [
  `CREATE TABLE endpoint_volumes (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    volume_id TEXT NOT NULL REFERENCES network_volumes (id),
    owner TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, volume_id)
  ) {{strict}}`,
  'CREATE INDEX endpoint_volumes_by_volume ON endpoint_volumes (volume_id)',
]

/** Versions of an endpoint. `image` is what the image name of the template meant when the first worker of the release started. */
const releases = `CREATE TABLE releases (
  endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  version {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  source TEXT NOT NULL,
  created_by TEXT,
  created_at_ms {{integer}} NOT NULL,
  diff TEXT NOT NULL,
  image TEXT,
  PRIMARY KEY (endpoint_id, version)
) {{strict}}`

const endpointCounters = `CREATE TABLE endpoint_counters (
  endpoint_id TEXT PRIMARY KEY REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  completed {{integer}} NOT NULL,
  failed {{integer}} NOT NULL,
  retried {{integer}} NOT NULL,
  average_execution_ms {{real}}
) {{strict}}`

// Jobs.

/**
 * The checks repeat the life of a job as core/jobs/job.ts has it, so that no statement can leave it by mistake.
 * `queue` is where the job waits: '' for the queue of its endpoint, the id of its batch, or that of suspects (SUSPECT_QUEUE).
 * `waiting_since_ms` is null where the job has waited since it was queued.
 */
const jobs = [
  `CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    batch_id TEXT,
    batch_seq {{integer}},
    kind TEXT NOT NULL CHECK (kind IN ('run', 'runsync')),
    status TEXT NOT NULL
      CHECK (status IN ('IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')),
    queue TEXT NOT NULL DEFAULT '',
    low_priority {{integer}} NOT NULL CHECK (low_priority IN (0, 1)),
    position {{integer}} NOT NULL,
    execution_timeout_ms {{integer}} NOT NULL,
    ttl_ms {{integer}} NOT NULL,
    retention_ms {{integer}} NOT NULL,
    queued_at_ms {{integer}} NOT NULL,
    waiting_since_ms {{integer}},
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
  ) {{strict}}`,
  'CREATE INDEX jobs_in_queue ON jobs (endpoint_id, status, queue, low_priority, position, id)',
  // Without the state: then each step of a job would write to it.
  'CREATE INDEX jobs_by_age ON jobs (endpoint_id, queued_at_ms, id)',
  'CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)',
  `CREATE INDEX jobs_by_deadline ON jobs (deadline_ms) WHERE status = 'IN_PROGRESS'`,
  `CREATE INDEX jobs_by_holder ON jobs (worker_id) WHERE status = 'IN_PROGRESS'`,
  'CREATE INDEX jobs_of_batch ON jobs (batch_id, batch_seq) WHERE batch_id IS NOT NULL',
  `CREATE INDEX jobs_running_of_batch ON jobs (batch_id) WHERE batch_id IS NOT NULL AND status = 'IN_PROGRESS'`,
]

/** Parts of the output that a job has streamed. */
const chunks = `CREATE TABLE chunks (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  total_bytes {{integer}} NOT NULL,
  chunk TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** What workers reported that was no result. */
const diagnostics = `CREATE TABLE diagnostics (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  at_ms {{integer}} NOT NULL,
  worker_id TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** The first job of each Idempotency-Key. It may be gone before its key is. */
const idempotencyKeys = [
  `CREATE TABLE idempotency_keys (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    owner TEXT NOT NULL,
    job_id TEXT NOT NULL,
    expires_at_ms {{integer}} NOT NULL,
    PRIMARY KEY (endpoint_id, key)
  ) {{strict}}`,
  'CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at_ms)',
]

/** `position` is the batch's own position in the queue of its endpoint, where it takes turns as one job. */
const batches = [
  `CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
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
  ) {{strict}}`,
  'CREATE INDEX batches_of_endpoint ON batches (endpoint_id, created_at_ms, id)',
  'CREATE INDEX batches_unfinished ON batches (endpoint_id, position, id) WHERE finished_at_ms IS NULL',
  'CREATE INDEX batches_by_expiry ON batches (expires_at_ms) WHERE expires_at_ms IS NOT NULL',
]

/** Requests that are no jobs yet: those of drafts, and for a moment those of a batch that was just finalized. */
const batchRequests = `CREATE TABLE batch_requests (
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

// Workers.

/** Workers that are wanted and have no place on a machine yet. Each becomes a row of `workers` when it gets one. */
const queuedWorkers = [
  `CREATE TABLE queued_workers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    version {{integer}} NOT NULL,
    queued_at_ms {{integer}} NOT NULL,
    reason TEXT NOT NULL,
    resource TEXT NOT NULL DEFAULT 'workers'
  ) {{strict}}`,
  'CREATE INDEX queued_workers_endpoint ON queued_workers (endpoint_id, queued_at_ms)',
]

/**
 * Workers outlive their endpoint until they have ended and are forgotten. `serves` is null for workers of queue endpoints.
 * The times say how far a worker came on the way to its start, since when it idles, and how far its usage is counted.
 */
const workers = [
  `CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    version {{integer}} NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('STARTING', 'READY', 'DRAINING', 'STOPPING', 'EXITED')),
    driver TEXT NOT NULL,
    handle TEXT,
    base_url TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    placement TEXT,
    serves TEXT,
    sdk TEXT,
    capacity {{integer}} NOT NULL,
    jobs_finished {{integer}} NOT NULL,
    problem TEXT,
    problem_at_ms {{integer}},
    created_at_ms {{integer}} NOT NULL,
    placed_at_ms {{integer}},
    pull_started_at_ms {{integer}},
    pull_ended_at_ms {{integer}},
    started_at_ms {{integer}},
    ready_at_ms {{integer}},
    idle_since_ms {{integer}},
    stop_requested_at_ms {{integer}},
    stopping_at_ms {{integer}},
    exited_at_ms {{integer}},
    stop_reason TEXT,
    exit TEXT,
    flavor TEXT NOT NULL DEFAULT 'unknown',
    idle_ms {{integer}} NOT NULL DEFAULT 0,
    counted_until_ms {{integer}} NOT NULL DEFAULT 0,
    counted_idle_ms {{integer}} NOT NULL DEFAULT 0,
    CHECK ((state = 'EXITED') = (exited_at_ms IS NOT NULL)),
    CHECK ((state = 'EXITED') = (exit IS NOT NULL)),
    CHECK ((stop_reason IS NULL) = (stop_requested_at_ms IS NULL)),
    CHECK (state NOT IN ('DRAINING', 'STOPPING') OR stop_reason IS NOT NULL)
  ) {{strict}}`,
  'CREATE INDEX workers_of_endpoint ON workers (endpoint_id, created_at_ms)',
  `CREATE INDEX workers_alive ON workers (endpoint_id, created_at_ms) WHERE state <> 'EXITED'`,
  `CREATE INDEX workers_by_count ON workers (counted_until_ms) WHERE state <> 'EXITED'`,
  `CREATE INDEX workers_exited ON workers (endpoint_id, exited_at_ms) WHERE state = 'EXITED'`,
  `CREATE INDEX workers_by_exit ON workers (exited_at_ms) WHERE state = 'EXITED'`,
]

/** Jobs that a worker still has to be told to stop. */
const stops = `CREATE TABLE stops (
  worker_id TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
  job_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  since_ms {{integer}} NOT NULL,
  PRIMARY KEY (worker_id, job_id)
) {{strict}}`

// Webhooks. They outlive their job and its endpoint.

/** Only deliveries that wait for a try are due and have their payload. */
const webhookDeliveries = [
  `CREATE TABLE webhook_deliveries (
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
  ) {{strict}}`,
  `CREATE INDEX webhook_deliveries_in_queue ON webhook_deliveries (endpoint_id, due_at_ms, id) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (due_at_ms) WHERE state = 'PENDING'`,
  `CREATE INDEX webhook_deliveries_by_end ON webhook_deliveries (over_at_ms) WHERE state <> 'PENDING'`,
]

const webhookTries = `CREATE TABLE webhook_tries (
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

/** What deliveries are signed with. A key outlives its endpoint for as long as a delivery waits. */
const webhookKeys = `CREATE TABLE webhook_keys (
  endpoint_id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  sealed TEXT NOT NULL
) {{strict}}`

// Usage by the hour. It outlives its endpoint.

const jobHours = [
  `CREATE TABLE job_hours (
    endpoint_id TEXT NOT NULL,
    hour_ms {{integer}} NOT NULL,
    owner TEXT NOT NULL,
    queued_ms {{integer}} NOT NULL,
    execution_ms {{integer}} NOT NULL,
    lost_ms {{integer}} NOT NULL,
    input_bytes {{integer}} NOT NULL,
    output_bytes {{integer}} NOT NULL,
    stream_bytes {{integer}} NOT NULL,
    attempts {{integer}} NOT NULL,
    lost_attempts {{integer}} NOT NULL,
    completed {{integer}} NOT NULL,
    failed {{integer}} NOT NULL,
    timed_out {{integer}} NOT NULL,
    cancelled {{integer}} NOT NULL,
    expired {{integer}} NOT NULL,
    retried {{integer}} NOT NULL,
    PRIMARY KEY (endpoint_id, hour_ms)
  ) {{strict}}`,
  'CREATE INDEX job_hours_of_owner ON job_hours (owner, hour_ms)',
  'CREATE INDEX job_hours_by_age ON job_hours (hour_ms)',
]

const workerHours = [
  `CREATE TABLE worker_hours (
    endpoint_id TEXT NOT NULL,
    hour_ms {{integer}} NOT NULL,
    flavor TEXT NOT NULL,
    owner TEXT NOT NULL,
    starting_ms {{integer}} NOT NULL,
    running_ms {{integer}} NOT NULL,
    idle_ms {{integer}} NOT NULL,
    PRIMARY KEY (endpoint_id, hour_ms, flavor)
  ) {{strict}}`,
  'CREATE INDEX worker_hours_of_owner ON worker_hours (owner, hour_ms)',
  'CREATE INDEX worker_hours_by_age ON worker_hours (hour_ms)',
]

/** All tables of the first version. What refers to a table comes after it. */
export const initial: Migration = {
  version: 1,
  name: 'data model',
  statements: [
    accounts,
    rateWindows,
    secrets,
    registries,
    networkVolumes,
    templates,
    endpoints,
    apiKeys,
    endpointVolumes,
    releases,
    endpointCounters,
    jobs,
    chunks,
    diagnostics,
    idempotencyKeys,
    batches,
    batchRequests,
    queuedWorkers,
    workers,
    stops,
    webhookDeliveries,
    webhookTries,
    webhookKeys,
    jobHours,
    workerHours,
  ].flat(),
}

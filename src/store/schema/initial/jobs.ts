/** Tables of jobs and batches. */

/**
 * The checks repeat the life of a job as core/jobs/job.ts has it, so that no statement can leave it by mistake.
 * `queue` is where the job waits: '' for the queue of its endpoint, the id of its batch, or that of suspects
 * (SUSPECT_QUEUE). `traceparent` is the context of the trace that the client gave. `waiting_since_ms` is null where
 * the job has waited since it was queued. Input, progress and output are here while they are small, else in
 * `job_payloads`. `unbegun` is 1 where the worker has not begun the job that it was given beside others; then
 * `started_at_ms` is the claim and `deadline_ms` the instant at which it goes back. `paused_at_ms` is since when its
 * worker is paused, while which `deadline_ms` does not count; `paused_ms` are the pauses of the attempt that are over.
 */
export const jobs = [
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
    unbegun {{integer}},
    paused_at_ms {{integer}},
    paused_ms {{integer}} NOT NULL DEFAULT 0,
    finished_at_ms {{integer}},
    expires_at_ms {{integer}} NOT NULL,
    attempt {{integer}} NOT NULL CHECK (attempt >= 0),
    lost_attempts {{integer}} NOT NULL,
    streamed_seq {{integer}} NOT NULL,
    worker_id TEXT,
    webhook TEXT,
    s3_config TEXT,
    policy TEXT,
    traceparent TEXT,
    warning TEXT,
    input_bytes {{integer}} NOT NULL,
    progress_bytes {{integer}},
    output_bytes {{integer}},
    error TEXT,
    progress TEXT,
    input TEXT,
    output TEXT,
    CHECK ((status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')) = (finished_at_ms IS NOT NULL)),
    CHECK (status <> 'IN_QUEUE' OR started_at_ms IS NULL),
    CHECK (status <> 'IN_PROGRESS' OR (started_at_ms IS NOT NULL AND worker_id IS NOT NULL AND attempt > 0)),
    CHECK ((started_at_ms IS NULL) = (deadline_ms IS NULL)),
    CHECK (unbegun IS NULL OR (unbegun = 1 AND status = 'IN_PROGRESS')),
    CHECK (paused_at_ms IS NULL OR (unbegun IS NULL AND status = 'IN_PROGRESS')),
    CHECK (lost_attempts BETWEEN 0 AND attempt),
    CHECK (progress IS NULL OR progress_bytes IS NOT NULL),
    CHECK (output IS NULL OR output_bytes IS NOT NULL),
    CHECK (progress_bytes IS NULL OR status = 'IN_PROGRESS'),
    CHECK (output_bytes IS NULL OR status IN ('COMPLETED', 'FAILED')),
    CHECK (error IS NULL OR status IN ('COMPLETED', 'FAILED', 'TIMED_OUT'))
  ) {{strict}}`,
  'CREATE INDEX jobs_in_queue ON jobs (endpoint_id, status, queue, low_priority, position, id)',
  // Without the state: then each step of a job would write to it.
  'CREATE INDEX jobs_by_age ON jobs (endpoint_id, queued_at_ms, id)',
  'CREATE INDEX jobs_of_owner ON jobs (owner, queued_at_ms, id)',
  'CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)',
  `CREATE INDEX jobs_by_deadline ON jobs (deadline_ms) WHERE status = 'IN_PROGRESS' AND paused_at_ms IS NULL`,
  `CREATE INDEX jobs_by_holder ON jobs (worker_id) WHERE status = 'IN_PROGRESS'`,
  'CREATE INDEX jobs_of_batch ON jobs (batch_id, batch_seq) WHERE batch_id IS NOT NULL',
  `CREATE INDEX jobs_running_of_batch ON jobs (batch_id) WHERE batch_id IS NOT NULL AND status = 'IN_PROGRESS'`,
]

/**
 * The large texts of jobs, apart so that a move of a job does not write them again. Small ones would cost a second
 * row for each job.
 */
export const jobPayloads = `CREATE TABLE job_payloads (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('input', 'progress', 'output')),
  owner TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, kind)
) {{strict}}`

/**
 * Texts that are too large for one row. An input goes from its job to the record of the job, where that keeps it. One
 * that neither has was not wholly received, or both are gone; `written_at_ms` is the instant of its last part, 0 where
 * it is given up.
 */
export const largeTexts = [
  `CREATE TABLE large_texts (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('input', 'output')),
    job_id TEXT REFERENCES jobs (id) ON DELETE SET NULL,
    record_id TEXT UNIQUE REFERENCES job_records (id) ON DELETE SET NULL,
    owner TEXT NOT NULL,
    written_at_ms {{integer}} NOT NULL,
    parts {{integer}} NOT NULL,
    UNIQUE (job_id, kind),
    CHECK (record_id IS NULL OR (job_id IS NULL AND kind = 'input'))
  ) {{strict}}`,
  'CREATE INDEX large_texts_unused ON large_texts (written_at_ms, id) WHERE job_id IS NULL AND record_id IS NULL',
  'CREATE INDEX large_texts_unused_of_owner ON large_texts (owner) WHERE job_id IS NULL AND record_id IS NULL',
]

/** Parts of {@link largeTexts}. Their ids are in the order of the parts (core/jobs/large-text.ts). */
export const largeTextParts = [
  `CREATE TABLE large_text_parts (
    id TEXT PRIMARY KEY,
    text_id TEXT NOT NULL REFERENCES large_texts (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    text TEXT NOT NULL
  ) {{strict}}`,
  'CREATE INDEX large_text_parts_of_text ON large_text_parts (text_id, id)',
]

/** Parts of the output that a job has streamed. */
export const chunks = `CREATE TABLE chunks (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  total_bytes {{integer}} NOT NULL,
  chunk TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** Reports of workers that were no result. */
export const diagnostics = `CREATE TABLE diagnostics (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  at_ms {{integer}} NOT NULL,
  worker_id TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, seq)
) {{strict}}`

/** The first job of each Idempotency-Key. It may be gone before its key is. */
export const idempotencyKeys = [
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
export const batches = [
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
  'CREATE INDEX batches_of_owner ON batches (owner, created_at_ms, id)',
  'CREATE INDEX batches_unfinished ON batches (endpoint_id, position, id) WHERE finished_at_ms IS NULL',
  'CREATE INDEX batches_by_expiry ON batches (expires_at_ms) WHERE expires_at_ms IS NOT NULL',
]

/** Requests that are no jobs yet: those of drafts, and for a moment those of a batch that was just finalized. */
export const batchRequests = `CREATE TABLE batch_requests (
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

/**
 * Records of jobs whose result is gone. `bytes` is the size of a record towards the limit of its account,
 * `failed_input_bytes` that of the input of a failed job, which is kept for a while, 0 for others; the sums are in
 * `job_record_sizes`. Records are removed with their endpoint in steps, so nothing cascades.
 */
export const jobRecords = [
  `CREATE TABLE job_records (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id),
    status TEXT NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT')),
    low_priority {{integer}} NOT NULL CHECK (low_priority IN (0, 1)),
    execution_timeout_ms {{integer}} NOT NULL,
    ttl_ms {{integer}} NOT NULL,
    queued_at_ms {{integer}} NOT NULL,
    started_at_ms {{integer}},
    finished_at_ms {{integer}} NOT NULL,
    attempt {{integer}} NOT NULL,
    lost_attempts {{integer}} NOT NULL,
    worker_id TEXT,
    input_bytes {{integer}} NOT NULL,
    output_bytes {{integer}},
    bytes {{integer}} NOT NULL,
    failed_input_bytes {{integer}} NOT NULL,
    fingerprint TEXT,
    error TEXT,
    notes TEXT,
    input TEXT,
    output TEXT
  ) {{strict}}`,
  'CREATE INDEX job_records_by_age ON job_records (endpoint_id, queued_at_ms, id)',
  'CREATE INDEX job_records_of_owner_by_age ON job_records (owner, queued_at_ms, id)',
  'CREATE INDEX job_records_of_owner ON job_records (owner, finished_at_ms, id)',
  'CREATE INDEX job_records_failed_inputs ON job_records (owner, finished_at_ms, id) WHERE failed_input_bytes > 0',
]

/** Number of records of an account, and the bytes that they count as. */
export const jobRecordSizes = `CREATE TABLE job_record_sizes (
  owner TEXT PRIMARY KEY,
  records {{integer}} NOT NULL,
  bytes {{integer}} NOT NULL,
  failed_input_bytes {{integer}} NOT NULL
) {{strict}}`

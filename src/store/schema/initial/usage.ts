/**
 * Tables of usage by the hour, and of tokens by the day, which outlive their endpoint and their key. Each connection
 * adds to the rows of its own `shard` of `job_hours`. The names of deleted endpoints are kept for as long.
 */

export const jobHours = [
  `CREATE TABLE job_hours (
    endpoint_id TEXT NOT NULL,
    hour_ms {{integer}} NOT NULL,
    shard {{integer}} NOT NULL,
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
    PRIMARY KEY (endpoint_id, hour_ms, shard)
  ) {{strict}}`,
  'CREATE INDEX job_hours_of_owner ON job_hours (owner, hour_ms)',
  'CREATE INDEX job_hours_by_age ON job_hours (hour_ms)',
]

export const workerHours = [
  `CREATE TABLE worker_hours (
    endpoint_id TEXT NOT NULL,
    hour_ms {{integer}} NOT NULL,
    flavor TEXT NOT NULL,
    owner TEXT NOT NULL,
    starting_ms {{integer}} NOT NULL,
    running_ms {{integer}} NOT NULL,
    idle_ms {{integer}} NOT NULL,
    frozen_ms {{integer}} NOT NULL DEFAULT 0,
    PRIMARY KEY (endpoint_id, hour_ms, flavor)
  ) {{strict}}`,
  'CREATE INDEX worker_hours_of_owner ON worker_hours (owner, hour_ms)',
  'CREATE INDEX worker_hours_by_age ON worker_hours (hour_ms)',
]

/** An empty `key_id` or `model` stands for a request without a key, and an answer without the name of its model. */
export const tokenDays = [
  `CREATE TABLE token_days (
    owner TEXT NOT NULL,
    day_ms {{integer}} NOT NULL,
    model TEXT NOT NULL,
    key_id TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    requests {{integer}} NOT NULL,
    measured {{integer}} NOT NULL,
    prompt_tokens {{integer}} NOT NULL,
    completion_tokens {{integer}} NOT NULL,
    cached_tokens {{integer}} NOT NULL,
    PRIMARY KEY (owner, day_ms, model, key_id, endpoint_id)
  ) {{strict}}`,
  'CREATE INDEX token_days_by_age ON token_days (day_ms)',
]

export const formerEndpoints = [
  `CREATE TABLE former_endpoints (
    endpoint_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    deleted_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX former_endpoints_of_owner ON former_endpoints (owner, deleted_at_ms)',
  'CREATE INDEX former_endpoints_by_age ON former_endpoints (deleted_at_ms)',
]

/** Tables of workers. */

/** Workers that are wanted and have no place on a machine yet. Each becomes a row of `workers` when it gets one. */
export const queuedWorkers = [
  `CREATE TABLE queued_workers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    version {{integer}} NOT NULL,
    queued_at_ms {{integer}} NOT NULL,
    reason TEXT NOT NULL,
    resource TEXT NOT NULL DEFAULT 'workers',
    download_started_at_ms {{integer}},
    download_ended_at_ms {{integer}}
  ) {{strict}}`,
  'CREATE INDEX queued_workers_endpoint ON queued_workers (endpoint_id, queued_at_ms)',
]

/**
 * Workers outlive their endpoint until they have ended and are forgotten. `serves` is null for workers of queue
 * endpoints. `placement`, `platform`, `serves`, `suspension`, `problem` and `exit` are JSON: the last two are values
 * of which the sentences for people are made when they are read. `platform` is what the platform of a worker reports
 * about its place; null for a worker of this machine. `suspension` has the CUDA processes that the driver of the card
 * suspends. `paused_at_ms` is since when it is paused in the middle of its jobs, and `paused_for` the endpoint that
 * got its room; both until it runs again. Before `pausable_at_ms` it is not paused once more. The times say how far a
 * worker came on the way to its start, since when it idles, when it was frozen and thawed last, since when it sleeps
 * without its GPUs, and how far its usage is counted.
 */
export const workers = [
  `CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    version {{integer}} NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('STARTING', 'READY', 'FROZEN', 'DRAINING', 'STOPPING', 'EXITED')),
    driver TEXT NOT NULL,
    handle TEXT,
    base_url TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    placement TEXT,
    platform TEXT,
    serves TEXT,
    sdk TEXT,
    capacity {{integer}} NOT NULL,
    jobs_finished {{integer}} NOT NULL,
    problem TEXT,
    problem_at_ms {{integer}},
    created_at_ms {{integer}} NOT NULL,
    placed_at_ms {{integer}},
    download_started_at_ms {{integer}},
    download_ended_at_ms {{integer}},
    pull_started_at_ms {{integer}},
    pull_ended_at_ms {{integer}},
    started_at_ms {{integer}},
    ready_at_ms {{integer}},
    idle_since_ms {{integer}},
    frozen_at_ms {{integer}},
    thawed_at_ms {{integer}},
    asleep_at_ms {{integer}},
    wake_waits_for TEXT,
    suspension TEXT,
    paused_at_ms {{integer}},
    paused_for TEXT,
    pausable_at_ms {{integer}},
    stop_requested_at_ms {{integer}},
    stopping_at_ms {{integer}},
    exited_at_ms {{integer}},
    stop_reason TEXT,
    exit TEXT,
    flavor TEXT NOT NULL DEFAULT 'unknown',
    idle_ms {{integer}} NOT NULL DEFAULT 0,
    frozen_ms {{integer}} NOT NULL DEFAULT 0,
    counted_until_ms {{integer}} NOT NULL DEFAULT 0,
    counted_idle_ms {{integer}} NOT NULL DEFAULT 0,
    counted_frozen_ms {{integer}} NOT NULL DEFAULT 0,
    CHECK ((state = 'EXITED') = (exited_at_ms IS NOT NULL)),
    CHECK ((state = 'EXITED') = (exit IS NOT NULL)),
    CHECK (state <> 'FROZEN' OR frozen_at_ms IS NOT NULL),
    CHECK ((paused_at_ms IS NULL) = (paused_for IS NULL)),
    CHECK ((stop_reason IS NULL) = (stop_requested_at_ms IS NULL)),
    CHECK (state NOT IN ('DRAINING', 'STOPPING') OR stop_reason IS NOT NULL)
  ) {{strict}}`,
  'CREATE INDEX workers_of_endpoint ON workers (endpoint_id, created_at_ms)',
  `CREATE INDEX workers_alive ON workers (endpoint_id, created_at_ms) WHERE state <> 'EXITED'`,
  `CREATE INDEX workers_by_count ON workers (counted_until_ms) WHERE state <> 'EXITED'`,
  `CREATE INDEX workers_exited ON workers (endpoint_id, exited_at_ms) WHERE state = 'EXITED'`,
  `CREATE INDEX workers_by_exit ON workers (exited_at_ms) WHERE state = 'EXITED'`,
]

/** Jobs that a worker has yet to stop. */
export const stops = `CREATE TABLE stops (
  worker_id TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE,
  job_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  since_ms {{integer}} NOT NULL,
  PRIMARY KEY (worker_id, job_id)
) {{strict}}`

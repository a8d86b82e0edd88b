/** Tables of endpoints. */

/**
 * References to an endpoint are to its id, which stays until nothing is left of a deleted one: its rows are removed a
 * few at a time. The table of endpoints has no deleted ones, so that no statement has to leave them out. `task_root`
 * and `started_by` repeat the first and the last starter of a task; both may be gone.
 */
export const endpoints = [
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
    runs_once {{integer}} NOT NULL,
    started_by TEXT,
    task_root TEXT,
    config TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX endpoints_by_template ON endpoints (template_id)',
  'CREATE INDEX endpoints_by_owner ON endpoints (owner, created_at_ms, id)',
  'CREATE INDEX endpoints_by_name ON endpoints (owner, name, created_at_ms, id)',
  'CREATE INDEX tasks_by_owner ON endpoints (owner, created_at_ms, id) WHERE runs_once = 1',
  'CREATE INDEX started_tasks ON endpoints (task_root) WHERE task_root IS NOT NULL',
]

/** Repeats the volumes in the configuration of endpoints, so that a volume in use cannot be removed. */
export const endpointVolumes = [
  `CREATE TABLE endpoint_volumes (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    volume_id TEXT NOT NULL REFERENCES network_volumes (id),
    owner TEXT NOT NULL,
    PRIMARY KEY (endpoint_id, volume_id)
  ) {{strict}}`,
  'CREATE INDEX endpoint_volumes_by_volume ON endpoint_volumes (volume_id)',
]

/** Repeats the domain in the configuration of endpoints, as a key: one endpoint of all accounts has it. */
export const endpointDomains = `CREATE TABLE endpoint_domains (
  domain TEXT PRIMARY KEY,
  endpoint_id TEXT NOT NULL UNIQUE REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  owner TEXT NOT NULL
) {{strict}}`

/**
 * Versions of an endpoint. `image` is what the image name of the template meant when the first worker of the release
 * started. `restores` is the version that a rollback goes back to. `ready_at_ms` is when the first of its workers was
 * ready, `crashes` how many crashed before. `config` is what its workers see, as JSON, with sealed variables where
 * those are sealed. `results` are the jobs and requests that ended on its workers, `failed` those of them that
 * failed; of more than some hundred only the last weigh. `judged` is 1 while these are compared with those of the
 * last good release, `stopped_for` the version that goes on where it failed, and `stop` the numbers by then, as JSON.
 * `suspend_failures` is JSON: the number of failures to suspend its workers in a row, and the last reason.
 * `gpu_memory` is JSON: the GPU memory that its workers needed, for shares that are learned.
 */
export const releases = `CREATE TABLE releases (
  id TEXT NOT NULL UNIQUE,
  endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  version {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  source TEXT NOT NULL,
  created_by TEXT,
  created_at_ms {{integer}} NOT NULL,
  diff TEXT NOT NULL,
  image TEXT,
  models TEXT,
  restores {{integer}},
  ready_at_ms {{integer}},
  crashes {{integer}} NOT NULL,
  canary {{integer}},
  results {{integer}} NOT NULL,
  failed {{integer}} NOT NULL,
  judged {{integer}} NOT NULL,
  stopped_for {{integer}},
  stop TEXT,
  suspend_failures TEXT,
  gpu_memory TEXT,
  config TEXT,
  PRIMARY KEY (endpoint_id, version)
) {{strict}}`

/**
 * Counts are the sums of the rows of an endpoint: each connection adds to one of its own. Row -1 has the average, of
 * `measured` jobs.
 */
export const endpointCounters = `CREATE TABLE endpoint_counters (
  endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  shard {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  completed {{integer}} NOT NULL,
  failed {{integer}} NOT NULL,
  retried {{integer}} NOT NULL,
  measured {{integer}} NOT NULL DEFAULT 0,
  average_execution_ms {{real}},
  PRIMARY KEY (endpoint_id, shard)
) {{strict}}`

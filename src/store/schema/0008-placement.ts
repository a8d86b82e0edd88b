import type { Migration } from './migration.ts'

/** Workers that are wanted and have no place on a machine yet. Each becomes a row of `workers` when it gets one. */
const queuedWorkers = `CREATE TABLE queued_workers (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  version {{integer}} NOT NULL,
  queued_at_ms {{integer}} NOT NULL,
  reason TEXT NOT NULL
) {{strict}}`

/** What workers are given of a machine, and when they came how far on the way to their start. */
export const placement: Migration = {
  version: 8,
  name: 'placement',
  statements: [
    queuedWorkers,
    'CREATE INDEX queued_workers_endpoint ON queued_workers (endpoint_id, queued_at_ms)',
    'ALTER TABLE workers ADD COLUMN placement TEXT',
    'ALTER TABLE workers ADD COLUMN placed_at_ms {{integer}}',
    'ALTER TABLE workers ADD COLUMN pull_started_at_ms {{integer}}',
    'ALTER TABLE workers ADD COLUMN pull_ended_at_ms {{integer}}',
  ],
}

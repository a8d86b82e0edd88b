import type { Migration } from './migration.ts'

/**
 * What refers to an endpoint refers to its id, which stays until nothing is left of a deleted one. The table of endpoints has only those
 * that are there, so that no statement has to leave out others.
 */
const endpoints = `CREATE TABLE endpoints (
  id TEXT PRIMARY KEY REFERENCES endpoint_ids (id),
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  template_id TEXT NOT NULL REFERENCES templates (id),
  version {{integer}} NOT NULL,
  workers_min {{integer}} NOT NULL,
  workers_max {{integer}} NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  config TEXT NOT NULL
) {{strict}}`

const COLUMNS = 'name, template_id, version, workers_min, workers_max, created_at_ms, config'

/** Deleted endpoints, whose rows are removed a few at a time. */
export const deletedEndpoints: Migration = {
  version: 18,
  name: 'deleted endpoints',
  statements: [
    'DROP INDEX endpoints_by_template',
    'DROP INDEX endpoints_by_owner',
    // Whatever referred to endpoints refers to their ids now.
    'ALTER TABLE endpoints RENAME TO endpoint_ids',
    endpoints,
    `INSERT INTO endpoints (id, owner, ${COLUMNS}) SELECT id, owner, ${COLUMNS} FROM endpoint_ids`,
    ...COLUMNS.split(', ').map(name => `ALTER TABLE endpoint_ids DROP COLUMN ${name}`),
    'ALTER TABLE endpoint_ids ADD COLUMN deleted_at_ms {{integer}}',
    'CREATE INDEX endpoint_ids_deleted ON endpoint_ids (id) WHERE deleted_at_ms IS NOT NULL',
    'CREATE INDEX endpoints_by_template ON endpoints (template_id)',
    'CREATE INDEX endpoints_by_owner ON endpoints (owner, created_at_ms, id)',
  ],
}

import type { Migration } from './migration.ts'

const registries = `CREATE TABLE registries (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  username TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  sealed TEXT NOT NULL
) {{strict}}`

const volumes = `CREATE TABLE network_volumes (
  id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  size_gb {{integer}} NOT NULL CHECK (size_gb > 0),
  data_center TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('STANDARD', 'HIGH_PERFORMANCE')),
  created_at_ms {{integer}} NOT NULL
) {{strict}}`

/** Repeats what is in the configuration of endpoints, so that a volume in use cannot be removed. */
const endpointVolumes = `CREATE TABLE endpoint_volumes (
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  volume_id TEXT NOT NULL REFERENCES network_volumes (id),
  owner TEXT NOT NULL,
  PRIMARY KEY (endpoint_id, volume_id)
) {{strict}}`

const releases = `CREATE TABLE releases (
  endpoint_id TEXT NOT NULL REFERENCES endpoints (id) ON DELETE CASCADE,
  version {{integer}} NOT NULL,
  owner TEXT NOT NULL,
  source TEXT NOT NULL,
  created_by TEXT,
  created_at_ms {{integer}} NOT NULL,
  diff TEXT NOT NULL,
  PRIMARY KEY (endpoint_id, version)
) {{strict}}`

/** Of endpoints that are there already, the present version is the first that is known. */
const knownReleases = `
  INSERT INTO releases (endpoint_id, version, owner, source, created_by, created_at_ms, diff)
  SELECT id, version, owner, 'MANUAL', owner, created_at_ms, '[]' FROM endpoints`

/** The first account is there from the first start on. */
const accounts = `CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  ssh_keys TEXT NOT NULL DEFAULT '[]'
) {{strict}}`

const keys = [
  `ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'user' CHECK (kind IN ('user', 'server', 'endpoint'))`,
  `ALTER TABLE api_keys ADD COLUMN hint TEXT NOT NULL DEFAULT ''`,
  'ALTER TABLE api_keys ADD COLUMN last_used_at_ms {{integer}}',
  'ALTER TABLE api_keys ADD COLUMN endpoint_id TEXT REFERENCES endpoints (id) ON DELETE CASCADE',
  'ALTER TABLE api_keys ADD COLUMN sealed TEXT',
  `UPDATE api_keys SET kind = 'server' WHERE owner = 'owner' AND name = 'main'`,
  'CREATE UNIQUE INDEX api_keys_of_endpoint ON api_keys (endpoint_id)',
  'DROP INDEX api_keys_by_owner',
  'CREATE INDEX api_keys_by_owner ON api_keys (owner, created_at_ms, id)',
]

/** What the management plane keeps besides endpoints, templates, secrets and keys. */
export const management: Migration = {
  version: 5,
  name: 'management',
  statements: [
    registries,
    volumes,
    endpointVolumes,
    releases,
    knownReleases,
    accounts,
    ...keys,
    'ALTER TABLE templates ADD COLUMN is_public {{integer}} NOT NULL DEFAULT 0',
    'ALTER TABLE templates ADD COLUMN registry_id TEXT REFERENCES registries (id)',
    'ALTER TABLE secrets ADD COLUMN value_updated_at_ms {{integer}}',
    'DROP INDEX endpoints_by_owner',
    'CREATE INDEX endpoints_by_owner ON endpoints (owner, created_at_ms, id)',
    'CREATE INDEX templates_by_owner ON templates (owner, created_at_ms, id) WHERE listed = 1',
    'CREATE INDEX templates_public ON templates (created_at_ms, id) WHERE is_public = 1',
    'CREATE INDEX templates_by_registry ON templates (registry_id) WHERE registry_id IS NOT NULL',
    'CREATE INDEX secrets_by_owner ON secrets (owner, created_at_ms, id)',
    'CREATE INDEX registries_by_owner ON registries (owner, created_at_ms, id)',
    'CREATE INDEX network_volumes_by_owner ON network_volumes (owner, created_at_ms, id)',
    'CREATE INDEX endpoint_volumes_by_volume ON endpoint_volumes (volume_id)',
  ],
}

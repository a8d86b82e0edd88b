/** Tables of secrets, registries, network volumes and templates. */

/**
 * A known text that is sealed with the encryption key of the database, so that a server with another key finds out
 * before it does anything.
 */
export const keyCanaries = `CREATE TABLE key_canaries (
  id TEXT PRIMARY KEY,
  sealed TEXT NOT NULL
) {{strict}}`

export const secrets = [
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
export const registries = [
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

/** A global volume has no data center. */
export const networkVolumes = [
  `CREATE TABLE network_volumes (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    size_gb {{integer}} NOT NULL CHECK (size_gb > 0),
    data_center TEXT,
    type TEXT NOT NULL CHECK (type IN ('STANDARD', 'HIGH_PERFORMANCE')),
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX network_volumes_by_owner ON network_volumes (owner, created_at_ms, id)',
]

/** A template that is not listed belongs to one endpoint. */
export const templates = [
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

/** Tables of apps: their environments, their builds, and the uploads that become builds. */

export const apps = [
  `CREATE TABLE apps (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    UNIQUE (owner, name)
  ) {{strict}}`,
  'CREATE INDEX apps_by_owner ON apps (owner, created_at_ms, id)',
]

/** `artifact` is the name of the file of the archive, `manifest` a JSON text that the client made. */
export const appBuilds = [
  `CREATE TABLE app_builds (
    id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    artifact TEXT NOT NULL UNIQUE,
    manifest TEXT NOT NULL,
    bytes {{integer}} NOT NULL,
    unpacked_bytes {{integer}} NOT NULL,
    created_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX app_builds_by_app ON app_builds (app_id, created_at_ms, id)',
  'CREATE INDEX app_builds_by_owner ON app_builds (owner)',
]

export const appEnvironments = [
  `CREATE TABLE app_environments (
    id TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    active_build_id TEXT REFERENCES app_builds (id),
    created_at_ms {{integer}} NOT NULL,
    UNIQUE (app_id, name)
  ) {{strict}}`,
  'CREATE INDEX app_environments_by_owner ON app_environments (owner, created_at_ms, id)',
  'CREATE INDEX app_environments_by_build ON app_environments (active_build_id) WHERE active_build_id IS NOT NULL',
]

/** An announced artifact without a build. `token_hash` is a hash of the token in its address. */
export const appUploads = [
  `CREATE TABLE app_uploads (
    artifact TEXT PRIMARY KEY,
    app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    bytes {{integer}} NOT NULL,
    token_hash TEXT NOT NULL,
    created_at_ms {{integer}} NOT NULL,
    expires_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX app_uploads_by_owner ON app_uploads (owner)',
  'CREATE INDEX app_uploads_by_app ON app_uploads (app_id)',
  'CREATE INDEX app_uploads_by_end ON app_uploads (expires_at_ms, artifact)',
]

/** Repeats environment and name in the configuration of endpoints, as a key: an environment has each name once. */
export const appEndpoints = `CREATE TABLE app_endpoints (
  endpoint_id TEXT PRIMARY KEY REFERENCES endpoint_ids (id) ON DELETE CASCADE,
  environment_id TEXT NOT NULL REFERENCES app_environments (id),
  owner TEXT NOT NULL,
  name TEXT NOT NULL,
  UNIQUE (environment_id, name)
) {{strict}}`

/** Tables of accounts, their keys and rate limits. */

/**
 * The first account exists from the first start on. `limits` is a JSON object; limits that are missing in it are
 * those of the installation.
 */
export const accounts = `CREATE TABLE accounts (
  owner TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at_ms {{integer}} NOT NULL,
  ssh_keys TEXT NOT NULL DEFAULT '[]',
  delete_running_endpoints {{integer}} NOT NULL DEFAULT 0,
  limits TEXT NOT NULL DEFAULT '{}'
) {{strict}}`

/**
 * Keys are hashed. The key of an endpoint can be read by its owner, so it is sealed as well. `limits` is a JSON
 * object; limits that are missing in it are none.
 */
export const apiKeys = [
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
    limits TEXT NOT NULL DEFAULT '{}',
    accounting {{integer}} NOT NULL DEFAULT 0 CHECK (accounting IN (0, 1)),
    disabled {{integer}} NOT NULL CHECK (disabled IN (0, 1)),
    expires_at_ms {{integer}},
    created_at_ms {{integer}} NOT NULL,
    last_used_at_ms {{integer}}
  ) {{strict}}`,
  'CREATE INDEX api_keys_by_owner ON api_keys (owner, created_at_ms, id)',
  'CREATE UNIQUE INDEX api_keys_of_endpoint ON api_keys (endpoint_id)',
]

/** Sessions of the console. A row has a hash of both halves of a session, and goes with its key. */
export const consoleSessions = [
  `CREATE TABLE console_sessions (
    hash TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    created_at_ms {{integer}} NOT NULL,
    expires_at_ms {{integer}} NOT NULL
  ) {{strict}}`,
  'CREATE INDEX console_sessions_by_owner ON console_sessions (owner, created_at_ms DESC, hash)',
  'CREATE INDEX console_sessions_by_key ON console_sessions (key_id)',
  'CREATE INDEX console_sessions_by_end ON console_sessions (expires_at_ms)',
]

/** Requests of an account in the current windows of its rate limits. */
export const rateWindows = `CREATE TABLE rate_windows (
  owner TEXT NOT NULL,
  place {{integer}} NOT NULL,
  start_ms {{integer}} NOT NULL,
  used {{integer}} NOT NULL,
  PRIMARY KEY (owner, place)
) {{strict}}`

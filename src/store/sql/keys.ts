/** Statements on API keys and on what their owners have used. */

/** The columns of a key; see rows/keys.ts. */
export const KEY_COLUMNS = 'id, owner, name, hash, scope, exempt, disabled, expires_at_ms, created_at_ms'

/** A new key. */
export const insertKey = `INSERT INTO api_keys (${KEY_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

/** $1 hash. */
export const findKeyByHash = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE hash = $1`

/** $1 owner. */
export const listKeys = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE owner = $1 ORDER BY created_at_ms, id`

/** $1 owner, $2 key. */
export const deleteKey = 'DELETE FROM api_keys WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 owner. */
export const listWindows = 'SELECT start_ms, used FROM rate_windows WHERE owner = $1 ORDER BY place'

/** $1 owner, $2 place of the window, $3 its start, $4 requests counted. */
export const saveWindow = `
  INSERT INTO rate_windows (owner, place, start_ms, used) VALUES ($1, $2, $3, $4)
  ON CONFLICT (owner, place) DO UPDATE SET start_ms = excluded.start_ms, used = excluded.used`

/** $1 owner, $2 how many windows there are. */
export const dropWindows = 'DELETE FROM rate_windows WHERE owner = $1 AND place >= $2'

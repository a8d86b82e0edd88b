/** Statements and rows of sessions of the console. */
import type { KeyId, OwnerId } from '../../core/ids.ts'
import type { KeyedSession } from '../../ports/store/session-store.ts'

/** $1 hash, $2 when it began, $3 when it ends, $4 key. Nothing when the key is gone. */
export const insertSession = `
  INSERT INTO console_sessions (hash, owner, key_id, created_at_ms, expires_at_ms)
  SELECT $1, owner, id, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}) FROM api_keys WHERE id = $4
  RETURNING hash`

/** $1 owner, $2 number of its newest sessions that stay besides $4, $3 limit of removed ones. */
export const deleteSessionsOver = `
  DELETE FROM console_sessions WHERE hash IN (
    SELECT hash FROM console_sessions WHERE owner = $1 AND hash <> $4 ORDER BY created_at_ms DESC, hash
    LIMIT CAST($3 AS {{integer}}) OFFSET CAST($2 AS {{integer}}))
  RETURNING hash`

/** $1 hash. */
export const findSession = `
  SELECT s.hash, s.owner, s.key_id, s.created_at_ms, s.expires_at_ms, k.hash AS key_hash
  FROM console_sessions s JOIN api_keys k ON k.id = s.key_id WHERE s.hash = $1`

/** $1 hash. */
export const deleteSession = 'DELETE FROM console_sessions WHERE hash = $1 RETURNING hash'

/** $1 key. */
export const deleteSessionsOfKey = 'DELETE FROM console_sessions WHERE key_id = $1'

/** $1 the instant at which they were over, $2 limit. */
export const deleteEndedSessions = `
  DELETE FROM console_sessions WHERE hash IN (
    SELECT hash FROM console_sessions WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT $2 {{skip_locked}})
  RETURNING hash`

/** A row, with the hash of its key. */
export interface SessionRow {
  readonly hash: string
  readonly owner: OwnerId
  readonly key_id: KeyId
  readonly created_at_ms: number
  readonly expires_at_ms: number
  readonly key_hash: string
}

/** A row as a session. */
export function sessionFromRow(row: SessionRow): KeyedSession {
  const { hash, owner, key_id: keyId, created_at_ms: createdAtMs, expires_at_ms: expiresAtMs, key_hash: keyHash } = row
  return { hash, owner, keyId, createdAtMs, expiresAtMs, keyHash }
}

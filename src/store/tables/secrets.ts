/** Statements and rows of secrets. */
import type { OwnerId, SecretId } from '../../core/ids.ts'
import type { Secret } from '../../core/secrets/secret.ts'

/** The columns of a secret without its value; see secrets.ts. */
export const SECRET_COLUMNS = 'id, owner, name, description, created_at_ms, value_updated_at_ms'

/** A new secret; no row when the name is taken. */
export const insertSecret = `
  INSERT INTO secrets (${SECRET_COLUMNS}, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (owner, name) DO NOTHING
  RETURNING id`

/** $1 owner, $2 and $3 where the page before ended, $4 how many. */
export const listSecrets = `
  SELECT ${SECRET_COLUMNS} FROM secrets WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 secret, $3 1 to replace the description by $4, $5 sealed value and $6 when it was given; NULL to keep it. */
export const updateSecret = `
  UPDATE secrets
  SET description = CASE WHEN $3 = 1 THEN $4 ELSE description END,
    sealed = COALESCE($5, sealed), value_updated_at_ms = COALESCE($6, value_updated_at_ms)
  WHERE id = $2 AND owner = $1
  RETURNING ${SECRET_COLUMNS}`

/** $1 owner, $2 secret. */
export const findSecret = `SELECT ${SECRET_COLUMNS} FROM secrets WHERE id = $2 AND owner = $1`

/** $1 owner, $2 name. */
export const findSecretByName = `SELECT ${SECRET_COLUMNS} FROM secrets WHERE owner = $1 AND name = $2`

/** $1 owner, $2 name. */
export const sealedValue = 'SELECT sealed FROM secrets WHERE owner = $1 AND name = $2'

/** $1 owner, $2 secret. */
export const deleteSecret = 'DELETE FROM secrets WHERE id = $2 AND owner = $1 RETURNING id'

/** A row of `secrets` without the sealed value. */
export interface SecretRow {
  readonly id: SecretId
  readonly owner: OwnerId
  readonly name: string
  readonly description: string | null
  readonly created_at_ms: number
  readonly value_updated_at_ms: number | null
}

/** A row as a secret. */
export function toSecret(row: SecretRow): Secret {
  const { id, owner, name, description } = row
  return { id, owner, name, description, createdAtMs: row.created_at_ms, valueUpdatedAtMs: row.value_updated_at_ms }
}

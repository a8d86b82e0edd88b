/** Statements on secrets. */

/** The columns of a secret without its value; see rows/secrets.ts. */
export const SECRET_COLUMNS = 'id, owner, name, description, created_at_ms'

/** A new secret; no row when the name is taken. */
export const insertSecret = `
  INSERT INTO secrets (${SECRET_COLUMNS}, sealed) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (owner, name) DO NOTHING
  RETURNING id`

/** $1 owner. */
export const listSecrets = `SELECT ${SECRET_COLUMNS} FROM secrets WHERE owner = $1 ORDER BY created_at_ms, id`

/** $1 owner, $2 name. */
export const sealedValue = 'SELECT sealed FROM secrets WHERE owner = $1 AND name = $2'

/** $1 owner, $2 secret. */
export const deleteSecret = 'DELETE FROM secrets WHERE id = $2 AND owner = $1 RETURNING id'

import type { OwnerId, SecretId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { Secret } from '../../../core/secrets/secret.ts'
import type { SecretChanges, SecretStore } from '../../../ports/store/management-store.ts'
import { sliceParams } from '../../tables/statement.ts'
import { type PortOperations, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of a secret without its value; see secrets.ts. */
const SECRET_COLUMNS = 'id, owner, name, description, created_at_ms, value_updated_at_ms'

/** A new secret; no row when the name is taken. */
export const insertSecret = `
  INSERT INTO secrets (${SECRET_COLUMNS}, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (owner, name) DO NOTHING
  RETURNING id`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. */
export const listSecrets = `
  SELECT ${SECRET_COLUMNS} FROM secrets WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/**
 * $1 owner, $2 secret, $3 1 to replace the description by $4, $5 sealed value and $6 when it was given; NULL to keep
 * it.
 */
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
interface SecretRow {
  readonly id: SecretId
  readonly owner: OwnerId
  readonly name: string
  readonly description: string | null
  readonly created_at_ms: number
  readonly value_updated_at_ms: number | null
}

/** A row as a secret. */
function secretFromRow(row: SecretRow): Secret {
  const { id, owner, name, description } = row
  return { id, owner, name, description, createdAtMs: row.created_at_ms, valueUpdatedAtMs: row.value_updated_at_ms }
}

/** Secrets with their sealed values. */
export const secrets = {
  insert: write(function* (secret: Secret, sealed: string): Steps<boolean> {
    const { id, owner, name, description, createdAtMs, valueUpdatedAtMs } = secret
    const params = [id, owner, name, description, createdAtMs, valueUpdatedAtMs, sealed]
    return (yield* query(insertSecret, params)).length > 0
  }),

  update: write(function* (owner: OwnerId, id: SecretId, changes: SecretChanges): Steps<Secret | null> {
    const { description, value } = changes
    const params = [description === undefined ? 0 : 1, description ?? null, value?.sealed ?? null, value?.atMs ?? null]
    const row = yield* queryOne<SecretRow>(updateSecret, [owner, id, ...params])
    return row === null ? null : secretFromRow(row)
  }),

  find: read(function* (owner: OwnerId, id: SecretId): Steps<Secret | null> {
    const row = yield* queryOne<SecretRow>(findSecret, [owner, id])
    return row === null ? null : secretFromRow(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<Secret | null> {
    const row = yield* queryOne<SecretRow>(findSecretByName, [owner, name])
    return row === null ? null : secretFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Secret[]> {
    return (yield* query<SecretRow>(listSecrets, [owner, ...sliceParams(slice)])).map(secretFromRow)
  }),

  sealedValues: read(function* (owner: OwnerId, names: readonly string[]): Steps<Map<string, string>> {
    const values = new Map<string, string>()
    for (const name of names) {
      const row = yield* queryOne<{ sealed: string }>(sealedValue, [owner, name])
      if (row !== null) values.set(name, row.sealed)
    }
    return values
  }),

  remove: write(function* (owner: OwnerId, id: SecretId): Steps<boolean> {
    return (yield* query(deleteSecret, [owner, id])).length > 0
  }),
} satisfies PortOperations<SecretStore>

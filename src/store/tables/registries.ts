/** Statements and rows of registries. */
import type { OwnerId, RegistryId } from '../../core/ids.ts'
import type { Registry } from '../../core/secrets/registry.ts'

/** The columns of a registry without its password; see registries.ts. */
export const REGISTRY_COLUMNS = 'id, owner, name, username, created_at_ms'

/** A new registry. */
export const insertRegistry = `
  INSERT INTO registries (${REGISTRY_COLUMNS}, sealed) VALUES ($1, $2, $3, $4, $5, $6)`

/** $1 owner, $2 registry, $3 name, $4 user name, $5 sealed password; NULL to keep one. */
export const updateRegistry = `
  UPDATE registries
  SET name = COALESCE($3, name), username = COALESCE($4, username), sealed = COALESCE($5, sealed)
  WHERE id = $2 AND owner = $1
  RETURNING ${REGISTRY_COLUMNS}`

/** $1 owner, $2 registry. */
export const findRegistry = `SELECT ${REGISTRY_COLUMNS} FROM registries WHERE id = $2 AND owner = $1`

/** $1 owner, $2 registry. */
export const sealedPassword = 'SELECT sealed FROM registries WHERE id = $2 AND owner = $1'

/** $1 owner, $2 and $3 where the page before ended, $4 how many. */
export const listRegistries = `
  SELECT ${REGISTRY_COLUMNS} FROM registries WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 registry. Nothing can refer to it any more that does not yet. */
export const lockRegistry = 'SELECT id FROM registries WHERE id = $2 AND owner = $1 {{lock_key}}'

/** $1 owner, $2 registry. */
export const deleteRegistry = 'DELETE FROM registries WHERE id = $2 AND owner = $1 RETURNING id'

/** A row of `registries` without the sealed password. */
export interface RegistryRow {
  readonly id: RegistryId
  readonly owner: OwnerId
  readonly name: string
  readonly username: string
  readonly created_at_ms: number
}

/** A row as a registry. */
export function toRegistry(row: RegistryRow): Registry {
  const { id, owner, name, username } = row
  return { id, owner, name, username, createdAtMs: row.created_at_ms }
}

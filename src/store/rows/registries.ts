import type { OwnerId, RegistryId } from '../../core/ids.ts'
import type { Registry } from '../../core/secrets/registry.ts'

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

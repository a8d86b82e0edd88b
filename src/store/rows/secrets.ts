import type { OwnerId, SecretId } from '../../core/ids.ts'
import type { Secret } from '../../core/secrets/secret.ts'

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

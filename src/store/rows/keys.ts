import type { KeyId, OwnerId } from '../../core/ids.ts'
import type { ApiKey, KeyScope } from '../../core/permission.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `api_keys`. */
export interface KeyRow {
  readonly id: KeyId
  readonly owner: OwnerId
  readonly name: string
  readonly hash: string
  readonly scope: string
  readonly exempt: number
  readonly disabled: number
  readonly expires_at_ms: number | null
  readonly created_at_ms: number
}

/** A row as a key. */
export function toKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    owner: row.owner,
    name: row.name,
    hash: row.hash,
    scope: JSON.parse(row.scope) as KeyScope,
    exempt: row.exempt === 1,
    disabled: row.disabled === 1,
    expiresAtMs: row.expires_at_ms,
    createdAtMs: row.created_at_ms,
  }
}

/** A key's values in the order of its columns. */
export function ofKey(key: ApiKey): SqlValue[] {
  const { id, owner, name, hash, expiresAtMs, createdAtMs } = key
  return [
    id,
    owner,
    name,
    hash,
    JSON.stringify(key.scope),
    key.exempt ? 1 : 0,
    key.disabled ? 1 : 0,
    expiresAtMs,
    createdAtMs,
  ]
}

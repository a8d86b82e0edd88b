import type { AccessLevel, ApiKey, KeyKind, KeyScope } from '../../core/accounts/permission.ts'
import type { EndpointId, KeyId, OwnerId } from '../../core/ids.ts'
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
  readonly kind: KeyKind
  readonly hint: string
  readonly last_used_at_ms: number | null
  readonly endpoint_id: EndpointId | null
}

/** A row as a key. */
export function toKey(row: KeyRow): ApiKey {
  const { id, owner, kind, name, hash, hint } = row
  return {
    id,
    owner,
    kind,
    name,
    hash,
    hint,
    scope: toScope(row.scope),
    exempt: row.exempt === 1,
    disabled: row.disabled === 1,
    expiresAtMs: row.expires_at_ms,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    endpointId: row.endpoint_id,
  }
}

/** A key's values in the order of its columns. */
export function ofKey(key: ApiKey): SqlValue[] {
  const { id, owner, name, hash, expiresAtMs, createdAtMs, kind, hint, lastUsedAtMs, endpointId } = key
  const flags = [key.exempt ? 1 : 0, key.disabled ? 1 : 0]
  return [
    ...[id, owner, name, hash, JSON.stringify(key.scope), ...flags, expiresAtMs, createdAtMs],
    ...[kind, hint, lastUsedAtMs, endpointId],
  ]
}

/** The parameters of `updateKey`. */
export function ofChangedKey({ id, owner, name, scope, exempt, disabled, expiresAtMs, kind }: ApiKey): SqlValue[] {
  return [id, owner, name, JSON.stringify(scope), exempt ? 1 : 0, disabled ? 1 : 0, expiresAtMs, kind]
}

/** A scope as older versions have written it. */
interface FormerScope {
  readonly management: AccessLevel
  readonly jobs: AccessLevel
  readonly endpoints: readonly EndpointId[] | null
}

function toScope(text: string): KeyScope {
  const scope = JSON.parse(text) as KeyScope | FormerScope
  if ('type' in scope) return scope
  const { management, jobs, endpoints } = scope
  if (management === 'write' && jobs === 'write' && endpoints === null) return { type: 'all' }
  const named = endpoints === null ? jobs : Object.fromEntries(endpoints.map(id => [id, jobs]))
  return { type: 'restricted', management, jobs: named }
}

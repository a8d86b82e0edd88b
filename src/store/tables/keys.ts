/** Statements and rows of API keys and of the use of their owners. */
import type { AccessLevel, ApiKey, KeyKind, KeyScope } from '../../core/accounts/permission.ts'
import type { EndpointId, KeyId, OwnerId } from '../../core/ids.ts'
import type { KeyLimits } from '../../core/key-limits.ts'
import type { SqlValue } from './statement.ts'

/** The columns of a key; see keys.ts. */
export const KEY_COLUMNS =
  'id, owner, name, hash, scope, exempt, disabled, expires_at_ms, created_at_ms, kind, hint, last_used_at_ms, endpoint_id, limits, accounting'

const VALUES = '($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)'

/** A new key. */
export const insertKey = `INSERT INTO api_keys (${KEY_COLUMNS}, sealed) VALUES ${VALUES}`

/** A new key of an endpoint, unless that has one. */
export const insertEndpointKey = `
  INSERT INTO api_keys (${KEY_COLUMNS}, sealed) VALUES ${VALUES} ON CONFLICT (endpoint_id) DO NOTHING`

/** $1 endpoint. */
export const findEndpointKey = `SELECT ${KEY_COLUMNS}, sealed FROM api_keys WHERE endpoint_id = $1`

/** $1 endpoint. */
export const lockEndpointKey = 'SELECT id FROM api_keys WHERE endpoint_id = $1 {{lock}}'

/** A new key of an endpoint, in the place of the one that it has. */
export const replaceEndpointKey = `
  INSERT INTO api_keys (${KEY_COLUMNS}, sealed) VALUES ${VALUES}
  ON CONFLICT (endpoint_id) DO UPDATE SET
    id = excluded.id, name = excluded.name, hash = excluded.hash, scope = excluded.scope, disabled = excluded.disabled,
    created_at_ms = excluded.created_at_ms, hint = excluded.hint, limits = excluded.limits, accounting = excluded.accounting,
    last_used_at_ms = excluded.last_used_at_ms, sealed = excluded.sealed`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. Those of endpoints alone. */
export const listEndpointKeys = `
  SELECT ${KEY_COLUMNS} FROM api_keys WHERE owner = $1 AND kind = 'endpoint' AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 key, $2 owner, $3 to $10 its new values. */
export const updateKey = `
  UPDATE api_keys SET name = $3, scope = $4, exempt = $5, disabled = $6, expires_at_ms = $7, kind = $8, limits = $9, accounting = $10
  WHERE id = $1 AND owner = $2
  RETURNING id`

/** $1 key, $2 now. */
export const useKey = `
  UPDATE api_keys SET last_used_at_ms = $2 WHERE id = $1 AND (last_used_at_ms IS NULL OR last_used_at_ms < $2)`

/** $1 key. */
export const lockKey = 'SELECT id FROM api_keys WHERE id = $1 {{lock}}'

/** $1 owner. All that may have all rights, always in the same order. */
export const lockLastingKeys = `
  SELECT id FROM api_keys WHERE owner = $1 AND kind <> 'endpoint' AND disabled = 0 AND expires_at_ms IS NULL
  ORDER BY id {{lock}}`

/** $1 owner. */
export const listLastingKeys = `
  SELECT ${KEY_COLUMNS} FROM api_keys
  WHERE owner = $1 AND kind <> 'endpoint' AND disabled = 0 AND expires_at_ms IS NULL`

/** $1 hash. */
export const findKeyByHash = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE hash = $1`

/** $1 key. */
export const findKey = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE id = $1`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. Without those of endpoints. */
export const listKeys = `
  SELECT ${KEY_COLUMNS} FROM api_keys WHERE owner = $1 AND kind <> 'endpoint' AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 key. */
export const deleteKey = 'DELETE FROM api_keys WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 owner. */
export const listWindows = 'SELECT start_ms, used FROM rate_windows WHERE owner = $1 ORDER BY place'

/** $1 owner, $2 place of the window, $3 its start, $4 requests counted. */
export const saveWindow = `
  INSERT INTO rate_windows (owner, place, start_ms, used) VALUES ($1, $2, $3, $4)
  ON CONFLICT (owner, place) DO UPDATE SET start_ms = excluded.start_ms, used = excluded.used`

/** $1 owner, $2 number of present windows. Removes further ones. */
export const dropWindows = 'DELETE FROM rate_windows WHERE owner = $1 AND place >= $2'

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
  readonly limits: string
  readonly accounting: number
}

/** A row as a key. */
export function keyFromRow(row: KeyRow): ApiKey {
  const { id, owner, kind, name, hash, hint } = row
  return {
    id,
    owner,
    kind,
    name,
    hash,
    hint,
    scope: readScope(row.scope),
    exempt: row.exempt === 1,
    disabled: row.disabled === 1,
    expiresAtMs: row.expires_at_ms,
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    endpointId: row.endpoint_id,
    ...(row.limits !== '{}' && { limits: JSON.parse(row.limits) as KeyLimits }),
    ...(row.accounting === 1 && { accounting: true }),
  }
}

/** A key's values in the order of its columns. */
export function keyParams(key: ApiKey): SqlValue[] {
  const { id, owner, name, hash, expiresAtMs, createdAtMs, kind, hint, lastUsedAtMs, endpointId } = key
  const flags = [key.exempt ? 1 : 0, key.disabled ? 1 : 0]
  return [
    ...[id, owner, name, hash, JSON.stringify(key.scope), ...flags, expiresAtMs, createdAtMs],
    ...[kind, hint, lastUsedAtMs, endpointId, JSON.stringify(key.limits ?? {}), key.accounting === true ? 1 : 0],
  ]
}

/** The parameters of `updateKey`. */
export function changedKeyParams(key: ApiKey): SqlValue[] {
  const { id, owner, name, scope, exempt, disabled, expiresAtMs, kind, limits = {}, accounting } = key
  const flags = [exempt ? 1 : 0, disabled ? 1 : 0]
  const rest = [JSON.stringify(limits), accounting === true ? 1 : 0]
  return [id, owner, name, JSON.stringify(scope), ...flags, expiresAtMs, kind, ...rest]
}

/** A scope as older versions have written it. */
interface FormerScope {
  readonly management: AccessLevel
  readonly jobs: AccessLevel
  readonly endpoints: readonly EndpointId[] | null
}

function readScope(text: string): KeyScope {
  const scope = JSON.parse(text) as KeyScope | FormerScope
  if ('type' in scope) return scope
  const { management, jobs, endpoints } = scope
  if (management === 'write' && jobs === 'write' && endpoints === null) return { type: 'all' }
  const named = endpoints === null ? jobs : Object.fromEntries(endpoints.map(id => [id, jobs]))
  return { type: 'restricted', management, jobs: named }
}

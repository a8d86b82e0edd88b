import { type ApiKey, isLastingOperatorKey } from '../../../core/accounts/permission.ts'
import type { WindowCount } from '../../../core/accounts/rate-limit.ts'
import { DEFAULT_OWNER, type EndpointId, type KeyId, type OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { EndpointKey, KeyStore } from '../../../ports/store/key-store.ts'
import * as sql from '../../tables/keys.ts'
import { changedKeyParams, type KeyRow, keyFromRow, keyParams } from '../../tables/keys.ts'
import { deleteSessionsOfKey } from '../../tables/sessions.ts'
import { sliceParams } from '../../tables/statement.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** API keys and their use. */
export const keys = {
  insert: write(function* (key: ApiKey): Steps<void> {
    yield* perform(sql.insertKey, [...keyParams(key), null])
  }),

  ensureForEndpoint: write(function* (key: ApiKey, sealed: string): Steps<EndpointKey> {
    yield* perform(sql.insertEndpointKey, [...keyParams(key), sealed])
    return (yield* endpointKey(key.endpointId!)) ?? { key, sealed }
  }),

  replaceForEndpoint: write(function* (key: ApiKey, sealed: string): Steps<ApiKey | null> {
    yield* lock(sql.lockEndpointKey, [key.endpointId])
    const previous = yield* endpointKey(key.endpointId!)
    // The row stays and gets another key, which has no sessions yet.
    if (previous !== null) yield* perform(deleteSessionsOfKey, [previous.key.id])
    yield* perform(sql.replaceEndpointKey, [...keyParams(key), sealed])
    return previous?.key ?? null
  }),

  ofEndpoint: read(function* (endpointId: EndpointId): Steps<EndpointKey | null> {
    return yield* endpointKey(endpointId)
  }),

  listOfEndpoints: read(function* (owner: OwnerId, slice?: Slice): Steps<ApiKey[]> {
    return (yield* query<KeyRow>(sql.listEndpointKeys, [owner, ...sliceParams(slice)])).map(keyFromRow)
  }),

  update: write(function* (key: ApiKey, previous: ApiKey): Steps<'changed' | 'outdated' | 'last_key'> {
    const isLast = isLastingOperatorKey(previous) && !isLastingOperatorKey(key) && (yield* isLastKey(previous))
    yield* lock(sql.lockKey, [key.id])
    const row = yield* queryOne<KeyRow>(sql.findKey, [key.id])
    if (row === null || !isSameKey(keyFromRow(row), previous)) return 'outdated'
    if (isLast) return 'last_key'
    return (yield* query(sql.updateKey, changedKeyParams(key))).length > 0 ? 'changed' : 'outdated'
  }),

  replace: write(function* (
    key: ApiKey,
    previous: ApiKey,
    after: ApiKey | null,
  ): Steps<'replaced' | 'outdated' | 'last_key'> {
    const isLast = isLastingOperatorKey(previous) && !isLastingOperatorKey(key) && (yield* isLastKey(previous))
    yield* lock(sql.lockKey, [previous.id])
    const row = yield* queryOne<KeyRow>(sql.findKey, [previous.id])
    if (row === null || !isSameKey(keyFromRow(row), previous)) return 'outdated'
    if (isLast && (after === null || !isLastingOperatorKey(after))) return 'last_key'
    yield* perform(sql.insertKey, [...keyParams(key), null])
    if (after === null) yield* query(sql.deleteKey, [previous.owner, previous.id])
    else yield* query(sql.updateKey, changedKeyParams(after))
    return 'replaced'
  }),

  used: write(function* (id: KeyId, nowMs: number): Steps<void> {
    yield* perform(sql.useKey, [id, nowMs])
  }),

  findByHash: read(function* (hash: string): Steps<ApiKey | null> {
    const row = yield* queryOne<KeyRow>(sql.findKeyByHash, [hash])
    return row === null ? null : keyFromRow(row)
  }),

  find: read(function* (id: KeyId): Steps<ApiKey | null> {
    const row = yield* queryOne<KeyRow>(sql.findKey, [id])
    return row === null ? null : keyFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<ApiKey[]> {
    return (yield* query<KeyRow>(sql.listKeys, [owner, ...sliceParams(slice)])).map(keyFromRow)
  }),

  remove: write(function* (owner: OwnerId, id: KeyId): Steps<'removed' | 'absent' | 'last_key'> {
    const row = yield* queryOne<KeyRow>(sql.findKey, [id])
    if (row === null || row.owner !== owner) return 'absent'
    if (owner === DEFAULT_OWNER && (yield* isLastKey(keyFromRow(row)))) return 'last_key'
    return (yield* query(sql.deleteKey, [owner, id])).length > 0 ? 'removed' : 'absent'
  }),

  windowCounts: read(function* (owner: OwnerId): Steps<WindowCount[]> {
    const rows = yield* query<{ start_ms: number; used: number }>(sql.listWindows, [owner])
    return rows.map(row => ({ startMs: row.start_ms, used: row.used }))
  }),

  saveWindowCounts: write(function* (owner: OwnerId, counts: readonly WindowCount[]): Steps<void> {
    for (const [place, { startMs, used }] of counts.entries()) {
      yield* perform(sql.saveWindow, [owner, place, startMs, used])
    }
    yield* perform(sql.dropWindows, [owner, counts.length])
  }),
} satisfies PortOperations<KeyStore>

function* endpointKey(id: EndpointId): Steps<EndpointKey | null> {
  const row = yield* queryOne<KeyRow & { readonly sealed: string }>(sql.findEndpointKey, [id])
  return row === null ? null : { key: keyFromRow(row), sealed: row.sealed }
}

/**
 * True where no other key of its owner has all rights for good. Keeps those that have them from changing until the
 * operation ends, so that of two that are taken away at once the second sees that the first is gone.
 */
function* isLastKey({ id, owner }: ApiKey): Steps<boolean> {
  yield* lock(sql.lockLastingKeys, [owner])
  const keys = (yield* query<KeyRow>(sql.listLastingKeys, [owner])).map(keyFromRow).filter(isLastingOperatorKey)
  return keys.length === 1 && keys[0]?.id === id
}

/** True where it is unchanged; its last use does not matter. */
function isSameKey(a: ApiKey, b: ApiKey): boolean {
  return JSON.stringify(changedKeyParams(a)) === JSON.stringify(changedKeyParams(b))
}

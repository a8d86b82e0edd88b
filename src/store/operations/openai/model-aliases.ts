import type { EndpointId, OwnerId } from '../../../core/ids.ts'
import { MODEL_ALIASES, type ModelAlias } from '../../../core/openai/model-alias.ts'
import type { ModelAliasStore } from '../../../ports/store/management-store.ts'
import { type PortOperations, query, queryOne, read, type Steps, write } from '../operation.ts'

const COLUMNS = 'owner, name, endpoint_ids, created_at_ms'

/** $1 owner, $2 name, $3 endpoints, $4 instant. */
export const saveAlias = `
  INSERT INTO model_aliases (${COLUMNS}) VALUES ($1, $2, $3, $4)
  ON CONFLICT (owner, name) DO UPDATE SET endpoint_ids = excluded.endpoint_ids`

/** $1 owner, $2 name. */
export const findAlias = `SELECT ${COLUMNS} FROM model_aliases WHERE owner = $1 AND name = $2`

/** $1 owner, $2 limit. */
export const listAliases = `SELECT ${COLUMNS} FROM model_aliases WHERE owner = $1 ORDER BY name LIMIT $2`

/** $1 owner, $2 name. */
export const deleteAlias = 'DELETE FROM model_aliases WHERE owner = $1 AND name = $2 RETURNING name'

interface AliasRow {
  readonly owner: OwnerId
  readonly name: string
  readonly endpoint_ids: string
  readonly created_at_ms: number
}

function aliasFromRow({ owner, name, endpoint_ids, created_at_ms: createdAtMs }: AliasRow): ModelAlias {
  return { owner, name, endpointIds: JSON.parse(endpoint_ids) as EndpointId[], createdAtMs }
}

/** Other names of models. */
export const modelAliases = {
  save: write(function* ({ owner, name, endpointIds, createdAtMs }: ModelAlias): Steps<boolean> {
    const present = yield* query<AliasRow>(listAliases, [owner, MODEL_ALIASES.ofAccount])
    if (present.length >= MODEL_ALIASES.ofAccount && !present.some(row => row.name === name)) return false
    yield* query(saveAlias, [owner, name, JSON.stringify(endpointIds), createdAtMs])
    return true
  }),

  find: read(function* (owner: OwnerId, name: string): Steps<ModelAlias | null> {
    const row = yield* queryOne<AliasRow>(findAlias, [owner, name])
    return row === null ? null : aliasFromRow(row)
  }),

  list: read(function* (owner: OwnerId): Steps<ModelAlias[]> {
    return (yield* query<AliasRow>(listAliases, [owner, MODEL_ALIASES.ofAccount])).map(aliasFromRow)
  }),

  remove: write(function* (owner: OwnerId, name: string): Steps<boolean> {
    return (yield* query(deleteAlias, [owner, name])).length > 0
  }),
} satisfies PortOperations<ModelAliasStore>

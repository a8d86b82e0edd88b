import type { EndpointId, OwnerId, RegistryId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { Registry } from '../../../core/secrets/registry.ts'
import type { RegistryChanges, RegistryStore } from '../../../ports/store/management-store.ts'
import { sliceParams } from '../../tables/statement.ts'
import {
  findTemplate,
  lockTemplate,
  type TemplateRow,
  templateFromRow,
  templatesOfRegistry,
} from '../../tables/templates.ts'
import { replaceTemplate } from '../endpoints/templates.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of a registry without its password; see registries.ts. */
const REGISTRY_COLUMNS = 'id, owner, name, username, created_at_ms'

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

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. */
export const listRegistries = `
  SELECT ${REGISTRY_COLUMNS} FROM registries WHERE owner = $1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 registry. No new reference to it is possible. */
export const lockRegistry = 'SELECT id FROM registries WHERE id = $2 AND owner = $1 {{lock_key}}'

/** $1 owner, $2 registry. */
export const deleteRegistry = 'DELETE FROM registries WHERE id = $2 AND owner = $1 RETURNING id'

/** A row of `registries` without the sealed password. */
interface RegistryRow {
  readonly id: RegistryId
  readonly owner: OwnerId
  readonly name: string
  readonly username: string
  readonly created_at_ms: number
}

/** A row as a registry. */
function registryFromRow(row: RegistryRow): Registry {
  const { id, owner, name, username } = row
  return { id, owner, name, username, createdAtMs: row.created_at_ms }
}

/** Registries with their sealed passwords. */
export const registries = {
  insert: write(function* (registry: Registry, sealed: string): Steps<void> {
    const { id, owner, name, username, createdAtMs } = registry
    yield* perform(insertRegistry, [id, owner, name, username, createdAtMs, sealed])
  }),

  update: write(function* (owner: OwnerId, id: RegistryId, changes: RegistryChanges): Steps<Registry | null> {
    const { name = null, username = null, sealed = null } = changes
    const row = yield* queryOne<RegistryRow>(updateRegistry, [owner, id, name, username, sealed])
    return row === null ? null : registryFromRow(row)
  }),

  find: read(function* (owner: OwnerId, id: RegistryId): Steps<Registry | null> {
    const row = yield* queryOne<RegistryRow>(findRegistry, [owner, id])
    return row === null ? null : registryFromRow(row)
  }),

  sealedPassword: read(function* (owner: OwnerId, id: RegistryId): Steps<string | null> {
    return (yield* queryOne<{ sealed: string }>(sealedPassword, [owner, id]))?.sealed ?? null
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Registry[]> {
    return (yield* query<RegistryRow>(listRegistries, [owner, ...sliceParams(slice)])).map(registryFromRow)
  }),

  remove: write(function* (owner: OwnerId, id: RegistryId, nowMs: number): Steps<EndpointId[] | null> {
    yield* lock(lockRegistry, [owner, id])
    if ((yield* queryOne(findRegistry, [owner, id])) === null) return null
    const users: EndpointId[] = []
    for (const template of yield* query<TemplateRow>(templatesOfRegistry, [id])) {
      yield* lock(lockTemplate, [template.id])
      const row = yield* queryOne<TemplateRow>(findTemplate, [owner, template.id])
      if (row === null || row.registry_id !== id) continue
      users.push(...((yield* replaceTemplate({ ...templateFromRow(row), registry: null }, nowMs)) ?? []))
    }
    yield* perform(deleteRegistry, [owner, id])
    return users.sort()
  }),
} satisfies PortOperations<RegistryStore>

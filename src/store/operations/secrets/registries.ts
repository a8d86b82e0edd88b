import type { EndpointId, OwnerId, RegistryId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { Registry } from '../../../core/secrets/registry.ts'
import type { RegistryChanges, RegistryStore } from '../../../ports/store/management-store.ts'
import * as sql from '../../tables/registries.ts'
import { type RegistryRow, toRegistry } from '../../tables/registries.ts'
import { ofSlice } from '../../tables/slices.ts'
import {
  findTemplate,
  lockTemplate,
  type TemplateRow,
  templatesOfRegistry,
  toTemplate,
} from '../../tables/templates.ts'
import { replaceTemplate } from '../endpoints/templates.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Registries with their sealed passwords. */
export const registries = {
  insert: write(function* (registry: Registry, sealed: string): Steps<void> {
    const { id, owner, name, username, createdAtMs } = registry
    yield* perform(sql.insertRegistry, [id, owner, name, username, createdAtMs, sealed])
  }),

  update: write(function* (owner: OwnerId, id: RegistryId, changes: RegistryChanges): Steps<Registry | null> {
    const { name = null, username = null, sealed = null } = changes
    const row = yield* queryOne<RegistryRow>(sql.updateRegistry, [owner, id, name, username, sealed])
    return row === null ? null : toRegistry(row)
  }),

  find: read(function* (owner: OwnerId, id: RegistryId): Steps<Registry | null> {
    const row = yield* queryOne<RegistryRow>(sql.findRegistry, [owner, id])
    return row === null ? null : toRegistry(row)
  }),

  sealedPassword: read(function* (owner: OwnerId, id: RegistryId): Steps<string | null> {
    return (yield* queryOne<{ sealed: string }>(sql.sealedPassword, [owner, id]))?.sealed ?? null
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Registry[]> {
    return (yield* query<RegistryRow>(sql.listRegistries, [owner, ...ofSlice(slice)])).map(toRegistry)
  }),

  remove: write(function* (owner: OwnerId, id: RegistryId, nowMs: number): Steps<EndpointId[] | null> {
    yield* lock(sql.lockRegistry, [owner, id])
    if ((yield* queryOne(sql.findRegistry, [owner, id])) === null) return null
    const users: EndpointId[] = []
    for (const seen of yield* query<TemplateRow>(templatesOfRegistry, [id])) {
      yield* lock(lockTemplate, [seen.id])
      const row = yield* queryOne<TemplateRow>(findTemplate, [owner, seen.id])
      if (row === null || row.registry_id !== id) continue
      users.push(...((yield* replaceTemplate({ ...toTemplate(row), registry: null }, nowMs)) ?? []))
    }
    yield* perform(sql.deleteRegistry, [owner, id])
    return users.sort()
  }),
} satisfies OperationsOf<RegistryStore>

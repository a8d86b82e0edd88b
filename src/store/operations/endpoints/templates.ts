import type { Template } from '../../../core/endpoints/template.ts'
import type { EndpointId, OwnerId, TemplateId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { TemplateStore } from '../../../ports/store/management-store.ts'
import {
  type EndpointRow,
  endpointFromRow,
  lockUsersOfTemplate,
  newVersion,
  usersOfTemplate,
} from '../../tables/endpoints.ts'
import { sliceParams } from '../../tables/statement.ts'
import * as sql from '../../tables/templates.ts'
import { changedTemplateParams, type TemplateRow, templateFromRow, templateParams } from '../../tables/templates.ts'
import { lock, type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { addRelease } from './releases.ts'

const MAX_OF_ENDPOINTS = 10_000

/** Templates. */
export const templates = {
  insert: write(function* (template: Template): Steps<boolean> {
    return (yield* query(sql.insertTemplate, templateParams(template))).length > 0
  }),

  replace: write(function* (
    template: Template,
    previous: Template,
    nowMs: number,
  ): Steps<EndpointId[] | 'changed' | null> {
    yield* lock(sql.lockTemplate, [template.id])
    const row = yield* queryOne<TemplateRow>(sql.findTemplate, [template.owner, template.id])
    if (row !== null && !isSameTemplate(templateFromRow(row), previous)) return 'changed'
    return yield* replaceTemplate(template, nowMs)
  }),

  find: read(function* (owner: OwnerId, id: TemplateId): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplate, [owner, id])
    return row === null ? null : templateFromRow(row)
  }),

  findPublic: read(function* (id: TemplateId): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findPublicTemplate, [id])
    return row === null ? null : templateFromRow(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplateByName, [owner, name])
    return row === null ? null : templateFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.listTemplates, [owner, ...sliceParams(slice)])).map(templateFromRow)
  }),

  listPublic: read(function* (slice?: Slice): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.listPublicTemplates, sliceParams(slice))).map(templateFromRow)
  }),

  ofThese: read(function* (owner: OwnerId, ids: readonly TemplateId[]): Steps<Template[]> {
    const rows = yield* query<TemplateRow>(sql.templatesOfThese, [JSON.stringify(ids)])
    return rows.filter(row => row.owner === owner).map(templateFromRow)
  }),

  ofEndpoints: read(function* (owner: OwnerId): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.templatesOfEndpoints, [owner, MAX_OF_ENDPOINTS])).map(templateFromRow)
  }),

  users: read(function* (id: TemplateId): Steps<EndpointId[]> {
    return (yield* query<EndpointRow>(usersOfTemplate, [id])).map(row => row.id)
  }),

  remove: write(function* (owner: OwnerId, id: TemplateId): Steps<'removed' | 'in_use' | 'absent'> {
    yield* lock(sql.lockTemplate, [id])
    if ((yield* query(sql.usedTemplate, [owner, id])).length > 0) return 'in_use'
    return (yield* query(sql.deleteTemplate, [owner, id])).length > 0 ? 'removed' : 'absent'
  }),
} satisfies PortOperations<TemplateStore>

/**
 * Replaces a template and makes a new version, with its release, of each endpoint that uses it. Null when the
 * template's name is taken or it is gone.
 * @param except an endpoint that gets its new version otherwise
 */
export function* replaceTemplate(template: Template, nowMs: number, except?: EndpointId): Steps<EndpointId[] | null> {
  yield* lock(sql.lockTemplate, [template.id])
  yield* lock(lockUsersOfTemplate, [template.id])
  const previous = yield* queryOne<TemplateRow>(sql.findTemplate, [template.owner, template.id])
  if (previous === null) return null
  if ((yield* query(sql.replaceTemplate, changedTemplateParams(template))).length === 0) return null
  const rows = yield* query<EndpointRow>(usersOfTemplate, [template.id])
  const users = rows.map(endpointFromRow).filter(({ id }) => id !== except)
  for (const endpoint of users) {
    yield* perform(newVersion, [endpoint.id])
    const after = { ...endpoint, version: endpoint.version + 1 }
    yield* addRelease({ endpoint, template: templateFromRow(previous) }, { endpoint: after, template }, nowMs)
  }
  return users.map(({ id }) => id)
}

/** True where it is unchanged, in the order of members that the store writes. */
function isSameTemplate(a: Template, b: Template): boolean {
  return JSON.stringify(templateParams(a)) === JSON.stringify(templateParams(b))
}

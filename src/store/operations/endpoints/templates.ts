import type { Template } from '../../../core/endpoints/template.ts'
import type { EndpointId, OwnerId, TemplateId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { TemplateStore } from '../../../ports/store/management-store.ts'
import {
  type EndpointRow,
  lockUsersOfTemplate,
  newVersion,
  toEndpoint,
  usersOfTemplate,
} from '../../tables/endpoints.ts'
import { ofSlice } from '../../tables/slices.ts'
import * as sql from '../../tables/templates.ts'
import { ofChangedTemplate, ofTemplate, type TemplateRow, toTemplate } from '../../tables/templates.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { addRelease } from './releases.ts'

const MAX_OF_ENDPOINTS = 10_000

/** Templates. */
export const templates = {
  insert: write(function* (template: Template): Steps<boolean> {
    return (yield* query(sql.insertTemplate, ofTemplate(template))).length > 0
  }),

  replace: write(function* (
    template: Template,
    before: Template,
    nowMs: number,
  ): Steps<EndpointId[] | 'changed' | null> {
    yield* lock(sql.lockTemplate, [template.id])
    const row = yield* queryOne<TemplateRow>(sql.findTemplate, [template.owner, template.id])
    if (row !== null && !sameTemplate(toTemplate(row), before)) return 'changed'
    return yield* replaceTemplate(template, nowMs)
  }),

  find: read(function* (owner: OwnerId, id: TemplateId): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplate, [owner, id])
    return row === null ? null : toTemplate(row)
  }),

  findPublic: read(function* (id: TemplateId): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findPublicTemplate, [id])
    return row === null ? null : toTemplate(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplateByName, [owner, name])
    return row === null ? null : toTemplate(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.listTemplates, [owner, ...ofSlice(slice)])).map(toTemplate)
  }),

  listPublic: read(function* (slice?: Slice): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.listPublicTemplates, ofSlice(slice))).map(toTemplate)
  }),

  ofEndpoints: read(function* (owner: OwnerId): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.templatesOfEndpoints, [owner, MAX_OF_ENDPOINTS])).map(toTemplate)
  }),

  users: read(function* (id: TemplateId): Steps<EndpointId[]> {
    return (yield* query<EndpointRow>(usersOfTemplate, [id])).map(row => row.id)
  }),

  remove: write(function* (owner: OwnerId, id: TemplateId): Steps<'removed' | 'in_use' | 'absent'> {
    yield* lock(sql.lockTemplate, [id])
    if ((yield* query(sql.usedTemplate, [owner, id])).length > 0) return 'in_use'
    return (yield* query(sql.deleteTemplate, [owner, id])).length > 0 ? 'removed' : 'absent'
  }),
} satisfies OperationsOf<TemplateStore>

/**
 * Replaces a template and makes a new version, with its release, of each endpoint that uses it. Null when the
 * template's name is taken or it is gone.
 * @param except an endpoint that gets its new version otherwise
 */
export function* replaceTemplate(template: Template, nowMs: number, except?: EndpointId): Steps<EndpointId[] | null> {
  yield* lock(sql.lockTemplate, [template.id])
  yield* lock(lockUsersOfTemplate, [template.id])
  const before = yield* queryOne<TemplateRow>(sql.findTemplate, [template.owner, template.id])
  if (before === null) return null
  if ((yield* query(sql.replaceTemplate, ofChangedTemplate(template))).length === 0) return null
  const rows = yield* query<EndpointRow>(usersOfTemplate, [template.id])
  const users = rows.map(toEndpoint).filter(({ id }) => id !== except)
  for (const endpoint of users) {
    yield* perform(newVersion, [endpoint.id])
    const after = { ...endpoint, version: endpoint.version + 1 }
    yield* addRelease({ endpoint, template: toTemplate(before) }, { endpoint: after, template }, nowMs)
  }
  return users.map(({ id }) => id)
}

/** True where it is unchanged, in the order of members that the store writes. */
function sameTemplate(a: Template, b: Template): boolean {
  return JSON.stringify(ofTemplate(a)) === JSON.stringify(ofTemplate(b))
}

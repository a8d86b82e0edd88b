import type { EndpointId, OwnerId, TemplateId } from '../../core/ids.ts'
import type { Template } from '../../core/template.ts'
import type { TemplateStore } from '../../ports/store.ts'
import { type TemplateRow, templateConfig, toTemplate } from '../rows/templates.ts'
import { newVersionOfUsers } from '../sql/endpoints.ts'
import * as sql from '../sql/templates.ts'
import { type OperationsOf, query, queryOne, read, type Steps, write } from './operation.ts'

/** Templates. */
export const templates = {
  insert: write(function* (template: Template): Steps<boolean> {
    const { id, owner, name, listed, createdAtMs } = template
    const params = [id, owner, name, listed ? 1 : 0, createdAtMs, templateConfig(template)]
    return (yield* query(sql.insertTemplate, params)).length > 0
  }),

  replace: write(function* (template: Template): Steps<EndpointId[] | null> {
    const { id, owner, name, listed } = template
    const rows = yield* query(sql.replaceTemplate, [id, owner, name, listed ? 1 : 0, templateConfig(template)])
    if (rows.length === 0) return null
    const users = yield* query<{ id: EndpointId }>(newVersionOfUsers, [id])
    return users.map(row => row.id).sort()
  }),

  find: read(function* (owner: OwnerId, id: TemplateId): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplate, [owner, id])
    return row === null ? null : toTemplate(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<Template | null> {
    const row = yield* queryOne<TemplateRow>(sql.findTemplateByName, [owner, name])
    return row === null ? null : toTemplate(row)
  }),

  list: read(function* (owner: OwnerId): Steps<Template[]> {
    return (yield* query<TemplateRow>(sql.listTemplates, [owner])).map(toTemplate)
  }),

  remove: write(function* (owner: OwnerId, id: TemplateId): Steps<'removed' | 'in_use' | 'absent'> {
    if ((yield* query(sql.usedTemplate, [owner, id])).length > 0) return 'in_use'
    return (yield* query(sql.deleteTemplate, [owner, id])).length > 0 ? 'removed' : 'absent'
  }),
} satisfies OperationsOf<TemplateStore>

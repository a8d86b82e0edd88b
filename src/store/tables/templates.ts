/** Statements and rows of templates. */
import { namesIn, picked } from '../../core/endpoints/field.ts'
import { TEMPLATE_DEFAULTS, TEMPLATE_FIELDS, type Template, type TemplateInput } from '../../core/endpoints/template.ts'
import type { OwnerId, RegistryId, TemplateId } from '../../core/ids.ts'
import type { SqlValue } from './statement.ts'

/** The columns of a template; see templates.ts. */
export const TEMPLATE_COLUMNS = 'id, owner, name, listed, created_at_ms, config, is_public, registry_id'

/** A new template; no row when the name is taken. */
export const insertTemplate = `
  INSERT INTO templates (${TEMPLATE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (owner, name) DO NOTHING
  RETURNING id`

/** $1 template, $2 owner, $3 to $7 its new values. No row when another template has the name. */
export const replaceTemplate = `
  UPDATE templates SET name = $3, listed = $4, config = $5, is_public = $6, registry_id = $7
  WHERE id = $1 AND owner = $2
    AND NOT EXISTS (SELECT 1 FROM templates AS other WHERE other.owner = $2 AND other.name = $3 AND other.id <> $1)
  RETURNING id`

/** $1 owner, $2 template. */
export const findTemplate = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE id = $2 AND owner = $1`

/** $1 owner, $2 name. */
export const findTemplateByName = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE owner = $1 AND name = $2`

/** $1 ids, as a JSON list. */
export const templatesOfThese = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE id IN ({{id_list}})`

/** $1 template. */
export const findPublicTemplate = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE id = $1 AND is_public = 1`

/** $1 owner, $2 and $3 the end of the previous page, $4 limit. */
export const listTemplates = `
  SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE owner = $1 AND listed = 1 AND (created_at_ms, id) > ($2, $3)
  ORDER BY created_at_ms, id LIMIT $4`

/** $1 owner, $2 limit. */
export const templatesOfEndpoints = `
  SELECT ${TEMPLATE_COLUMNS} FROM templates
  WHERE owner = $1 AND id IN (SELECT template_id FROM endpoints WHERE owner = $1)
  ORDER BY id LIMIT $2`

/** $1 and $2 the end of the previous page, $3 limit. */
export const listPublicTemplates = `
  SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE is_public = 1 AND (created_at_ms, id) > ($1, $2)
  ORDER BY created_at_ms, id LIMIT $3`

/** $1 template. It stays as it is, and no new reference to it is possible. */
export const lockTemplate = 'SELECT id FROM templates WHERE id = $1 {{lock_key}}'

/** $1 registry. */
export const templatesOfRegistry = `SELECT ${TEMPLATE_COLUMNS} FROM templates WHERE registry_id = $1 ORDER BY id`

/** $1 owner, $2 template. A row when an endpoint has it. */
export const usedTemplate = `
  SELECT id FROM templates WHERE id = $2 AND owner = $1
    AND EXISTS (SELECT 1 FROM endpoints WHERE template_id = $2)`

/** $1 owner, $2 template. */
export const deleteTemplate = 'DELETE FROM templates WHERE id = $2 AND owner = $1 RETURNING id'

/** $1 template: one that belongs to an endpoint alone, after that endpoint left it. */
export const deleteUnlistedTemplate = `
  DELETE FROM templates WHERE id = $1 AND listed = 0
    AND NOT EXISTS (SELECT 1 FROM endpoints WHERE template_id = $1)`

/** A row of `templates`: what statements compare has columns, the rest is one JSON text. */
export interface TemplateRow {
  readonly id: TemplateId
  readonly owner: OwnerId
  readonly name: string
  readonly listed: number
  readonly created_at_ms: number
  readonly config: string
  readonly is_public: number
  readonly registry_id: RegistryId | null
}

type Config = Omit<TemplateInput, 'name' | 'isPublic' | 'registry'>

const IN_CONFIG = namesIn(TEMPLATE_FIELDS).filter(
  (name): name is keyof Config => !['name', 'isPublic', 'registry'].includes(name),
)

/** A row as a template. A field that the row of an older version lacks has its default. */
export function templateFromRow(row: TemplateRow): Template {
  return {
    ...TEMPLATE_DEFAULTS,
    ...(JSON.parse(row.config) as Config),
    id: row.id,
    owner: row.owner,
    name: row.name,
    listed: row.listed === 1,
    isPublic: row.is_public === 1,
    registry: row.registry_id,
    createdAtMs: row.created_at_ms,
  }
}

/** A template's values in the order of its columns. */
export function templateParams(template: Template): SqlValue[] {
  const { id, owner, name, listed, createdAtMs, isPublic, registry } = template
  return [id, owner, name, listed ? 1 : 0, createdAtMs, configText(template), isPublic ? 1 : 0, registry]
}

/** The parameters of `replaceTemplate`. */
export function changedTemplateParams(template: Template): SqlValue[] {
  const { id, owner, name, listed, isPublic, registry } = template
  return [id, owner, name, listed ? 1 : 0, configText(template), isPublic ? 1 : 0, registry]
}

function configText(template: Template): string {
  return JSON.stringify(picked(template, IN_CONFIG))
}

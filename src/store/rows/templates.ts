import type { OwnerId, TemplateId } from '../../core/ids.ts'
import type { Template } from '../../core/template.ts'

/** A row of `templates`: what statements look at has columns, the rest is one JSON text. */
export interface TemplateRow {
  readonly id: TemplateId
  readonly owner: OwnerId
  readonly name: string
  readonly listed: number
  readonly created_at_ms: number
  readonly config: string
}

type Config = Omit<Template, 'id' | 'owner' | 'name' | 'listed' | 'createdAtMs'>

/** A row as a template. */
export function toTemplate(row: TemplateRow): Template {
  return {
    ...(JSON.parse(row.config) as Config),
    id: row.id,
    owner: row.owner,
    name: row.name,
    listed: row.listed === 1,
    createdAtMs: row.created_at_ms,
  }
}

/** The text that holds what has no column. */
export function templateConfig(template: Template): string {
  const { image, args, diskGb, volumeGb, volumeMountPath, env, ports, readme, isServerless, registry } = template
  const config: Config = {
    image,
    args,
    diskGb,
    volumeGb,
    volumeMountPath,
    env,
    ports,
    readme,
    isServerless,
    registry,
  }
  return JSON.stringify(config)
}

import type { Template } from '../../core/endpoints/template.ts'
import type { OwnerId, RegistryId, TemplateId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `templates`: what statements look at has columns, the rest is one JSON text. */
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

type Config = Omit<Template, 'id' | 'owner' | 'name' | 'listed' | 'isPublic' | 'registry' | 'createdAtMs'>

/** What rows of older versions lack. */
const ADDED = {
  category: 'NVIDIA',
  startSsh: true,
  startJupyter: true,
  allowedCudaVersions: [],
  portLabels: [],
} as const

/** A row as a template. */
export function toTemplate(row: TemplateRow): Template {
  return {
    ...ADDED,
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
export function ofTemplate(template: Template): SqlValue[] {
  const { id, owner, name, listed, createdAtMs, isPublic, registry } = template
  return [id, owner, name, listed ? 1 : 0, createdAtMs, configText(template), isPublic ? 1 : 0, registry]
}

/** The parameters of `replaceTemplate`. */
export function ofChangedTemplate(template: Template): SqlValue[] {
  const { id, owner, name, listed, isPublic, registry } = template
  return [id, owner, name, listed ? 1 : 0, configText(template), isPublic ? 1 : 0, registry]
}

function configText(template: Template): string {
  const { image, args, diskGb, volumeGb, volumeMountPath, env, ports, readme, isServerless } = template
  const { category, startSsh, startJupyter, allowedCudaVersions, portLabels } = template
  const config: Config = {
    image,
    args,
    diskGb,
    volumeGb,
    volumeMountPath,
    env,
    ports,
    portLabels,
    readme,
    isServerless,
    category,
    startSsh,
    startJupyter,
    allowedCudaVersions,
  }
  return JSON.stringify(config)
}

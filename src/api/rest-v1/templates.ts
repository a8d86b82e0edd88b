import type { Template, TemplateInput } from '../../core/endpoints/template.ts'
import type { RegistryId } from '../../core/ids.ts'
import { readJson } from '../../core/json/json-text.ts'
import type { Members } from '../rest/route.ts'
import type { TemplateFields } from './schemas.ts'

type Fields = Partial<Members<typeof TemplateFields>>

/** The requested changes. @param args current command line of the template, which may be replaced in parts */
export function templateChanges(fields: Fields, args: string): Partial<TemplateInput> {
  const { name, imageName, containerDiskInGb, volumeInGb, volumeMountPath, env, ports, readme } = fields
  const { isServerless, isPublic, category, containerRegistryAuthId } = fields
  return {
    ...(name === undefined ? {} : { name }),
    ...(imageName === undefined ? {} : { image: imageName }),
    ...(containerDiskInGb === undefined ? {} : { diskGb: containerDiskInGb }),
    ...(volumeInGb === undefined ? {} : { volumeGb: volumeInGb }),
    ...(volumeMountPath ? { volumeMountPath } : {}),
    ...(env === undefined ? {} : { env }),
    ...(ports === undefined ? {} : { ports }),
    ...(readme === undefined ? {} : { readme }),
    ...(isServerless === undefined ? {} : { isServerless }),
    ...(isPublic === undefined ? {} : { isPublic }),
    ...(category === undefined ? {} : { category }),
    ...(containerRegistryAuthId === undefined
      ? {}
      : { registry: (containerRegistryAuthId || null) as RegistryId | null }),
    ...commandLine(fields, args),
  }
}

/** Stores a list of arguments as JSON text, as the other surfaces accept it. */
function commandLine({ dockerEntrypoint, dockerStartCmd }: Fields, args: string): Partial<TemplateInput> {
  if (dockerEntrypoint === undefined && dockerStartCmd === undefined) return {}
  const before = wordLists(args)
  const entrypoint = dockerEntrypoint ?? before.entrypoint
  const cmd = dockerStartCmd ?? before.cmd
  if (entrypoint.length === 0 && cmd.length === 0) return { args: '' }
  return {
    args: JSON.stringify({ ...(cmd.length > 0 ? { cmd } : {}), ...(entrypoint.length > 0 ? { entrypoint } : {}) }),
  }
}

function wordLists(args: string): { entrypoint: string[]; cmd: string[] } {
  const empty = { entrypoint: [], cmd: [] }
  if (args === '') return empty
  const reading = readJson(args)
  const parsed = reading.ok ? (reading.value as { entrypoint?: unknown; cmd?: unknown } | null) : null
  const words = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
  if (typeof parsed !== 'object' || parsed === null) return { ...empty, cmd: [args] }
  return { entrypoint: words(parsed.entrypoint), cmd: words(parsed.cmd) }
}

/** A template as this version shows it. */
export function templateView(template: Template) {
  const { entrypoint, cmd } = wordLists(template.args)
  return {
    id: template.id,
    name: template.name,
    imageName: template.image,
    containerDiskInGb: template.diskGb,
    volumeInGb: template.volumeGb,
    volumeMountPath: template.volumeMountPath,
    dockerEntrypoint: entrypoint,
    dockerStartCmd: cmd,
    env: template.env,
    ports: template.ports,
    isServerless: template.isServerless,
    isPublic: template.isPublic,
    isRunpod: false,
    category: template.category,
    readme: template.readme,
    containerRegistryAuthId: template.registry,
  }
}

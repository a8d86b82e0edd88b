import type { TemplateCategory, TemplateInput } from '../../core/endpoints/template.ts'
import type { RegistryId } from '../../core/ids.ts'
import { listItems } from '../../core/text-parts.ts'

/** One environment variable. */
export interface Variable {
  readonly key: string
  readonly value: string
}

/** Fields that may be left out or null. */
export type GivenTemplateInput<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | null }

/** The fields of a template that both saveTemplate and saveEndpoint take. */
export type TemplateFields = GivenTemplateInput<{
  name: string
  imageName: string
  dockerArgs: string
  containerDiskInGb: number
  volumeInGb: number
  volumeMountPath: string
  ports: string
  env: (Variable | null)[]
  readme: string
  isServerless: boolean
  containerRegistryAuthId: string
  startSsh: boolean
  startJupyter: boolean
  startScript: string
}>

/** The input of saveTemplate as clients send it; empty strings mean "none". */
export type SaveTemplateFields = TemplateFields &
  GivenTemplateInput<{
    id: string
    portsConfig: ({ readonly port: string; readonly name: string } | null)[]
    category: TemplateCategory | 'GPU'
    isPublic: boolean
  }>

/** The result of reading an input, with all problems of its form. */
export interface TemplateReading {
  readonly template: Partial<TemplateInput>
  readonly failures: readonly string[]
}

/** The template fields of an input. Omitted fields stay omitted. */
export function readTemplateFields(fields: SaveTemplateFields): TemplateReading {
  const input: { -readonly [Name in keyof TemplateInput]?: TemplateInput[Name] } = {}
  if (fields.name != null) input.name = fields.name
  if (fields.imageName != null) input.image = fields.imageName
  if (fields.dockerArgs != null) input.args = fields.dockerArgs
  if (fields.containerDiskInGb != null) input.diskGb = fields.containerDiskInGb
  if (fields.volumeInGb != null) input.volumeGb = fields.volumeInGb
  if (fields.volumeMountPath) input.volumeMountPath = fields.volumeMountPath
  if (fields.ports != null) input.ports = listItems(fields.ports, ',')
  if (fields.portsConfig != null) input.portLabels = fields.portsConfig.filter(label => label !== null)
  if (fields.env != null) input.env = readEnv(fields.env)
  if (fields.readme != null) input.readme = fields.readme
  if (fields.category != null) input.category = fields.category === 'GPU' ? 'NVIDIA' : fields.category
  if (fields.isServerless != null) input.isServerless = fields.isServerless
  if (fields.isPublic != null) input.isPublic = fields.isPublic
  if (fields.startSsh != null) input.startSsh = fields.startSsh
  if (fields.startJupyter != null) input.startJupyter = fields.startJupyter
  if (fields.containerRegistryAuthId != null)
    input.registry = (fields.containerRegistryAuthId || null) as RegistryId | null
  return { template: input, failures: fields.startScript ? [NO_START_SCRIPT] : [] }
}

const NO_START_SCRIPT = 'startScript is not supported; put what it does into dockerArgs or the image'

/** Environment variables from the list that clients send. */
export function readEnv(variables: readonly (Variable | null)[]): Record<string, string> {
  return Object.fromEntries(variables.flatMap(variable => (variable === null ? [] : [[variable.key, variable.value]])))
}

import { type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import type { OwnerId, RegistryId, TemplateId } from '../ids.ts'
import {
  type FieldTable,
  immediate,
  kept,
  lengthProblems,
  problemsIn,
  released,
  type TableValues,
  tableDefaults,
} from './field.ts'

/** The variables of workers by their names. */
export type Environment = Readonly<Record<string, string>>

/** The hardware that a template is for. */
export type TemplateCategory = 'NVIDIA' | 'CPU' | 'AMD'

/** The name that people gave one of a template's ports. */
export interface PortLabel {
  /** The number of the port, without a protocol. */
  readonly port: string
  readonly name: string
}

/** True for an image that is a folder of this machine, whose workers are processes and not containers. */
export function isFolderImage(image: string): boolean {
  return image.startsWith('dir:')
}

/** The form of the name of a variable. */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/
/** The form of a port. */
export const PORT = /^\d{1,5}\/(http|tcp|udp)$/
/** Limit of variables in one environment. */
export const MAX_ENV_VARIABLES = 200
/** Limit of characters of an image reference, of a command line and of the value of a variable. */
export const MAX_TEXT = 65_536
/** Limit of ports of a template. */
export const MAX_PORTS = 50
/** Limit of CUDA versions in one list. */
export const MAX_CUDA_VERSIONS = 100
/** Limit of characters of a CUDA version. */
export const MAX_CUDA_VERSION = 20

/** The fields of a template: what a worker runs. `src/api/template-fields.ts` has their names on the surfaces. */
export const TEMPLATE_FIELDS = {
  /** Unique for the owner. */
  name: immediate<string>(undefined, { check: nameProblems }),
  /** An image reference, or `dir:<path>`. */
  image: released<string>(undefined, 'image', { check: imageProblems }),
  /** Arguments for the container's entry point, or the command line of a `dir:` worker; may be empty. */
  args: released<string>('', 'args', { audited: 'change', check: args => textProblems('args', args) }),
  /** Size of the disk of a container, in GB. */
  diskGb: released<number>(undefined, 'disk', { check: size => sizeProblems('diskGb', size, 1) }),
  /** Size of a persistent volume in GB, 0 for none; serverless templates have none. */
  volumeGb: kept<number>(undefined, { check: volumeProblems }),
  volumeMountPath: kept<string>('/workspace'),
  readme: immediate<string>('', { audited: 'change', check: readme => textProblems('readme', readme) }),
  /** Each `port/protocol`. */
  ports: released<readonly string[]>([], 'ports', {
    check: ports => [...lengthProblems('ports', ports, MAX_PORTS), ...portProblems(ports)],
  }),
  /** Kept for clients. */
  portLabels: kept<readonly PortLabel[]>([], { audited: 'change', check: labelProblems }),
  /** Id of a saved registry credential; null for none. */
  registry: released<RegistryId | null>(null, 'registry'),
  /** CUDA versions that its image runs with; empty for any. */
  allowedCudaVersions: kept<readonly string[]>([], { check: list => cudaProblems('allowedCudaVersions', list) }),
  /** A release lists each variable. */
  env: released<Environment>({}, null, { audited: 'names', check: envProblems }),
  isServerless: immediate<boolean>(false),
  /** True for a template that other accounts can read. */
  isPublic: immediate<boolean>(false),
  category: kept<TemplateCategory>('NVIDIA'),
  /** Kept for clients, and without an effect on workers. */
  startSsh: kept<boolean>(true),
  /** As `startSsh`. */
  startJupyter: kept<boolean>(true),
} satisfies FieldTable

/** The fields of a template that a caller sets. */
export interface TemplateInput extends TableValues<typeof TEMPLATE_FIELDS> {}

/** A template as the store keeps it. */
export interface Template extends TemplateInput {
  readonly id: TemplateId
  readonly owner: OwnerId
  /** False for the template of one endpoint alone, which lists leave out. */
  readonly listed: boolean
  readonly createdAtMs: number
}

/** Default values of a template. */
export const TEMPLATE_DEFAULTS = tableDefaults(TEMPLATE_FIELDS) as Omit<
  TemplateInput,
  'name' | 'image' | 'diskGb' | 'volumeGb'
>

/** True if a change leaves a template the same. The order of variables does not count. */
export function isUnchanged(template: Template, previous: Template): boolean {
  const text = ({ env, ...fields }: Template) => JSON.stringify([fields, Object.entries(env).sort()])
  return text(template) === text(previous)
}

/** All problems of a template's fields; empty if it can be saved. */
export function templateProblems(input: TemplateInput): FieldProblem[] {
  return problemsIn(TEMPLATE_FIELDS, input)
}

function imageProblems(image: string): FieldProblem[] {
  const empty = image.trim() === '' ? [fieldProblem('image', 'must not be empty')] : []
  return [...empty, ...textProblems('image', image)]
}

function textProblems(field: string, text: string): FieldProblem[] {
  return text.length > MAX_TEXT ? [fieldProblem(field, `must have at most ${MAX_TEXT} characters`)] : []
}

function sizeProblems(field: string, size: number, least: number): FieldProblem[] {
  return Number.isInteger(size) && size >= least ? [] : [fieldProblem(field, `must be an integer of at least ${least}`)]
}

function volumeProblems(size: number, { isServerless = false }: { readonly isServerless?: boolean }): FieldProblem[] {
  const isRefused = isServerless && size !== 0
  const refused = isRefused ? [fieldProblem('volumeGb', 'must be 0 for a serverless template')] : []
  return [...sizeProblems('volumeGb', size, 0), ...refused]
}

function labelProblems(labels: readonly PortLabel[]): FieldProblem[] {
  if (labels.length > MAX_PORTS) return lengthProblems('portLabels', labels, MAX_PORTS)
  return labels.flatMap(({ port, name }) => [
    ...(/^\d{1,5}$/.test(port) ? [] : [fieldProblem('portLabels', 'is not the number of a port', `'${port}'`)]),
    ...(name.trim() !== '' && name.length <= 191
      ? []
      : [fieldProblem('portLabels', 'must have 1 to 191 characters', `the name of port ${port}`)]),
  ])
}

/** All problems of a list of CUDA versions. @param field name of the field with the list */
export function cudaProblems(field: string, versions: readonly string[]): FieldProblem[] {
  if (versions.length > MAX_CUDA_VERSIONS) return lengthProblems(field, versions, MAX_CUDA_VERSIONS)
  return versions
    .filter(version => version.length > MAX_CUDA_VERSION || !/^\d+\.\d+$/.test(version))
    .map(version => fieldProblem(field, 'is not of the form major.minor', `CUDA version '${version}'`))
}

/** All problems of an environment. */
export function envProblems(env: Environment): FieldProblem[] {
  const problems: FieldProblem[] = []
  const names = Object.keys(env)
  if (names.length > MAX_ENV_VARIABLES) {
    problems.push(fieldProblem('env', `must have at most ${MAX_ENV_VARIABLES} variables`))
  }
  for (const name of names) {
    const wrongValue = (problem: string) => problems.push(fieldProblem('env', problem, `the value of '${name}'`))
    if (!ENV_NAME.test(name)) problems.push(fieldProblem('env', 'is not a variable name', `'${name}'`))
    if (env[name]!.includes('\0')) wrongValue('must not hold a null character')
    if (env[name]!.length > MAX_TEXT) wrongValue(`must have at most ${MAX_TEXT} characters`)
  }
  return problems
}

/** All problems of a list of ports. */
export function portProblems(ports: readonly string[]): FieldProblem[] {
  const wrong = ports.filter(port => !PORT.test(port))
  return wrong.map(port => fieldProblem('ports', 'is not of the form port/protocol', `'${port}'`))
}

/** True for the same variables in any order. */
export function isSameEnv(some: Environment, other: Environment): boolean {
  const text = (env: Environment) => JSON.stringify(Object.entries(env).sort())
  return text(some) === text(other)
}

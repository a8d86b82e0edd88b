import { type FieldName, type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import type { OwnerId, RegistryId, TemplateId } from '../ids.ts'

/** What a template is for. */
export type TemplateCategory = 'NVIDIA' | 'CPU' | 'AMD'

/** What people call one of a template's ports. */
export interface PortLabel {
  /** The number of the port, without a protocol. */
  readonly port: string
  readonly name: string
}

/** Whether an image is a folder of this machine, whose workers are processes and not containers. */
export function isFolderImage(image: string): boolean {
  return image.startsWith('dir:')
}

/** What a worker runs: an image reference or `dir:<path>`, its command line and its environment. */
export interface Template {
  readonly id: TemplateId
  readonly owner: OwnerId
  /** Unique for the owner. */
  readonly name: string
  readonly image: string
  /** Arguments for the container's entry point, or the command line of a `dir:` worker; may be empty. */
  readonly args: string
  readonly diskGb: number
  /** Size of a persistent volume, 0 for none; serverless templates have none. */
  readonly volumeGb: number
  readonly volumeMountPath: string
  readonly env: Readonly<Record<string, string>>
  /** Each `port/protocol`. */
  readonly ports: readonly string[]
  /** Kept for clients. */
  readonly portLabels: readonly PortLabel[]
  readonly readme: string
  readonly isServerless: boolean
  /** Id of a saved registry credential; null for none. */
  readonly registry: RegistryId | null
  /** Whether other accounts can read it. */
  readonly isPublic: boolean
  readonly category: TemplateCategory
  /** Kept for clients, and without an effect on workers. */
  readonly startSsh: boolean
  /** As `startSsh`. */
  readonly startJupyter: boolean
  /** CUDA versions that its image runs with; empty for any. */
  readonly allowedCudaVersions: readonly string[]
  /** False for the template of one endpoint alone, which lists leave out. */
  readonly listed: boolean
  readonly createdAtMs: number
}

/** The fields of a template that a caller sets. */
export type TemplateInput = Omit<Template, 'id' | 'owner' | 'listed' | 'createdAtMs'>

/** What a template gets where its creator says nothing. */
export const TEMPLATE_DEFAULTS = {
  args: '',
  volumeMountPath: '/workspace',
  env: {},
  ports: [],
  portLabels: [],
  readme: '',
  isServerless: false,
  registry: null,
  isPublic: false,
  category: 'NVIDIA',
  startSsh: true,
  startJupyter: true,
  allowedCudaVersions: [],
} as const

/** True for a template that a change leaves the same. The order of variables does not count. */
export function isUnchanged(template: Template, before: Template): boolean {
  const text = ({ env, ...fields }: Template) => JSON.stringify([fields, Object.entries(env).sort()])
  return text(template) === text(before)
}

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
/** The form of the name of a variable. */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/
/** The form of a port. */
export const PORT = /^\d{1,5}\/(http|tcp|udp)$/

/** Everything wrong with a template's fields; empty when it can be saved. */
export function templateProblems(input: TemplateInput): FieldProblem[] {
  const { name, image, args, readme, diskGb, volumeGb, isServerless, ports } = input
  const problems = nameProblems(name)
  if (image.trim() === '') problems.push(fieldProblem('image', 'must not be empty'))
  if (!Number.isInteger(diskGb) || diskGb < 1) {
    problems.push(fieldProblem('diskGb', 'must be an integer of at least 1'))
  }
  if (!Number.isInteger(volumeGb) || volumeGb < 0) {
    problems.push(fieldProblem('volumeGb', 'must be an integer of at least 0'))
  }
  if (isServerless && volumeGb !== 0) problems.push(fieldProblem('volumeGb', 'must be 0 for a serverless template'))
  for (const [field, text] of Object.entries({ image, args, readme })) {
    if (text.length > MAX_TEXT) {
      problems.push(fieldProblem(field as 'image' | 'args' | 'readme', `must have at most ${MAX_TEXT} characters`))
    }
  }
  return [
    ...problems,
    ...(ports.length > MAX_PORTS ? [fieldProblem('ports', `must have at most ${MAX_PORTS} items`)] : []),
    ...portProblems(ports),
    ...labelProblems(input.portLabels),
    ...cudaProblems('allowedCudaVersions', input.allowedCudaVersions),
    ...envProblems(input.env),
  ]
}

function labelProblems(labels: readonly PortLabel[]): FieldProblem[] {
  if (labels.length > MAX_PORTS) return [fieldProblem('portLabels', `must have at most ${MAX_PORTS} items`)]
  return labels.flatMap(({ port, name }) => [
    ...(/^\d{1,5}$/.test(port) ? [] : [fieldProblem('portLabels', 'is not the number of a port', `'${port}'`)]),
    ...(name.trim() !== '' && name.length <= 191
      ? []
      : [fieldProblem('portLabels', 'must have 1 to 191 characters', `the name of port ${port}`)]),
  ])
}

/** Everything wrong with a list of CUDA versions, which is in a field. */
export function cudaProblems(field: FieldName, versions: readonly string[]): FieldProblem[] {
  if (versions.length > MAX_CUDA_VERSIONS) return [fieldProblem(field, `must have at most ${MAX_CUDA_VERSIONS} items`)]
  return versions
    .filter(version => version.length > MAX_CUDA_VERSION || !/^\d+\.\d+$/.test(version))
    .map(version => fieldProblem(field, 'is not of the form major.minor', `CUDA version '${version}'`))
}

/** Everything wrong with an environment. */
export function envProblems(env: Readonly<Record<string, string>>): FieldProblem[] {
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

/** Everything wrong with a list of ports. */
export function portProblems(ports: readonly string[]): FieldProblem[] {
  const wrong = ports.filter(port => !PORT.test(port))
  return wrong.map(port => fieldProblem('ports', 'is not of the form port/protocol', `'${port}'`))
}

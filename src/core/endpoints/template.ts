import type { Failure } from '../errors.ts'
import type { OwnerId, RegistryId, TemplateId } from '../ids.ts'
import { fieldProblem } from './field-problems.ts'

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
export function templateFailures(input: TemplateInput): Failure[] {
  const failures: Failure[] = []
  if (input.name.trim() === '') failures.push('name must not be empty')
  if (input.name.length > 191) failures.push('name must have at most 191 characters')
  if (input.image.trim() === '') failures.push(fieldProblem('image', 'must not be empty'))
  if (!Number.isInteger(input.diskGb) || input.diskGb < 1) {
    failures.push(fieldProblem('diskGb', 'must be an integer of at least 1'))
  }
  if (!Number.isInteger(input.volumeGb) || input.volumeGb < 0) {
    failures.push(fieldProblem('volumeGb', 'must be an integer of at least 0'))
  }
  if (input.isServerless && input.volumeGb !== 0)
    failures.push(fieldProblem('volumeGb', 'must be 0 for a serverless template'))
  const tooLong = `must have at most ${MAX_TEXT} characters`
  for (const field of ['image', 'args'] as const) {
    if (input[field].length > MAX_TEXT) failures.push(fieldProblem(field, tooLong))
  }
  if (input.readme.length > MAX_TEXT) failures.push(`readme ${tooLong}`)
  if (input.ports.length > MAX_PORTS) failures.push(`ports must have at most ${MAX_PORTS} items`)
  failures.push(...portFailures(input.ports).map(failure => `ports: ${failure}`))
  failures.push(...labelFailures(input.portLabels))
  return [...failures, ...cudaFailures(input.allowedCudaVersions), ...envFailures(input.env)]
}

function labelFailures(labels: readonly PortLabel[]): string[] {
  if (labels.length > MAX_PORTS) return [`portsConfig must have at most ${MAX_PORTS} items`]
  return labels.flatMap(({ port, name }) => [
    ...(/^\d{1,5}$/.test(port) ? [] : [`portsConfig: '${port}' is not the number of a port`]),
    ...(name.trim() !== '' && name.length <= 191
      ? []
      : [`portsConfig: the name of port ${port} must have 1 to 191 characters`]),
  ])
}

/** Everything wrong with a list of CUDA versions, one sentence each. */
export function cudaFailures(versions: readonly string[]): string[] {
  if (versions.length > MAX_CUDA_VERSIONS) return [`at most ${MAX_CUDA_VERSIONS} CUDA versions can be given`]
  return versions
    .filter(version => version.length > MAX_CUDA_VERSION || !/^\d+\.\d+$/.test(version))
    .map(version => `CUDA version '${version}' is not of the form major.minor`)
}

/** Everything wrong with an environment, one sentence each. */
export function envFailures(env: Readonly<Record<string, string>>): string[] {
  const failures: string[] = []
  const names = Object.keys(env)
  if (names.length > MAX_ENV_VARIABLES) failures.push(`env must have at most ${MAX_ENV_VARIABLES} variables`)
  for (const name of names) {
    if (!ENV_NAME.test(name)) failures.push(`env: '${name}' is not a variable name`)
    if (env[name]!.includes('\0')) failures.push(`env: the value of '${name}' must not hold a null character`)
    if (env[name]!.length > MAX_TEXT)
      failures.push(`env: the value of '${name}' must have at most ${MAX_TEXT} characters`)
  }
  return failures
}

/** Everything wrong with a list of ports, one sentence each. */
export function portFailures(ports: readonly string[]): string[] {
  return ports.filter(port => !PORT.test(port)).map(port => `'${port}' is not of the form port/protocol`)
}

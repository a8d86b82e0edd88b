import type { OwnerId, TemplateId } from './ids.ts'

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
  readonly volumeGb: number
  readonly volumeMountPath: string
  readonly env: Readonly<Record<string, string>>
  /** Each `port/protocol`. */
  readonly ports: readonly string[]
  readonly readme: string
  readonly isServerless: boolean
  /** Id of a saved registry credential; null for none. */
  readonly registry: string | null
  /** False for the template of one endpoint alone, which lists leave out. */
  readonly listed: boolean
  readonly createdAtMs: number
}

/** The fields of a template that a caller sets. */
export type TemplateInput = Omit<Template, 'id' | 'owner' | 'listed' | 'createdAtMs'>

/** At most this many variables in one environment. */
export const MAX_ENV_VARIABLES = 200
const MAX_TEXT = 65_536

/** Everything wrong with a template's fields, one sentence each; empty when it can be saved. */
export function templateFailures(input: TemplateInput): string[] {
  const failures: string[] = []
  if (input.name.trim() === '') failures.push('name must not be empty')
  if (input.name.length > 191) failures.push('name must have at most 191 characters')
  if (input.image.trim() === '') failures.push('imageName must not be empty')
  if (!Number.isInteger(input.diskGb) || input.diskGb < 1)
    failures.push('containerDiskInGb must be an integer of at least 1')
  if (!Number.isInteger(input.volumeGb) || input.volumeGb < 0)
    failures.push('volumeInGb must be an integer of at least 0')
  if (input.isServerless && input.volumeGb !== 0) failures.push('volumeInGb must be 0 for a serverless template')
  if (input.args.length > MAX_TEXT) failures.push(`dockerArgs must have at most ${MAX_TEXT} characters`)
  for (const port of input.ports) {
    if (!/^\d{1,5}\/(http|tcp|udp)$/.test(port)) failures.push(`ports: '${port}' is not of the form port/protocol`)
  }
  return [...failures, ...envFailures(input.env)]
}

/** Everything wrong with an environment, one sentence each. */
export function envFailures(env: Readonly<Record<string, string>>): string[] {
  const failures: string[] = []
  const names = Object.keys(env)
  if (names.length > MAX_ENV_VARIABLES) failures.push(`env must have at most ${MAX_ENV_VARIABLES} variables`)
  for (const name of names) {
    if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)) failures.push(`env: '${name}' is not a variable name`)
    if (env[name]!.includes('\0')) failures.push(`env: the value of '${name}' must not hold a null character`)
    if (env[name]!.length > MAX_TEXT)
      failures.push(`env: the value of '${name}' must have at most ${MAX_TEXT} characters`)
  }
  return failures
}

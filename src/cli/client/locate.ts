import type { Command } from 'commander'
import { CliError, EXIT } from '../exit.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { KINDS } from './kinds.ts'
import { findId } from './names.ts'

/** Options of commands on jobs and workers of an endpoint. */
export interface InsideOptions extends ConnectionOptions {
  readonly endpoint?: string
}

/** Adds the option `--endpoint`. */
export function withEndpoint(command: Command): Command {
  return command.option('-e, --endpoint <name>', 'its endpoint, by name or id; looked up unless given')
}

/**
 * Endpoint id of a job or a worker, encoded for a path.
 * @throws CliError if the id is unknown or belongs to something else
 */
export async function findEndpoint(options: InsideOptions, kind: 'job' | 'worker', id: string): Promise<string> {
  if (options.endpoint !== undefined)
    return encodeURIComponent(await findId(options, KINDS.endpoints, options.endpoint, '--endpoint'))
  const place = await located(options, kind, id)
  if (place.kind === kind) return encodeURIComponent(place.endpointId)
  const article = place.kind === 'endpoint' ? 'an' : 'a'
  throw new CliError(
    `${id} is ${article} ${place.kind}, not a ${kind}; ${LISTINGS[kind](id, place.kind)}`,
    EXIT.notFound,
  )
}

interface Located {
  readonly kind: string
  readonly endpointId: string
}

/** The command that lists the things of a kind. @param id the given text @param found its kind */
const LISTINGS = {
  job: (id: string, kind: string) => `to list jobs: runyard jobs list ${kind === 'endpoint' ? id : '<endpoint>'}`,
  worker: (id: string, kind: string) => `to list workers: runyard workers list${kind === 'endpoint' ? ` ${id}` : ''}`,
} as const

/** The kind of a text that may be the id of anything, or the name of an endpoint. */
async function located(options: ConnectionOptions, kind: keyof typeof LISTINGS, text: string): Promise<Located> {
  try {
    return (await (await ask(options, `/ops/locate/${encodeURIComponent(text)}`)).json()) as Located
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error
    const endpoints = await KINDS.endpoints.list(options).catch(() => [])
    const named = endpoints.find(({ name }) => name === text)
    if (named !== undefined) return { kind: 'endpoint', endpointId: named.id }
    throw new CliError(`there is no ${kind} ${text}; ${LISTINGS[kind](text, '')}`, EXIT.notFound)
  }
}

/** Adds a verb that this resource does not have, although others do: explains why, and ends with its own exit code. */
export function addNoSuchVerb(group: Command, verb: string, why: string): void {
  group
    .command(verb, { hidden: true })
    .argument('[anything...]')
    .allowUnknownOption()
    .description(why)
    .action(() => {
      throw new CliError(why, EXIT.noSuchVerb)
    })
}

import type { Command } from 'commander'
import { CliError, EXIT } from '../exit.ts'
import { ask, type ConnectionOptions } from './connection.ts'

/** Options of commands on jobs and workers of an endpoint. */
export interface InsideOptions extends ConnectionOptions {
  readonly endpoint?: string
}

/** Adds the option `--endpoint`. */
export function withEndpoint(command: Command): Command {
  return command.option('-e, --endpoint <id>', 'its endpoint; looked up where it is not given')
}

/**
 * Endpoint id of a job or a worker, encoded for a path.
 * @throws CliError if the id is unknown or belongs to something else
 */
export async function endpointOf(options: InsideOptions, kind: 'job' | 'worker', id: string): Promise<string> {
  if (options.endpoint !== undefined) return encodeURIComponent(options.endpoint)
  const found = (await (await ask(options, `/ops/locate/${encodeURIComponent(id)}`)).json()) as {
    kind: string
    endpointId: string
  }
  if (found.kind === kind) return encodeURIComponent(found.endpointId)
  throw new CliError(
    `${id} is the id of ${found.kind === 'endpoint' ? 'an' : 'a'} ${found.kind}, not of a ${kind}`,
    EXIT.notFound,
  )
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

/** `delete` of resources: on a terminal, the loss is printed first. */
import type { Command } from 'commander'
import { agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { idOrName, type NamedKind } from '../client/kinds.ts'
import { withName } from '../client/names.ts'
import { printText } from '../terminal/terminal-text.ts'

/** A kind of resource that can be deleted. */
interface Deletable extends NamedKind {
  /** The command, such as `endpoints`. */
  readonly name: string
}

/**
 * Adds a verb that deletes one, by its id or name.
 * @param verb such as `delete`, and what it does in words for people
 */
export function addDeletion(
  group: Command,
  resource: Deletable,
  verb: { readonly word: string; readonly alias?: string; readonly description: string; readonly done: string },
): void {
  const { one, path } = resource
  const command = withYes(group.command(verb.word).argument('<id>', idOrName(resource))).description(verb.description)
  if (verb.alias !== undefined) command.alias(verb.alias)
  withConnection(command).action(async (id: string, options: ConnectionOptions & YesOption) => {
    const deleted = await withName(options, resource, id, async known => {
      const at = `${path}/${encodeURIComponent(known)}`
      await agreeToDelete(options, () => describeLoss(options, resource, at, known))
      await ask(options, at, { method: 'DELETE' })
      return known
    })
    const text = wantsJson(options) ? JSON.stringify({ [verb.done]: deleted }) : `${one} ${deleted} is ${verb.done}`
    printText(`${text}\n`)
  })
}

/** Consequences of the deletion of a resource, as clauses by its group. */
const LOSSES: Readonly<Record<string, string>> = {
  secrets: 'its value cannot be read again, and workers that refer to it will not start',
  keys: 'who uses it is refused at once',
  volumes: 'all its files are lost',
  'global-volumes': 'all its files are lost',
  registries: 'workers with images that need it will not start',
}

/** A sentence about the thing to delete. @param path of it @throws CliError where it does not exist */
async function describeLoss(
  options: ConnectionOptions,
  { name, one }: Deletable,
  path: string,
  id: string,
): Promise<string> {
  const resource = (await (await ask(options, path)).json()) as { readonly name?: unknown; readonly type?: unknown }
  const who = `${one} ${typeof resource.name === 'string' && resource.name !== '' ? `${resource.name} (${id})` : id}`
  if (name === 'endpoints')
    return `${who} will be deleted with ${await describeContent(options, path, id, resource.type)}`
  const loss = LOSSES[name]
  return `${who} will be deleted${loss === undefined ? '' : `: ${loss}`}`
}

/** The workers and jobs of an endpoint. */
async function describeContent(options: ConnectionOptions, path: string, id: string, type: unknown): Promise<string> {
  const { workers } = (await (await ask(options, `${path}/workers`)).json()) as { workers: readonly unknown[] }
  const count = `${workers.length} ${workers.length === 1 ? 'worker' : 'workers'}`
  if (type === 'LOAD_BALANCER') return `${count} and the requests that they have`
  try {
    const health = await ask(options, `/v2/${encodeURIComponent(id)}/health`)
    const { jobs } = (await health.json()) as { jobs: { inQueue: number; inProgress: number } }
    return `${count}, ${jobs.inQueue} waiting and ${jobs.inProgress} running jobs`
  } catch {
    // The key may manage endpoints and read no jobs.
    return `${count} and all its jobs`
  }
}

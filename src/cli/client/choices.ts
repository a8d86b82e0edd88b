/** The candidates for a missing argument. */
import type { Command } from 'commander'
import { commandName, type UsageError } from '../cli-command.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { KINDS, type KindName, type Named, type NamedKind } from './kinds.ts'
import { existing } from './names.ts'

/** Maximum wait for the list of a server, in ms. */
const PATIENCE_MS = 2_000

/**
 * Lines about the values of a missing argument: the existing things, where a server lists them, and the command that
 * lists them.
 */
export async function choicesFor({ command, missing }: UsageError): Promise<string> {
  const help = `${commandName(command)} --help shows its options\n`
  const choice = missing === null ? null : findChoice(command, missing)
  if (choice === null) return help
  const existingChoices = await listExisting(command.opts(), choice.kind)
  const list = existingChoices === null ? '' : `${sentence(existing(existingChoices, choice.kind))}\n`
  return `${list}${choice.listing} lists ${choice.many}\n${help}`
}

/** The possible values of an argument. */
interface Choice {
  /** The kind that is listed in the message: for jobs and batches, the endpoints that have them. */
  readonly kind: NamedKind
  readonly listing: string
  readonly many: string
}

function findChoice(command: Command, argument: string): Choice | null {
  const kind = KINDS.endpoints
  if (argument === 'job' || argument === 'job or endpoint')
    return { kind, listing: 'runyard jobs list <endpoint>', many: 'its jobs' }
  if (argument === 'batch') return { kind, listing: 'runyard batches list <endpoint>', many: 'its batches' }
  if (argument === 'worker' && command.name() !== 'deploy')
    return { kind, listing: 'runyard workers list', many: 'their workers' }
  const group = command.parent?.name() ?? ''
  if (argument === 'id' && Object.hasOwn(KINDS, group)) return choiceAmong(KINDS[group as KindName])
  return argument === 'endpoint' || argument === 'id' ? choiceAmong(kind) : null
}

function choiceAmong(kind: NamedKind): Choice {
  return { kind, listing: kind.listing, many: 'all' }
}

/** Null where no server responds in time. */
async function listExisting(options: ConnectionOptions, { path, list }: NamedKind): Promise<Named[] | null> {
  try {
    // A message waits for no slow server.
    await ask(options, `${path}?limit=1`, { signal: AbortSignal.timeout(PATIENCE_MS) })
    return await list(options)
  } catch {
    return null
  }
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

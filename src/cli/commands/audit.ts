import { createWriteStream, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { parseInstant } from '../../core/instants.ts'
import { answerValue, jsonLine, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { APPS, KINDS, type NamedKind } from '../client/kinds.ts'
import { findNamed } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { printList } from '../client/printing.ts'
import { timeSpanMs } from '../client/time-spans.ts'
import { CliError, EXIT } from '../exit.ts'
import { AUDIT_COLUMNS } from '../terminal/audit-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface AuditOptions extends ConnectionOptions {
  readonly account?: string
  readonly key?: string
  readonly operation?: string
  readonly object?: string
  readonly surface?: string
  readonly since?: string
  readonly until?: string
  readonly last: string
  readonly verify?: boolean
  readonly export?: string
}

const FILTERS = ['account', 'key', 'operation', 'object', 'surface'] as const
const TIMES = ['since', 'until'] as const
const MOST = 1_000

/** Adds `runyard audit`. */
export function addAudit(program: Command): void {
  const command = program
    .command('audit')
    .summary('list changes and their authors; for the operator')
    .description('list changes and uses of secrets, with their authors; for the operator')
    .addOption(fieldOption('--account <name>', 'only what keys of this account did, by name or id', 'account'))
    .addOption(fieldOption('--key <name>', 'only what this key did, by name or id', 'key'))
    .addOption(fieldOption('--operation <name>', 'only this operation, such as updateEndpoint', 'operation'))
    .addOption(fieldOption('--object <name>', 'only what was about this endpoint, job, secret ...', 'object'))
    .addOption(fieldOption('--surface <name>', 'rest, restV1, graphql, jobs, ops, console or server', 'surface'))
    .addOption(fieldOption('--since <time>', 'since a time ago (30s, 10m, 2h, 1d) or a date and time', 'since'))
    .addOption(fieldOption('--until <time>', 'until a time ago or a date and time', 'until'))
    .addOption(
      fieldOption('-n, --last <count>', `number of entries, newest first, up to ${MOST}`, 'limit').default('50'),
    )
    .option('--verify', 'check the chain of all entries instead')
    .option('--export <file>', 'write the whole log as JSON lines into a new file instead')
  withConnection(command).action(audit)
}

async function audit(options: AuditOptions): Promise<void> {
  if (options.verify === true) return verify(options)
  if (options.export !== undefined) return exportTo(resolve(options.export), options)
  const { last } = options
  if (!/^[1-9]\d{0,3}$/.test(last) || Number(last) > MOST) {
    throw new CliError(`--last takes a number from 1 to ${MOST}`, EXIT.usage)
  }
  const query = new URLSearchParams({ limit: last })
  for (const name of FILTERS)
    if (options[name] !== undefined) query.set(name, await resolveId(options, name, options[name]))
  for (const name of TIMES) if (options[name] !== undefined) query.set(name, readInstant(name, options[name]))
  const entries = pageItems<TableRow>(await answerValue(await ask(options, `/v2/audit?${query}`)), 'entries')
  printList(options, entries, AUDIT_COLUMNS, 'entries of the audit log')
}

/** The kinds of things that a filter can name. */
const NAMED: Partial<Record<(typeof FILTERS)[number], readonly NamedKind[]>> = {
  account: [KINDS.accounts],
  key: [KINDS.keys],
  object: [...Object.values(KINDS), APPS],
}

/**
 * The id of the thing that a filter names. Entries of deleted things stay, so unknown text counts as an id.
 * @throws CliError for a name of several things
 */
async function resolveId(options: AuditOptions, filter: (typeof FILTERS)[number], text: string): Promise<string> {
  const ids = new Set<string>()
  for (const kind of NAMED[filter] ?? []) {
    const listed = await kind.list(options)
    if (listed.some(({ id }) => id === text)) return text
    const id = findNamed(listed, kind, text)
    if (id !== null) ids.add(id)
  }
  if (ids.size > 1)
    throw new CliError(
      `--${filter}: '${text}' is the name of several things; give the id of one: ${[...ids].join(', ')}`,
      EXIT.usage,
    )
  return [...ids][0] ?? text
}

function readInstant(name: string, text: string): string {
  const agoMs = timeSpanMs(text)
  if (agoMs !== null) return new Date(Date.now() - agoMs).toISOString()
  if (parseInstant(text) !== null) return text
  throw new CliError(`--${name} takes a time ago such as 10m, or a date and time, not '${text}'`, EXIT.usage)
}

interface Verification {
  readonly intact: boolean
  readonly anchor: { readonly sequence: number }
  readonly head: { readonly sequence: number; readonly hash: string }
  readonly broken: { readonly sequence: number; readonly problem: string } | null
}

async function verify(options: ConnectionOptions): Promise<void> {
  const verification = await answerValue<Verification>(await ask(options, '/v2/audit/verification'))
  const { intact, anchor, head, broken } = verification
  if (!intact) process.exitCode = EXIT.data
  if (wantsJson(options)) return printText(`${jsonLine(verification)}\n`)
  const range =
    head.sequence === anchor.sequence
      ? 'there are no entries'
      : `entries ${anchor.sequence + 1} to ${head.sequence} are whole`
  printText(`${range}; the last one that fits is ${head.sequence} with the hash ${head.hash}\n`)
  if (broken !== null) printText(`the chain is broken: ${broken.problem}\n`)
}

async function exportTo(file: string, options: ConnectionOptions): Promise<void> {
  const answer = await ask(options, '/v2/audit?format=jsonl')
  let lines = 0
  let end = ''
  const counting = new Transform({
    transform(piece: Buffer, _, done) {
      const text = piece.toString('latin1')
      lines += text.split('\n').length - 1
      end = (end + text).slice(-200)
      done(null, piece)
    },
  })
  try {
    await pipeline(answer.body!, counting, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new CliError(`${file} is there already; give another file`, EXIT.usage)
    rmSync(file, { force: true })
    throw new CliError(`the audit log cannot be written to ${file}: ${message}`, EXIT.unavailable)
  }
  const hash = /"hash":"([\da-f]{64})"\}\n$/.exec(end)?.[1] ?? null
  if (wantsJson(options)) return printText(`${JSON.stringify({ file, entries: lines, hash })}\n`)
  printText(`${file} has ${lines} entries${hash === null ? '' : `; the last one has the hash ${hash}`}\n`)
}

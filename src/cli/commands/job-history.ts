/** Present and past jobs: lists, one job with all its facts, and changes of many. */
import type { Command } from 'commander'
import { compactJson, type JsonText } from '../../core/json/json-format.ts'
import { agree, withYes } from '../client/agreeing.ts'
import { answerValue, memberJson, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { print, printList } from '../client/printing.ts'
import { readInstant } from '../client/time-spans.ts'
import { CliError, EXIT } from '../exit.ts'
import { jobErrorText } from '../terminal/job-error.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { durationText, type TableRow, timeText } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Options that say which jobs are meant. */
interface FilterOptions extends ConnectionOptions {
  readonly status?: string
  readonly failed?: boolean
  readonly since?: string
  readonly until?: string
  readonly worker?: string
  readonly error?: string
  readonly fingerprint?: string
}

interface ListOptions extends FilterOptions {
  readonly limit: string
}

/** Options of a change of many jobs. */
export interface ManyOptions extends FilterOptions {
  readonly dryRun?: boolean
  readonly yes?: boolean
}

/** A change of many jobs. */
export type ManyVerb = 'cancel' | 'retry'

/** Maximum jobs per request. */
const PAGE = 1_000

/** `runyard jobs list [endpoint]`. */
export function addJobList(group: Command): void {
  const listing = group.command('list').alias('ls')
  listing.argument('[endpoint]', 'the id or the name of a queue endpoint; all of them where it is left out')
  withConnection(withFilter(listing).option('-n, --limit <count>', 'number of jobs, newest first', '100'))
    .description('list the jobs of an endpoint or of all, the newest first, also those whose result was removed')
    .action(list)
}

/** Adds the options of a change of many jobs. */
export function withMany(command: Command): Command {
  return withYes(withFilter(command).option('--dry-run', 'say how many jobs it would be, and change nothing'))
}

function withFilter(command: Command): Command {
  return command
    .addOption(
      fieldOption('-s, --status <states>', 'only those in these states, such as IN_QUEUE,IN_PROGRESS', 'status'),
    )
    .option('--failed', 'only those that failed or timed out')
    .addOption(fieldOption('--since <time>', 'only those submitted since a time ago (10m, 2h, 1d) or a date', 'from'))
    .addOption(fieldOption('--until <time>', 'only those submitted before a time ago, or a date and time', 'to'))
    .addOption(fieldOption('--worker <id>', 'only those whose last worker this was', 'worker'))
    .addOption(fieldOption('--error <text>', 'only those with this text in their error', 'error'))
    .addOption(fieldOption('--fingerprint <id>', 'only those whose error has this fingerprint', 'fingerprint'))
}

/** True when the options select jobs of an endpoint. */
export function hasFilter(options: FilterOptions): boolean {
  return Object.keys(filterFromOptions(options)).length > 0
}

function filterFromOptions(options: FilterOptions): Record<string, string> {
  const { status, failed, since, until, worker, error, fingerprint } = options
  if (failed === true && status !== undefined)
    throw new CliError('--failed and --status both say which states; leave one of them out', EXIT.usage)
  const states = failed === true ? 'FAILED,TIMED_OUT' : status?.toUpperCase()
  const members = {
    status: states,
    worker,
    error,
    fingerprint,
    from: since === undefined ? undefined : readInstant('--since', since),
    to: until === undefined ? undefined : readInstant('--until', until),
  }
  return Object.fromEntries(
    Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

async function list(endpoint: string | undefined, options: ListOptions): Promise<void> {
  if (endpoint === undefined) {
    printList(options, await jobsAt('/ops/jobs', options), RESOURCE_COLUMNS.jobsOfAll, 'such jobs')
    return
  }
  const jobs = (id: string) => jobsAt(`/v2/${encodeURIComponent(id)}/requests`, options)
  printList(options, await withEndpointName(options, endpoint, jobs), RESOURCE_COLUMNS.jobs, 'such jobs')
}

async function jobsAt(path: string, options: ListOptions): Promise<TableRow[]> {
  const { limit } = options
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CliError(`--limit takes a number from 1 on, not '${limit}'`, EXIT.usage)
  const filter = filterFromOptions(options)
  const rows: TableRow[] = []
  for (let cursor: string | null = null; rows.length < Number(limit); ) {
    const most = String(Math.min(PAGE, Number(limit) - rows.length))
    const query: URLSearchParams = new URLSearchParams({
      ...filter,
      limit: most,
      ...(cursor === null ? {} : { cursor }),
    })
    const page = await answerValue<{ pagination: { nextCursor: string | null } }>(
      await ask(options, `${path}?${query}`),
    )
    rows.push(...pageItems<TableRow>(page, 'requests'))
    cursor = page.pagination.nextCursor
    if (cursor === null) break
  }
  return rows
}

/** A job as the server shows it with all its facts. */
interface JobRecord {
  readonly id: string
  readonly status: string
  readonly createdAt: number
  readonly startedAt: number | null
  readonly completedAt: number | null
  readonly resultExpiresAt: number | null
  readonly delayTime: number
  readonly executionTime: number
  readonly workerId: string | null
  readonly attempts: number
  readonly retries: number
  readonly inputBytes: number
  readonly outputBytes: number | null
  /** The address of an input that is too large for a record. */
  readonly inputUrl?: string
  /** The address of an output that is too large for a record. */
  readonly outputUrl?: string
  readonly error: string | null
  readonly errorFingerprint: string | null
  readonly notes: readonly { readonly at: number; readonly workerId: string; readonly text: string }[]
}

/** Shows one job. @param path of the job operations of its endpoint */
export async function showJob(options: ConnectionOptions, path: string, id: string): Promise<void> {
  const answer = await ask(options, `${path}/requests/${id}`)
  if (wantsJson(options)) return print(options, answer)
  printText(recordText(await answerValue<JobRecord>(answer)))
}

function recordText(job: JobRecord): string {
  const lines: [string, string][] = [
    ['job', job.id],
    ['status', job.status],
    ['submitted', timeText(job.createdAt)],
    ['started', job.startedAt === null ? '-' : `${timeText(job.startedAt)}, waited ${durationText(job.delayTime)}`],
    ['ended', job.completedAt === null ? '-' : `${timeText(job.completedAt)}, ran ${durationText(job.executionTime)}`],
    ['worker', job.workerId ?? '-'],
    ['attempts', `${job.attempts}${job.retries === 0 ? '' : `, ${job.retries} lost with their workers`}`],
    [
      'result',
      job.resultExpiresAt === null ? 'gone; this is its record' : `kept until ${timeText(job.resultExpiresAt)}`,
    ],
    ['input', job.inputUrl ?? payloadText(memberJson(job, 'input'), job.inputBytes)],
    ['output', job.outputUrl ?? payloadText(memberJson(job, 'output'), job.outputBytes)],
  ]
  const head = lines.map(([name, text]) => `${name.padEnd(11)}${text}\n`)
  const notes = job.notes.map(({ at, text }) => `note       ${timeText(at)} ${text}\n`)
  const error =
    job.error === null ? '' : `error      fingerprint ${job.errorFingerprint}\n${indented(jobErrorText(job.error))}\n`
  return [...head, ...notes, error].join('')
}

function payloadText(value: JsonText | null, bytes: number | null): string {
  if (bytes === null) return '-'
  return value === null || value.text === 'null' ? `not kept (${bytes} bytes)` : compactJson(value.text)
}

function indented(text: string): string {
  return text
    .split('\n')
    .map(line => `  ${line}`)
    .join('\n')
}

interface ManyChanged {
  readonly matched: number
  readonly changed: number
  readonly nextCursor: string | null
}

/**
 * Cancels or retries the jobs of an endpoint that match a filter: prints their number first, and asks on a terminal.
 * @throws CliError without a terminal and without `--yes`
 */
export async function changeMany(options: ManyOptions, endpoint: string, change: ManyVerb): Promise<void> {
  const filter = filterFromOptions(options)
  const verb = change === 'cancel' ? 'cancelled' : 'queued again'
  await withEndpointName(options, endpoint, async id => {
    const path = `/v2/${encodeURIComponent(id)}/requests/${change}`
    const { matched, nextCursor } = await total(options, path, { ...filter, dryRun: true })
    const count = `${matched}${nextCursor === null ? '' : ' or more'}`
    if (options.dryRun === true || matched === 0)
      return printCounts(options, matched, 0, `${count} jobs would be ${verb}`)
    if (options.yes !== true) await agree(`${count} jobs will be ${verb}; go on?`)
    const done = await total(options, path, filter)
    printCounts(options, done.matched, done.changed, `${done.changed} jobs are ${verb}`)
  })
}

/** Number of calls of a change after which the rest is left to another command. */
const MAX_CALLS = 1_000

/** The sums over all calls that a change takes. */
async function total(options: ConnectionOptions, path: string, body: Record<string, unknown>): Promise<ManyChanged> {
  let sum: ManyChanged = { matched: 0, changed: 0, nextCursor: null }
  for (let call = 0; call < MAX_CALLS; call += 1) {
    const cursor = sum.nextCursor === null ? {} : { cursor: sum.nextCursor }
    const part = (await (
      await ask(options, path, { method: 'POST', body: { ...body, ...cursor } })
    ).json()) as ManyChanged
    const { matched, changed, nextCursor } = part
    sum = { matched: sum.matched + matched, changed: sum.changed + changed, nextCursor }
    if (nextCursor === null) break
  }
  return sum
}

function printCounts(options: ConnectionOptions, matched: number, changed: number, words: string): void {
  printText(wantsJson(options) ? `${JSON.stringify({ matched, changed })}\n` : `${words}\n`)
}

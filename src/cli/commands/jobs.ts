import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/endpoint-names.ts'
import { addNoSuchVerb, endpointOf, type InsideOptions, withEndpoint } from '../client/locate.ts'
import { CliError, EXIT } from '../exit.ts'
import { type Column, column, durationText, type TableRow, timeText } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { print, printList } from './resources.ts'
import { type SubmitOptions, submission, withSubmission } from './run.ts'

interface ListOptions extends ConnectionOptions {
  readonly status?: string
  readonly limit: string
}

/** Maximum jobs per request. */
const PAGE = 1_000

const COLUMNS: readonly Column[] = [
  ...[column('ID', 'id'), column('STATUS', 'status')],
  { title: 'CREATED', text: row => timeText(row.createdAt) },
  { title: 'WAITED', text: row => durationText(row.delayTime) },
  { title: 'RAN', text: row => (row.startedAt === null ? '-' : durationText(row.executionTime)) },
  ...[column('WORKER', 'workerId'), column('RETRIES', 'retries')],
]

/** `runyard jobs list|get|create|cancel|retry|delete`. */
export function addJobs(program: Command): void {
  const group = program.command('jobs').description('list, show, submit and change jobs')
  const listing = group
    .command('list')
    .alias('ls')
    .argument('<endpoint>', 'the id or the name of a queue endpoint')
    .option('-s, --status <states>', 'only those in these states, such as IN_QUEUE,IN_PROGRESS')
    .option('-n, --limit <count>', 'how many, the newest first', '100')
  withConnection(listing).description('list the jobs of an endpoint, the newest first').action(list)
  const creation = group.command('create').argument('<endpoint>', 'the id or the name of a queue endpoint')
  withConnection(withSubmission(creation)).description('submit a job and do not wait for it').action(create)
  onJob(group, 'get', 'show one job with its output', (options, path, id) =>
    ask(options, `${path}/status/${id}`).then(print),
  )
  onJob(group, 'cancel', 'cancel a job that waits or runs', async (options, path, id) =>
    printJob(options, await ask(options, `${path}/cancel/${id}`, { method: 'POST' })),
  )
  onJob(group, 'retry', 'queue a job again that failed or timed out', async (options, path, id) =>
    printJob(options, await ask(options, `${path}/retry/${id}`, { method: 'POST' })),
  )
  onJob(group, 'delete', 'cancel a job if it is not done, and remove it with its output', remove)
  addNoSuchVerb(group, 'update', 'a job does not change once it is submitted; cancel it and submit another one')
}

type JobAction = (options: InsideOptions, path: string, id: string) => Promise<void>

/** Adds a verb on one job. The endpoint is optional: people may know only the job id. */
function onJob(group: Command, verb: string, description: string, act: JobAction): void {
  const command = group.command(verb).argument('<job>', 'the id of a job')
  if (verb === 'delete') command.alias('rm')
  withConnection(withEndpoint(command))
    .description(description)
    .action(async (id: string, options: InsideOptions) =>
      act(options, `/v2/${await endpointOf(options, 'job', id)}`, encodeURIComponent(id)),
    )
}

async function list(endpoint: string, options: ListOptions): Promise<void> {
  printList(options, await withEndpointName(options, endpoint, id => jobsOf(id, options)), COLUMNS, 'such jobs')
}

async function jobsOf(endpoint: string, options: ListOptions): Promise<TableRow[]> {
  const { status, limit } = options
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new CliError(`--limit takes a number from 1 on, not '${limit}'`, EXIT.usage)
  const rows: TableRow[] = []
  for (let cursor: string | null = null; rows.length < Number(limit); ) {
    const query: URLSearchParams = new URLSearchParams({
      limit: String(Math.min(PAGE, Number(limit) - rows.length)),
      ...(status === undefined ? {} : { status: status.toUpperCase() }),
      ...(cursor === null ? {} : { cursor }),
    })
    const page = (await (await ask(options, `/v2/${encodeURIComponent(endpoint)}/requests?${query}`)).json()) as {
      requests: TableRow[]
      pagination: { nextCursor: string | null }
    }
    rows.push(...page.requests)
    cursor = page.pagination.nextCursor
    if (cursor === null) break
  }
  return rows
}

async function create(endpoint: string, options: SubmitOptions): Promise<void> {
  const request = { method: 'POST', body: submission(options) }
  const submit = (id: string) => ask(options, `/v2/${encodeURIComponent(id)}/run`, request)
  printJob(options, await withEndpointName(options, endpoint, submit))
}

/** Removes a job with the shortest possible TTL, because the server only removes expired jobs. */
async function remove(options: InsideOptions, path: string, id: string): Promise<void> {
  const { status } = (await (await ask(options, `${path}/status/${id}`)).json()) as { status: string }
  if (status.startsWith('IN_')) {
    await ask(options, `${path}/cancel/${id}`, { method: 'POST' }).catch((error: unknown) => {
      // The job may have ended in the meantime.
      if (!(error instanceof CliError && error.exitCode === EXIT.data)) throw error
    })
  }
  await ask(options, `${path}/status/${id}?ttl=1000`)
  printText(wantsJson(options) ? `${JSON.stringify({ deleted: id })}\n` : `job ${id} is gone in a second\n`)
}

async function printJob(options: ConnectionOptions, answer: Response): Promise<void> {
  const job = (await answer.json()) as { id: string; status: string }
  printText(wantsJson(options) ? `${JSON.stringify(job)}\n` : `job ${job.id} is ${job.status}\n`)
}

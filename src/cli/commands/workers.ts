import type { Command } from 'commander'
import { agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { answerValue } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { addNoSuchVerb, findEndpoint, type InsideOptions, withEndpoint } from '../client/locate.ts'
import { withEndpointName } from '../client/names.ts'
import { pages } from '../client/pages.ts'
import { printList, printValue } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { withEnded, workerColumns, workerText } from '../terminal/worker-table.ts'

interface ListOptions extends ConnectionOptions {
  readonly ended?: boolean
}

/** `runyard workers list|get|delete`. */
export function addWorkers(program: Command): void {
  const group = program.command('workers').description('list, show and end workers')
  withConnection(group.command('list').alias('ls').argument('[endpoint]', 'those of one endpoint; all without it'))
    .option('--ended', 'also those that ended in the last 24 hours')
    .description('list the workers that have not ended')
    .action(list)
  withConnection(withEndpoint(group.command('get').argument('<worker>', 'the id of a worker')))
    .description('show one worker, also one that has ended: its time line, its jobs, how it ended')
    .action(get)
  withConnection(withYes(withEndpoint(group.command('delete').alias('rm').argument('<worker>', 'the id of a worker'))))
    .description('end a worker when its jobs are done; where it is wanted another one starts')
    .action(remove)
  const limits = 'runyard endpoints update <endpoint>'
  addNoSuchVerb(
    group,
    'create',
    `the server starts workers, as many as jobs and the limits of the endpoint want; to change these: ${limits} --min <n> --max <n>`,
  )
  addNoSuchVerb(group, 'update', `a worker does not change; change its endpoint, and new workers follow: ${limits}`)
}

async function list(endpoint: string | undefined, options: ListOptions): Promise<void> {
  if (endpoint !== undefined) {
    const rows = await withEndpointName(options, endpoint, id => listWorkers(options, encodeURIComponent(id)))
    return printList(options, rows, workerColumns(rows), 'workers')
  }
  const rows: TableRow[] = []
  for (const { id } of await pages(options, '/v2/serverless', 'endpoints')) {
    try {
      rows.push(...(await listWorkers(options, encodeURIComponent(String(id)))))
    } catch (error) {
      // The endpoint may have been deleted in the meantime.
      if (!(error instanceof CliError && error.exitCode === EXIT.notFound)) throw error
    }
  }
  printList(options, rows, workerColumns(rows), 'workers')
}

async function get(id: string, options: InsideOptions): Promise<void> {
  const endpoint = await findEndpoint(options, 'worker', id)
  const answer = await ask(options, `/v2/serverless/${endpoint}/workers/${encodeURIComponent(id)}`)
  const worker = await answerValue<TableRow>(answer)
  if (wantsJson(options)) printValue(options, worker)
  else printText(workerText(worker))
}

async function remove(id: string, options: InsideOptions & YesOption): Promise<void> {
  const endpoint = await findEndpoint(options, 'worker', id)
  await agreeToDelete(options, async () => `worker ${id} of endpoint ${endpoint} is to end when its jobs are done`)
  await ask(options, `/v2/serverless/${endpoint}/workers/${encodeURIComponent(id)}`, { method: 'DELETE' })
  const message = wantsJson(options) ? JSON.stringify({ deleted: id }) : `worker ${id} ends when its jobs are done`
  printText(`${message}\n`)
}

/** @param endpoint id, encoded for a path */
async function listWorkers(options: ListOptions, endpoint: string): Promise<TableRow[]> {
  const query = options.ended === true ? '?ended=true' : ''
  const answer = await ask(options, `/v2/serverless/${endpoint}/workers${query}`)
  const { workers, ended = [] } = (await answer.json()) as { workers: TableRow[]; ended?: TableRow[] }
  return withEnded(workers, ended).map(({ id, ...worker }) => ({
    id,
    endpointId: decodeURIComponent(endpoint),
    ...worker,
  }))
}

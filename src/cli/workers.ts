import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from './connection.ts'
import { CliError, EXIT } from './exit.ts'
import { addNoSuchVerb, endpointOf, type InsideOptions, withEndpoint } from './locate.ts'
import { pages, printList, printValue } from './resources.ts'
import { type Column, column, durationText, type Row } from './table.ts'

const COLUMNS: readonly Column[] = [
  ...[column('ID', 'id'), column('ENDPOINT', 'endpointId')],
  { title: 'STATUS', text: row => `${row.status}${row.isStale === true ? ' (outdated)' : ''}` },
  column('VERSION', 'version'),
  { title: 'UP', text: row => (row.uptimeSeconds === null ? '-' : durationText(Number(row.uptimeSeconds) * 1000)) },
  column('IMAGE', 'image'),
]

/** `runyard workers list|get|delete`. */
export function addWorkers(program: Command): void {
  const group = program.command('workers').description('list, show and end workers')
  withConnection(group.command('list').alias('ls').argument('[endpoint]', 'those of one endpoint; all without it'))
    .description('list the workers that have not ended')
    .action(list)
  withConnection(withEndpoint(group.command('get').argument('<worker>', 'the id of a worker')))
    .description('show one worker')
    .action(get)
  withConnection(withEndpoint(group.command('delete').alias('rm').argument('<worker>', 'the id of a worker')))
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

async function list(endpoint: string | undefined, options: ConnectionOptions): Promise<void> {
  if (endpoint !== undefined) {
    return printList(options, await workersOf(options, encodeURIComponent(endpoint)), COLUMNS, 'workers')
  }
  const rows: Row[] = []
  for (const { id } of await pages(options, '/v2/serverless', 'endpoints')) {
    try {
      rows.push(...(await workersOf(options, encodeURIComponent(String(id)))))
    } catch (error) {
      // It may have been deleted meanwhile.
      if (!(error instanceof CliError && error.exitCode === EXIT.notFound)) throw error
    }
  }
  printList(options, rows, COLUMNS, 'workers')
}

async function get(id: string, options: InsideOptions): Promise<void> {
  const workers = await workersOf(options, await endpointOf(options, 'worker', id))
  const worker = workers.find(row => row.id === id)
  if (worker === undefined)
    throw new CliError(`worker ${id} has ended; what it printed: runyard logs ${id}`, EXIT.notFound)
  printValue(worker)
}

async function remove(id: string, options: InsideOptions): Promise<void> {
  const endpoint = await endpointOf(options, 'worker', id)
  await ask(options, `/v2/serverless/${endpoint}/workers/${encodeURIComponent(id)}`, { method: 'DELETE' })
  const told = wantsJson(options) ? JSON.stringify({ deleted: id }) : `worker ${id} ends when its jobs are done`
  process.stdout.write(`${told}\n`)
}

/** @param endpoint as it stands in a path */
async function workersOf(options: ConnectionOptions, endpoint: string): Promise<Row[]> {
  const answer = await ask(options, `/v2/serverless/${endpoint}/workers`)
  const { workers } = (await answer.json()) as { workers: Row[] }
  return workers.map(({ id, ...worker }) => ({ id, endpointId: decodeURIComponent(endpoint), ...worker }))
}

import type { Command } from 'commander'
import { sizeText } from '../../core/models/model-problem.ts'
import { agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { answerValue } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { APPS, idOrName } from '../client/kinds.ts'
import { addNoSuchVerb } from '../client/locate.ts'
import { withName } from '../client/names.ts'
import { printList, printValue } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import { ageText, type Column, column, type TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

/** An app as the server shows it. */
interface App {
  readonly id: string
  readonly name: string
  readonly endpointCount: number
  readonly environments: readonly Environment[]
  readonly builds: readonly TableRow[]
}

interface Environment {
  readonly id: string
  readonly name: string
  readonly activeBuildId: string | null
  readonly endpoints: readonly Endpoint[]
}

interface Endpoint {
  readonly id: string
  readonly name: string
  readonly buildId: string | null
  readonly running: readonly { readonly buildId: string | null; readonly workers: number }[]
}

/** Limit of the times that endpoints of an app are read and deleted: as many as the server shows, each time. */
const ROUNDS = 20

const age: Column = { title: 'AGE', text: row => ageText(Date.parse(String(row.createdAt))) }
const LISTED: readonly Column[] = [
  ...[column('ID', 'id'), column('NAME', 'name')],
  {
    title: 'ENVIRONMENTS',
    text: ({ environments }) => (environments as readonly Environment[]).map(({ name }) => name).join(', ') || '-',
  },
  ...[column('ENDPOINTS', 'endpointCount'), age],
]
const RUNNING: readonly Column[] = [
  ...[column('ENVIRONMENT', 'environment'), column('ENDPOINT', 'id'), column('NAME', 'name')],
  ...[column('BUILD', 'buildId'), column('WORKERS', 'workers')],
]
const BUILDS: readonly Column[] = [
  ...[column('ID', 'id'), age],
  { title: 'SIZE', text: ({ size }) => sizeText(Number(size)) },
  { title: 'UNPACKED', text: ({ unpackedSize }) => sizeText(Number(unpackedSize)) },
  { title: 'ACTIVE IN', text: ({ environments }) => (environments as readonly string[]).join(', ') || '-' },
]

/** Adds `runyard apps list|get|builds|delete`. */
export function addApps(program: Command): void {
  const group = program
    .command('apps')
    .summary('apps that rp flash deploy made')
    .description("apps of RunPod's SDK 2.0, which rp flash deploy makes")
  withConnection(group.command('list').alias('ls').description('list all apps')).action(
    async (options: ConnectionOptions) =>
      printList(options, (await APPS.list(options)) as unknown as TableRow[], LISTED, 'apps'),
  )
  const get = group.command('get').alias('show').argument('<id>', idOrName(APPS))
  withConnection(get.description('show its endpoints, and which build each of them runs')).action(show)
  const builds = group.command('builds').argument('<id>', idOrName(APPS))
  withConnection(builds.description('list its newest builds')).action(listBuilds)
  const removal = withYes(group.command('delete').alias('rm').argument('<id>', idOrName(APPS)))
  withConnection(removal.description('delete it with its environments, their endpoints, and its builds'))
    .option('--env <name>', 'delete only this environment with its endpoints')
    .action(remove)
  addNoSuchVerb(group, 'create', 'rp flash deploy makes an app')
  addNoSuchVerb(group, 'update', 'rp flash deploy changes an app')
}

async function find(options: ConnectionOptions, given: string): Promise<App> {
  return withName(options, APPS, given, id => read(options, id))
}

async function read(options: ConnectionOptions, id: string): Promise<App> {
  return answerValue<App>(await ask(options, `${APPS.path}/${encodeURIComponent(id)}`))
}

async function show(given: string, options: ConnectionOptions): Promise<void> {
  const app = await find(options, given)
  if (wantsJson(options)) return printValue(options, app as unknown as TableRow)
  const rows = app.environments.flatMap(({ name: environment, endpoints }) =>
    endpoints.length === 0 ? [{ environment }] : endpoints.map(endpoint => endpointRow(environment, endpoint)),
  )
  printList(options, rows, RUNNING, `environments of ${app.name}`)
}

/** An endpoint with what its workers run: other builds than its newest release names are named. */
function endpointRow(environment: string, { id, name, buildId, running }: Endpoint): TableRow {
  const counts = running.map(run =>
    run.buildId === buildId ? `${run.workers}` : `${run.workers} of ${run.buildId ?? 'no build'}`,
  )
  return { environment, id, name, buildId, workers: counts.length === 0 ? '0' : counts.join(', ') }
}

async function listBuilds(given: string, options: ConnectionOptions): Promise<void> {
  const { builds, environments, name } = await find(options, given)
  const rows = builds.map(build => ({
    ...build,
    environments: environments.filter(({ activeBuildId }) => activeBuildId === build.id).map(({ name: one }) => one),
  }))
  printList(options, rows, BUILDS, `builds of ${name}`)
}

async function remove(
  given: string,
  options: ConnectionOptions & YesOption & { readonly env?: string },
): Promise<void> {
  const app = await find(options, given)
  const { env } = options
  const chosen = app.environments.filter(({ name }) => env === undefined || name === env)
  if (env !== undefined && chosen.length === 0) {
    const names = app.environments.map(({ name }) => name).join(', ')
    throw new CliError(`app ${app.name} has no environment '${env}'; it has ${names || 'none'}`, EXIT.notFound)
  }
  const what = env === undefined ? `app ${app.name}` : `environment ${env} of app ${app.name}`
  await agreeToDelete(options, async () => {
    const endpoints = chosen.reduce((sum, { endpoints: own }) => sum + own.length, 0)
    const builds = env === undefined ? ` and ${app.builds.length} builds` : ''
    return `${what} will be deleted with ${endpoints} endpoints, all their jobs${builds}`
  })
  await removeEndpoints(options, app, new Set(chosen.map(({ id }) => id)))
  for (const { id } of chosen) {
    await ask(options, `/v2/account/app-environments/${encodeURIComponent(id)}`, { method: 'DELETE' })
  }
  if (env === undefined) await ask(options, `${APPS.path}/${encodeURIComponent(app.id)}`, { method: 'DELETE' })
  if (wantsJson(options)) printValue(options, { deleted: env === undefined ? app.id : chosen[0]!.id })
  else printText(`${what} is deleted\n`)
}

/** Deletes the endpoints of environments; the server shows a part of them at a time. */
async function removeEndpoints(options: ConnectionOptions, app: App, of: ReadonlySet<string>): Promise<void> {
  let now = app
  for (let round = 0; round < ROUNDS; round++) {
    const endpoints = now.environments.flatMap(({ id, endpoints: own }) => (of.has(id) ? own : []))
    if (endpoints.length === 0) return
    for (const { id } of endpoints) {
      await ask(options, `/v2/serverless/${encodeURIComponent(id)}`, { method: 'DELETE' }).catch((error: unknown) => {
        if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error
      })
    }
    now = await read(options, app.id)
  }
}

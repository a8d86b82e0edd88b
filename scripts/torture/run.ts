/** One torture run, from an empty folder to its findings. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { killAll, workerProcesses } from '../../test/wire/support/processes.ts'
import { type Acknowledged, type Attempt, request, submitAll, Watcher } from './clients.ts'
import { type Findings, judge, type ServerKill } from './findings.ts'
import { RestartableServer } from './server.ts'
import { Receiver } from './webhooks.ts'

/** Options of a torture run. */
export interface TortureOptions {
  readonly jobs: number
  readonly kills: number
  /** The Python with the official SDK, or null for `@runyard/worker`. */
  readonly python: string | null
  readonly workers: number
  /** Maximum number of jobs of a worker at a time. */
  readonly atOnce: number
  readonly database: string | null
  /** Time limit of the run. */
  readonly limitMs: number
  readonly progress: (line: string) => void
}

const CLIENTS = 8
const KILL_EVERY_MS = 1_000
/** Minimum time between the kills of a server after its start, so that it makes progress. */
const MIN_UP_MS = 250
const WORKERS_MS = 60_000
const WEBHOOKS_MS = 30_000

/** Runs it. Only a run that found faults leaves its folder. */
export async function torture(options: TortureOptions): Promise<Findings> {
  const began = performance.now()
  const deadline = began + options.limitMs
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-torture-')))
  const server = new RestartableServer({ dataDir, database: options.database })
  const receiver = await Receiver.start()
  const onExit = () => {
    server.killNow()
    killAll(dataDir)
  }
  process.on('exit', onExit)
  let isFaultless = false
  try {
    await server.start()
    const journal = join(dataDir, 'journal')
    writeFileSync(journal, '')
    const endpoint = await makeEndpoint(server, options, journal)
    await workersReady(server, endpoint, options)
    options.progress(`${options.workers} workers are ready`)
    const watcher = new Watcher(server, endpoint)
    const forMs = options.kills * KILL_EVERY_MS
    const submitting = { jobs: options.jobs, clients: CLIENTS, forMs, endpoint, webhook: receiver.url, deadline }
    const [acknowledged, serverKills] = await Promise.all([
      submitAll(server, submitting),
      killOften(server, options),
      watchWhile(watcher, receiver, forMs),
    ])
    options.progress(`${acknowledged.length} jobs are acknowledged, ${serverKills.length} kills are over`)
    const ids = acknowledged.map(({ id }) => id)
    await watcher.untilFinal(ids, deadline)
    await webhooksCame(receiver, acknowledged)
    // Read all jobs again after a restart.
    await server.kill()
    await server.start()
    await watcher.untilFinal(ids, deadline)
    const exitCode = await server.stop()
    const leftOver = workerProcesses(dataDir).length
    const attempts = readJournal(journal)
    const seconds = (performance.now() - began) / 1000
    const all = { acknowledged, serverKills, watcher, attempts, ends: receiver.ends, exitCode, leftOver, seconds }
    const findings = judge(options.jobs, all)
    isFaultless = findings.faults.length === 0
    if (!isFaultless) options.progress(`the data of the run is in ${dataDir}`)
    return findings
  } finally {
    onExit()
    process.off('exit', onExit)
    receiver.close()
    if (isFaultless) rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function makeEndpoint(server: RestartableServer, options: TortureOptions, journal: string): Promise<string> {
  const folder = fileURLToPath(new URL(options.python === null ? 'node' : 'python', import.meta.url))
  const template = {
    name: 'torture',
    imageName: `dir:${folder}`,
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    dockerArgs: options.python === null ? '' : `"${options.python}" handler.py`,
    env: [
      { key: 'TORTURE_JOURNAL', value: journal },
      { key: 'TORTURE_AT_ONCE', value: String(options.atOnce) },
    ],
  }
  const saved = await mutate(server, 'saveTemplate', 'SaveTemplateInput', template)
  return mutate(server, 'saveEndpoint', 'EndpointInput!', {
    name: 'torture',
    templateId: saved,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 3600,
    workersMin: options.workers,
    workersMax: options.workers,
    scalerType: 'REQUEST_COUNT',
    scalerValue: 1,
  })
}

async function mutate(server: RestartableServer, name: string, type: string, input: object): Promise<string> {
  const query = `mutation ($input: ${type}) { ${name}(input: $input) { id } }`
  const response = await request(server, '/graphql', { query, variables: { input } })
  const { data, errors } = (response?.json ?? {}) as { data?: Record<string, { id: string }>; errors?: object }
  if (errors !== undefined || data?.[name] == null) throw new Error(`${name}: ${JSON.stringify(errors ?? response)}`)
  return data[name].id
}

async function workersReady(server: RestartableServer, endpoint: string, options: TortureOptions): Promise<void> {
  const deadline = performance.now() + WORKERS_MS
  while (performance.now() < deadline) {
    const health = (await request(server, `/v2/${endpoint}/health`))?.json as { workers: { ready: number } } | undefined
    if (health?.workers.ready === options.workers) return
    await sleep(100)
  }
  throw new Error(`the workers did not start within ${WORKERS_MS / 1000} s`)
}

async function killOften(server: RestartableServer, { kills }: TortureOptions): Promise<ServerKill[]> {
  const serverKills: ServerKill[] = []
  let next = performance.now() + KILL_EVERY_MS
  while (serverKills.length < kills) {
    await sleep(Math.max(0, next - performance.now()))
    const atMs = performance.now()
    await server.kill()
    await server.start()
    const upMs = performance.now()
    serverKills.push({ downMs: upMs - atMs })
    next = Math.max(atMs + KILL_EVERY_MS, upMs + MIN_UP_MS)
  }
  return serverKills
}

/** Reads jobs during the run, so that a later kill must not undo their states; webhooks name the jobs. */
async function watchWhile(watcher: Watcher, receiver: Receiver, forMs: number): Promise<void> {
  const end = performance.now() + forMs
  while (performance.now() < end) {
    const known = [...receiver.ends.keys()]
    const id = known[Math.floor(Math.random() * known.length)]
    if (id !== undefined) await watcher.read(id)
    await sleep(20)
  }
}

async function webhooksCame(receiver: Receiver, acknowledged: readonly Acknowledged[]): Promise<void> {
  const deadline = performance.now() + WEBHOOKS_MS
  while (acknowledged.some(({ id }) => !receiver.ends.has(id)) && performance.now() < deadline) await sleep(100)
}

function readJournal(file: string): Attempt[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter(line => line !== '').map(line => JSON.parse(line) as Attempt)
}

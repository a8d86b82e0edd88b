/** One torture run, from an empty folder to its findings. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { killAll, workerProcesses } from '../../test/wire/support/processes.ts'
import { type Acknowledged, type Attempt, request, submitAll, Watcher } from './clients.ts'
import { type Findings, judge, type Killing } from './findings.ts'
import { MortalServer } from './server.ts'
import { Receiver } from './webhooks.ts'

/** What is run. */
export interface TortureWish {
  readonly jobs: number
  readonly kills: number
  /** The Python with the official SDK, or null for `@runyard/worker`. */
  readonly python: string | null
  readonly workers: number
  /** How many jobs a worker runs at once. */
  readonly atOnce: number
  readonly database: string | null
  /** When to give up. */
  readonly limitMs: number
  readonly progress: (line: string) => void
}

const CLIENTS = 8
const KILL_EVERY_MS = 1_000
/** A server that takes longer to start than it is left alone would never do anything. */
const LEAST_UP_MS = 250
const WORKERS_MS = 60_000
const WEBHOOKS_MS = 30_000

/** Runs it. Nothing is left behind but the folder of a run that found faults. */
export async function torture(wish: TortureWish): Promise<Findings> {
  const began = performance.now()
  const deadline = began + wish.limitMs
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-torture-')))
  const server = new MortalServer({ dataDir, database: wish.database })
  const receiver = await Receiver.start()
  const onExit = () => {
    server.killNow()
    killAll(dataDir)
  }
  process.on('exit', onExit)
  let sound = false
  try {
    await server.start()
    const journal = join(dataDir, 'journal')
    writeFileSync(journal, '')
    const endpoint = await makeEndpoint(server, wish, journal)
    await workersReady(server, endpoint, wish)
    wish.progress(`${wish.workers} workers are ready`)
    const watcher = new Watcher(server, endpoint)
    const forMs = wish.kills * KILL_EVERY_MS
    const submitting = { jobs: wish.jobs, clients: CLIENTS, forMs, endpoint, webhook: receiver.url, deadline }
    const [acknowledged, killings] = await Promise.all([
      submitAll(server, submitting),
      killOften(server, wish),
      watchWhile(watcher, receiver, forMs),
    ])
    wish.progress(`${acknowledged.length} jobs are acknowledged, ${killings.length} kills are over`)
    const ids = acknowledged.map(({ id }) => id)
    await watcher.untilFinal(ids, deadline)
    await webhooksCame(receiver, acknowledged)
    // Everything once more from the disk.
    await server.kill()
    await server.start()
    await watcher.untilFinal(ids, deadline)
    const exitCode = await server.stop()
    const leftOver = workerProcesses(dataDir).length
    const attempts = readJournal(journal)
    const seconds = (performance.now() - began) / 1000
    const all = { acknowledged, killings, watcher, attempts, ends: receiver.ends, exitCode, leftOver, seconds }
    const findings = judge(wish.jobs, all)
    sound = findings.faults.length === 0
    if (!sound) wish.progress(`what is left of the run is in ${dataDir}`)
    return findings
  } finally {
    onExit()
    process.off('exit', onExit)
    receiver.close()
    if (sound) rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function makeEndpoint(server: MortalServer, wish: TortureWish, journal: string): Promise<string> {
  const folder = fileURLToPath(new URL(wish.python === null ? 'node' : 'python', import.meta.url))
  const template = {
    name: 'torture',
    imageName: `dir:${folder}`,
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    dockerArgs: wish.python === null ? '' : `"${wish.python}" handler.py`,
    env: [
      { key: 'TORTURE_JOURNAL', value: journal },
      { key: 'TORTURE_AT_ONCE', value: String(wish.atOnce) },
    ],
  }
  const saved = await mutate(server, 'saveTemplate', 'SaveTemplateInput', template)
  return mutate(server, 'saveEndpoint', 'EndpointInput!', {
    name: 'torture',
    templateId: saved,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 3600,
    workersMin: wish.workers,
    workersMax: wish.workers,
    scalerType: 'REQUEST_COUNT',
    scalerValue: 1,
  })
}

async function mutate(server: MortalServer, name: string, type: string, input: object): Promise<string> {
  const query = `mutation ($input: ${type}) { ${name}(input: $input) { id } }`
  const answer = await request(server, '/graphql', { query, variables: { input } })
  const { data, errors } = (answer?.json ?? {}) as { data?: Record<string, { id: string }>; errors?: object }
  if (errors !== undefined || data?.[name] == null) throw new Error(`${name}: ${JSON.stringify(errors ?? answer)}`)
  return data[name].id
}

async function workersReady(server: MortalServer, endpoint: string, wish: TortureWish): Promise<void> {
  const deadline = performance.now() + WORKERS_MS
  while (performance.now() < deadline) {
    const health = (await request(server, `/v2/${endpoint}/health`))?.json as { workers: { ready: number } } | undefined
    if (health?.workers.ready === wish.workers) return
    await sleep(100)
  }
  throw new Error(`the workers did not start within ${WORKERS_MS / 1000} s`)
}

async function killOften(server: MortalServer, { kills }: TortureWish): Promise<Killing[]> {
  const killings: Killing[] = []
  let next = performance.now() + KILL_EVERY_MS
  while (killings.length < kills) {
    await sleep(Math.max(0, next - performance.now()))
    const atMs = performance.now()
    await server.kill()
    await server.start()
    const upMs = performance.now()
    killings.push({ awayMs: upMs - atMs })
    next = Math.max(atMs + KILL_EVERY_MS, upMs + LEAST_UP_MS)
  }
  return killings
}

/** Early readers see states that a later kill must not take back; jobs are known to them by their webhooks. */
async function watchWhile(watcher: Watcher, receiver: Receiver, forMs: number): Promise<void> {
  const end = performance.now() + forMs
  while (performance.now() < end) {
    const known = [...receiver.ends.keys()]
    const id = known[Math.floor(Math.random() * known.length)]
    if (id !== undefined) await watcher.look(id)
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

/** One torture run, from an empty folder to its findings. */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../../test/support/patience.ts'
import { killAll, workerProcesses } from '../../test/wire/support/processes.ts'
import { type Acknowledged, type Attempt, type Fault, submitAll, Watcher } from './clients.ts'
import { makeEndpoint, workersReady } from './endpoint.ts'
import { type Findings, judge, type ServerKill } from './findings.ts'
import {
  FREEZE_ARGS,
  FreezeLog,
  frozenTooLong,
  killMoment,
  notThawed,
  outdatedThaws,
  ranAgain,
  releaseOften,
  submitWaves,
  untilAllEnded,
} from './freezes.ts'
import { RestartableServer } from './server.ts'
import { outOfStep, StopWatch } from './stopped.ts'
import { Receiver } from './webhooks.ts'

/** Options of a torture run. */
export interface TortureOptions {
  /** Number of jobs; with frozen workers as many as the freezes need. */
  readonly jobs: number
  /** Number of kills of the server; with frozen workers the maximum. */
  readonly kills: number
  /** Number of times that a worker is frozen and thawed; 0 for a run without freezes. */
  readonly freezes: number
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
/** Minimum time between a start of the server and its kill, so that it makes progress. */
const MIN_UP_MS = 250
const WEBHOOKS_MS = 30_000

/** Runs the torture. Its folder stays only if the run found faults. */
export async function torture(options: TortureOptions): Promise<Findings> {
  const began = performance.now()
  const deadline = began + patient(options.limitMs)
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-torture-')))
  const isFreezing = options.freezes > 0
  const args = isFreezing ? FREEZE_ARGS : []
  const server = new RestartableServer({ dataDir, database: options.database, args })
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
    const { python, workers, atOnce } = options
    const wish = { python, workers, atOnce, journal, freezes: isFreezing }
    const endpoint = await makeEndpoint(server, wish)
    if (!isFreezing) {
      await workersReady(server, endpoint, workers)
      options.progress(`${workers} workers are ready`)
    }
    const watcher = new Watcher(server, endpoint)
    const log = new FreezeLog(server.logFile)
    const stopWatch = new StopWatch(dataDir, () => (options.database === null ? server.startedAtMs : null))
    const watching = isFreezing ? stopWatch.watch() : null
    const submitting = { endpoint, webhook: receiver.url, deadline }
    let isOver = false
    const look = () => (options.database === null ? outOfStep(dataDir) : 0)
    const submitted = isFreezing
      ? submitWaves(server, { ...submitting, workers, rounds: options.freezes }, log)
      : submitAll(server, { ...submitting, jobs: options.jobs, clients: CLIENTS, forMs: options.kills * KILL_EVERY_MS })
    const [acknowledged, serverKills, released] = await Promise.all([
      submitted.finally(() => (isOver = true)),
      isFreezing
        ? killAtFreezes(server, log, look, kills => isOver || kills >= options.kills)
        : killOften(server, options),
      isFreezing ? releaseOften(server, endpoint, wish, () => isOver) : [],
      watchJobs(watcher, receiver, () => !isOver),
    ])
    options.progress(`${acknowledged.length} jobs are acknowledged, ${serverKills.length} kills are over`)
    const ids = acknowledged.map(({ id }) => id)
    await watcher.untilFinal(ids, deadline)
    await webhooksCame(receiver, acknowledged)
    const faults: Fault[] = isFreezing ? await untilAllEnded(dataDir) : []
    stopWatch.end()
    await watching
    // All jobs are read again after a restart.
    await server.kill()
    await server.start()
    await watcher.untilFinal(ids, deadline)
    const exitCode = await server.stop()
    const leftOver = workerProcesses(dataDir).length
    const attempts = readJournal(journal)
    const seconds = (performance.now() - began) / 1000
    log.read()
    faults.push(...outdatedThaws(log.thaws, released, attempts))
    if (isFreezing)
      faults.push(...ranAgain(attempts), ...frozenTooLong(stopWatch.longestMs), ...notThawed(stopWatch.stuck))
    const freezes = {
      freezes: log.freezes,
      thaws: log.thaws.length,
      releases: released.length,
      stops: stopWatch.stops,
      killsBetween: serverKills.filter(({ outOfStep }) => outOfStep > 0).length,
    }
    const all = { acknowledged, serverKills, watcher, attempts, ends: receiver.ends, exitCode, leftOver, seconds }
    const findings = judge(isFreezing ? acknowledged.length : options.jobs, { ...all, faults, freezes })
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

async function killOften(server: RestartableServer, { kills }: TortureOptions): Promise<ServerKill[]> {
  const serverKills: ServerKill[] = []
  let next = performance.now() + KILL_EVERY_MS
  while (serverKills.length < kills) {
    await sleep(Math.max(0, next - performance.now()))
    const atMs = performance.now()
    serverKills.push(await killOnce(server))
    next = Math.max(atMs + KILL_EVERY_MS, performance.now() + MIN_UP_MS)
  }
  return serverKills
}

async function killAtFreezes(
  server: RestartableServer,
  log: FreezeLog,
  look: () => number,
  isOver: (kills: number) => boolean,
): Promise<ServerKill[]> {
  const serverKills: ServerKill[] = []
  for (;;) {
    await killMoment(log)
    if (isOver(serverKills.length)) return serverKills
    serverKills.push(await killOnce(server, look))
  }
}

/** Kills the server and starts it again. @param look counts workers while the server is down */
async function killOnce(server: RestartableServer, look = () => 0): Promise<ServerKill> {
  const atMs = performance.now()
  await server.kill()
  const workersOutOfStep = look()
  await server.start()
  return { downMs: performance.now() - atMs, outOfStep: workersOutOfStep }
}

/** Reads jobs during the run, whose states later kills must not undo. Webhooks name the jobs. */
async function watchJobs(watcher: Watcher, receiver: Receiver, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const ids = [...receiver.ends.keys()]
    const id = ids[Math.floor(Math.random() * ids.length)]
    if (id !== undefined) await watcher.read(id)
    await sleep(20)
  }
}

async function webhooksCame(receiver: Receiver, acknowledged: readonly Acknowledged[]): Promise<void> {
  const deadline = performance.now() + patient(WEBHOOKS_MS)
  while (acknowledged.some(({ id }) => !receiver.ends.has(id)) && performance.now() < deadline) await sleep(100)
}

function readJournal(file: string): Attempt[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter(line => line !== '').map(line => JSON.parse(line) as Attempt)
}

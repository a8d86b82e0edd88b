/**
 * The soak: mixed load for minutes or hours while the server is killed, its disk gets full and its clock is stepped.
 */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { killAll, workerProcesses } from '../../../test/wire/support/processes.ts'
import type { Attempt } from '../clients.ts'
import { RestartableServer } from '../server.ts'
import { Receiver } from '../webhooks.ts'
import { Calls } from './calls.ts'
import { SteppedClock } from './clock.ts'
import { BoundedDisk } from './disk.ts'
import { makeEndpoints, type SoakEndpoints } from './endpoints.ts'
import { Health } from './health.ts'
import { judgeSoak, soakRows } from './judge.ts'
import { Ledger, type LoadKind, type SoakFault } from './ledger.ts'
import { LIVES, type Soak } from './lives.ts'
import { Troubles } from './troubles.ts'

/** Options of a soak. */
export interface SoakOptions {
  readonly minutes: number
  /** Number of jobs, batches and requests that begin in a second. */
  readonly rate: number
  /** Seconds between kills. */
  readonly killEveryS: number
  /** The Python with the official SDK, or null for `@runyard/worker` alone. */
  readonly python: string | null
  /** Seconds by which the clock of the server is stepped, forward or back; 0 for no step. */
  readonly clockStepS: number
  readonly progress: (line: string) => void
}

/** The outcome of a soak. */
export interface SoakFindings {
  /** Name and value of each row of the report. */
  readonly rows: readonly (readonly [string, string])[]
  readonly faults: readonly SoakFault[]
}

const WEBHOOKS_MS = 120_000
const PAGE = 1_000

/** Runs the soak. Its folder stays only if the soak found faults. */
export async function soak(options: SoakOptions): Promise<SoakFindings> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-soak-')))
  const disk = new BoundedDisk(join(folder, 'data'))
  const clock = new SteppedClock(join(folder, 'clock'))
  const journal = join(folder, 'journal')
  writeFileSync(journal, '')
  const server = new RestartableServer({ dataDir: disk.folder, database: null, args: [], env: clock.env })
  const receiver = await Receiver.start(delivery => delivery.endsWith('7'))
  let isFaultless = false
  const onExit = () => {
    server.killNow()
    killAll(disk.folder)
    if (!isFaultless && disk.unbounded === null) disk.copyTo(join(folder, 'data-at-the-end'))
    disk.unmount()
  }
  process.on('exit', onExit)
  try {
    await server.start()
    const endpoints = await makeEndpoints(server, options.python, journal)
    options.progress(`the workers are ready; the data of the soak is in ${folder}`)
    const ledger = new Ledger()
    const calls = new Calls(server, ledger)
    const health = new Health(server, disk.folder)
    const troubles = new Troubles({ ...options, server, disk, clock, ledger })
    const ended = new AbortController()
    const diskMb = { start: disk.usedMb, end: 0 }
    const watching = health.watch(ended.signal)
    const reporting = reportEachMinute(options, ledger, health, ended.signal)
    const troubling = troubles.cause(ended.signal)
    await putLoad({ calls, ledger, endpoints, webhook: receiver.url }, options)
    options.progress('all jobs have ended')
    await webhooksCame(ledger, receiver)
    const memory = [...health.memory]
    ended.abort()
    await Promise.all([watching, reporting, troubling])
    diskMb.end = disk.usedMb
    await troubles.killOnce()
    const records = await listRecords(calls, endpoints)
    const exitCode = await server.stop()
    const evidence = {
      ledger,
      attempts: readJournal(journal),
      records,
      ends: receiver.ends,
      webhookRequests: receiver.requests,
      downMs: troubles.downMs,
      memory,
      silence: health.silence,
      exitCode,
      leftOver: workerProcesses(disk.folder).length,
      disk: troubles.disk,
      clock: troubles.clock,
      diskMb,
    }
    judgeSoak(evidence)
    isFaultless = ledger.faults.length === 0
    if (!isFaultless)
      writeFileSync(join(folder, 'faults.jsonl'), ledger.faults.map(fault => `${JSON.stringify(fault)}\n`).join(''))
    return { rows: soakRows(evidence), faults: ledger.faults }
  } finally {
    onExit()
    process.off('exit', onExit)
    receiver.close()
    if (isFaultless) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function reportEachMinute(options: SoakOptions, ledger: Ledger, health: Health, over: AbortSignal) {
  for (let minute = 1; !over.aborted; minute += 1) {
    await sleep(60_000, undefined, { signal: over }).catch(() => {})
    const { server, relay } = health.sample()
    const faults = ledger.faults.length === 0 ? '' : `, ${ledger.faults.length} faults`
    const jobs = `${ledger.jobs.size} jobs acknowledged, ${ledger.finals.size} ended`
    options.progress(`minute ${minute}: ${jobs}, server ${server} MB, relay ${relay} MB${faults}`)
  }
}

async function webhooksCame(ledger: Ledger, { ends }: Receiver): Promise<void> {
  const deadline = performance.now() + WEBHOOKS_MS
  const waited = () => [...ledger.jobs.values()].some(({ id, hasWebhook }) => hasWebhook && !ends.has(id))
  const batches = () => [...ledger.batches.keys()].some(id => !ends.has(id))
  while ((waited() || batches()) && performance.now() < deadline) await sleep(500)
}

/** The status of each job that the server lists. */
async function listRecords(calls: Calls, endpoints: SoakEndpoints): Promise<Map<string, string>> {
  const records = new Map<string, string>()
  for (const endpoint of [endpoints.python, endpoints.node, endpoints.streams]) {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path = `/v2/${endpoint}/requests?limit=${PAGE}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
      const { json, text } = await calls.untilAnswered({ name: 'requests', path }, performance.now() + WEBHOOKS_MS)
      const { requests, pagination } = json as unknown as RequestPage
      if (requests === undefined) throw new Error(`the list of requests is ${text.slice(0, 200)}`)
      for (const { id, status } of requests) records.set(id, status)
      cursor = pagination.nextCursor
    }
  }
  return records
}

interface RequestPage {
  readonly requests?: readonly { readonly id: string; readonly status: string }[]
  readonly pagination: { readonly nextCursor: string | null }
}

function readJournal(file: string): Attempt[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter(line => line !== '').map(line => JSON.parse(line) as Attempt)
}

/** Shares of the kinds of load, in percent. */
const SHARES: Readonly<Record<LoadKind, number>> = {
  run: 44,
  runsync: 14,
  'low priority': 8,
  long: 1,
  stream: 7,
  cancel: 5,
  timeout: 1,
  failure: 3,
  batch: 2,
  balanced: 15,
}
/** Maximum number of lives whose jobs have not ended: no more load begins at that number. */
const MAX_UNENDED = 500

/** Puts load on the server for a number of minutes, and waits until each job has ended and was read again. */
async function putLoad(
  shared: Omit<Soak, 'over' | 'next'>,
  { minutes, rate }: { readonly minutes: number; readonly rate: number },
): Promise<void> {
  const { ledger } = shared
  const over = new AbortController()
  let numbers = 0
  const soak: Soak = { ...shared, over: over.signal, next: () => numbers++ }
  const lives = new Set<Promise<void>>()
  const untilMs = performance.now() + minutes * 60_000
  for (let nextMs = performance.now(); nextMs < untilMs; nextMs += 1_000 / rate) {
    await sleep(Math.max(0, nextMs - performance.now()))
    if (ledger.jobs.size - ledger.finals.size > MAX_UNENDED) {
      ledger.count('load held back')
      continue
    }
    const kind = chooseKind()
    const life = LIVES[kind](soak)
      .catch((error: Error) => ledger.fault('lost', '-', `${kind}: ${error.message}`))
      .finally(() => lives.delete(life))
    lives.add(life)
  }
  over.abort()
  await Promise.all(lives)
}

function chooseKind(): LoadKind {
  let part = Math.random() * Object.values(SHARES).reduce((sum, share) => sum + share, 0)
  for (const [kind, share] of Object.entries(SHARES)) {
    part -= share
    if (part < 0) return kind as LoadKind
  }
  return 'run'
}

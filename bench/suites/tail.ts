/**
 * The slowest responses and their causes: closed loads of 32 and 256 connections, then open loads at half of what
 * those got through. The server records its own pauses (`harness/pause-probe.ts`), and each slow response is given to
 * the pauses that fill it. The same loads go to the programs that other suites compare, which record no pauses. They
 * show how much of a ratio of p99 to p50 the machine and the load cause.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jobSides } from '../harness/job-sides.ts'
import type { ExplainedLoadResult, LoadTask } from '../harness/load-client.ts'
import { type CauseCount, explainSlow, type Pause } from '../harness/pauses.ts'
import type { RoundOptions } from '../harness/rounds.ts'
import { makeEndpoint, requestTo, type ServerSettings, SMALL_JOB, startRunyard } from '../harness/runyard.ts'
import { type Bench, requestText } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'
import { balancedServer, GATEWAY_PATH, nodeSide, startBackend } from './gateway.ts'

const CONNECTIONS = [32, 256]
/** A response is slow when it takes longer than this many medians: the aim for p99. */
const SLOW_TIMES = 3
const PROBE = join(import.meta.dirname, '../harness/pause-probe.ts')
/** Pauses of a server that are named one by one. */
const LONG_MS = 20

interface Loaded {
  readonly name: string
  readonly result: ExplainedLoadResult
  readonly causes: readonly CauseCount[]
}

/** A started server with the request of the load. */
interface Target {
  readonly pid: number
  readonly port: number
  readonly request: string
}

type Start = (bench: Bench, settings: ServerSettings) => Promise<Target>

/** Starts a program that is compared. */
type OtherStart = (bench: Bench) => Promise<Target>

const SIDES: Readonly<Record<string, Start>> = {
  // In the server's thread also on a slow disk: the account is that of this thread.
  run: (bench, settings) => runTarget(bench, null, { ...settings, args: ['--store-host', 'inline'] }),
  'run on PostgreSQL': (bench, settings) => runTarget(bench, bench.database(bench.postgres().url, 'tail'), settings),
  gateway: async (bench, { env }) => {
    const { server, path } = await balancedServer(bench, env)
    return { ...server, request: requestTo(server, path, null) }
  },
}

const OTHERS: Readonly<Record<string, OtherStart>> = {
  'BullMQ on Redis': bench => jobTarget(bench, 'BullMQ on Redis'),
  'graphile-worker': bench => jobTarget(bench, 'graphile-worker'),
  nginx: async bench => {
    const { pid, port } = await bench.nginx(await startBackend(bench))
    return { pid, port, request: requestText(port, GATEWAY_PATH, {}, null) }
  },
  'HTTP server of Node': async bench => {
    const { port, request, pids } = await nodeSide(bench)
    return { pid: pids[0]!, port, request }
  },
}

/** See the head of this file. */
export const tail: Suite = {
  name: 'tail',
  title: 'The slowest responses and their causes',
  notes: `A response is slow when it takes more than ${SLOW_TIMES} medians of its load. It is given to the cause whose pauses fill most of its time, if they fill a third of what it took beyond the median. The probe in the server takes some percent of its throughput.`,
  quick: false,
  async run(bench, effort, wants) {
    const tables: Table[] = []
    const show = (table: Table) => {
      console.log(tableText(table))
      tables.push(table)
    }
    for (const [side, start] of Object.entries(SIDES)) {
      if (!wants(side)) continue
      const loads = await loadSide(bench, side, start, effort)
      for (const table of [latencyTable(side, loads), ...loads.map(load => causeTable(side, load))]) show(table)
    }
    for (const [side, start] of Object.entries(OTHERS)) {
      if (wants(side)) show(latencyTable(side, await loadOther(bench, start, effort)))
    }
    return tables
  },
}

async function loadSide(bench: Bench, side: string, start: Start, effort: RoundOptions): Promise<Loaded[]> {
  const file = join(bench.folder, `pauses-${side.replaceAll(' ', '-')}.json`)
  const target = await start(bench, { env: { NODE_OPTIONS: `--import=${PROBE}`, RUNYARD_PAUSES: file } })
  const results = await measure(target, effort)
  await bench.stopOne(target.pid)
  const pauses = JSON.parse(readFileSync(file, 'utf8')) as Pause[]
  return results.map(([name, result]) => loaded(name, result, pauses))
}

async function loadOther(bench: Bench, start: OtherStart, effort: RoundOptions): Promise<Loaded[]> {
  const target = await start(bench)
  const results = await measure(target, effort)
  await bench.stopOne(target.pid)
  return results.map(([name, result]) => loaded(name, result, []))
}

/** @param pauses of the server */
function loaded(name: string, result: ExplainedLoadResult, pauses: readonly Pause[]): Loaded {
  const { fromMs, toMs } = result.measured
  const here = [...pauses, ...result.pauses].filter(pause => pause.toMs > fromMs && pause.fromMs < toMs)
  return { name, result, causes: explainSlow(result.slow, result.p50 / 1_000, here) }
}

/** Sends the closed and the open loads. */
async function measure(
  target: Target,
  effort: RoundOptions,
): Promise<readonly (readonly [name: string, result: ExplainedLoadResult])[]> {
  const results: [name: string, result: ExplainedLoadResult][] = []
  // The rounds are one: the rare pauses need a long time more than a repetition.
  const ms = effort.ms * effort.rounds
  // Code that runs for the first time is not compiled yet.
  await load(target, 32, null, { ...effort, ms: 1 })
  for (const connections of CONNECTIONS) {
    const closed = await load(target, connections, null, { ...effort, ms })
    results.push([`${connections} connections`, closed])
    const half = Math.round((closed.count * 500) / ms)
    const open = await load(target, connections, half, { ...effort, ms })
    results.push([`${connections} connections, ${half} a second`, open])
  }
  return results
}

async function load(
  { port, request }: Target,
  connections: number,
  perSecond: number | null,
  { warmMs, ms }: RoundOptions,
): Promise<ExplainedLoadResult> {
  const client = fork(join(import.meta.dirname, '../harness/load-client.ts'))
  try {
    await once(client, 'message')
    const task: LoadTask = { port, request, connections, perSecond, warmMs, ms, slowTimes: SLOW_TIMES }
    client.send(task)
    const [result] = (await once(client, 'message')) as [ExplainedLoadResult | { error: string }]
    if ('error' in result) throw new Error(result.error)
    return result
  } finally {
    client.kill('SIGKILL')
  }
}

async function runTarget(bench: Bench, database: string | null, settings: ServerSettings): Promise<Target> {
  const server = await startRunyard(bench, database, settings)
  const endpoint = await makeEndpoint(server, { workersMax: 0 })
  return { ...server, request: requestTo(server, `/v2/${endpoint}/run`, SMALL_JOB) }
}

async function jobTarget(bench: Bench, name: 'BullMQ on Redis' | 'graphile-worker'): Promise<Target> {
  const [side] = await jobSides(bench, () => true, { call: 'run', sides: [name] })
  const { port, request, pids } = side!
  return { pid: pids[0]!, port, request }
}

function latencyTable(side: string, loads: readonly Loaded[]): Table {
  const rows = loads.map(({ name, result, causes }): TableRow => {
    const { count, failed, p50, p99, longest, slow, measured } = result
    const longestPauseMs = causes.reduce((ms, { longestMs }) => Math.max(ms, longestMs), 0)
    const perSecond = (count * 1_000) / (measured.toMs - measured.fromMs)
    const times = [p50 / 1_000, p99 / 1_000, p99 / p50, longest / 1_000]
    return { name, cells: [perSecond, ...times, (100 * slow.length) / count, longestPauseMs, failed] }
  })
  return {
    title: side,
    columns: [
      { heading: 'per second', decimals: 0 },
      { heading: 'p50 ms', decimals: 2 },
      { heading: 'p99 ms', decimals: 2 },
      { heading: 'p99 / p50', decimals: 1 },
      { heading: 'longest ms', decimals: 1 },
      { heading: 'slow %', decimals: 2 },
      { heading: 'longest pause ms', decimals: 1 },
      { heading: 'failed', decimals: 0 },
    ],
    bars: null,
    rows,
    ratios: {},
  }
}

function causeTable(side: string, { name, result, causes }: Loaded): Table {
  const isListed = ({ slow, longestMs }: CauseCount) => slow > 0 || longestMs >= LONG_MS
  const rows = causes.filter(isListed).map(({ cause, slow, pauses, middleMs, longestMs }): TableRow => {
    const share = (100 * slow) / Math.max(1, result.slow.length)
    return { name: cause, cells: [slow, share, pauses, middleMs, longestMs] }
  })
  return {
    title: `${side}, ${name}: causes of slow responses`,
    columns: [
      { heading: 'slow', decimals: 0 },
      { heading: 'share %', decimals: 0 },
      { heading: 'pauses', decimals: 0 },
      { heading: 'median ms', decimals: 1 },
      { heading: 'longest ms', decimals: 1 },
    ],
    bars: null,
    rows,
    ratios: {},
  }
}

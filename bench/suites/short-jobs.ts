/** Jobs a second of one Python worker whose handler is short, with take-ahead and without, on several SDKs. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median, percentile } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, startRunyard, workerFolder } from '../harness/runyard.ts'
import type { Bench } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

/** Handlers, and the number of jobs that wait at once for each. */
const HANDLERS = [
  { ms: 5, jobs: 100 },
  { ms: 100, jobs: 40 },
  { ms: 900, jobs: 10 },
] as const
/** Jobs without take-ahead take a second each. */
const JOBS_WITHOUT = 10
/** Jobs that make the record of the endpoint. */
const WARM_JOBS = 6
const IN_A_ROW = 20
/** The SDK of the Python of RUNYARD_TEST_PYTHON, and those in folders below RUNYARD_TEST_SDKS. */
const SDKS = ['1.12.0', '1.10.0', '1.7.13'] as const

const SYNC = `import os, time, runpod
MS = float(os.environ["SLEEP_MS"])
def handler(job):
    time.sleep(MS / 1000)
    return {"ok": True}
runpod.serverless.start({"handler": handler})
`
const CONCURRENT = `import asyncio, os, runpod
MS = float(os.environ["SLEEP_MS"])
async def handler(job):
    await asyncio.sleep(MS / 1000)
    return {"ok": True}
runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 3})
`
const TYPESCRIPT = `import { start } from '@runyard/worker'
start({ handler: async () => new Promise(resolve => setTimeout(resolve, Number(process.env.SLEEP_MS), { ok: true })) })
`

/** A worker program. */
interface Program {
  readonly name: string
  readonly folder: string
  readonly args: string
  readonly env: Readonly<Record<string, string>>
}

/** See the head of this file. Without RUNYARD_TEST_PYTHON it measures nothing. */
export const shortJobs: Suite = {
  name: 'short-jobs',
  title: 'Short jobs on one Python worker',
  notes: `Jobs that wait at once for one worker with a handler that blocks, from the first submission to the last result, after ${WARM_JOBS} jobs. Without take-ahead (RUNYARD_TAKE_AHEAD=0) ${JOBS_WITHOUT} jobs, since the SDK asks for jobs once a second. The ratio is that of the throughputs. The second table has calls of POST /runsync one after another, each sent when the last one is answered, with a handler of 5 ms: take-ahead does nothing for them, since no job waits when the worker asks.`,
  quick: false,
  async run(bench, _effort, wants) {
    const { RUNYARD_TEST_PYTHON: python } = process.env
    if (python === undefined) {
      console.log('left out: RUNYARD_TEST_PYTHON is not set')
      return []
    }
    const server = await startRunyard(bench, null)
    const waiting = await measureWaiting(bench, server, python, wants)
    const inARow = await measureInARow(bench, server, python, wants)
    return [waiting, inARow]
  },
}

async function measureWaiting(bench: Bench, server: RunyardServer, python: string, wants: (side: string) => boolean) {
  const rows: TableRow[] = []
  const ratios: Record<string, number> = {}
  for (const program of SDKS.flatMap(sdk => pythonProgram(bench, python, sdk, 'sync', SYNC))) {
    for (const { ms, jobs } of HANDLERS) {
      const name = `${program.name}, ${ms} ms`
      if (!wants(name)) continue
      const off = await throughput(server, program, ms, JOBS_WITHOUT, { RUNYARD_TAKE_AHEAD: '0' })
      const on = await throughput(server, program, ms, jobs, {})
      rows.push({ name, cells: [off, on, jobs / on, on / off] })
      ratios[name] = on / off
    }
  }
  const columns = [
    { heading: 'without jobs/s', decimals: 1 },
    { heading: 'take-ahead jobs/s', decimals: 1 },
    { heading: 'all done s', decimals: 2 },
    { heading: 'ratio', decimals: 1 },
  ]
  return printed({ title: 'jobs that wait', columns, bars: 1, rows, ratios })
}

async function measureInARow(bench: Bench, server: RunyardServer, python: string, wants: (side: string) => boolean) {
  const sdk2 = process.env.RUNYARD_TEST_SDK2
  const programs: Program[] = [
    ...pythonProgram(bench, python, '1.12.0', 'one job at a time', SYNC),
    ...pythonProgram(bench, python, '1.12.0', 'three at a time', CONCURRENT),
    ...(sdk2 === undefined ? [] : pythonProgram(bench, sdk2, '2.0', 'one job at a time', SYNC)),
    ...(sdk2 === undefined ? [] : pythonProgram(bench, sdk2, '2.0', 'three at a time', CONCURRENT)),
    { name: '@runyard/worker', folder: workerFolder(bench, TYPESCRIPT), args: '', env: {} },
  ]
  const rows: TableRow[] = []
  for (const program of programs.filter(({ name }) => wants(name))) {
    const endpoint = await warmEndpoint(server, program, 5, {})
    const times: number[] = []
    for (let n = 0; n < IN_A_ROW; n += 1) times.push(await timed(() => runJob(server, endpoint)))
    rows.push({ name: program.name, cells: [Math.min(...times), median(times), percentile(times, 0.9)] })
    await stop(server, endpoint)
  }
  const columns = [
    { heading: 'least ms', decimals: 0 },
    { heading: 'p50 ms', decimals: 0 },
    { heading: 'p90 ms', decimals: 0 },
  ]
  return printed({ title: 'runsync in a row', columns, bars: null, rows, ratios: {} })
}

function printed(table: Table): Table {
  console.log(tableText(table))
  return table
}

/** A Python worker; none where its SDK is not installed. */
function pythonProgram(bench: Bench, python: string, sdk: string, kind: string, handler: string): Program[] {
  const isOld = sdk === '1.10.0' || sdk === '1.7.13'
  const path = isOld ? join(process.env.RUNYARD_TEST_SDKS ?? '', sdk) : ''
  if (isOld && !existsSync(join(path, 'runpod'))) {
    console.log(`SDK ${sdk} is left out: RUNYARD_TEST_SDKS names no folder with it`)
    return []
  }
  const folder = join(bench.folder, `short-${sdk}-${kind.replaceAll(' ', '-')}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.py'), handler)
  const name = kind === 'sync' ? `SDK ${sdk}` : `SDK ${sdk}, ${kind}`
  return [{ name, folder, args: `${python} -u handler.py`, env: isOld ? { PYTHONPATH: path } : {} }]
}

/** Jobs a second of a new worker, which is stopped in the end. */
async function throughput(
  server: RunyardServer,
  program: Program,
  ms: number,
  jobs: number,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const endpoint = await warmEndpoint(server, program, ms, env)
  const beganMs = performance.now()
  await Promise.all(Array.from({ length: jobs }, () => ask(server, `/v2/${endpoint}/run`, { input: {} })))
  await whenCompleted(server, endpoint, WARM_JOBS + jobs)
  const tookS = (performance.now() - beganMs) / 1_000
  await stop(server, endpoint)
  return jobs / tookS
}

async function warmEndpoint(
  server: RunyardServer,
  { folder, args, env: programEnv }: Program,
  ms: number,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const all = { RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true', SLEEP_MS: String(ms), ...programEnv, ...env }
  const endpoint = await makeEndpoint(server, { workersMin: 1, workersMax: 1, folder, args, env: all })
  for (let n = 0; n < WARM_JOBS; n += 1) await runJob(server, endpoint)
  return endpoint
}

/** Deletes an endpoint, so that its worker does not poll beside the next one. */
async function stop(server: RunyardServer, endpoint: string): Promise<void> {
  const { url, key } = server
  await fetch(`${url}/v2/serverless/${endpoint}`, { method: 'DELETE', headers: { authorization: `Bearer ${key}` } })
  await sleep(1_500)
}

async function whenCompleted(server: RunyardServer, endpoint: string, count: number): Promise<void> {
  for (;;) {
    const { jobs } = (await ask(server, `/v2/${endpoint}/health`)) as { jobs: { completed: number; failed: number } }
    if (jobs.failed > 0) throw new Error(`${jobs.failed} jobs have failed`)
    if (jobs.completed >= count) return
    await sleep(20)
  }
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await act()
  return performance.now() - startMs
}

async function runJob(server: RunyardServer, endpoint: string): Promise<void> {
  const { status } = (await ask(server, `/v2/${endpoint}/runsync?wait=60000`, { input: {} })) as { status: string }
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`)
}

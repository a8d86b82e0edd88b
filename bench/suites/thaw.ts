/** Duration of a job or a request with a warm worker, with a frozen one, and without a worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EventFeed } from '../harness/event-feed.ts'
import { median, percentile } from '../harness/rounds.ts'
import { ask, makeEndpoint, type RunyardServer, SMALL_JOB, startRunyard, workerFolder } from '../harness/runyard.ts'
import type { Bench } from '../harness/sides.ts'
import { type Suite, type Table, type TableRow, tableText } from '../harness/suite.ts'

/** Pause between the state FROZEN and the call, in which the driver freezes the worker. */
const SETTLE_MS = 300
/** Cold starts take longest and vary least. */
const COUNTS = { long: { calls: 60, cold: 10 }, quick: { calls: 5, cold: 2 } } as const

const TYPESCRIPT = `import { start } from '@runyard/worker'
start({ handler: ({ input }) => ({ length: input.prompt.length }) })
`
const PYTHON = `import runpod
runpod.serverless.start({"handler": lambda job: {"length": len(job["input"]["prompt"])}})
`
const TYPESCRIPT_SERVER = `import { createServer } from 'node:http'
createServer((_, response) => response.end('{}')).listen(process.env.PORT)
`
const PYTHON_SERVER = `import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
http.server.ThreadingHTTPServer(("", int(os.environ["PORT"])), Handler).serve_forever()
`

/** Program of the workers of an endpoint. */
interface Program {
  readonly name: string
  readonly type: 'QB' | 'LB'
  readonly image: string
  readonly args: string
}

/** A kind of place where workers run, and its interpreters. */
interface Place {
  readonly name: string
  readonly image: string
  readonly node: string
  /** Python with RunPod's SDK; null if none exists. */
  readonly python: string | null
}

/** Durations with the three kinds of worker, in milliseconds. */
interface Times {
  readonly warm: number[]
  readonly frozen: number[]
  readonly cold: number[]
  /** From the thaw of a worker to its next take; empty for load balancing. */
  readonly nextTake: number[]
}

/**
 * Containers run on the engine of RUNYARD_TEST_DOCKER, with the image of
 * RUNYARD_TEST_DOCKER_IMAGE, which .ci/docker makes.
 */
export const thaw: Suite = {
  name: 'thaw',
  title: 'A call on a frozen worker: from the call until its result',
  notes: `${COUNTS.long.calls} calls on a warm and on a frozen worker, ${COUNTS.long.cold} where there is none, one after another. A call is POST /runsync of a small job for a queue endpoint, GET for a load-balancing endpoint. The TypeScript worker of a queue uses @runyard/worker, the Python worker RunPod's SDK; those of load-balancing endpoints are servers of the standard library. The last two columns are the time from the thaw in the store to the worker's next take, in whole milliseconds. The ratio is the median of a cold start by that of the row.`,
  quick: false,
  async run(bench, effort, wants) {
    const counts = effort.isQuick ? COUNTS.quick : COUNTS.long
    const { RUNYARD_TEST_DOCKER: engine } = process.env
    const server = await startRunyard(bench, null, { args: engine === undefined ? [] : ['--docker', engine] })
    const rows: TableRow[] = []
    const ratios: Record<string, number> = {}
    for (const program of programs(bench).filter(({ name }) => wants(name))) {
      const { nextTake, ...times } = await measure(server, program, counts)
      for (const [state, took] of Object.entries(times)) {
        const ratio = median(times.cold) / median(took)
        const takes = state === 'frozen' && nextTake.length > 0 ? nextTake : null
        const tail = takes === null ? [null, null] : [median(takes), percentile(takes, 0.99)]
        rows.push({ name: `${program.name}, ${state}`, cells: [median(took), percentile(took, 0.99), ratio, ...tail] })
        if (state === 'frozen') ratios[program.name] = ratio
      }
    }
    const columns = [
      { heading: 'p50 ms', decimals: 1 },
      { heading: 'p99 ms', decimals: 1 },
      { heading: 'ratio', decimals: 1 },
      { heading: 'to the next take p50 ms', decimals: 0 },
      { heading: 'p99 ms', decimals: 0 },
    ]
    const table: Table = { title: '', columns, bars: null, rows, ratios }
    console.log(tableText(table))
    return [table]
  },
}

async function measure(server: RunyardServer, program: Program, { calls, cold }: { calls: number; cold: number }) {
  const make = (idleTimeout: number, flashBootType: 'OFF' | 'FLASHBOOT') =>
    makeEndpoint(server, {
      workersMax: 1,
      image: program.image,
      args: program.args,
      type: program.type,
      idleTimeout,
      flashBootType,
      // Its fitness checks expect a GPU.
      env: { RUNPOD_SKIP_AUTO_SYSTEM_CHECKS: 'true' },
    })
  const endpoints = { warm: await make(3_600, 'OFF'), frozen: await make(1, 'FLASHBOOT'), cold: await make(1, 'OFF') }
  const call = program.type === 'LB' ? request : runJob
  const feed = await EventFeed.open(server, endpoints.frozen)
  const times: Times = { warm: [], frozen: [], cold: [], nextTake: [] }
  for (const endpoint of [endpoints.warm, endpoints.frozen]) await call(server, endpoint)
  for (let n = 0; n < calls; n += 1) {
    await untilPhases(server, endpoints.frozen, phases => phases.every(phase => phase === 'frozen'))
    await sleep(SETTLE_MS)
    times.frozen.push(await timed(() => call(server, endpoints.frozen)))
    times.warm.push(await timed(() => call(server, endpoints.warm)))
    if (n >= cold) continue
    await untilPhases(server, endpoints.cold, phases => phases.length === 0)
    times.cold.push(await timed(() => call(server, endpoints.cold)))
  }
  times.nextTake.push(...(program.type === 'LB' ? [] : await nextTakes(feed, calls)))
  feed.close()
  return times
}

/** Time from each thaw until the worker took a job. */
async function nextTakes(feed: EventFeed, thaws: number): Promise<number[]> {
  const ends = await feed.whenThere(
    ({ type, to }) => type === 'job.moved' && to === 'IN_PROGRESS',
    // A new worker ran the first job, without a thaw.
    thaws + 1,
  )
  const begins = feed.of(({ type, from, to }) => type === 'worker.moved' && from === 'FROZEN' && to === 'READY')
  return begins.map(({ atMs }) => ends.find(end => end.atMs >= atMs)!.atMs - atMs)
}

function programs(bench: Bench): Program[] {
  return places(bench).flatMap(({ name, image, node, python }) => {
    const ofNode = (code: string) => JSON.stringify({ cmd: [node, '--input-type=module', '-e', code] })
    const ofPython = (code: string) => JSON.stringify({ cmd: [python, '-u', '-c', code] })
    const inTypeScript: Program[] = [
      { name: `TypeScript, queue, ${name}`, type: 'QB', image, args: ofNode(TYPESCRIPT) },
      { name: `TypeScript, load balancing, ${name}`, type: 'LB', image, args: ofNode(TYPESCRIPT_SERVER) },
    ]
    if (python === null) return inTypeScript
    return [
      ...inTypeScript,
      { name: `Python, queue, ${name}`, type: 'QB', image, args: ofPython(PYTHON) },
      { name: `Python, load balancing, ${name}`, type: 'LB', image, args: ofPython(PYTHON_SERVER) },
    ]
  })
}

function places(bench: Bench): Place[] {
  const { RUNYARD_TEST_PYTHON: python, RUNYARD_TEST_DOCKER: engine, RUNYARD_TEST_DOCKER_IMAGE: image } = process.env
  if (python === undefined) console.log('Python processes are left out: RUNYARD_TEST_PYTHON is not set')
  const folder = workerFolder(bench, TYPESCRIPT)
  const process_ = { name: 'process', image: `dir:${folder}`, node: process.execPath, python: python ?? null }
  if (engine === undefined || image === undefined) {
    console.log('containers are left out: RUNYARD_TEST_DOCKER and RUNYARD_TEST_DOCKER_IMAGE are not set')
    return [process_]
  }
  return [process_, { name: 'container', image, node: 'node', python: 'python3' }]
}

async function timed(act: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await act()
  return performance.now() - startMs
}

async function runJob(server: RunyardServer, endpoint: string): Promise<void> {
  const { status } = (await ask(server, `/v2/${endpoint}/runsync?wait=60000`, SMALL_JOB)) as { status: string }
  if (status !== 'COMPLETED') throw new Error(`the job is ${status}`)
}

async function request(server: RunyardServer, endpoint: string): Promise<void> {
  await ask(server, `/lb/${endpoint}/`)
}

/** Waits until the workers of an endpoint are in such phases. */
async function untilPhases(server: RunyardServer, endpoint: string, are: (phases: readonly string[]) => boolean) {
  for (;;) {
    const { workers } = (await ask(server, `/v2/serverless/${endpoint}/workers`)) as { workers: { phase: string }[] }
    if (are(workers.map(({ phase }) => phase))) return
    await sleep(50)
  }
}

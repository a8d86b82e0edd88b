/**
 * Cold start of a TypeScript worker, from `run` to COMPLETED, by share: the engine that starts its process
 * or container, the worker itself, and the server with its relay and all socket traffic.
 *
 *     ./bin/node bench/cold-start.ts [rounds]
 *
 * With RUNYARD_TEST_DOCKER (address of an engine) and RUNYARD_TEST_DOCKER_IMAGE (built by `.ci/docker
 * image`) also in a container.
 *
 * Method: the worker records the start of its process and its calls, the server its calls to the engine and
 * the starts of processes. The share of the engine is the time in which the server waits for one of its
 * calls, and all time from the call that starts the worker to the start of its program. The share of the
 * worker is the time from there to its first take, from the job to its result, and the minimum of these
 * calls with a server that responds at once. The rest is the share of the server. It includes the client's
 * part of the request and the time in which other processes use the processor.
 *
 * Reading: on a busy machine use the minimum, and consider the other load: the wait of server and relay for
 * a processor (if the system reports it), and the duration of a fixed loop. The processor time of server and
 * relay hardly depends on other load.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Alone, printAlone, printReport, type Round, type Traced } from './cold-start-report.ts'
import { ready } from './harness/ready.ts'

const ROUNDS = Number(process.argv[2] ?? 10)
const REPOSITORY = dirname(dirname(fileURLToPath(import.meta.url)))
/** Idle timeout of the worker between rounds, in whole seconds. */
const IDLE_S = 1
const REST_MS = 500

/** Records the calls of the server. */
const TRACE = new URL('./cold-start-trace.mjs', import.meta.url).href

const HANDLER = `import './cold-start-records.mjs'
const { start } = await import('@runyard/worker')
await start({ handler: ({ input }) => input })
`

/** A kind of worker, and the file with its records. */
interface Subject {
  readonly name: string
  readonly serve: readonly string[]
  readonly endpoint: Record<string, unknown>
  readonly records: string
}

interface Answer {
  readonly status: string
  readonly id: string
}

const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
/** A folder with the worker. */
function makeImage(): string {
  const image = join(folder, 'image')
  mkdirSync(join(image, 'node_modules', '@runyard'), { recursive: true })
  symlinkSync(join(REPOSITORY, 'packages', 'worker'), join(image, 'node_modules', '@runyard', 'worker'))
  copyFileSync(join(REPOSITORY, 'bench', 'cold-start-records.mjs'), join(image, 'cold-start-records.mjs'))
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  return image
}

function processSubject(image: string): Subject {
  const records = join(folder, 'records')
  return {
    name: 'process',
    serve: ['--process-root', folder, '--worker-sandbox', 'off'],
    endpoint: { image: `dir:${image}`, env: { BENCH_RECORDS: records } },
    records,
  }
}

/**
 * A worker in a container, which gets its files from a network volume and writes its records
 * there; null without an engine.
 */
function containerSubject(image: string): Subject | null {
  const { RUNYARD_TEST_DOCKER: engine = '', RUNYARD_TEST_DOCKER_IMAGE: reference = '' } = process.env
  if (engine === '' || reference === '') return null
  return {
    name: 'container',
    serve: ['--docker', engine],
    endpoint: {
      image: reference,
      args: 'node /runpod-volume/handler.mjs',
      env: { BENCH_RECORDS: '/runpod-volume/records' },
    },
    records: image,
  }
}

/**
 * Measures the same worker with a server that responds at once: the start of its process, the take of a job and the
 * post of a result without any work in between.
 */
async function measureAlone(image: string): Promise<Alone[]> {
  const rows: Alone[] = []
  let done: () => void = () => {}
  const bare = createServer((request, response) => {
    const { url = '' } = request
    request.resume()
    if (url.includes('/job-take/')) response.setHeader('content-type', 'application/json').end('{"id":"a","input":{}}')
    else if (url.includes('/job-stop/')) return
    else response.end('{}', () => (url.includes('/job-done/') ? done() : undefined))
  })
  await new Promise<void>(resolve => bare.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(bare.address() as AddressInfo).port}/v2/x`
  for (let round = -1; round < ROUNDS; round += 1) {
    const records = join(folder, `alone${round}`)
    const finished = new Promise<void>(resolve => {
      done = resolve
    })
    const called = now()
    const worker = spawn(process.execPath, ['handler.mjs'], {
      cwd: image,
      env: aloneEnv(base, records),
      stdio: 'ignore',
    })
    await finished
    const ended = now()
    worker.kill('SIGKILL')
    await new Promise(resolve => worker.once('exit', resolve))
    const recorded = readRecords(records)
    const [began, takenAt, posted] = [
      recordedAt(recorded, 'began'),
      recordedAt(recorded, 'take-responded'),
      recordedAt(recorded, 'done-sent'),
    ]
    if (round >= 0)
      rows.push({ start: began - called, take: takenAt - recordedAt(recorded, 'take-sent'), done: ended - posted })
  }
  bare.closeAllConnections()
  bare.close()
  return rows
}

function aloneEnv(base: string, records: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    BENCH_RECORDS: records,
    RUNPOD_POD_ID: 'w',
    RUNPOD_AI_API_KEY: 't',
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/w/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/w?gpu=CPU`,
  }
}

async function measure({ name, serve, endpoint, records }: Subject): Promise<Round[]> {
  const data = join(folder, `data-${name}`)
  const trace = join(folder, `trace-${name}`)
  const args = ['serve', ...serve, '--port', '0', '--json', '--log-level', 'error', '--data-dir', data]
  const env = { ...process.env, BENCH_TRACE: trace, NODE_OPTIONS: `--import ${TRACE}` }
  const server = spawn(join(REPOSITORY, 'bin', 'runyard'), args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  try {
    const { url, key, pid } = await ready(server)
    const pids = [pid, relayPid(data)]
    const api = new Api(url, key)
    const file = name === 'container' ? await api.volumeWith(data, records) : { path: records, id: null }
    const id = await api.create({ ...endpoint, ...(file.id === null ? {} : { networkVolumes: [file.id] }) })
    const rounds: Round[] = []
    // Only the first round opens files and compiles code.
    for (let round = -1; round < ROUNDS; round += 1) {
      await api.untilNoWorkers(id)
      for (const path of [file.path, trace]) rmSync(path, { force: true })
      const measured = await oneRound(api, id, pids)
      await api.untilNoWorkers(id)
      if (round >= 0) rounds.push(buildRound(measured, readRecords(file.path), readTrace(trace)))
    }
    return rounds
  } finally {
    await stop(server)
  }
}

type Measured = Pick<Round, 'sent' | 'responded' | 'decided' | 'disturbance'>

async function oneRound(api: Api, id: string, pids: readonly (number | null)[]): Promise<Measured> {
  const loop = timedLoop()
  const scheduledBefore = scheduled(pids)
  const sentAt = now()
  const { status } = await api.ask<Answer>('POST', `/v2/${id}/runsync`, { input: { hello: 'world' } })
  const responded = now()
  const scheduledAfter = scheduled(pids)
  if (status !== 'COMPLETED') throw new Error(`the job ended ${status}`)
  const isReported = scheduledBefore !== null && scheduledAfter !== null
  const [busy, waited] = isReported
    ? [scheduledAfter.busy - scheduledBefore.busy, scheduledAfter.waited - scheduledBefore.waited]
    : [null, null]
  const worker = await api.newestWorker(id)
  return { sent: sentAt, responded, decided: Date.parse(worker.createdAt), disturbance: { loop, busy, waited } }
}

function buildRound(measured: Measured, records: ReadonlyMap<string, number>, traced: readonly Traced[]): Round {
  const [began, called] = [recordedAt(records, 'began'), recordedAt(records, 'take-sent')]
  return {
    ...measured,
    began,
    called,
    taken: recordedAt(records, 'take-responded'),
    posted: recordedAt(records, 'done-sent'),
    traced,
  }
}

/** Pid of the relay; null if workers call the server directly. */
function relayPid(data: string): number | null {
  const file = join(data, 'relay', 'relay.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid : null
}

/**
 * Processor time of processes, and the wait of their main threads for a processor, in ms; null if the
 * system does not report it.
 */
function scheduled(pids: readonly (number | null)[]): { busy: number; waited: number } | null {
  const sum = { busy: 0, waited: 0 }
  try {
    for (const pid of pids.filter(one => one !== null)) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        const [busy, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number)
        sum.busy += busy! / 1e6
        // Other threads only assist.
        if (thread === String(pid)) sum.waited += waited! / 1e6
      }
    }
    return sum
  } catch {
    return null
  }
}

/** Duration of a fixed loop, in ms: about 5 on an idle machine. */
function timedLoop(): number {
  const start = now()
  let hash = Buffer.from('runyard')
  for (let turn = 0; turn < 3_000; turn += 1) hash = createHash('sha256').update(hash).digest()
  return now() - start
}

class Api {
  readonly #url
  readonly #key

  constructor(url: string, key: string) {
    this.#url = url
    this.#key = key
  }

  async ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path} is ${response.status}: ${await response.text()}`)
    return (await response.json()) as Body
  }

  async create(fields: Record<string, unknown>): Promise<string> {
    const { id } = await this.ask<{ id: string }>('POST', '/v2/serverless', {
      name: 'bench',
      type: 'QUEUE',
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
      workers: { min: 0, max: 1, idleTimeout: IDLE_S },
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      ...fields,
    })
    return id
  }

  /** A network volume with the files of the worker; `path` is the file of its records. */
  async volumeWith(data: string, image: string): Promise<{ id: string; path: string }> {
    const volume = { name: 'bench', size: 10, dataCenter: 'EU-RO-1' }
    const { id } = await this.ask<{ id: string }>('POST', '/v2/network-volumes', volume)
    const path = join(data, 'volumes', id)
    for (const name of readdirSync(image).filter(file => file.endsWith('.mjs')))
      copyFileSync(join(image, name), join(path, name))
    mkdirSync(join(path, 'node_modules', '@runyard'), { recursive: true })
    symlinkSync('/opt/worker', join(path, 'node_modules', '@runyard', 'worker'))
    chmodSync(path, 0o777)
    return { id, path: join(path, 'records') }
  }

  async newestWorker(id: string): Promise<{ createdAt: string }> {
    const { workers } = await this.ask<{ workers: { id: string }[] }>('GET', `/v2/serverless/${id}/workers`)
    return this.ask('GET', `/v2/serverless/${id}/workers/${workers.at(-1)!.id}`)
  }

  async untilNoWorkers(id: string): Promise<void> {
    for (let tries = 0; tries < 400; tries += 1) {
      const { workers } = await this.ask<{ workers: unknown[] }>('GET', `/v2/serverless/${id}/workers`)
      // The work after its end must not count for the next start.
      if (workers.length === 0) return void (await new Promise(resolve => setTimeout(resolve, REST_MS)))
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    throw new Error('the worker did not end')
  }
}

async function stop(server: ChildProcess): Promise<void> {
  server.kill('SIGTERM')
  if (server.exitCode === null) await new Promise(resolve => server.once('exit', resolve))
}

/** Unix time with fractions of milliseconds. */
function now(): number {
  return performance.timeOrigin + performance.now()
}

function readRecords(file: string): Map<string, number> {
  const records = new Map<string, number>()
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const [event = '', instant] = line.split(' ')
    if (!records.has(event)) records.set(event, Number(instant))
  }
  return records
}

function readTrace(file: string): Traced[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Traced)
    .sort((a, b) => a.called - b.called)
}

function recordedAt(records: ReadonlyMap<string, number>, event: string): number {
  const instant = records.get(event)
  if (instant === undefined) throw new Error(`the worker did not record '${event}'`)
  return instant
}

try {
  const image = makeImage()
  const alone = await measureAlone(image)
  printAlone(alone)
  printReport('a process', await measure(processSubject(image)), alone)
  const container = containerSubject(image)
  if (container === null) console.log('no container: RUNYARD_TEST_DOCKER and RUNYARD_TEST_DOCKER_IMAGE are not set')
  else printReport('a container', await measure(container), alone)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/**
 * Cold start of a TypeScript worker, from `run` to COMPLETED, by who spends the time: the engine that starts its process or
 * container, the worker itself, and the server with its relay and all that goes over sockets.
 *
 *     ./bin/node bench/cold-start.ts [rounds]
 *
 * With RUNYARD_TEST_DOCKER (an engine's address) and RUNYARD_TEST_DOCKER_IMAGE (made by `.ci/docker image`) a container, too.
 *
 * How it is counted. The worker notes when its process began and when it calls, the server when it calls its engine or starts a
 * process. The engine has the time in which the server waits for one of its calls, and all from the call that starts the worker
 * to the begin of its program. The worker has the time from there until its first take leaves it, from the job until its result
 * leaves it, and the least that these calls take with a server that answers at once. All else is the server's own share, the
 * client's part of the one request and what others of this machine keep it from the processor included.
 *
 * How to read it. On a machine that does other things, too, look at the least, and at the disturbance: how long server and relay
 * were ready to go on and had no processor (where the system tells), and how long a loop took that is the same each time. The
 * processor time of server and relay hardly depends on others.
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
import { ready } from './ready.ts'

const ROUNDS = Number(process.argv[2] ?? 10)
const REPOSITORY = dirname(dirname(fileURLToPath(import.meta.url)))
/** How long a worker may be idle in between; the server knows whole seconds. */
const IDLE_S = 1
const REST_MS = 500

/** Notes what the server does. */
const TRACE = new URL('./cold-start-trace.mjs', import.meta.url).href

const HANDLER = `import './cold-start-notes.mjs'
const { start } = await import('@runyard/worker')
await start({ handler: ({ input }) => input })
`

/** A kind of worker, and where its notes are found. */
interface Subject {
  readonly name: string
  readonly serve: readonly string[]
  readonly endpoint: Record<string, unknown>
  readonly notes: string
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
  copyFileSync(join(REPOSITORY, 'bench', 'cold-start-notes.mjs'), join(image, 'cold-start-notes.mjs'))
  writeFileSync(join(image, 'handler.mjs'), HANDLER)
  return image
}

function processSubject(image: string): Subject {
  const notes = join(folder, 'notes')
  return {
    name: 'process',
    serve: ['--process-root', folder],
    endpoint: { image: `dir:${image}`, env: { BENCH_NOTES: notes } },
    notes,
  }
}

/** The worker's files reach the container over a network volume, and its notes come back over it. Null where there is no engine. */
function containerSubject(image: string): Subject | null {
  const { RUNYARD_TEST_DOCKER: engine = '', RUNYARD_TEST_DOCKER_IMAGE: reference = '' } = process.env
  if (engine === '' || reference === '') return null
  return {
    name: 'container',
    serve: ['--docker', engine],
    endpoint: {
      image: reference,
      args: 'node /runpod-volume/handler.mjs',
      env: { BENCH_NOTES: '/runpod-volume/notes' },
    },
    notes: image,
  }
}

/**
 * The same worker with a server that answers at once: what it takes to start its process, to get a job and to hand in a result
 * when nobody does anything in between.
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
    const notes = join(folder, `alone${round}`)
    const finished = new Promise<void>(resolve => {
      done = resolve
    })
    const asked = now()
    const worker = spawn(process.execPath, ['handler.mjs'], { cwd: image, env: aloneEnv(base, notes), stdio: 'ignore' })
    await finished
    const ended = now()
    worker.kill('SIGKILL')
    await new Promise(resolve => worker.once('exit', resolve))
    const noted = readNotes(notes)
    const [began, taken, posted] = [at(noted, 'began'), at(noted, 'take-answered'), at(noted, 'done-asked')]
    if (round >= 0) rows.push({ start: began - asked, take: taken - at(noted, 'take-asked'), done: ended - posted })
  }
  bare.closeAllConnections()
  bare.close()
  return rows
}

function aloneEnv(base: string, notes: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    BENCH_NOTES: notes,
    RUNPOD_POD_ID: 'w',
    RUNPOD_AI_API_KEY: 't',
    RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/w/$ID?gpu=CPU`,
    RUNPOD_WEBHOOK_PING: `${base}/ping/w?gpu=CPU`,
  }
}

async function measure({ name, serve, endpoint, notes }: Subject): Promise<Round[]> {
  const data = join(folder, `data-${name}`)
  const trace = join(folder, `trace-${name}`)
  const args = ['serve', ...serve, '--port', '0', '--json', '--log-level', 'error', '--data-dir', data]
  const env = { ...process.env, BENCH_TRACE: trace, NODE_OPTIONS: `--import ${TRACE}` }
  const server = spawn(join(REPOSITORY, 'bin', 'runyard'), args, { stdio: ['ignore', 'pipe', 'inherit'], env })
  try {
    const { url, key, pid } = await ready(server)
    const pids = [pid, relayOf(data)]
    const api = new Api(url, key)
    const file = name === 'container' ? await api.volumeWith(data, notes) : { path: notes, id: null }
    const id = await api.create({ ...endpoint, ...(file.id === null ? {} : { networkVolumes: [file.id] }) })
    const rounds: Round[] = []
    // The first round opens files and compiles code, which no later one does.
    for (let round = -1; round < ROUNDS; round += 1) {
      await api.untilNoWorkers(id)
      for (const path of [file.path, trace]) rmSync(path, { force: true })
      const measured = await oneRound(api, id, pids)
      await api.untilNoWorkers(id)
      if (round >= 0) rounds.push(roundOf(measured, readNotes(file.path), readTrace(trace)))
    }
    return rounds
  } finally {
    await stop(server)
  }
}

type Measured = Pick<Round, 'sent' | 'answered' | 'decided' | 'disturbance'>

async function oneRound(api: Api, id: string, pids: readonly (number | null)[]): Promise<Measured> {
  const loop = timedLoop()
  const before = scheduled(pids)
  const sent = now()
  const { status } = await api.ask<Answer>('POST', `/v2/${id}/runsync`, { input: { hello: 'world' } })
  const answered = now()
  const after = scheduled(pids)
  if (status !== 'COMPLETED') throw new Error(`the job ended ${status}`)
  const told = before !== null && after !== null
  const [busy, waited] = told ? [after.busy - before.busy, after.waited - before.waited] : [null, null]
  const worker = await api.newestWorker(id)
  return { sent, answered, decided: Date.parse(worker.createdAt), disturbance: { loop, busy, waited } }
}

function roundOf(measured: Measured, notes: ReadonlyMap<string, number>, traced: readonly Traced[]): Round {
  const [began, asked] = [at(notes, 'began'), at(notes, 'take-asked')]
  return { ...measured, began, asked, taken: at(notes, 'take-answered'), posted: at(notes, 'done-asked'), traced }
}

/** Null where workers call the server itself. */
function relayOf(data: string): number | null {
  const file = join(data, 'relay', 'relay.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid : null
}

/** What processes have had of the processors, and how long their main threads have waited for one, in ms; null where the system does not tell. */
function scheduled(pids: readonly (number | null)[]): { busy: number; waited: number } | null {
  const sum = { busy: 0, waited: 0 }
  try {
    for (const pid of pids.filter(one => one !== null)) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        const [busy, waited] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number)
        sum.busy += busy! / 1e6
        // Other threads help at best.
        if (thread === String(pid)) sum.waited += waited! / 1e6
      }
    }
    return sum
  } catch {
    return null
  }
}

/** How long a fixed piece of work takes, in ms: some 5 on a machine that does nothing else. */
function timedLoop(): number {
  const start = now()
  let hash = Buffer.from('runyard')
  for (let turn = 0; turn < 3_000; turn += 1) hash = createHash('sha256').update(hash).digest()
  return now() - start
}

class Api {
  readonly #url: string
  readonly #key: string

  constructor(url: string, key: string) {
    this.#url = url
    this.#key = key
  }

  async ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const answer = await fetch(`${this.#url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path} is ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as Body
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

  /** A network volume with the files of the worker; `path` is where its notes come to be. */
  async volumeWith(data: string, image: string): Promise<{ id: string; path: string }> {
    const volume = { name: 'bench', size: 10, dataCenter: 'EU-RO-1' }
    const { id } = await this.ask<{ id: string }>('POST', '/v2/network-volumes', volume)
    const path = join(data, 'volumes', id)
    for (const name of readdirSync(image).filter(file => file.endsWith('.mjs')))
      copyFileSync(join(image, name), join(path, name))
    mkdirSync(join(path, 'node_modules', '@runyard'), { recursive: true })
    symlinkSync('/opt/worker', join(path, 'node_modules', '@runyard', 'worker'))
    chmodSync(path, 0o777)
    return { id, path: join(path, 'notes') }
  }

  async newestWorker(id: string): Promise<{ createdAt: string }> {
    const { workers } = await this.ask<{ workers: { id: string }[] }>('GET', `/v2/serverless/${id}/workers`)
    return this.ask('GET', `/v2/serverless/${id}/workers/${workers.at(-1)!.id}`)
  }

  async untilNoWorkers(id: string): Promise<void> {
    for (let tries = 0; tries < 400; tries += 1) {
      const { workers } = await this.ask<{ workers: unknown[] }>('GET', `/v2/serverless/${id}/workers`)
      // What is left to be done after its end is no part of the next start.
      if (workers.length === 0) return void (await new Promise(resolve => setTimeout(resolve, REST_MS)))
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    throw new Error('the worker did not go away')
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

function readNotes(file: string): Map<string, number> {
  const notes = new Map<string, number>()
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const [what = '', instant] = line.split(' ')
    if (!notes.has(what)) notes.set(what, Number(instant))
  }
  return notes
}

function readTrace(file: string): Traced[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Traced)
    .sort((a, b) => a.asked - b.asked)
}

function at(notes: ReadonlyMap<string, number>, what: string): number {
  const instant = notes.get(what)
  if (instant === undefined) throw new Error(`the worker has not noted '${what}'`)
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

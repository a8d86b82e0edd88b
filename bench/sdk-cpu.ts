/**
 * Processor use of a worker with each version of RunPod's SDK for Python, and of the server with its relay: without a
 * job, with one job that only waits, and with such a job and a concurrency of three.
 *
 *     RUNYARD_TEST_PYTHON=... RUNYARD_TEST_SDKS=... ./bin/node bench/sdk-cpu.ts [seconds]
 *
 * RUNYARD_TEST_PYTHON is a Python with the current SDK, RUNYARD_TEST_SDKS a folder with older ones, each in a folder
 * named after its version (README). The versions are measured one after another. It counts the processor time that
 * Linux reports for the whole process group of a worker.
 */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ready } from './harness/ready.ts'

const SECONDS = Number(process.argv[2] ?? 10)
const PYTHON = process.env.RUNYARD_TEST_PYTHON ?? 'python3'
const SDKS = process.env.RUNYARD_TEST_SDKS ?? ''
/** Pause after a start or a job, so that its follow-up work is not counted, in milliseconds. */
const REST_MS = 2_000
const TICKS_A_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

const HANDLER = `
import asyncio
import runpod

room = 1

async def handler(job):
    global room
    room = job["input"]["room"]
    await asyncio.sleep(job["input"]["seconds"])
    return {}

runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: room})
`

/** Shares of one core. */
interface Share {
  readonly worker: number
  readonly server: number
}

interface Server {
  readonly url: string
  readonly key: string
  readonly pid: number
  readonly dataDir: string
}

async function ask(server: Server, path: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { authorization: server.key, 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${server.url}${path}`, { headers, ...init })
  if (!response.ok) throw new Error(`${path} got ${response.status}: ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}

async function save(server: Server, query: string, input: object): Promise<string> {
  const { data, errors } = await ask(server, '/graphql', { query, variables: { input } })
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  return Object.values(data as Record<string, { id: string }>)[0]!.id
}

async function makeEndpoint(server: Server, image: string, version: string | null): Promise<string> {
  const name = `sdk-${version ?? 'current'}`
  const env = version === null ? [] : [{ key: 'PYTHONPATH', value: join(SDKS, version) }]
  const templateId = await save(server, 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }', {
    name,
    imageName: `dir:${image}`,
    dockerArgs: `"${PYTHON}" handler.py`,
    env,
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
  })
  return save(server, 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
    name,
    templateId,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 3600,
    workersMax: 1,
  })
}

/** Runs a job to its end. Returns its worker. */
async function runJob(server: Server, endpoint: string, input: { seconds: number; room: number }): Promise<string> {
  const { id } = await ask(server, `/v2/${endpoint}/run`, { input })
  for (;;) {
    const { status, workerId } = await ask(server, `/v2/${endpoint}/status/${String(id)}`)
    if (status === 'COMPLETED') return String(workerId)
    if (status === 'FAILED') throw new Error(`the job of ${endpoint} failed`)
    await sleep(500)
  }
}

/** Processor time in seconds of all processes of a group, and of the process itself. */
function processorTime(pids: readonly number[]): number {
  let ticks = 0
  for (const entry of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    let fields: string[]
    try {
      const text = readFileSync(`/proc/${entry}/stat`, 'latin1')
      fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    } catch {
      continue
    }
    if (pids.includes(Number(fields[2])) || pids.includes(Number(entry)))
      ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks / TICKS_A_SECOND
}

async function measureShare(server: Server, worker: string): Promise<Share> {
  const pidIn = (path: string) => (JSON.parse(readFileSync(join(server.dataDir, path), 'utf8')) as { pid: number }).pid
  const groups = [[pidIn(join('workers', worker, 'process.json'))], [server.pid, pidIn(join('relay', 'relay.json'))]]
  const times = () => groups.map(processorTime)
  const begin = performance.now()
  const timesBefore = times()
  await sleep(SECONDS * 1_000)
  const timesAfter = times()
  const seconds = (performance.now() - begin) / 1_000
  return { worker: (timesAfter[0]! - timesBefore[0]!) / seconds, server: (timesAfter[1]! - timesBefore[1]!) / seconds }
}

async function measure(server: Server, image: string, version: string | null): Promise<Share[]> {
  const endpoint = await makeEndpoint(server, image, version)
  const worker = await runJob(server, endpoint, { seconds: 0, room: 1 })
  await sleep(REST_MS)
  const shares = [await measureShare(server, worker)]
  for (const room of [1, 3]) {
    const job = runJob(server, endpoint, { seconds: SECONDS + (2 * REST_MS) / 1_000, room })
    await sleep(REST_MS)
    shares.push(await measureShare(server, worker))
    await job
  }
  return shares
}

function versionsIn(folder: string): string[] {
  if (folder === '' || !existsSync(folder)) return []
  return readdirSync(folder).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
}

const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
const dataDir = join(folder, 'data')
const image = join(folder, 'image')
mkdirSync(image)
writeFileSync(join(image, 'handler.py'), HANDLER)
const current = execFileSync(PYTHON, ['-c', "from importlib.metadata import version; print(version('runpod'))"], {
  encoding: 'utf8',
}).trim()
const options = [
  '--port',
  '0',
  '--json',
  '--log-level',
  'silent',
  '--data-dir',
  dataDir,
  '--process-root',
  folder,
  ...['--worker-sandbox', 'off'],
]
const program = spawn('./bin/runyard', ['serve', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
try {
  const server: Server = { ...(await ready(program)), dataDir }
  console.log(
    `${cpus().length} x ${cpus()[0]?.model}; ${SECONDS} s each, in percent of a core: worker / server and relay\n`,
  )
  console.log('| SDK | idle | one job | one job, concurrency 3 |\n|---|---|---|---|')
  for (const version of [...versionsIn(SDKS), null]) {
    const shares = await measure(server, image, version)
    const cells = shares.map(
      ({ worker, server: serverShare }) => `${(worker * 100).toFixed(1)} / ${(serverShare * 100).toFixed(1)}`,
    )
    console.log(`| ${version ?? current} | ${cells.join(' | ')} |`)
  }
} finally {
  const end = new Promise(done => program.once('exit', done))
  program.kill('SIGTERM')
  await end
  rmSync(folder, { recursive: true, force: true })
}

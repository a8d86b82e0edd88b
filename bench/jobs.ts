/**
 * The whole path of a job over HTTP, run, take, done and status, with 32 clients at once: on Runyard, which writes
 * each job to stable storage before the response, and on a bare node:http server that does the same in memory.
 *
 *     ./bin/node bench/jobs.ts [seconds]
 *
 * With RUNYARD_TEST_POSTGRES, the address of a PostgreSQL, also on that, in a schema that is dropped afterwards.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { withSchema } from '../scripts/torture/database.ts'
import { ready } from './harness/ready.ts'

const SECONDS = Number(process.argv[2] ?? 10)
const WARM_UP_MS = 1_000
const CLIENTS = 32
const WORKERS = 4
const INPUT = { input: { prompt: 'x'.repeat(1_000) } }

/** The target of the calls, and the worker in them. */
interface Target {
  readonly url: string
  readonly endpoint: string
  readonly key: string
  readonly workers: readonly { readonly id: string; readonly token: string }[]
}

interface Measured {
  readonly perSecond: number
  readonly ms: readonly number[]
}

const agent = new Agent({ keepAlive: true, maxSockets: 2 * CLIENTS })

function call(target: Target, path: string, token: string, body?: object): Promise<Record<string, unknown>> {
  return new Promise((done, fail) => {
    const method = body === undefined ? 'GET' : 'POST'
    const headers = { authorization: token, 'content-type': 'application/json', 'user-agent': 'bench' }
    const call = request(`${target.url}/v2/${target.endpoint}/${path}`, { method, agent, headers }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      response.on('end', () => {
        if (response.statusCode !== 200) fail(new Error(`${path} got ${response.statusCode}: ${text}`))
        else done(JSON.parse(text) as Record<string, unknown>)
      })
    })
    call.on('error', fail)
    call.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Runs one job. Its take may get the job of another client, which then takes this one. */
async function oneJob(target: Target, client: number): Promise<void> {
  const worker = target.workers[client % target.workers.length]!
  const { id } = await call(target, 'run', target.key, INPUT)
  const job = await call(target, `job-take/${worker.id}?gpu=CPU&job_in_progress=1`, worker.token)
  const output = { output: { text: 'y'.repeat(1_000) } }
  await call(target, `job-done/${worker.id}/${String(job.id)}?gpu=CPU&isStream=false`, worker.token, output)
  while ((await call(target, `status/${String(id)}`, target.key)).status !== 'COMPLETED');
}

async function measure(target: Target): Promise<Measured> {
  const ms: number[] = []
  const begin = performance.now() + WARM_UP_MS
  const end = begin + SECONDS * 1_000
  const client = async (number: number) => {
    for (let at = performance.now(); at < end; at = performance.now()) {
      await oneJob(target, number)
      if (at >= begin) ms.push(performance.now() - at)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  return { perSecond: ms.length / SECONDS, ms: ms.sort((a, b) => a - b) }
}

async function onStub(): Promise<Measured> {
  const stub = spawn(process.execPath, [resolve('bench/jobs-stub.ts')], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    for await (const url of createInterface({ input: stub.stdout })) {
      return await measure({ url, endpoint: 'e', key: 'k', workers: [{ id: 'w', token: 't' }] })
    }
    throw new Error('the stub ended')
  } finally {
    await ended(stub, 'SIGKILL')
  }
}

/** Measures Runyard. Its workers are idle; this program calls in their names. */
async function onRunyard(database: string | null): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
  const records = join(folder, 'records')
  mkdirSync(records)
  const options = [
    '--port',
    '0',
    '--json',
    '--log-level',
    'silent',
    '--data-dir',
    join(folder, 'data'),
    ...['--worker-sandbox', 'off'],
    '--process-root',
    '.',
  ]
  const env = { ...process.env, ...(database === null ? {} : { RUNYARD_DATABASE: database }) }
  const server = spawn('./bin/runyard', ['serve', ...options], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const { url, key } = await ready(server)
    const endpoint = await makeEndpoint(url, key, records)
    return await measure({ url, key, endpoint, workers: await workersIn(records) })
  } finally {
    await ended(server, 'SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function makeEndpoint(url: string, key: string, records: string): Promise<string> {
  const ask = async (query: string, input: object) => {
    const headers = { authorization: key, 'content-type': 'application/json' }
    const body = JSON.stringify({ query, variables: { input } })
    const response = await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).json()
    const { data, errors } = response as { data?: Record<string, { id: string }>; errors?: object }
    if (errors !== undefined || data === undefined) throw new Error(JSON.stringify(errors))
    return Object.values(data)[0]!.id
  }
  const templateId = await ask('mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }', {
    name: 'bench',
    imageName: `dir:${resolve('test/wire/fixtures/silent-worker')}`,
    dockerArgs: '',
    containerDiskInGb: 1,
    volumeInGb: 0,
    isServerless: true,
    env: [{ key: 'WIRE_FOLDER', value: records }],
  })
  return ask('mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }', {
    name: 'bench',
    templateId,
    instanceIds: ['cpu3g-2-8'],
    idleTimeout: 3600,
    workersMin: WORKERS,
    workersMax: WORKERS,
  })
}

async function workersIn(records: string): Promise<Target['workers']> {
  for (let tries = 0; tries < 200; tries += 1) {
    const files = readdirSync(records).filter(name => name.endsWith('.json'))
    if (files.length === WORKERS) {
      const environments = files.map(name => JSON.parse(readFileSync(join(records, name), 'utf8')))
      return environments.map(({ RUNPOD_POD_ID: id, RUNPOD_AI_API_KEY: token }) => ({ id, token }))
    }
    await new Promise(done => setTimeout(done, 50))
  }
  throw new Error('the workers did not start')
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const end = new Promise(done => child.once('exit', done))
  child.kill(signal)
  await end
}

function row(name: string, { perSecond, ms }: Measured): string {
  const at = (share: number) => ms[Math.floor((ms.length - 1) * share)]!.toFixed(1)
  return `| ${name} | ${Math.round(perSecond)} | ${at(0.5)} | ${at(0.99)} |`
}

console.log(`${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}; ${CLIENTS} clients, ${SECONDS} s each\n`)
console.log('| run, take, done, status | jobs/s | ms p50 | ms p99 |')
console.log('|---|---|---|---|')
console.log(row('Runyard on its own database', await onRunyard(null)))
const postgres = process.env.RUNYARD_TEST_POSTGRES ?? ''
if (postgres !== '') console.log(row('Runyard on PostgreSQL', await withSchema(postgres, onRunyard)))
console.log(row('a bare server, in memory only', await onStub()))
agent.destroy()

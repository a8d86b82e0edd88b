/**
 * Effect on other endpoints when an endpoint with many jobs is deleted, its queue is purged, or its jobs expire:
 *
 *     ./bin/node bench/removal.ts [jobs, 10000 unless given] [delete|purge|expire, all three unless given]
 *
 * For each: the time until the response and until no row is left, the latency of `run` for another endpoint in that
 * time, and the maximum memory of the server. It uses the embedded store on the disk of the temporary folder. The
 * jobs are inserted into the database while no server runs.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { EndpointId, JobId, OwnerId } from '../src/core/ids.ts'
import type { Job } from '../src/core/jobs/job.ts'
import { openSqliteStore } from '../src/store/engines/sqlite.ts'
import { ready } from './harness/ready.ts'

const JOBS = Number(process.argv[2] ?? 10_000)
const REMOVALS = process.argv[3] === undefined ? ['delete', 'purge', 'expire'] : [process.argv[3]]
const CLIENTS = 4
const PAUSE_MS = 20
const EXPIRE_AFTER_MS = 6_000
const LONGEST_MS = 900_000
const input = JSON.stringify({ input: { prompt: 'x'.repeat(1_000) } })

const sleep = (ms: number) => new Promise<void>(done => setTimeout(done, ms))

interface Server {
  readonly child: ChildProcess
  readonly url: string
  readonly key: string
  readonly pid: number
}

async function start(folder: string): Promise<Server> {
  const options = ['--port', '0', '--json', '--log-level', 'silent', '--data-dir', folder]
  const child = spawn('./bin/runyard', ['serve', ...options], { stdio: ['ignore', 'pipe', 'inherit'] })
  return { child, ...(await ready(child)) }
}

async function stop({ child }: Server): Promise<void> {
  const end = new Promise(done => child.once('exit', done))
  child.kill('SIGTERM')
  await end
}

async function ask({ url, key }: Server, method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} got ${response.status}: ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

async function makeEndpoint(server: Server, name: string): Promise<EndpointId> {
  const query = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const template = { name: `${name}-image`, imageName: 'image:1', containerDiskInGb: 1 }
  const endpoint = { name, instanceIds: ['cpu3g-2-8'], workersMin: 0, workersMax: 0, template }
  return (await ask(server, 'POST', '/graphql', { query, variables: { input: endpoint } })).data.saveEndpoint.id
}

async function fill(file: string, endpointId: EndpointId, expiresAtMs: (n: number) => number): Promise<void> {
  const store = await openSqliteStore({ file, host: 'inline' })
  const nowMs = Date.now()
  const texts = { input, policy: null, webhook: null, s3Config: null }
  for (let begun = 0; begun < JOBS; begun += 250) {
    const part = Array.from({ length: Math.min(250, JOBS - begun) }, (_, index) => {
      const n = begun + index
      const times = { executionTimeoutMs: 600_000, ttlMs: 86_400_000, retentionMs: 1_800_000, queuedAtMs: nowMs }
      const place = { position: nowMs * 1024 + n, lowPriority: false, expiresAtMs: expiresAtMs(n) }
      const identity = { id: `${randomUUID()}-u1` as JobId, owner: 'owner' as OwnerId, endpointId, kind: 'run' }
      return store.jobs.insert({ ...identity, ...texts, ...times, ...place } as Job)
    })
    await Promise.all(part)
  }
  await store.close()
}

/** Submits jobs for another endpoint until it is stopped. */
async function runOthers(server: Server, endpoint: EndpointId, ended: AbortSignal): Promise<number[]> {
  const ms: number[] = []
  const client = async () => {
    while (!ended.aborted) {
      const began = performance.now()
      await ask(server, 'POST', `/v2/${endpoint}/run`, JSON.parse(input))
      ms.push(performance.now() - began)
      await sleep(PAUSE_MS)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return ms.sort((a, b) => a - b)
}

async function until(isSo: () => boolean): Promise<number> {
  const began = performance.now()
  while (!isSo()) {
    if (performance.now() - began > LONGEST_MS) throw new Error('it took too long')
    await sleep(20)
  }
  return performance.now() - began
}

async function measure(removal: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
  const file = join(folder, 'runyard.sqlite')
  let server = await start(folder)
  try {
    const full = await makeEndpoint(server, 'full')
    const other = await makeEndpoint(server, 'other')
    await stop(server)
    const day = Date.now() + 86_400_000
    await fill(file, full, n => day + n)
    if (removal === 'expire') await expireSoon(file, full)
    server = await start(folder)
    const database = new DatabaseSync(file, { readOnly: true })
    const queuedJob = database.prepare(`SELECT 1 FROM jobs WHERE endpoint_id = ? AND status = 'IN_QUEUE' LIMIT 1`)
    const ended = new AbortController()
    const measured = runOthers(server, other, ended.signal)
    await sleep(1_000)
    const began = performance.now()
    let respondedMs = 0
    if (removal === 'delete') await ask(server, 'DELETE', `/v2/serverless/${full}`)
    else if (removal === 'purge') await ask(server, 'POST', `/v2/${full}/purge-queue`)
    respondedMs = performance.now() - began
    await until(() => queuedJob.get(full) === undefined)
    const goneMs = performance.now() - began
    ended.abort()
    const ms = await measured
    database.close()
    const memory = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
    const at = (share: number) => ms[Math.floor((ms.length - 1) * share)]!.toFixed(0)
    const times = `${respondedMs.toFixed(0)} | ${(goneMs / 1_000).toFixed(1)} | ${at(0.5)} / ${at(0.99)} / ${at(1)}`
    return `| ${removal} | ${JOBS} | ${times} | ${memory.toFixed(0)} |`
  } finally {
    await stop(server)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Makes the jobs expire within a second, some seconds from now. */
async function expireSoon(file: string, endpoint: EndpointId): Promise<void> {
  const database = new DatabaseSync(file)
  const sql = 'UPDATE jobs SET expires_at_ms = ? + (position % 1000) WHERE endpoint_id = ?'
  database.prepare(sql).run(Date.now() + EXPIRE_AFTER_MS, endpoint)
  database.close()
}

console.log(
  '| what | jobs | until the response, ms | until all are removed, s | run of others, p50 / p99 / max ms | memory, MiB |',
)
console.log('|---|---|---|---|---|---|')
for (const removal of REMOVALS) console.log(await measure(removal))

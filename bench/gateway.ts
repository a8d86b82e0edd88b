/**
 * The cost of the gateway compared with one worker of nginx and a plain proxy with undici, with the same
 * backend; each is a process, and so is the client. A round measures all of them one after another; the best
 * figures of all rounds count.
 *
 *     ./bin/node bench/gateway.ts [rounds] [milliseconds of each]
 *
 * nginx is left out when it is not installed (Debian: `apt install nginx-light`).
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/support/free-ports.ts'
import type { Done, Task } from './gateway-roles.ts'
import { startNginx } from './harness/nginx.ts'

const ROUNDS = Number(process.argv[2] ?? 3)
const MS = Number(process.argv[3] ?? 2_000)
const IDLE_SOCKETS = 5_000
/** Warm-up, in milliseconds, so that the compiler is not measured. */
const WARM_MS = 5_000
/** Options of Node for every process, as in production. */
const EXTRA = (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter(option => option !== '')
/** The clock of `/proc/<pid>/stat`, in microseconds. */
const TICK_US = 10_000

interface Subject {
  readonly name: string
  readonly port: number
  /** Process whose time and memory count; null if it cannot be measured. */
  readonly pid: number | null
  readonly path: string
  readonly headers: string
}

interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Processor time per operation, in microseconds. */
  readonly cpuUs: number | null
}

const folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
const children: ChildProcess[] = []

try {
  await main()
} finally {
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(children.map(child => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const backend = await start('backend')
  const subjects: Subject[] = [
    backend,
    ...(await nginx(backend.port)),
    await start('undici', backend.port),
    await start('forwarder', backend.port),
    await runyard(),
  ]
  const idle = new Map<string, number | null>()
  for (const subject of subjects) idle.set(subject.name, await idleBytes(subject))
  const rows = new Map<string, { one: Measured[]; some: Measured[]; many: Measured[]; echo: Measured[] }>()
  for (const { name: _, pid: _p, ...where } of subjects) {
    await runTask({ ...where, kind: 'get', connections: 32, ms: WARM_MS }, () => {})
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const subject of subjects) {
      const row = rows.get(subject.name) ?? { one: [], some: [], many: [], echo: [] }
      rows.set(subject.name, row)
      const { name: _, pid: _p, ...where } = subject
      row.one.push(await measure(subject, { ...where, kind: 'get', connections: 1, ms: MS }))
      row.some.push(await measure(subject, { ...where, kind: 'get', connections: 32, ms: MS }))
      row.many.push(await measure(subject, { ...where, kind: 'get', connections: 256, ms: MS }))
      row.echo.push(await measure(subject, { ...where, kind: 'echo', connections: 32, ms: MS }))
    }
  }
  const direct = best(rows.get('backend')!.one)
  const base = rows.get('nginx')
  console.log(
    `${ROUNDS} rounds of ${MS} ms; microseconds beyond the backend alone (p50 ${direct.p50}, p99 ${direct.p99})`,
  )
  console.log(tableRow(['', 'p50', 'p99', '32: /s', 'us', '256: /s', 'us', 'echo /s', 'us', 'MB idle']))
  for (const subject of subjects) {
    const row = rows.get(subject.name)!
    const [one, some, many, echo] = [row.one, row.some, row.many, row.echo].map(best) as [
      Measured,
      Measured,
      Measured,
      Measured,
    ]
    const cells = [subject.name, `+${one.p50 - direct.p50}`, `+${one.p99 - direct.p99}`]
    for (const measured of [some, many, echo])
      cells.push(Math.round(measured.perSecond).toString(), measured.cpuUs?.toFixed(1) ?? '?')
    const bytes = idle.get(subject.name) ?? null
    console.log(tableRow([...cells, bytes === null ? '?' : (bytes / 1e6).toFixed(0)]))
    if (base === undefined || subject.name === 'backend' || subject.name === 'nginx') continue
    const by = (share: (mine: Measured, its: Measured) => number) =>
      [share(some, best(base.some)), share(many, best(base.many)), share(echo, best(base.echo))]
        .map(one => one.toFixed(2))
        .join(', ')
    console.log(`  of nginx at 32, at 256, echo: throughput ${by((a, b) => a.perSecond / b.perSecond)}`)
    if (some.cpuUs !== null) console.log(`  by processor time: ${by((a, b) => b.cpuUs! / a.cpuUs!)}`)
  }
}

function tableRow(cells: readonly string[]): string {
  return cells.map((cell, at) => (at === 0 ? cell.padEnd(12) : cell.padStart(9))).join('')
}

/** The best of each figure: other load can only make a figure worse. */
function best(all: readonly Measured[]): Measured {
  const minimum = (key: 'p50' | 'p99' | 'cpuUs') => Math.min(...all.map(one => one[key] ?? Number.POSITIVE_INFINITY))
  const perSecond = Math.max(...all.map(one => one.perSecond))
  return { perSecond, p50: minimum('p50'), p99: minimum('p99'), cpuUs: all[0]?.cpuUs == null ? null : minimum('cpuUs') }
}

/** Runs a task in a new client process, which closes its connections when it ends. */
async function runTask(task: Task, onBegun: () => void): Promise<Done> {
  const client = role('client')
  try {
    await nextMessage(client)
    client.send(task)
    for (;;) {
      const [message] = (await nextMessage(client)) as ['begun' | Done | { error: string }]
      if (message === 'begun') onBegun()
      else if ('error' in message) throw new Error(message.error)
      else return message
    }
  } finally {
    client.kill('SIGKILL')
  }
}

async function measure({ pid }: Subject, task: Task): Promise<Measured> {
  let cpuBefore: number | null = null
  const { count, p50, p99 } = await runTask(task, () => {
    cpuBefore = processCpu(pid)
  })
  const cpuAfter = processCpu(pid)
  const cpuUs = cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / count
  return { perSecond: (count * 1000) / task.ms, p50, p99, cpuUs }
}

/** Memory that the idle sockets add to a subject, in bytes; null if it cannot be measured. */
async function idleBytes({ pid, port, path, headers }: Subject): Promise<number | null> {
  const memoryBefore = processMemory(pid)
  if (memoryBefore === null) return null
  const client = role('client')
  await nextMessage(client)
  client.send({ port, path, headers, kind: 'idle', connections: IDLE_SOCKETS, ms: 0 } satisfies Task)
  const [message] = (await nextMessage(client)) as [Done | { error: string }]
  const memoryAfter = processMemory(pid)
  client.kill('SIGKILL')
  if ('error' in message) console.error(message.error)
  return 'error' in message || memoryAfter === null ? null : memoryAfter - memoryBefore
}

/** The next message of a process. */
async function nextMessage(child: ChildProcess): Promise<unknown[]> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('a process of the bench ended')
  })
  return Promise.race([once(child, 'message'), ended])
}

function role(name: string, target = 0): ChildProcess {
  const child = fork(new URL('./gateway-roles.ts', import.meta.url), [name, String(target)], { execArgv: EXTRA })
  children.push(child)
  return child
}

async function start(name: string, target = 0): Promise<Subject> {
  const child = role(name, target)
  const [port] = (await nextMessage(child)) as [number]
  return { name, port, pid: child.pid ?? null, path: '/v1/things?x=1', headers: '' }
}

/** Starts nginx in front of the backend; an empty list if nginx is not installed. */
async function nginx(target: number): Promise<Subject[]> {
  if (spawnSync('nginx', ['-v']).status !== 0) {
    console.log('nginx is left out: it is not installed')
    return []
  }
  const { child, port, pid } = await startNginx(folder, await freePort(), target)
  children.push(child)
  return [{ name: 'nginx', port, pid, path: '/v1/things?x=1', headers: '' }]
}

/**
 * Starts a complete server with store, key check, claims, metrics and access log, and the backend as its only worker.
 */
async function runyard(): Promise<Subject> {
  const out = openSync(join(folder, 'server.jsonl'), 'w')
  const data = join(folder, 'data')
  mkdirSync(join(folder, 'worker'))
  const args = [
    'serve',
    '--port',
    '0',
    '--json',
    '--data-dir',
    data,
    '--process-root',
    folder,
    '--log-level',
    'debug',
    ...['--worker-sandbox', 'off'],
  ]
  const env = { ...process.env, NODE_OPTIONS: EXTRA.join(' ') }
  children.push(
    spawn('./bin/runyard', args, { stdio: ['ignore', out, openSync(join(folder, 'server.log'), 'w')], env }),
  )
  const { url, apiKeyFile, pid } = await poll(() => {
    const first = readFileSync(join(folder, 'server.jsonl'), 'utf8').split('\n')
    return first.length < 2 ? null : (JSON.parse(first[0]!) as { url: string; apiKeyFile: string; pid: number })
  })
  const key = readFileSync(apiKeyFile, 'utf8').trim()
  const roles = fileURLToPath(new URL('./gateway-roles.ts', import.meta.url))
  const response = await fetch(`${url}/v2/serverless`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'bench',
      type: 'LOAD_BALANCER',
      image: `dir:${join(folder, 'worker')}`,
      args: `${process.execPath} ${roles} backend`,
      scaling: { type: 'REQUEST_COUNT', requestCount: 1_000 },
      workers: { min: 1, max: 1 },
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
    }),
  })
  const responseText = await response.text()
  const { id, requestUrls } = JSON.parse(responseText) as { id?: string; requestUrls: { base: string } }
  if (id === undefined) throw new Error(`no endpoint was created: ${responseText}`)
  const headers = `Authorization: Bearer ${key}\r\n`
  const ping = await fetch(`${url}/lb/${id}/ping`, { headers: { authorization: `Bearer ${key}` } })
  if (ping.status !== 200) throw new Error(`${requestUrls.base} answers ${ping.status}: ${await ping.text()}`)
  return { name: 'runyard', port: Number(new URL(url).port), pid, path: `/lb/${id}/v1/things?x=1`, headers }
}

async function poll<Value>(read: () => Value | null): Promise<Value> {
  for (;;) {
    const value = read()
    if (value !== null) return value
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

/** Processor time of all threads of a process, in microseconds; null if the system does not report it. */
function processCpu(pid: number | null): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_US
  } catch {
    return null
  }
}

function processMemory(pid: number | null): number | null {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  } catch {
    return null
  }
}

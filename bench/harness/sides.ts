/** The sides of a comparison: servers that are started for a benchmark, and the programs that they need. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../test/support/free-ports.ts'
import { startNginx } from './nginx.ts'

const PEERS = join(import.meta.dirname, '..', 'peers')
const POSTGRES = join(import.meta.dirname, '../../.ci/postgres')
/** The clock of `/proc/<pid>/stat`. */
const TICKS_PER_SECOND = 100

/** A server under measurement. */
export interface Side {
  readonly name: string
  readonly port: number
  /** The request to send, head and body. */
  readonly request: string
  /** Processes whose processor time counts: the server, and the database that only this side uses. */
  readonly pids: readonly number[]
  /** True if the processor time of their children does not count. */
  readonly isAlone?: boolean
  /** True if only the processor time of the first thread of each process counts. */
  readonly isFirstThread?: boolean
}

/** Starts sides and the programs that they need, and stops all of them. */
export class Bench {
  readonly folder = mkdtempSync(join(tmpdir(), 'runyard-bench-'))
  readonly #children: ChildProcess[] = []
  readonly #atEnd: (() => void)[] = []
  #postgres: { url: string; pid: number } | null = null

  /**
   * Starts a program that prints one line when it is ready.
   * @param log file for its errors; they go to stderr of this process unless given
   */
  async start(
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    log?: string,
  ): Promise<Started> {
    const errors = log === undefined ? 'inherit' : openSync(log, 'a')
    const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', errors] })
    if (typeof errors === 'number') closeSync(errors)
    this.#children.push(child)
    for await (const line of createInterface({ input: child.stdout! })) {
      child.stdout!.resume()
      return { line, pid: child.pid! }
    }
    throw new Error(`${command} ended before it was ready: ${log === undefined ? '' : readFileSync(log, 'utf8')}`)
  }

  /** Starts a peer of bench/peers, which is installed at its first use. @returns its side without the request's end */
  async peer(name: string, file: string, env: Readonly<Record<string, string>>): Promise<Started & { port: number }> {
    if (!existsSync(join(PEERS, 'node_modules')))
      execFileSync(
        'npm',
        ['install', '--silent', '--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--omit=optional'],
        {
          cwd: PEERS,
          stdio: 'inherit',
        },
      )
    const started = await this.start(process.execPath, [join(PEERS, file)], env)
    if (!/^\d+$/.test(started.line)) throw new Error(`${name} printed '${started.line}', not its port`)
    return { ...started, port: Number(started.line) }
  }

  /** Starts a Redis that writes each change to stable storage before it answers. */
  async redis(): Promise<{ port: number; pid: number }> {
    installed('redis-server', 'redis-server')
    const port = await freePort()
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--dir', this.folder]
    const child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', ...settings], {
      stdio: 'ignore',
    })
    this.#children.push(child)
    return { port, pid: child.pid! }
  }

  /** Starts a PostgreSQL of its own at the first call. @returns its address, and the pid of its first process */
  postgres(): { url: string; pid: number } {
    this.#postgres ??= this.#startPostgres()
    return this.#postgres
  }

  #startPostgres(): { url: string; pid: number } {
    const folder = join(this.folder, 'postgres')
    execFileSync('chmod', ['755', this.folder])
    const url = execFileSync(POSTGRES, ['start', folder], { encoding: 'utf8' }).trim()
    this.#atEnd.push(() => execFileSync(POSTGRES, ['stop', folder], { stdio: 'ignore' }))
    const [pid] = readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n')
    return { url, pid: Number(pid) }
  }

  /** Starts one worker of nginx in front of a backend. */
  async nginx(target: number): Promise<{ port: number; pid: number }> {
    installed('nginx', 'nginx-light')
    const nginx = await startNginx(this.folder, await freePort(), target)
    this.#children.push(nginx.child)
    return nginx
  }

  /** Makes a database in a PostgreSQL. @returns its address */
  database(server: string, name: string): string {
    const psql = join(execFileSync(POSTGRES, ['install'], { encoding: 'utf8' }).trim(), 'psql')
    execFileSync(psql, [server, '-qc', `CREATE DATABASE ${name}`])
    const url = new URL(server)
    url.pathname = `/${name}`
    return url.href
  }

  /** Stops one started program before the others. */
  async stopOne(pid: number): Promise<void> {
    const child = this.#children.find(child => child.pid === pid)
    if (child === undefined || child.exitCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  }

  async stop(): Promise<void> {
    for (const child of this.#children) child.kill('SIGTERM')
    await Promise.all(this.#children.map(child => child.exitCode ?? child.signalCode ?? once(child, 'exit')))
    for (const end of this.#atEnd) end()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A program that has printed its first line. */
export interface Started {
  readonly line: string
  readonly pid: number
}

/** A request as bytes of HTTP/1.1. @param body null for a GET */
export function requestText(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: object | null,
): string {
  const text = body === null ? '' : JSON.stringify(body)
  const ofBody = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  const all = { host: `127.0.0.1:${port}`, ...(body === null ? {} : ofBody), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${body === null ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`
}

/** Resident memory of a process, in MB of a million bytes. */
export function memoryMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return (Number(kilobytes) * 1_024) / 1e6
}

/** Processor time of processes and their children so far, in seconds. @param isAlone without their children */
export function processorSeconds(pids: readonly number[], isAlone = false): number {
  const parents = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const parent = Number(readStat(Number(name))[1] ?? 0)
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)])
  }
  const all = new Set(pids)
  if (!isAlone) for (const pid of all) for (const child of parents.get(pid) ?? []) all.add(child)
  return [...all].reduce((sum, pid) => {
    const stat = readStat(pid)
    return sum + (Number(stat[11] ?? 0) + Number(stat[12] ?? 0)) / TICKS_PER_SECOND
  }, 0)
}

/** Processor time of the first thread of each process so far, in seconds. */
export function firstThreadSeconds(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const stat = readStat(`${pid}/task/${pid}`)
    return sum + (Number(stat[11] ?? 0) + Number(stat[12] ?? 0)) / TICKS_PER_SECOND
  }, 0)
}

/** Fields of `/proc/<pid>/stat` behind the name; an empty list if the process has ended. */
function readStat(pid: number | string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /, '')
      .split(' ')
  } catch {
    return []
  }
}

function installed(program: string, debianPackage: string): void {
  const isThere = (process.env.PATH ?? '').split(':').some(folder => existsSync(join(folder, program)))
  if (!isThere)
    execFileSync('sh', ['-c', `apt-get update -qq && apt-get install -y -qq ${debianPackage}`], { stdio: 'ignore' })
}

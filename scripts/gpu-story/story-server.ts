/** A server of the story with its workers, in a folder of its own, and its memory of cards. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { systemClock } from '../../src/system/clock.ts'
import { createGpuMeter } from '../../src/system/gpu/gpu-meter.ts'

const run = promisify(execFile)
const MIB = 2 ** 20
const START_MS = 40_000
/** Roots of control groups of version 2, alone and beside those of version 1. */
const GROUP_ROOTS = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified']

/** The answer of a job. */
export interface Answer {
  readonly pid: number
  readonly sum: string
  /** The result of its turns. */
  readonly value: string
  /** Its share of the card in MiB, as it sees it; null without one. */
  readonly shareMb: string | null
  readonly heldGib: number
  readonly gpus: number
  readonly visible: string
  readonly loadMs: number
  readonly tookMs: number
  /** Turns of its thread that synchronizes in a loop. */
  readonly spins: number
}

/** Starts a server, and starts it again after a kill. Its workers report their pids, so they have no sandbox. */
export class StoryServer {
  readonly #program
  readonly #folder
  readonly #log
  readonly #port
  #child: ChildProcess | null = null
  #key = ''
  #hasEnded = false

  private constructor(program: string, folder: string, port: number) {
    this.#program = program
    this.#folder = folder
    this.#log = join(folder, 'server.log')
    this.#port = port
  }

  /** @param program the folder of the unpacked program @param folder an empty one for all files of the server */
  static async start(program: string, folder: string): Promise<StoryServer> {
    const probe = createServer()
    await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as { port: number }
    await new Promise(resolve => probe.close(resolve))
    const server = new StoryServer(program, folder, port)
    await server.startAgain()
    return server
  }

  get log(): string {
    return this.#log
  }

  /** @returns milliseconds until it is ready */
  async startAgain(): Promise<number> {
    assert.ok(!this.#hasEnded, 'the chapter is over')
    const begunMs = performance.now()
    const handlers = import.meta.dirname
    const trust = ['--worker-sandbox', 'off', '--accept-shared-host', '--process-root', handlers]
    const words = ['serve', '--port', String(this.#port), '--json', '--docker', 'off', '--dwell', '1', ...trust]
    const child = spawn(join(this.#program, 'bin/runyard'), [...words, '--data-dir', join(this.#folder, 'data')], {
      env: this.#env(),
      stdio: ['ignore', 'pipe', openSync(this.#log, 'a')],
    })
    this.#child = child
    let printed = ''
    child.stdout?.setEncoding('utf8').on('data', text => (printed += text))
    const ready = await until('the server', START_MS, () => {
      assert.equal(child.exitCode, null, `it ended: ${readFileSync(this.#log, 'utf8').slice(-500)}`)
      return printed.split('\n').find(line => line.includes('"event":"ready"'))
    })
    const { apiKeyFile } = JSON.parse(ready) as { apiKeyFile?: string }
    if (apiKeyFile !== undefined) this.#key = readFileSync(apiKeyFile, 'utf8').trim()
    return Math.round(performance.now() - begunMs)
  }

  /** Kills the server alone; its workers go on. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  /** Kills the server, its workers and all that belongs to it. */
  async end(): Promise<void> {
    this.#hasEnded = true
    await this.kill()
    for (let left = 20; left > 0 && this.#killRest() > 0; left -= 1) await pause(100)
  }

  /** @param words options of `runyard endpoints create` @returns the id; null where it has no such option */
  async endpoint(name: string, ...words: readonly string[]): Promise<string | null> {
    const { FAKE_CUDA_DIR } = process.env
    const fake = FAKE_CUDA_DIR === undefined ? [] : ['--env', `FAKE_CUDA_DIR=${FAKE_CUDA_DIR}`]
    const image = ['--image', `dir:${import.meta.dirname}`, '--max', '1', ...fake]
    const connection = ['--url', this.#url, '--api-key', this.#key, '--json']
    const command = ['endpoints', 'create', '--name', name, ...image, ...words, ...connection]
    try {
      const { stdout } = await run(join(this.#program, 'bin/runyard'), command, { env: this.#env() })
      return (JSON.parse(stdout) as { id: string }).id
    } catch (error) {
      const { stderr = '' } = error as { stderr?: string }
      if (/unknown option/i.test(stderr)) return null
      throw new Error(stderr.trim() || (error as Error).message, { cause: error })
    }
  }

  async submit(endpoint: string, input: object): Promise<string> {
    return ((await this.call(`/v2/${endpoint}/run`, { input })) as { id: string }).id
  }

  async result(endpoint: string, id: string, withinMs: number): Promise<Answer> {
    return until(`job ${id}`, withinMs, async () => {
      const path = `/v2/${endpoint}/status/${id}`
      const { status, output, error } = (await this.call(path)) as { status: string; output?: Answer; error?: string }
      assert.ok(!['FAILED', 'TIMED_OUT', 'CANCELLED'].includes(status), `${status}: ${error}`)
      return status === 'COMPLETED' ? output : null
    })
  }

  /** @returns the answer, with the time from the submit to the result */
  async job(endpoint: string, input: object, withinMs: number): Promise<Answer & { readonly waitedMs: number }> {
    const begunMs = performance.now()
    const answer = await this.result(endpoint, await this.submit(endpoint, input), withinMs)
    return { ...answer, waitedMs: Math.round(performance.now() - begunMs) }
  }

  async call(path: string, body?: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(15_000)
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${this.#url}${path}`, { headers, signal, ...init })
    assert.ok(response.ok, `${path} answered ${response.status}`)
    return response.json()
  }

  /** The events about suspended, paused and learning workers so far, with the problems of loops. */
  events(): Record<string, unknown>[] {
    const lines = readFileSync(this.#log, 'utf8').split('\n')
    const wanted = lines.filter(line =>
      /"worker\.(suspend|resume|pause|share_learned)|"loop\.failed"|"worker\.ended"/.test(line),
    )
    return wanted.flatMap(line => {
      try {
        return [JSON.parse(line) as Record<string, unknown>]
      } catch {
        return []
      }
    })
  }

  get #url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** @returns the number of killed processes that have this folder among their words or variables */
  #killRest(): number {
    let killed = 0
    for (const pid of readdirSync('/proc').filter(entry => /^\d+$/.test(entry) && Number(entry) !== process.pid)) {
      const texts = ['cmdline', 'environ'].map(file => readOrEmpty(`/proc/${pid}/${file}`))
      if (!texts.some(text => text.includes(this.#folder))) continue
      try {
        process.kill(Number(pid), 'SIGKILL')
        killed += 1
      } catch {
        // It has ended.
      }
    }
    return killed
  }

  #env(): NodeJS.ProcessEnv {
    const { PATH, LD_LIBRARY_PATH, FAKE_CUDA_DIR } = process.env
    const env = { PATH, LD_LIBRARY_PATH, FAKE_CUDA_DIR, HOME: this.#folder, LANG: 'C.UTF-8' }
    return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
  }
}

const meter = createGpuMeter(systemClock, process.env)

/** Memory of the first card in MiB: all that is in use, and that of some processes. */
export async function cardUse(...pids: readonly number[]): Promise<Record<string, unknown>> {
  const { cards } = await meter.measure(new Set(pids))
  const mibOf = (pid: number) => (cards[0]?.processes.find(each => each.pid === pid)?.bytes ?? 0) / MIB
  return { usedMib: (cards[0]?.usedBytes ?? 0) / MIB, workersMib: pids.map(mibOf) }
}

/** The first process that has this much memory on the first card, in GiB; null without one. */
export async function pidOnCard(gib: number): Promise<number | null> {
  const { cards } = await meter.measure(new Set())
  return cards[0]?.processes.find(({ bytes }) => (bytes ?? 0) >= gib * 1024 * MIB)?.pid ?? null
}

/** Memory of the machine in MiB: what is available, and the resident parts of some processes. */
export function machineUse(...pids: readonly number[]): Record<string, unknown> {
  const mib = (text: string, name: string) =>
    Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1]) / 1024)
  const residentMib = pids.map(pid => mib(readOrEmpty(`/proc/${pid}/status`), 'VmRSS'))
  return { availableMib: mib(readOrEmpty('/proc/meminfo'), 'MemAvailable'), residentMib }
}

/** Waits until a process has no memory on the card. */
export async function untilOffCard(pid: number, withinMs: number): Promise<void> {
  await until(`process ${pid} to leave the card`, withinMs, async () => {
    const { cards } = await meter.measure(new Set())
    return cards.some(({ processes }) => processes.some(each => each.pid === pid)) ? null : true
  })
}

/** True while the first thread of a process is held. */
export function isHeldProcess(pid: number): boolean {
  return groupOf(pid).endsWith('/held')
}

/** True while all of a worker is frozen, held or not. */
export function isFrozenProcess(pid: number): boolean {
  const group = groupOf(pid).replace(/\/held$/, '')
  return GROUP_ROOTS.some(root => readOrEmpty(join(root, group, 'cgroup.freeze')).trim() === '1')
}

export async function until<T>(
  condition: string,
  withinMs: number,
  look: () => T | Promise<T>,
  everyMs = 50,
): Promise<NonNullable<T>> {
  const endMs = performance.now() + withinMs
  for (;;) {
    const value = await look()
    if (value !== null && value !== undefined && value !== false) return value
    if (performance.now() > endMs) throw new Error(`${condition}: not within ${withinMs / 1000} s`)
    await pause(everyMs)
  }
}

function groupOf(pid: number): string {
  return /^0::(.*)$/m.exec(readOrEmpty(`/proc/${pid}/cgroup`))?.[1] ?? ''
}

function readOrEmpty(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  } catch {
    return ''
  }
}

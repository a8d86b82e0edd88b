/** A machine with cards of the driver library for tests, built with gcc once for a test file. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import type { ProcessStart } from '../../src/core/hardware/gpu-suspension.ts'
import { listProcesses, readProcess } from '../../src/drivers/base/process-table.ts'
import type { ProcessFamily } from '../../src/ports/gpu-suspender.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createGpuMeter } from '../../src/system/gpu/gpu-meter.ts'
import { createGpuSuspender } from '../../src/system/gpu/gpu-suspender.ts'
import { removeFolder } from './remove-folder.ts'

const SOURCES = join(import.meta.dirname, 'fake-cuda')

/** The id of its first card. */
export const CARD = 'GPU-11111111-1111-1111-1111-111111111111'
/** The id of its second card, where there are two. */
export const SECOND_CARD = 'GPU-22222222-2222-2222-2222-222222222222'
export const MIB = 2 ** 20

/** Reason why these tests cannot run; false if they can. */
export const noFakeGpus = lackOfGcc()

function lackOfGcc(): string | false {
  if (process.platform === 'linux' && spawnSync('gcc', ['--version']).status === 0) return false
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error('the driver library for tests needs Linux and gcc')
  return 'the driver library for tests needs Linux and gcc'
}

let built: string | null = null

function programs(): string {
  if (built !== null) return built
  built = mkdtempSync(join(tmpdir(), 'runyard-fake-cuda-'))
  const folder = built
  process.on('exit', () => removeFolder(folder))
  execFileSync('sh', [join(SOURCES, 'build.sh'), folder], { stdio: ['ignore', 'ignore', 'inherit'] })
  return folder
}

/** A program that has memory of a card. */
export interface FakeWorker extends ProcessStart {
  /** Checksum of its memory on the card at its start. */
  readonly sum: number
  /** Its process and all descendants. */
  readonly family: ProcessFamily
  /** Sends it a command; see fake-worker.ts. */
  ask(line: string): Promise<Record<string, unknown>>
  kill(): Promise<void>
}

/** A program that a driver has started. */
export interface LinkedWorker extends Pick<FakeWorker, 'sum' | 'ask'> {
  /** Resolves when it has ended. */
  readonly ended: Promise<unknown>
}

/** The machine of one test; its programs end with the test. */
export class FakeGpus {
  readonly #context: TestContext
  readonly #folder = mkdtempSync(join(tmpdir(), 'runyard-fake-gpus-'))
  readonly env: NodeJS.ProcessEnv

  /**
   * @param settings lines of `machine.conf`, see fake-cuda/README.md; `cards` is their number,
   * `cardMib` the memory of each
   */
  constructor(context: TestContext, settings: Readonly<Record<string, string | number>> = {}) {
    this.#context = context
    mkdirSync(join(this.#folder, 'procs'))
    context.after(() => removeFolder(this.#folder))
    const { PATH = '' } = process.env
    const library = join(programs(), 'lib')
    this.env = {
      PATH: `${join(programs(), 'bin')}:${PATH}`,
      LD_LIBRARY_PATH: library,
      FAKE_CUDA_DIR: this.#folder,
    }
    this.set(settings)
  }

  /** Changes the machine. */
  set(settings: Readonly<Record<string, string | number>>): void {
    const cards = Number(settings.cards ?? 1) === 1 ? [CARD] : [CARD, SECOND_CARD]
    const lines = Object.entries({ driver: '580.159.04', cuda: 13_000, ...settings }).filter(
      ([name]) => name !== 'cards',
    )
    const text = [
      ...lines.map(([name, value]) => `${name}=${value}`),
      ...cards.map(uuid => `card=${uuid},NVIDIA L4,${settings.cardMib ?? 24_576}`),
    ]
    writeFileSync(join(this.#folder, 'machine.conf'), `${text.join('\n')}\n`)
  }

  get meter() {
    return createGpuMeter(systemClock, this.env)
  }

  /** @param callMs time for a call; that of the server unless given */
  suspender(callMs?: number) {
    const options = { clock: systemClock, env: this.env, meter: this.meter }
    return createGpuSuspender(callMs === undefined ? options : { ...options, callMs })
  }

  /** Starts a program with this much memory of a card. */
  async worker(mib: number, kind = '', env: Readonly<Record<string, string>> = {}): Promise<FakeWorker> {
    const child = spawn(process.execPath, [...this.words(mib), kind], {
      env: { ...this.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    })
    const ended = new Promise<void>(resolve => void child.once('close', () => resolve()))
    const kill = async () => {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        // It has ended.
      }
      await ended
    }
    this.#context.after(kill)
    const link = openLink(child.stdout, child.stdin)
    const { sum } = await link.next()
    const pid = child.pid!
    return {
      pid,
      startTime: readProcess(pid)!.startTime,
      sum: Number(sum),
      family: unheld(() => processFamily(pid)),
      ask: link.ask,
      kill,
    }
  }

  /** Words after the pinned Node that run a program as {@link worker} does. */
  words(mib: number): string[] {
    return ['--disable-warning=ExperimentalWarning', join(SOURCES, 'fake-worker.ts'), String(mib)]
  }

  /** A folder with the machine, its library and both programs, to be mounted into a container or a cage. */
  shared(): string {
    cpSync(join(programs(), 'lib'), join(this.#folder, 'lib'), { recursive: true })
    for (const name of ['fake-worker.py', 'fake-worker.ts']) copyFileSync(join(SOURCES, name), join(this.#folder, name))
    return this.#folder
  }

  /**
   * Waits for a program that something else starts with {@link words} and the variables of {@link env}.
   * @param mounted the path at which it sees the folder {@link shared}; null without one
   */
  async linked(
    start: (env: Readonly<Record<string, string>>) => Promise<void>,
    mounted: string | null = null,
  ): Promise<LinkedWorker> {
    const name = `link-${randomUUID()}`
    const path = join(this.#folder, name)
    const server = createServer()
    this.#context.after(() => server.close())
    const connected = once(server, 'connection')
    server.listen(path)
    await once(server, 'listening')
    const { LD_LIBRARY_PATH = '', FAKE_CUDA_DIR = '' } = this.env
    const seen = mounted ?? FAKE_CUDA_DIR
    const libraries = mounted === null ? LD_LIBRARY_PATH : join(mounted, 'lib')
    await start({ LD_LIBRARY_PATH: libraries, FAKE_CUDA_DIR: seen, FAKE_WORKER_SOCKET: join(seen, name) })
    const [socket] = (await connected) as [Socket]
    socket.on('error', () => {})
    this.#context.after(() => socket.destroy())
    const link = openLink(socket, socket)
    const { sum } = await link.next()
    return { sum: Number(sum), ask: link.ask, ended: once(socket, 'close') }
  }
}

function openLink(output: Readable, input: Writable) {
  const waiting: ((line: string) => void)[] = []
  createInterface({ input: output }).on('line', line => waiting.shift()?.(line))
  const next = () => new Promise<Record<string, unknown>>(resolve => waiting.push(line => resolve(JSON.parse(line))))
  const ask = (line: string) => {
    const answer = next()
    input.write(`${line}\n`)
    return answer
  }
  return { next, ask }
}

/** A family whose threads nothing holds. */
export function unheld(members: ProcessFamily['members']): ProcessFamily {
  return { members, hold: async () => 'they have no group', release: async () => {} }
}

async function processFamily(pid: number): Promise<ProcessStart[]> {
  const all = (await listProcesses()).filter(({ living }) => living)
  const family = all.filter(each => each.pid === pid)
  for (const { pid: parent } of family) family.push(...all.filter(each => each.parent === parent))
  return family
}

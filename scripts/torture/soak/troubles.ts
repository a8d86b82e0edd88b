/** The troubles of the soak: kills at a steady rate, a full disk in the middle, a step of the clock after it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RestartableServer } from '../server.ts'
import type { SteppedClock } from './clock.ts'
import type { BoundedDisk } from './disk.ts'
import type { Ledger } from './ledger.ts'

const LOOK_MS = 200
const FULL_MS = 20_000
/** Times at which the disk gets full and the clock is stepped, as shares of the soak. */
const AT = { disk: 0.5, clock: 0.7 }
/** Time after a start without a trouble, so that each one meets a server that makes progress. */
const MIN_UP_MS = 10_000

/** Causes the troubles, and restarts a server that ended by itself, which is a fault. */
export class Troubles {
  readonly #tools
  /** Time from each kill until the server responded again, in milliseconds. */
  readonly downMs: number[] = []
  /** Troubles that were caused with the disk and with the clock, for the report. */
  disk = 'none: the soak was too short'
  clock = 'none: the soak was too short'

  constructor(tools: {
    readonly server: RestartableServer
    readonly disk: BoundedDisk
    readonly clock: SteppedClock
    readonly ledger: Ledger
    readonly minutes: number
    readonly killEveryS: number
    readonly clockStepS: number
    readonly progress: (line: string) => void
  }) {
    this.#tools = tools
  }

  /** Causes troubles until the signal. */
  async cause(over: AbortSignal): Promise<void> {
    const { minutes, killEveryS } = this.#tools
    const beganAtMs = performance.now()
    const planned = [
      { atMs: minutes * 60_000 * AT.disk, cause: () => this.#fillDisk() },
      { atMs: minutes * 60_000 * AT.clock, cause: () => this.#stepClock() },
    ]
    let killedAtMs = beganAtMs
    while (!over.aborted) {
      await sleep(LOOK_MS)
      await this.#startAgain()
      const nowMs = performance.now()
      if (nowMs - (this.#tools.server.startedAtMs ?? nowMs) < MIN_UP_MS) continue
      if (nowMs - beganAtMs > (planned[0]?.atMs ?? Number.POSITIVE_INFINITY)) await planned.shift()!.cause()
      else if (nowMs - killedAtMs > killEveryS * 1_000) {
        killedAtMs = nowMs
        await this.killOnce()
      }
    }
  }

  /** Kills the server and starts it again. */
  async killOnce(): Promise<void> {
    const atMs = performance.now()
    await this.#tools.server.kill()
    await this.#start()
    this.downMs.push(performance.now() - atMs)
  }

  async #startAgain(): Promise<void> {
    const { server, ledger, progress } = this.#tools
    if (!server.hasEnded) return
    ledger.fault('server', '-', `the server ended by itself with ${server.end}`)
    progress(`the server ended by itself with ${server.end}`)
    await this.#start()
  }

  async #start(): Promise<void> {
    const { server, ledger, progress } = this.#tools
    for (;;) {
      try {
        return await server.start()
      } catch (error) {
        const problem = `the server did not start: ${(error as Error).message}`
        ledger.fault('server', '-', problem)
        progress(problem)
        await server.kill()
        await sleep(1_000)
      }
    }
  }

  async #fillDisk(): Promise<void> {
    const { disk, progress } = this.#tools
    if (disk.unbounded !== null) {
      this.disk = `none: only the superuser can mount a disk of its own (${disk.unbounded})`
      return
    }
    progress('the disk is full')
    const fullAtMs = performance.now()
    disk.fill()
    while (performance.now() - fullAtMs < FULL_MS) {
      await sleep(LOOK_MS)
      if (this.#tools.server.hasEnded) break
    }
    disk.empty()
    this.disk = `for ${Math.round((performance.now() - fullAtMs) / 1_000)} s`
    progress('the disk has room again')
  }

  async #stepClock(): Promise<void> {
    const { clock, clockStepS, progress } = this.#tools
    if (!clock.isThere) {
      this.clock = 'none: libfaketime is not installed'
      return
    }
    if (clockStepS === 0) {
      this.clock = 'none'
      return
    }
    clock.step(clockStepS)
    this.clock = `by ${clockStepS} s`
    progress(`the clock was stepped by ${clockStepS} s`)
  }
}

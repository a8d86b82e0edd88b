/** Measurements of the server and its relay during the soak: memory, and the longest time without an answer. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { relayPid } from '../../../test/wire/support/processes.ts'
import type { RestartableServer } from '../server.ts'

const PROBE_MS = 200
const PROBE_LIMIT_MS = 120_000
const MEMORY_MS = 5_000

/** Resident memory at one time, in megabytes; null without a process. */
export interface Memory {
  readonly server: number | null
  readonly relay: number | null
}

/** Time without an answer, in milliseconds, and its end, in seconds since the soak began. */
export interface Silence {
  readonly ms: number
  readonly atS: number
}

/** Probes `/healthz` again and again. */
export class Health {
  readonly #server
  readonly #dataDir
  #answeredAtMs = performance.now()
  readonly #beganAtMs = performance.now()
  /** The longest time without an answer of a server that ran, and of one that was killed. */
  readonly silence: Record<'running' | 'killed', Silence> = { running: { ms: 0, atS: 0 }, killed: { ms: 0, atS: 0 } }
  /** All samples of memory. */
  readonly memory: Memory[] = []

  constructor(server: RestartableServer, dataDir: string) {
    this.#server = server
    this.#dataDir = dataDir
  }

  /** Probes and samples until the signal. */
  async watch(over: AbortSignal): Promise<void> {
    let sampledAtMs = Number.NEGATIVE_INFINITY
    while (!over.aborted) {
      await this.#probe()
      if (performance.now() - sampledAtMs > MEMORY_MS) {
        this.memory.push(this.sample())
        sampledAtMs = performance.now()
      }
      await sleep(PROBE_MS)
    }
  }

  /** The memory at this moment. */
  sample(): Memory {
    return { server: residentMb(this.#server.pid), relay: residentMb(relayPid(this.#dataDir)) }
  }

  async #probe(): Promise<void> {
    try {
      const response = await fetch(`${this.#server.url}/healthz`, { signal: AbortSignal.timeout(PROBE_LIMIT_MS) })
      await response.text()
      if (response.status !== 200) return
    } catch {
      return
    }
    const { startedAtMs } = this.#server
    const nowMs = performance.now()
    const wasKilled = startedAtMs === null || startedAtMs > this.#answeredAtMs
    const kind = wasKilled ? 'killed' : 'running'
    const ms = nowMs - this.#answeredAtMs
    if (ms > this.silence[kind].ms) this.silence[kind] = { ms, atS: (nowMs - this.#beganAtMs) / 1_000 }
    this.#answeredAtMs = nowMs
  }
}

function residentMb(pid: number | null): number | null {
  try {
    const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    // A process that has ended, but whose exit its parent did not read yet, has no memory.
    return kilobytes === undefined ? null : Math.round(Number(kilobytes) / 1_024)
  } catch {
    return null
  }
}

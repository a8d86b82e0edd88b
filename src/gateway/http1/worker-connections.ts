import type { WorkerId } from '../../core/ids.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ResponseHead } from './response-head.ts'
import { WorkerConnection } from './worker-connection.ts'

/** How long idle connections are kept. */
export interface KeptConnections {
  /**
   * A worker that does not say how long it keeps an idle connection may give it up at any time, and then a request that
   * may not be repeated is lost. So it is short; a new connection on the same machine costs a tenth of a millisecond.
   */
  readonly idleMs: number
  /** The longest, whatever the worker says. */
  readonly maxIdleMs: number
  /** Most idle connections per worker. */
  readonly maxIdle: number
}

/** What a worker says it keeps, less this, is kept. */
const MARGIN_MS = 1_000
const SWEEP_MS = 500

/** The connections to all workers that wait for a next request; the one that was used last is used next. */
export class WorkerConnections {
  readonly #clock: Clock
  readonly #kept: KeptConnections
  /** By worker, and by the port that is meant. */
  readonly #idle = new Map<string, WorkerConnection[]>()
  #sweeping: (() => void) | null = null
  #closed = false

  constructor(clock: Clock, kept: KeptConnections) {
    this.#clock = clock
    this.#kept = kept
  }

  /** How many wait. */
  get idleCount(): number {
    let count = 0
    for (const connections of this.#idle.values()) count += connections.length
    return count
  }

  /**
   * A connection for one request: an idle one, or else a new one.
   * @param kind whether it must be a new one, or even one that may become a tunnel
   */
  take(workerId: WorkerId, address: SocketAddress, kind: 'any' | 'fresh' | 'tunnel'): WorkerConnection {
    const key = keyOf(workerId, address)
    const idle = kind === 'any' ? this.#idle.get(key) : undefined
    if (idle !== undefined) {
      const nowMs = this.#clock.monotonic()
      for (let found = idle.pop(); found !== undefined; found = idle.pop()) {
        if (found.idleUntilMs > nowMs && found.socket.writable) return found
        found.destroy()
      }
    }
    return new WorkerConnection(
      address,
      kind === 'tunnel',
      (connection, head) => this.#keep(key, connection, head),
      connection => this.#drop(key, connection),
    )
  }

  /** Ends all idle connections, and keeps none any more. */
  close(): void {
    this.#closed = true
    this.#sweeping?.()
    this.#sweeping = null
    for (const connections of [...this.#idle.values()]) for (const connection of connections) connection.destroy()
    this.#idle.clear()
  }

  #keep(key: string, connection: WorkerConnection, { idleSeconds }: ResponseHead): void {
    const { idleMs, maxIdleMs, maxIdle } = this.#kept
    const forMs = idleSeconds === null ? idleMs : Math.min(idleSeconds * 1000 - MARGIN_MS, maxIdleMs)
    const idle = this.#idle.get(key) ?? []
    if (this.#closed || forMs <= 0 || idle.length >= maxIdle) {
      connection.destroy()
      return
    }
    this.#idle.set(key, idle)
    connection.idleUntilMs = this.#clock.monotonic() + forMs
    idle.push(connection)
    this.#sweeping ??= this.#clock.after(SWEEP_MS, this.#sweep)
  }

  #drop(key: string, connection: WorkerConnection): void {
    const idle = this.#idle.get(key)
    const at = idle?.lastIndexOf(connection) ?? -1
    if (at >= 0) idle?.splice(at, 1)
  }

  readonly #sweep = (): void => {
    const nowMs = this.#clock.monotonic()
    for (const [key, idle] of this.#idle) {
      const kept = idle.filter(connection => connection.idleUntilMs > nowMs)
      for (const connection of idle) if (connection.idleUntilMs <= nowMs) connection.destroy()
      if (kept.length > 0) this.#idle.set(key, kept)
      else this.#idle.delete(key)
    }
    this.#sweeping = this.#idle.size > 0 ? this.#clock.after(SWEEP_MS, this.#sweep) : null
  }
}

function keyOf(workerId: WorkerId, { host, port }: SocketAddress): string {
  return `${workerId} ${host} ${port}`
}

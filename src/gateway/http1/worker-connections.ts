import type { WorkerId } from '../../core/ids.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ResponseHead } from './response-head.ts'
import { WorkerConnection } from './worker-connection.ts'

/** Limits of idle connections: their number and their age. */
export interface KeptConnections {
  /**
   * Time for which an idle connection is kept if the worker does not state its own. Short: a worker that closes the
   * connection just as a request is written loses a request that may not be repeated. A new connection on the same
   * machine costs a tenth of a millisecond.
   */
  readonly idleMs: number
  /** Maximum of that time, even if the worker states a longer one. */
  readonly maxIdleMs: number
  /** Maximum number of idle connections of a worker. */
  readonly maxIdle: number
}

/** Subtracted from the time for which the worker itself keeps idle connections. */
const MARGIN_MS = 1_000
const SWEEP_MS = 500

/** The idle connections to all workers. The one that was used last is used next. */
export class WorkerConnections {
  readonly #clock
  readonly #kept
  /** By worker and address. */
  readonly #idle = new Map<string, WorkerConnection[]>()
  /** Keys of {@link #idle} by address, since each request needs one. */
  readonly #keys = new WeakMap<SocketAddress, { readonly workerId: WorkerId; readonly key: string }>()
  #sweeping: (() => void) | null = null
  #closed = false

  constructor(clock: Clock, kept: KeptConnections) {
    this.#clock = clock
    this.#kept = kept
  }

  /** Number of idle connections. */
  get idleCount(): number {
    let count = 0
    for (const connections of this.#idle.values()) count += connections.length
    return count
  }

  /**
   * A connection for one request: an idle one, else a new one.
   * @param kind `fresh` for a new one, `tunnel` for a new one that may become a tunnel
   */
  take(workerId: WorkerId, address: SocketAddress, kind: 'any' | 'fresh' | 'tunnel'): WorkerConnection {
    const key = this.#key(workerId, address)
    const idle = kind === 'any' ? this.#idle.get(key) : undefined
    if (idle !== undefined) {
      const nowMs = this.#clock.monotonic()
      for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
        if (connection.idleUntilMs > nowMs && connection.socket.writable) return connection
        connection.destroy()
      }
    }
    return new WorkerConnection(
      address,
      kind === 'tunnel',
      (connection, head) => this.#keep(key, connection, head),
      connection => this.#drop(key, connection),
    )
  }

  #key(workerId: WorkerId, address: SocketAddress): string {
    const known = this.#keys.get(address)
    if (known?.workerId === workerId) return known.key
    const key = connectionKey(workerId, address)
    this.#keys.set(address, { workerId, key })
    return key
  }

  /** Ends all idle connections, and keeps no further ones. */
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
    let idle = this.#idle.get(key)
    if (this.#closed || forMs <= 0 || (idle?.length ?? 0) >= maxIdle) {
      connection.destroy()
      return
    }
    if (idle === undefined) {
      idle = []
      this.#idle.set(key, idle)
    }
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
      const fresh = idle.filter(connection => connection.idleUntilMs > nowMs)
      for (const connection of idle) if (connection.idleUntilMs <= nowMs) connection.destroy()
      if (fresh.length > 0) this.#idle.set(key, fresh)
      else this.#idle.delete(key)
    }
    this.#sweeping = this.#idle.size > 0 ? this.#clock.after(SWEEP_MS, this.#sweep) : null
  }
}

function connectionKey(workerId: WorkerId, { host, port }: SocketAddress): string {
  return `${workerId} ${host} ${port}`
}

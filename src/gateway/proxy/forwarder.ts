import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Slots } from '../../core/slots.ts'
import type { Clock } from '../../ports/clock.ts'
import { type KeptConnections, WorkerConnections } from '../http1/worker-connections.ts'
import type { Reservations } from '../queue/reservation.ts'
import { ProxyExchange, type ProxyExchangeParts } from './exchange.ts'
import type { ExchangeLimits } from './exchange-timings.ts'
import type { AccessLogEntry, Forwarding, ProxyRequest } from './proxy-request.ts'
import { TurnWrites } from './turn-writes.ts'
import { UpgradeBuffer, type Upgrading } from './upgrade-buffer.ts'
import type { NextTurn } from './upload.ts'

/** Limits that tests and settings change. */
export interface ForwarderOptions {
  /** Limit of bytes of the body of a request; 30 MB when left out. */
  readonly bodyBytes?: number | undefined
  readonly limits?: Partial<ExchangeLimits>
  readonly kept?: Partial<KeptConnections>
}

/** 5.5 minutes until the head of the response, then limits of silence only. */
export const EXCHANGE_LIMITS: ExchangeLimits = {
  connectMs: 10_000,
  headersMs: 330_000,
  streamIdleMs: 600_000,
  socketIdleMs: 600_000,
}

/** Python servers close idle connections after 2 s or 5 s without announcing it. */
export const KEPT_CONNECTIONS: KeptConnections = { idleMs: 1_500, maxIdleMs: 60_000, maxIdle: 1_024 }

/** Limit of bytes of the body of a request, unless a setting gives another. */
export const BODY_BYTES = 30 * 1024 * 1024
const LONGEST_TICK_MS = 1_000

/** Sends requests to workers over HTTP/1.1. */
export class Forwarder implements Forwarding {
  readonly #parts: ProxyExchangeParts
  readonly #tickMs: number
  #ticking: (() => void) | null = null

  constructor(
    {
      clock,
      reservations,
      nextTurn,
    }: {
      readonly clock: Clock
      readonly reservations: Reservations
      /** `setImmediate`. */
      readonly nextTurn: NextTurn
    },
    options: ForwarderOptions = {},
  ) {
    const limits = { ...EXCHANGE_LIMITS, ...options.limits }
    const connections = new WorkerConnections(clock, { ...KEPT_CONNECTIONS, ...options.kept })
    const { bodyBytes = BODY_BYTES } = options
    const live = new Slots<ProxyExchange>()
    const writes = new TurnWrites(nextTurn, live)
    this.#parts = { clock, reservations, nextTurn, writes, bodyBytes, connections, limits, live }
    this.#tickMs = Math.max(10, Math.min(LONGEST_TICK_MS, ...Object.values(limits).map(ms => ms / 8)))
  }

  /** Number of exchanges that have not ended. */
  get liveCount(): number {
    return this.#parts.live.size
  }

  /** Number of idle connections to workers. */
  get idleCount(): number {
    return this.#parts.connections.idleCount
  }

  forward(incoming: IncomingMessage, outgoing: ServerResponse, request: ProxyRequest): Promise<AccessLogEntry> {
    return this.#run(incoming, outgoing, request, null)
  }

  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer, request: ProxyRequest): Promise<AccessLogEntry> {
    const client = socket as Socket
    const early = new UpgradeBuffer(client, head)
    // Until the worker agrees it is a request like others; any other response ends the connection.
    const outgoing = new ServerResponse(incoming)
    outgoing.shouldKeepAlive = false
    outgoing.assignSocket(client)
    outgoing.on('finish', () => client.destroySoon())
    client.on('drain', () => outgoing.emit('drain'))
    // Ends a client that does not read the response. A tunnel has a limit of its own.
    client.setTimeout(this.#parts.limits.streamIdleMs, () => {
      if (outgoing.socket === client && client.writableLength > 0) client.destroy()
    })
    return this.#run(incoming, outgoing, request, { socket: client, early })
  }

  /** Ends the idle connections. Running exchanges continue. */
  close(): void {
    this.#parts.connections.close()
  }

  #run(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    request: ProxyRequest,
    upgrading: Upgrading | null,
  ): Promise<AccessLogEntry> {
    const entry = new ProxyExchange(this.#parts, incoming, outgoing, request, upgrading).run()
    this.#ticking ??= this.#parts.clock.after(this.#tickMs, this.#tick)
    return entry
  }

  readonly #tick = (): void => {
    const nowMs = this.#parts.clock.monotonic()
    const { live } = this.#parts
    for (const exchange of live) exchange.tick(nowMs)
    this.#ticking = live.size > 0 ? this.#parts.clock.after(this.#tickMs, this.#tick) : null
  }
}

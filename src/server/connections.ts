/**
 * Limits the resources that clients can make the server hold: the number of connections, the time of a slow body,
 * the time for which a response may stay unread, and the bytes of all unread responses.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { EndpointId } from '../core/ids.ts'
import { REQUEST_ID } from '../core/request-head.ts'
import { type Slot, Slots } from '../core/slots.ts'
import { type ConnectionTotals, ownTotals } from './connection-totals.ts'
import { IdleConnections, type OpenConnection, openConnection } from './idle-connections.ts'
import { newRequestId } from './request-ids.ts'
import { type ConnectionPlace, ConnectionShares } from './shares.ts'

/** The bounds. */
export interface ConnectionLimits {
  /** Connections with a request that runs or is held; those between requests may use {@link reserved}, too. */
  readonly maxConnections: number
  /** Additional connections for management and workers. */
  readonly reserved: number
  readonly perAddress: number
  /** True if many people share this address, which has no limit then. */
  readonly isShared: (address: string) => boolean
  readonly perAccount: number
  readonly perEndpoint: number
  /** Time in which a body may arrive at any pace; see {@link bodyBytesPerSecond}. */
  readonly bodyGraceMs: number
  /** Average rate that a body must reach in the time after its grace. */
  readonly bodyBytesPerSecond: number
  /** Interval in which a body that holds room must reach the rate of a body that takes {@link bodyMs}. */
  readonly bodyPaceMs: number
  /** Longest duration of a body, in milliseconds. */
  readonly bodyMs: number
  /** Time for which a client may leave a waiting response unread, in milliseconds. */
  readonly unreadMs: number
  /** Limit of bytes of responses that wait for their clients, on all connections together. */
  readonly unreadBytes: number
  /** Limits of the rest of a body that is still read after a response that did not need it. */
  readonly discardBytes: number
  readonly discardMs: number
}

/** The limits of every listener except those on the number of connections. */
export const CONNECTION_LIMITS: Omit<ConnectionLimits, keyof ConnectionCounts> = {
  bodyGraceMs: 20_000,
  bodyBytesPerSecond: 240,
  bodyPaceMs: 20_000,
  // Time for a body of the largest size at the slowest pace.
  bodyMs: 600_000,
  unreadMs: 60_000,
  unreadBytes: 128 * 1024 * 1024,
  discardBytes: 256 * 1024 * 1024,
  discardMs: 30_000,
}

/** Limits on the number of connections, in all and by their owners. */
export type ConnectionCounts = Pick<
  ConnectionLimits,
  'maxConnections' | 'reserved' | 'perAddress' | 'isShared' | 'perAccount' | 'perEndpoint'
>

/** Number of connections reserved for management and workers, beside `maxConnections` for everybody. */
export function reservedBeside(maxConnections: number): number {
  return Math.min(1_024, Math.max(16, Math.floor(maxConnections / 8)))
}

/** Limits for callers that set only the number: no share is smaller than the total. */
export function connectionCounts(maxConnections: number): ConnectionCounts {
  const shares = { perAddress: maxConnections, perAccount: maxConnections, perEndpoint: maxConnections }
  return { maxConnections, reserved: reservedBeside(maxConnections), isShared: () => true, ...shares }
}

const SWEEP_MS = 500
/** Bytes that a body may have without room in memory; see api/body. */
export const FREE_BODY_BYTES = 65_536
/** Larger responses are checked when they are written, not at the next sweep. */
const LARGE_BYTES = 262_144
/** Time in which an active client sends its first request. */
const SILENT_MS = 1_000
/** Maximum idle time after which the Python SDK uses a connection again. */
const REUSED_MS = 15_000
const FULL = '{"error":"the server has too many connections"}'
const FULL_HEADERS = {
  'content-type': 'application/json',
  'content-length': String(FULL.length),
  'retry-after': '5',
  connection: 'close',
}
const REFUSAL_MS = 1_000

function refusalText(): string {
  const headers = Object.entries({ ...FULL_HEADERS, [REQUEST_ID]: newRequestId() })
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  return ['HTTP/1.1 503 Service Unavailable', ...lines, '', FULL].join('\r\n')
}

/** One request until the end of its response. */
interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly socket: Socket
  /** Undefined for a connection of another thread. */
  readonly connection: OpenConnection | undefined
  readonly sinceMs: number
  readonly bytesAtStart: number
  /** Its place among all requests; null until it has one. */
  place: ConnectionPlace | null
  /**
   * Bytes of its body at the beginning of the current interval of {@link ConnectionLimits.bodyPaceMs}; null in the
   * first one, which begins with the request.
   */
  pace: { readonly atMs: number; readonly bytes: number } | null
  /** Time since which the client always has something to read; null while it has not. */
  unreadSinceMs: number | null
  /** A response that is in memory until it is sent: its size, and the bytes that the connection had sent before it. */
  response: { readonly bytes: number; readonly sentBefore: number } | null
  /** True if its bodies pass from and to files, and are not held in memory. */
  isStreamed: boolean
  /** Its slots among all exchanges and among those with a body; -1 until it has one. */
  slot: Slot
  bodySlot: Slot
}

function newExchange(incoming: IncomingMessage, outgoing: ServerResponse, connection?: OpenConnection): Exchange {
  const { socket } = incoming
  const sinceMs = performance.now()
  return {
    incoming,
    outgoing,
    socket,
    connection,
    sinceMs,
    bytesAtStart: socket.bytesRead,
    place: null,
    pace: null,
    unreadSinceMs: null,
    response: null,
    isStreamed: false,
    slot: -1,
    bodySlot: -1,
  }
}

const EXCHANGE = Symbol('exchange')
type TrackedRequest = IncomingMessage & { [EXCHANGE]?: Exchange | undefined }

function findExchange(incoming: IncomingMessage): Exchange | undefined {
  return (incoming as TrackedRequest)[EXCHANGE]
}

function setExchange(incoming: IncomingMessage, exchange: Exchange | undefined): void {
  ;(incoming as TrackedRequest)[EXCHANGE] = exchange
}

/** The connections of a server. */
export class Connections {
  readonly #limits
  readonly #onFull
  readonly #open = new Map<Socket, OpenConnection>()
  /** Connections without a request so far, the oldest first, with their start. */
  readonly #silent = new Map<Socket, number>()
  readonly #idle = new IdleConnections()
  readonly #exchanges = new Slots<Exchange>()
  readonly #totals
  readonly #crowded
  readonly #shares
  readonly #bodies = new Slots<Exchange>()
  readonly #timer: NodeJS.Timeout

  /**
   * @param onFull called for each connection that is refused
   * @param totals of all threads; by default one thread has all connections
   * @param crowded called for a connection above the limit, so that another thread makes room for it; no other thread
   * has connections by default
   */
  constructor(
    server: Server,
    limits: ConnectionLimits,
    onFull: () => void,
    totals: ConnectionTotals = ownTotals(),
    crowded: (() => void) | null = null,
  ) {
    this.#crowded = crowded
    this.#limits = limits
    this.#totals = totals
    this.#onFull = onFull
    this.#shares = new ConnectionShares({ ...limits, all: limits.maxConnections }, totals)
    server.on('connection', socket => {
      // A socket with decrypted data is not new: its connection was opened before.
      if (!this.#open.has(socket)) this.#opened(socket, refusalText)
    })
    // Before the listener that responds, which needs the place.
    server.prependListener('request', (incoming, outgoing) => this.#begin(incoming, outgoing))
    this.#timer = setInterval(() => this.#sweep(performance.now()), SWEEP_MS).unref()
  }

  /** Stops the sweeps. */
  close(): void {
    clearInterval(this.#timer)
  }

  /** Counts a connection before its TLS handshake. False, and closed, without a place. */
  arrives(socket: Socket): boolean {
    return this.#opened(socket, null)
  }

  /** Replaces a connection by the socket of its decrypted data, and keeps the time of its silence. */
  secured(socket: Socket, secure: Socket): void {
    const sinceMs = this.#silent.get(socket) ?? performance.now()
    this.#forget(socket)
    this.#open.set(secure, openConnection(secure))
    this.#totals.connections.add(1)
    this.#silent.set(secure, sinceMs)
    secure.once('close', () => this.#forget(secure))
  }

  /** Counts a request whose connection another thread has, with the limits of that on bodies and on memory. */
  passed(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const exchange = newExchange(incoming, outgoing)
    exchange.isStreamed = true
    setExchange(incoming, exchange)
    outgoing.on('close', () => this.#end(exchange))
  }

  /** Exempts a request from the limits on bodies: its handler has limits of its own. */
  untimed(incoming: IncomingMessage): void {
    const exchange = findExchange(incoming)
    if (exchange !== undefined) this.#bodies.remove(exchange.bodySlot, exchange)
  }

  /** Exempts a request as {@link untimed}, and its response from the limits on memory. */
  streams(incoming: IncomingMessage): void {
    this.untimed(incoming)
    const exchange = findExchange(incoming)
    if (exchange !== undefined) exchange.isStreamed = true
  }

  /**
   * Gives a request its place. False without one: refuse it with {@link refuse}.
   * @param endpointId the load-balancing endpoint of the request; null for others
   * @param mayBeReserved true if management or a worker sends it
   */
  enters(incoming: IncomingMessage, endpointId: EndpointId | null, mayBeReserved: () => boolean): boolean {
    const place = this.#shares.enter(endpointId, mayBeReserved, () => incoming.socket.destroy())
    if (place === null) {
      this.#onFull()
      return false
    }
    const exchange = findExchange(incoming)
    if (exchange !== undefined) exchange.place = place
    else incoming.socket.once('close', () => this.#shares.leave(place))
    return true
  }

  /** Counts a request for its account. False above the limit of the account. */
  owned(incoming: IncomingMessage, account: string): boolean {
    const place = findExchange(incoming)?.place
    if (place === undefined || place === null || this.#shares.own(place, account)) return true
    this.#onFull()
    return false
  }

  /** The account of a request; empty while unknown, as for all requests without a key. */
  account(incoming: IncomingMessage): string {
    return findExchange(incoming)?.place?.account ?? ''
  }

  /** Records that a response of this size begins and is in memory until it is sent. */
  answers(incoming: IncomingMessage, bytes: number): void {
    const exchange = findExchange(incoming)
    if (exchange === undefined || exchange.isStreamed || bytes <= LARGE_BYTES) return
    exchange.response = { bytes, sentBefore: exchange.socket.bytesWritten }
    this.#cutUnread(performance.now())
  }

  /** Responds to a request without a place, and ends its connection. */
  refuse(outgoing: ServerResponse, requestId: string): void {
    outgoing.writeHead(503, { ...FULL_HEADERS, [REQUEST_ID]: requestId })
    outgoing.end(FULL)
  }

  /** True if a request on it has no complete response yet, or it was upgraded. */
  isBusy(socket: Socket): boolean {
    return (this.#open.get(socket)?.exchanges ?? 0) > 0
  }

  /** True if the last request on it has no response yet. */
  isUnanswered(socket: Socket): boolean {
    if (!this.isBusy(socket)) return this.#open.has(socket)
    const exchanges = [...this.#exchanges].filter(exchange => exchange.socket === socket)
    return exchanges.length === 1 && exchanges[0]?.outgoing.headersSent === false
  }

  /** Records the upgrade of its socket: it counts until it closes, and is never closed to make room. */
  upgraded(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    connection.exchanges += 1
    this.#silent.delete(socket)
    this.#idle.remove(connection)
    socket.setTimeout(0)
  }

  /** Ends connections between two requests; those whose first request may be on its way stay. */
  endIdle(): void {
    for (const { socket } of this.#idle.all()) socket.destroy()
  }

  /**
   * Ends the request that has had a reserved place without an account for the longest time. False when there is none.
   */
  makeRoom(): boolean {
    return this.#shares.endUnowned()
  }

  /** Ends all connections, also upgraded ones, which Node's server has forgotten. */
  endAll(): void {
    for (const socket of this.#open.keys()) socket.destroy()
  }

  /**
   * A connection above the limit replaces one that is silent or idle, else one whose request has a
   * reserved place without an account.
   * @param refusal response to a connection without a place; null for no response
   * @returns true if it has a place
   */
  #opened(socket: Socket, refusal: (() => string) | null): boolean {
    const nowMs = performance.now()
    this.#open.set(socket, openConnection(socket))
    const open = this.#totals.connections.add(1)
    socket.once('close', () => this.#forget(socket))
    if (!this.#countAddress(socket)) return this.#turnAway(socket, refusal)
    const { maxConnections, reserved } = this.#limits
    if (open > maxConnections + reserved) {
      const victim = this.#victim(nowMs)
      if (victim !== null) {
        this.#forget(victim)
        victim.destroy()
      } else if (!this.makeRoom()) {
        // As many again as are reserved may come before there is room.
        if (this.#crowded === null || open > maxConnections + 2 * reserved) return this.#turnAway(socket, refusal)
        this.#crowded()
      }
    }
    this.#silent.set(socket, nowMs)
    return true
  }

  /** Counts a connection for its address. False above the limit of the address. */
  #countAddress(socket: Socket): boolean {
    const address = socket.remoteAddress
    const { perAddress, isShared } = this.#limits
    if (address === undefined || isShared(address)) return true
    const { addresses } = this.#totals
    socket.once('close', () => void addresses.add(address, -1))
    return addresses.add(address, 1) <= perAddress
  }

  /**
   * The connection that is closed to make room: the longest silent one, then the longest idle one. New
   * connections and those that had a request a moment ago are spared: the Python SDK loses a result when its
   * connection closes under it.
   */
  #victim(nowMs: number): Socket | null {
    const [silent] = this.#silent
    const idle = this.#idle.first
    if (silent !== undefined && nowMs - silent[1] > SILENT_MS) return silent[0]
    if (idle !== null && nowMs - (idle.idleSinceMs ?? nowMs) > REUSED_MS) return idle.socket
    return silent?.[0] ?? idle?.socket ?? null
  }

  #turnAway(socket: Socket, refusal: (() => string) | null): false {
    this.#forget(socket)
    this.#onFull()
    if (refusal === null) socket.destroy()
    else {
      socket.end(refusal())
      setTimeout(() => socket.destroy(), REFUSAL_MS).unref()
    }
    return false
  }

  #forget(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    this.#open.delete(socket)
    this.#totals.connections.add(-1)
    this.#silent.delete(socket)
    this.#idle.remove(connection)
  }

  #begin(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming
    const connection = this.#open.get(socket)
    const exchange = newExchange(incoming, outgoing, connection)
    if (connection !== undefined) {
      connection.exchanges += 1
      if (this.#silent.size > 0) this.#silent.delete(socket)
      this.#idle.remove(connection)
    }
    exchange.slot = this.#exchanges.add(exchange)
    setExchange(incoming, exchange)
    // Both events come once, and `once` is expensive.
    outgoing.on('close', () => this.#end(exchange))
    outgoing.on('prefinish', () => {
      if (outgoing.writableLength > LARGE_BYTES) this.#cutUnread(performance.now())
    })
    if (!hasBody(incoming)) return
    exchange.bodySlot = this.#bodies.add(exchange)
    incoming.once('close', () => this.#bodies.remove(exchange.bodySlot, exchange))
    outgoing.once('finish', () => this.#discardRest(exchange))
  }

  #end(exchange: Exchange): void {
    const { socket, place, connection } = exchange
    this.#exchanges.remove(exchange.slot, exchange)
    setExchange(exchange.incoming, undefined)
    if (place !== null) this.#shares.leave(place)
    if (connection === undefined) return
    connection.exchanges -= 1
    if (connection.exchanges === 0 && this.#open.has(socket)) this.#idle.add(connection, performance.now())
  }

  /** Reads the rest of a body: a client that is cut off while it sends may never read the response with the reason. */
  #discardRest({ incoming, socket }: Exchange): void {
    if (incoming.complete) return
    const { discardBytes, discardMs } = this.#limits
    const startBytes = socket.bytesRead
    const late = setTimeout(() => socket.destroy(), discardMs).unref()
    incoming.on('data', () => {
      if (socket.bytesRead - startBytes > discardBytes) socket.destroy()
    })
    incoming.once('close', () => clearTimeout(late))
    incoming.resume()
  }

  #sweep(nowMs: number): void {
    for (const exchange of this.#bodies) if (this.#isTooSlow(exchange, nowMs)) exchange.socket.destroy()
    this.#cutUnread(nowMs)
  }

  /** True if a body is too slow. A full buffer waits for this server, not for the client. */
  #isTooSlow(exchange: Exchange, nowMs: number): boolean {
    const { incoming, socket, sinceMs, bytesAtStart } = exchange
    const pace = exchange.pace ?? { atMs: sinceMs, bytes: 0 }
    if (incoming.complete) return false
    if (nowMs - sinceMs > this.#limits.bodyMs) return true
    if (incoming.readableLength >= incoming.readableHighWaterMark) return false
    const { bodyGraceMs, bodyBytesPerSecond, bodyPaceMs, bodyMs } = this.#limits
    const bytes = socket.bytesRead - bytesAtStart
    if (nowMs - pace.atMs >= bodyPaceMs) {
      exchange.pace = { atMs: nowMs, bytes }
      if (bytes > FREE_BODY_BYTES && bytes - pace.bytes < (bytes / bodyMs) * bodyPaceMs) return true
    }
    const lateMs = nowMs - sinceMs - bodyGraceMs
    return lateMs > 0 && bytes < (lateMs / 1000) * bodyBytesPerSecond
  }

  #cutUnread(nowMs: number): void {
    const { unreadMs, unreadBytes } = this.#limits
    const unread: Exchange[] = []
    let bytes = 0
    for (const exchange of this.#exchanges) {
      const { socket } = exchange
      const held = heldBytes(exchange)
      if (held === 0) {
        if (exchange.unreadSinceMs !== null) socket.setTimeout(0)
        exchange.unreadSinceMs = null
        continue
      }
      // The socket's timer checks that the system still takes bytes.
      if (exchange.unreadSinceMs === null) socket.setTimeout(unreadMs)
      exchange.unreadSinceMs ??= nowMs
      bytes += held
      unread.push(exchange)
    }
    // Each thread cuts its own part, at its next sweep at the latest.
    let over = this.#totals.unread(bytes, unreadBytes) - unreadBytes
    if (over <= 0) return
    // The longest unread are cut first.
    unread.sort((a, b) => (a.unreadSinceMs ?? 0) - (b.unreadSinceMs ?? 0))
    const holders = [...Map.groupBy(unread, exchangeHolder).values()].map(exchanges => ({
      exchanges,
      bytes: sum(exchanges),
    }))
    while (over > 0 && holders.length > 0) {
      holders.sort((a, b) => b.bytes - a.bytes)
      const most = holders[0]!
      const cut = most.exchanges.shift()!
      const freed = heldBytes(cut)
      over -= freed
      most.bytes -= freed
      if (most.exchanges.length === 0) holders.shift()
      cut.socket.destroy()
    }
  }
}

/** The owner of a response: an account or a load-balancing endpoint. All requests without a key count as one owner. */
function exchangeHolder({ place }: Exchange): string {
  return place?.account ?? place?.endpointId ?? ''
}

/** Bytes in memory for a response: those in the connection's buffer, and those that were not written to it yet. */
function heldBytes({ outgoing, socket, response }: Exchange): number {
  const written = response === null ? 0 : socket.bytesWritten - response.sentBefore
  return outgoing.writableLength + Math.max(0, (response?.bytes ?? 0) - written)
}

function sum(exchanges: readonly Exchange[]): number {
  return exchanges.reduce((bytes, exchange) => bytes + heldBytes(exchange), 0)
}

/** True if a request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

/** Number of connections that the open file limit of this process allows, with a margin for its own files. */
export function connectionsWithin(openFiles: number): number {
  return Math.max(64, Math.floor(openFiles * 0.9) - 128)
}

/**
 * Keeps what clients can make the server hold within bounds: how many connections there are, how slowly a body may come in,
 * how long an answer may lie unread, and how much of answers in all.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { EndpointId } from '../core/ids.ts'
import { type ConnectionPlace, ConnectionShares } from './shares.ts'

/** The bounds. */
export interface ConnectionLimits {
  /** With a request that is worked on, or held; those that wait for one come from {@link reserved}, too. */
  readonly maxConnections: number
  /** So many more for management and workers. */
  readonly reserved: number
  readonly perAddress: number
  /** Whether many people come from this address, which has no bound then. */
  readonly isShared: (address: string) => boolean
  readonly perAccount: number
  readonly perEndpoint: number
  /** For this long a body may come in as slowly as it likes; see {@link bodyBytesPerSecond}. */
  readonly bodyGraceMs: number
  /** What a body must have brought on average for the time after its grace. */
  readonly bodyBytesPerSecond: number
  /** In each time like this, a body that holds room has to bring what it would if its bytes took {@link bodyMs}. */
  readonly bodyPaceMs: number
  /** How long a body may take in all. */
  readonly bodyMs: number
  /** How long a client may take nothing of an answer that waits for it. */
  readonly unreadMs: number
  /** Most bytes of answers that wait for their clients, all connections together. */
  readonly unreadBytes: number
  /** Rest of a body that was answered without reading it: this much, and for this long, is still taken. */
  readonly discardBytes: number
  readonly discardMs: number
}

/** The bounds of every listener, but for those on the number of connections. */
export const CONNECTION_LIMITS: Omit<ConnectionLimits, keyof ConnectionCounts> = {
  bodyGraceMs: 20_000,
  bodyBytesPerSecond: 240,
  bodyPaceMs: 20_000,
  // The slowest that a body of the largest size may come in.
  bodyMs: 600_000,
  unreadMs: 60_000,
  unreadBytes: 128 * 1024 * 1024,
  discardBytes: 256 * 1024 * 1024,
  discardMs: 30_000,
}

/** How many connections there may be, and whose. */
export type ConnectionCounts = Pick<
  ConnectionLimits,
  'maxConnections' | 'reserved' | 'perAddress' | 'isShared' | 'perAccount' | 'perEndpoint'
>

/** How many are reserved for management and workers, beside so many for everybody. */
export function reservedBeside(maxConnections: number): number {
  return Math.min(1_024, Math.max(16, Math.floor(maxConnections / 8)))
}

/** For those who give only how many there may be: nobody's share is less than all. */
export function countsOf(maxConnections: number): ConnectionCounts {
  const shares = { perAddress: maxConnections, perAccount: maxConnections, perEndpoint: maxConnections }
  return { maxConnections, reserved: reservedBeside(maxConnections), isShared: () => true, ...shares }
}

const SWEEP_MS = 500
/** What a body may hold without room in memory; see api/body. */
const FREE_BODY_BYTES = 65_536
/** What is larger is looked at once it is written and not at the next sweep. */
const LARGE_BYTES = 262_144
/** A client that is going to ask has asked by then. */
const SILENT_MS = 1_000
/** The Python SDK uses a connection again that was idle for up to this long. */
const REUSED_MS = 15_000
const FULL = '{"error":"the server has too many connections"}'
const FULL_HEADERS = {
  'content-type': 'application/json',
  'content-length': String(FULL.length),
  'retry-after': '5',
  connection: 'close',
}
const REFUSAL = [
  'HTTP/1.1 503 Service Unavailable',
  ...Object.entries(FULL_HEADERS).map(([name, value]) => `${name}: ${value}`),
  '',
  FULL,
].join('\r\n')
const REFUSAL_MS = 1_000

/** One request until its answer is over. */
interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly socket: Socket
  readonly sinceMs: number
  readonly bytesBefore: number
  /** Its place among all requests; null until it has one. */
  place: ConnectionPlace | null
  /** What its body had brought at the beginning of the present time of {@link ConnectionLimits.bodyPaceMs}. */
  pace: { readonly atMs: number; readonly bytes: number }
  /** Since when there was always something of the answer to be taken; null while there is not. */
  unreadSinceMs: number | null
  /** An answer that is kept whole until it has gone out: how long it is, and what its connection had sent before it. */
  answer: { readonly bytes: number; readonly sentBefore: number } | null
}

/** The connections of a server. */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #onFull: () => void
  /** How many exchanges each connection has. */
  readonly #open = new Map<Socket, number>()
  /** Those that have asked nothing yet, the oldest first, and since when. */
  readonly #silent = new Map<Socket, number>()
  /** Those between two requests, the longest waiting first, and since when. */
  readonly #idle = new Map<Socket, number>()
  readonly #exchanges = new Map<IncomingMessage, Exchange>()
  readonly #addresses = new Map<string, number>()
  readonly #shares: ConnectionShares
  readonly #bodies = new Set<Exchange>()
  readonly #timer: NodeJS.Timeout

  /** @param onFull is told each time that a connection is turned away */
  constructor(server: Server, limits: ConnectionLimits, onFull: () => void) {
    this.#limits = limits
    this.#onFull = onFull
    this.#shares = new ConnectionShares({ ...limits, all: limits.maxConnections })
    server.on('connection', socket => this.#opened(socket))
    // Before whoever answers it, and asks for its place.
    server.prependListener('request', (incoming, outgoing) => this.#asked(incoming, outgoing))
    this.#timer = setInterval(() => this.#sweep(performance.now()), SWEEP_MS).unref()
  }

  /** Stops looking. */
  close(): void {
    clearInterval(this.#timer)
  }

  /** Whoever takes this request has bounds of its own for how its body comes in. */
  untimed(incoming: IncomingMessage): void {
    const exchange = this.#exchanges.get(incoming)
    if (exchange !== undefined) this.#bodies.delete(exchange)
  }

  /**
   * Gives a request its place. False when there is none for it: it is to be refused, see {@link refuse}.
   * @param endpointId the load-balancing endpoint that it is for; null for others
   * @param mayBeReserved whether it is of management or a worker
   */
  enters(incoming: IncomingMessage, endpointId: EndpointId | null, mayBeReserved: () => boolean): boolean {
    const place = this.#shares.enter(endpointId, mayBeReserved)
    if (place === null) {
      this.#onFull()
      return false
    }
    const exchange = this.#exchanges.get(incoming)
    if (exchange !== undefined) exchange.place = place
    else incoming.socket.once('close', () => this.#shares.leave(place))
    return true
  }

  /** Whose request it is. False when that account has too many. */
  owned(incoming: IncomingMessage, account: string): boolean {
    const place = this.#exchanges.get(incoming)?.place
    if (place === undefined || place === null || this.#shares.own(place, account)) return true
    this.#onFull()
    return false
  }

  /** An answer of so many bytes begins, and is kept whole until it has gone out. */
  answers(incoming: IncomingMessage, bytes: number): void {
    const exchange = this.#exchanges.get(incoming)
    if (exchange === undefined || bytes <= LARGE_BYTES) return
    exchange.answer = { bytes, sentBefore: exchange.socket.bytesWritten }
    this.#cutUnread(performance.now())
  }

  /** Answers a request for which there is no place, and ends its connection. */
  refuse(outgoing: ServerResponse): void {
    outgoing.writeHead(503, FULL_HEADERS)
    outgoing.end(FULL)
  }

  /** Whether something that was asked on it is not answered yet, or it has left HTTP. */
  isBusy(socket: Socket): boolean {
    return (this.#open.get(socket) ?? 0) > 0
  }

  /** Whether nothing has been said yet to what was asked on it last. */
  isUnanswered(socket: Socket): boolean {
    if (!this.isBusy(socket)) return this.#open.has(socket)
    const exchanges = [...this.#exchanges.values()].filter(exchange => exchange.socket === socket)
    return exchanges.length === 1 && exchanges[0]?.outgoing.headersSent === false
  }

  /** Its socket has left HTTP: it counts for as long as it lives, and never makes room for others. */
  upgraded(socket: Socket): void {
    if (!this.#open.has(socket)) return
    this.#open.set(socket, this.#open.get(socket)! + 1)
    this.#silent.delete(socket)
    this.#idle.delete(socket)
    socket.setTimeout(0)
  }

  /** Ends all that are left, upgraded ones too, which the server itself knows nothing of any more. */
  endAll(): void {
    for (const socket of this.#open.keys()) socket.destroy()
  }

  /** One too many takes the place of one that does nothing. */
  #opened(socket: Socket): void {
    const nowMs = performance.now()
    this.#open.set(socket, 0)
    socket.once('close', () => this.#forget(socket))
    if (!this.#countAddress(socket)) {
      this.#turnAway(socket)
      return
    }
    const { maxConnections, reserved } = this.#limits
    if (this.#open.size > maxConnections + reserved) {
      const victim = this.#victim(nowMs)
      if (victim === null) {
        this.#turnAway(socket)
        return
      }
      this.#forget(victim)
      victim.destroy()
    }
    this.#silent.set(socket, nowMs)
  }

  /** False when too many came from its address. */
  #countAddress(socket: Socket): boolean {
    const address = socket.remoteAddress
    const { perAddress, isShared } = this.#limits
    if (address === undefined || isShared(address)) return true
    const count = (this.#addresses.get(address) ?? 0) + 1
    this.#addresses.set(address, count)
    socket.once('close', () => {
      const left = this.#addresses.get(address)! - 1
      if (left === 0) this.#addresses.delete(address)
      else this.#addresses.set(address, left)
    })
    return count <= perAddress
  }

  /**
   * Who waits for longest, of those that never asked anything first. A new one is about to ask, and one that asked a moment
   * ago may just be asking again: the Python SDK loses a result when its connection is closed under it.
   */
  #victim(nowMs: number): Socket | null {
    const [silent] = this.#silent
    const [idle] = this.#idle
    if (silent !== undefined && nowMs - silent[1] > SILENT_MS) return silent[0]
    if (idle !== undefined && nowMs - idle[1] > REUSED_MS) return idle[0]
    return silent?.[0] ?? idle?.[0] ?? null
  }

  #turnAway(socket: Socket): void {
    this.#forget(socket)
    this.#onFull()
    socket.end(REFUSAL)
    setTimeout(() => socket.destroy(), REFUSAL_MS).unref()
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket)
    this.#silent.delete(socket)
    this.#idle.delete(socket)
  }

  #asked(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming
    const sinceMs = performance.now()
    const exchange: Exchange = {
      incoming,
      outgoing,
      socket,
      sinceMs,
      bytesBefore: socket.bytesRead,
      place: null,
      pace: { atMs: sinceMs, bytes: 0 },
      unreadSinceMs: null,
      answer: null,
    }
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1)
    this.#silent.delete(socket)
    this.#idle.delete(socket)
    this.#exchanges.set(incoming, exchange)
    // Both come once, and `once` costs more than all else here.
    outgoing.on('close', () => this.#answered(exchange))
    outgoing.on('prefinish', () => {
      if (outgoing.writableLength > LARGE_BYTES) this.#cutUnread(performance.now())
    })
    if (!hasBody(incoming)) return
    this.#bodies.add(exchange)
    incoming.once('close', () => this.#bodies.delete(exchange))
    outgoing.once('finish', () => this.#discardRest(exchange))
  }

  #answered(exchange: Exchange): void {
    const { socket, place } = exchange
    this.#exchanges.delete(exchange.incoming)
    if (place !== null) this.#shares.leave(place)
    const before = this.#open.get(socket)
    if (before === undefined) return
    this.#open.set(socket, before - 1)
    if (before === 1) this.#idle.set(socket, performance.now())
  }

  /** A client that is cut off while it sends may never read the answer that says why. */
  #discardRest({ incoming, socket }: Exchange): void {
    if (incoming.complete) return
    const { discardBytes, discardMs } = this.#limits
    const before = socket.bytesRead
    const late = setTimeout(() => socket.destroy(), discardMs).unref()
    incoming.on('data', () => {
      if (socket.bytesRead - before > discardBytes) socket.destroy()
    })
    incoming.once('close', () => clearTimeout(late))
    incoming.resume()
  }

  #sweep(nowMs: number): void {
    for (const exchange of this.#bodies) if (this.#isTooSlow(exchange, nowMs)) exchange.socket.destroy()
    this.#cutUnread(nowMs)
  }

  /** A body whose buffer is full waits for us and not for its client. */
  #isTooSlow(exchange: Exchange, nowMs: number): boolean {
    const { incoming, socket, sinceMs, bytesBefore, pace } = exchange
    if (incoming.complete) return false
    if (nowMs - sinceMs > this.#limits.bodyMs) return true
    if (incoming.readableLength >= incoming.readableHighWaterMark) return false
    const { bodyGraceMs, bodyBytesPerSecond, bodyPaceMs, bodyMs } = this.#limits
    const bytes = socket.bytesRead - bytesBefore
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
    for (const exchange of this.#exchanges.values()) {
      const { socket } = exchange
      const held = heldBytes(exchange)
      if (held === 0) {
        if (exchange.unreadSinceMs !== null) socket.setTimeout(0)
        exchange.unreadSinceMs = null
        continue
      }
      // The timer of a socket looks whether the system has taken some of what is being written.
      if (exchange.unreadSinceMs === null) socket.setTimeout(unreadMs)
      exchange.unreadSinceMs ??= nowMs
      bytes += held
      unread.push(exchange)
    }
    if (bytes <= unreadBytes) return
    // Those that read at all come first to their end.
    unread.sort((a, b) => (a.unreadSinceMs ?? 0) - (b.unreadSinceMs ?? 0))
    const holders = [...Map.groupBy(unread, holderOf).values()].map(exchanges => ({ exchanges, bytes: sum(exchanges) }))
    while (bytes > unreadBytes && holders.length > 0) {
      holders.sort((a, b) => b.bytes - a.bytes)
      const most = holders[0]!
      const cut = most.exchanges.shift()!
      const freed = heldBytes(cut)
      bytes -= freed
      most.bytes -= freed
      if (most.exchanges.length === 0) holders.shift()
      cut.socket.destroy()
    }
  }
}

/** An account or a load-balancing endpoint; those without a key are one together, since they cannot be told apart. */
function holderOf({ place }: Exchange): string {
  return place?.account ?? place?.endpointId ?? ''
}

/** What is in memory for an answer: what its connection has not taken, and what was not handed to that. */
function heldBytes({ outgoing, socket, answer }: Exchange): number {
  const handed = answer === null ? 0 : socket.bytesWritten - answer.sentBefore
  return outgoing.writableLength + Math.max(0, (answer?.bytes ?? 0) - handed)
}

function sum(exchanges: readonly Exchange[]): number {
  return exchanges.reduce((bytes, exchange) => bytes + heldBytes(exchange), 0)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

/** How many connections there can be at most with the files that this process may open, some left for itself. */
export function connectionsWithin(openFiles: number): number {
  return Math.max(64, Math.floor(openFiles * 0.9) - 128)
}

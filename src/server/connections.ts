/**
 * Keeps what clients can make the server hold within bounds: how many connections there are, how slowly a body may come in,
 * how long an answer may lie unread, and how much of answers in all.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The bounds. */
export interface ConnectionLimits {
  readonly maxConnections: number
  /** For this long a body may come in as slowly as it likes; see {@link bodyBytesPerSecond}. */
  readonly bodyGraceMs: number
  /** What a body must have brought on average for the time after its grace. */
  readonly bodyBytesPerSecond: number
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

/** The bounds of every listener, but for the number of connections. */
export const CONNECTION_LIMITS: Omit<ConnectionLimits, 'maxConnections'> = {
  bodyGraceMs: 20_000,
  bodyBytesPerSecond: 240,
  // The slowest that a body of the largest size may come in.
  bodyMs: 600_000,
  unreadMs: 60_000,
  unreadBytes: 128 * 1024 * 1024,
  discardBytes: 256 * 1024 * 1024,
  discardMs: 30_000,
}

const SWEEP_MS = 500
/** What is larger is looked at once it is written and not at the next sweep. */
const LARGE_BYTES = 262_144
/** A client that is going to ask has asked by then. */
const SILENT_MS = 1_000
/** The Python SDK uses a connection again that was idle for up to this long. */
const REUSED_MS = 15_000
const FULL = '{"error":"the server has too many connections"}'
const REFUSAL = [
  'HTTP/1.1 503 Service Unavailable',
  'content-type: application/json',
  `content-length: ${FULL.length}`,
  'retry-after: 5',
  'connection: close',
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
  /** Since when there was always something of the answer to be taken; null while there is not. */
  unreadSinceMs: number | null
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
  readonly #exchanges = new Set<Exchange>()
  readonly #bodies = new Set<Exchange>()
  readonly #untimed = new WeakSet<IncomingMessage>()
  readonly #timer: NodeJS.Timeout

  /** @param onFull is told each time that a connection is turned away */
  constructor(server: Server, limits: ConnectionLimits, onFull: () => void) {
    this.#limits = limits
    this.#onFull = onFull
    server.on('connection', socket => this.#opened(socket))
    server.on('request', (incoming, outgoing) => this.#asked(incoming, outgoing))
    this.#timer = setInterval(() => this.#sweep(performance.now()), SWEEP_MS).unref()
  }

  /** Stops looking. */
  close(): void {
    clearInterval(this.#timer)
  }

  /** Whoever takes this request has bounds of its own for how its body comes in. To be said before it is looked at. */
  untimed(incoming: IncomingMessage): void {
    if (hasBody(incoming)) this.#untimed.add(incoming)
  }

  /** Whether something that was asked on it is not answered yet, or it has left HTTP. */
  isBusy(socket: Socket): boolean {
    return (this.#open.get(socket) ?? 0) > 0
  }

  /** Whether nothing has been said yet to what was asked on it last. */
  isUnanswered(socket: Socket): boolean {
    if (!this.isBusy(socket)) return this.#open.has(socket)
    const exchanges = [...this.#exchanges].filter(exchange => exchange.socket === socket)
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
    if (this.#open.size > this.#limits.maxConnections) {
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
    const exchange: Exchange = {
      ...{ incoming, outgoing, socket, sinceMs: performance.now(), bytesBefore: socket.bytesRead },
      unreadSinceMs: null,
    }
    this.#open.set(socket, (this.#open.get(socket) ?? 0) + 1)
    this.#silent.delete(socket)
    this.#idle.delete(socket)
    this.#exchanges.add(exchange)
    // Both come once, and `once` costs more than all else here.
    outgoing.on('close', () => this.#answered(exchange))
    outgoing.on('prefinish', () => {
      if (outgoing.writableLength > LARGE_BYTES) this.#cutUnread(performance.now())
    })
    if (!hasBody(incoming)) return
    if (!this.#untimed.has(incoming)) this.#bodies.add(exchange)
    incoming.once('close', () => this.#bodies.delete(exchange))
    outgoing.once('finish', () => this.#discardRest(exchange))
  }

  #answered(exchange: Exchange): void {
    const { socket } = exchange
    this.#exchanges.delete(exchange)
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
  #isTooSlow({ incoming, socket, sinceMs, bytesBefore }: Exchange, nowMs: number): boolean {
    if (incoming.complete) return false
    if (nowMs - sinceMs > this.#limits.bodyMs) return true
    if (incoming.readableLength >= incoming.readableHighWaterMark) return false
    const { bodyGraceMs, bodyBytesPerSecond } = this.#limits
    const lateMs = nowMs - sinceMs - bodyGraceMs
    return lateMs > 0 && socket.bytesRead - bytesBefore < (lateMs / 1000) * bodyBytesPerSecond
  }

  #cutUnread(nowMs: number): void {
    const { unreadMs, unreadBytes } = this.#limits
    const unread: Exchange[] = []
    let bytes = 0
    for (const exchange of this.#exchanges) {
      const { outgoing, socket } = exchange
      if (outgoing.writableLength === 0) {
        if (exchange.unreadSinceMs !== null) socket.setTimeout(0)
        exchange.unreadSinceMs = null
        continue
      }
      // The timer of a socket looks whether the system has taken some of what is being written.
      if (exchange.unreadSinceMs === null) socket.setTimeout(unreadMs)
      exchange.unreadSinceMs ??= nowMs
      bytes += outgoing.writableLength
      unread.push(exchange)
    }
    if (bytes <= unreadBytes) return
    // Those that read at all come first to their end.
    unread.sort((a, b) => (a.unreadSinceMs ?? 0) - (b.unreadSinceMs ?? 0))
    for (const { outgoing, socket } of unread) {
      if (bytes <= unreadBytes) return
      bytes -= outgoing.writableLength
      socket.destroy()
    }
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

/** How many connections there can be at most with the files that this process may open, some left for itself. */
export function connectionsWithin(openFiles: number): number {
  return Math.max(64, Math.floor(openFiles * 0.9) - 128)
}

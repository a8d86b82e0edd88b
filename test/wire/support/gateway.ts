/** A forwarder behind a plain HTTP server, with workers that the test lists. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError } from '../../../src/core/errors.ts'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import type { ServedAt } from '../../../src/core/workers/socket-address.ts'
import { Forwarder, type ForwarderOptions } from '../../../src/gateway/proxy/forwarder.ts'
import type { AccessLogEntry, ProxyRequest } from '../../../src/gateway/proxy/proxy-request.ts'
import type {
  RequestOutcome,
  Reservation,
  Reservations,
  WorkerRequest,
} from '../../../src/gateway/queue/reservation.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { patient } from '../../support/patience.ts'
import { atEnd } from './cleanup.ts'
import { sleep } from './until.ts'

/** Takes the listed workers in their order, those to be avoided last, and remembers what became of each. */
export class FakeReservations implements Reservations {
  readonly workers: { id: WorkerId; servedAt: ServedAt }[] = []
  readonly wanted: WorkerRequest[] = []
  readonly released: [worker: string, outcome: RequestOutcome][] = []
  /** While set, requests wait. */
  gate: Promise<void> | null = null
  /** Milliseconds that each request has waited, as far as it knows. */
  waitedMs = 0
  /** While set, requests are refused with it. */
  refusal: AppError | null = null

  /** Lists a worker on this port. */
  add(id: string, port: number, healthPort = port): void {
    const at = (of: number) => ({ host: '127.0.0.1', port: of })
    this.workers.push({ id: id as WorkerId, servedAt: { traffic: at(port), health: at(healthPort) } })
  }

  async reserve(wanted: WorkerRequest): Promise<Reservation> {
    this.wanted.push(wanted)
    if (this.gate !== null) {
      const { signal } = wanted
      const aborted = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([this.gate, aborted])
    }
    if (this.refusal !== null) throw this.refusal
    const { avoid } = wanted
    const worker = this.workers.find(({ id }) => !avoid.includes(id)) ?? this.workers[0]
    if (worker === undefined) throw new AppError('invalid', 'no workers available', { retryAfterSeconds: 5 })
    let released = false
    const release = (outcome: RequestOutcome) => {
      if (!released) this.released.push([worker.id, outcome])
      released = true
    }
    return { workerId: worker.id, servedAt: worker.servedAt, waitedMs: this.waitedMs, release }
  }
}

/** A forwarder that listens. */
export interface Gateway {
  readonly port: number
  readonly server: Server
  readonly forwarder: Forwarder
  readonly reservations: FakeReservations
  /** Access log of the calls, in the order of their ends. */
  readonly passed: AccessLogEntry[]
  /** Access log of the next call that ends. */
  next(): Promise<AccessLogEntry>
}

/** Changes of a gateway from its defaults. */
export interface GatewayOptions extends ForwarderOptions {
  /** Changes what the way in found out about a call. */
  readonly call?: (call: ProxyRequest) => ProxyRequest
  readonly maxHeaderSize?: number
  /** `setImmediate` when left out. */
  readonly nextTurn?: (callback: () => void) => void
}

/** Starts a gateway, which ends with the test. */
export async function startGateway({
  call = same,
  maxHeaderSize = 16_384,
  nextTurn = setImmediate,
  ...options
}: GatewayOptions = {}): Promise<Gateway> {
  const reservations = new FakeReservations()
  const forwarder = new Forwarder({ clock: systemClock, reservations, nextTurn }, options)
  const passed: AccessLogEntry[] = []
  const waiting: ((passed: AccessLogEntry) => void)[] = []
  const done = (how: AccessLogEntry) => {
    passed.push(how)
    waiting.shift()?.(how)
  }
  const server = createServer({ maxHeaderSize, keepAliveTimeout: 75_000, requestTimeout: 0, noDelay: true })
  const forward = (incoming: IncomingMessage, outgoing: Parameters<Forwarder['forward']>[1]) =>
    void forwarder.forward(incoming, outgoing, call(proxyRequest(incoming))).then(done)
  server.on('request', forward)
  server.on('checkContinue', forward)
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    void forwarder.upgrade(incoming, socket, head, call(proxyRequest(incoming))).then(done)
  })
  const port = await listening(server)
  atEnd(() => {
    forwarder.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    port,
    server,
    forwarder,
    reservations,
    passed,
    next: () => new Promise(resolve => waiting.push(resolve)),
  }
}

function same(call: ProxyRequest): ProxyRequest {
  return call
}

function proxyRequest({ url = '/', rawHeaders, headers, socket }: IncomingMessage): ProxyRequest {
  return {
    endpointId: 'balanced' as EndpointId,
    requestId: 'request-1',
    path: url,
    prefix: null,
    toHealth: false,
    rawHeaders,
    client: socket.remoteAddress ?? '',
    protocol: 'http',
    host: headers.host ?? 'nowhere',
  }
}

/** A worker that is a bare socket. */
export interface RawServer {
  readonly port: number
  /** Connections that were made, in their order. */
  readonly sockets: Socket[]
  /** Ends it with all its connections. */
  close(): Promise<void>
}

/**
 * Starts a worker that is a bare socket; `serve` gets each connection. It ends each one whose
 * client ends it, by default.
 */
export async function startRawServer(
  serve: (socket: Socket, number: number) => void,
  halfOpen = false,
): Promise<RawServer> {
  const sockets: Socket[] = []
  const server = createNetServer({ allowHalfOpen: true, noDelay: true }, socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    // Every server ends a connection whose other side is closed, except tunnels.
    if (!halfOpen) socket.on('end', () => socket.end())
    serve(socket, sockets.length)
  })
  const port = await listening(server)
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      for (const socket of sockets) socket.destroy()
    })
  atEnd(close)
  return { port, sockets, close }
}

/** Starts a worker that is a server of Node. */
export async function startHttpServer(
  serve: Parameters<typeof createServer>[1],
): Promise<{ port: number; server: Server }> {
  const server = createServer(serve)
  const port = await listening(server)
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return { port, server }
}

/** Reads one request's head, and answers with these bytes, on each connection again and again. */
export function answering(answer: string | ((head: string) => string)): (socket: Socket) => void {
  return socket => {
    let text = ''
    socket.on('data', bytes => {
      text += bytes.toString('latin1')
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        text = text.slice(end + 4)
        socket.write(typeof answer === 'string' ? answer : answer(head), 'latin1')
      }
    })
  }
}

/** A client that is a bare socket. */
export class RawClient {
  readonly socket: Socket
  /** Received text, in latin1. */
  text = ''
  ended = false
  closed = false
  /** Error that ended it; null after a plain end. */
  error: NodeJS.ErrnoException | null = null
  #wake: (() => void)[] = []

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    this.socket.on('data', bytes => {
      this.text += bytes.toString('latin1')
      this.#woken()
    })
    this.socket.on('end', () => {
      this.ended = true
      this.#woken()
    })
    this.socket.on('error', error => {
      this.error = error
    })
    this.socket.on('close', () => {
      this.closed = true
      this.#woken()
    })
    atEnd(() => void this.socket.destroy())
  }

  /** Sends bytes as they are. */
  send(text: string): this {
    this.socket.write(text, 'latin1')
    return this
  }

  /** Waits until what came fulfils this; fails after 20 s with what came. */
  async until(expected: string | RegExp | ((text: string) => boolean)): Promise<string> {
    const holds = () =>
      typeof expected === 'function'
        ? expected(this.text)
        : typeof expected === 'string'
          ? this.text.includes(expected)
          : expected.test(this.text)
    await this.#wait(holds, String(expected))
    return this.text
  }

  /** Waits until nothing more can arrive. */
  async untilEnd(): Promise<string> {
    await this.#wait(() => this.ended || this.closed, 'the end')
    return this.text
  }

  #woken(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  async #wait(holds: () => boolean, condition: string): Promise<void> {
    const late = performance.now() + patient(20_000)
    while (!holds()) {
      if (this.closed) throw new Error(`closed before ${condition}; came: ${JSON.stringify(this.text.slice(-500))}`)
      if (performance.now() > late)
        throw new Error(`waited for ${condition}; came: ${JSON.stringify(this.text.slice(-500))}`)
      await new Promise<void>(resolve => {
        this.#wake.push(resolve)
        setTimeout(resolve, 100)
      })
    }
  }
}

/** Opens a connection to a gateway. */
export function rawClient(port: number): RawClient {
  return new RawClient(port)
}

function listening(server: {
  listen(port: number, host: string, done: () => void): unknown
  address(): unknown
}): Promise<number> {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

const MEBIBYTE = 1_048_576

/** Number of bytes that a source can send until the flow stops. */
export async function pumped(socket: Socket): Promise<number> {
  const piece = Buffer.alloc(MEBIBYTE)
  let sentBytes = 0
  let movedAt = performance.now()
  const fillSocket = () => {
    for (let free = true; free && sentBytes < 200 * MEBIBYTE; ) {
      free = socket.write(piece)
      sentBytes += piece.length
      movedAt = performance.now()
    }
  }
  socket.on('drain', fillSocket)
  fillSocket()
  while (performance.now() - movedAt < 700) await sleep(50)
  socket.off('drain', fillSocket)
  return sentBytes - socket.writableLength
}

/** Observations of an exchange with one worker. */
export interface Through {
  /** The heads that the worker got. */
  readonly seen: string[]
  /** Everything that the client got. */
  readonly got: string
}

/** An answer as workers give it. */
export const PLAIN = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'

/** One connection with these bytes, read to its end; the worker answers each request with `answer`. */
export async function through(requestText: string, answer: string, options: GatewayOptions = {}): Promise<Through> {
  const gateway = await startGateway(options)
  const heads: string[] = []
  const worker = await startRawServer(
    answering(head => {
      heads.push(head)
      return answer
    }),
  )
  gateway.reservations.add('w1', worker.port)
  const clientText = await rawClient(gateway.port).send(requestText).untilEnd()
  return { seen: heads, got: clientText }
}

/** A request that ends its connection. */
export function get(lines: string[], line = 'GET /a HTTP/1.1'): string {
  return `${[line, 'Host: here', ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`
}

/** The lines of a head. */
export function linesOf(text: string): string[] {
  const end = text.indexOf('\r\n\r\n')
  return (end < 0 ? text : text.slice(0, end)).split('\r\n')
}

/** Text after a head. */
export function bodyOf(text: string): string {
  return text.slice(text.indexOf('\r\n\r\n') + 4)
}

/**
 * The relay: a small process that has the address which workers know, so that they do not notice when their server is away
 * (docs/adr/0014). It receives each call wholly, passes it on, and passes it on again when the server ended before it answered.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { RELAY_HEADERS } from '../core/relay.ts'
import { HOLD_MS } from '../core/worker-watch.ts'
import { type Kind, kindOf } from './calls.ts'
import { Copies } from './copies.ts'
import { type Kept, Spool, SpoolFull } from './spool.ts'
import { Takes } from './takes.ts'
import { type Address, type Answer, Upstream } from './upstream.ts'

/** As in server/listener: workers reuse connections for 15 s. */
const KEEP_ALIVE_MS = 75_000
const HEADERS_MS = 80_000
const REQUEST_MS = 600_000
/** How long a call is passed on when its worker may be gone. */
const ORPHAN_MS = 600_000
/** Between two tries while the server seems to be there. */
const PAUSE_MS = 100
/** Somewhat more than the server reads, so that it sees that a body is too large. */
const MAX_BODY_BYTES = 104_857_600 + 65_536
const MAX_CONNECTIONS = 20_000

/** Where a server tells the relay that it is there, for as long as its connection lives. */
export const TETHER_PATH = '/relay/tether'
/** Answers at once, to a server that asks whether the relay is well. */
export const WELL_PATH = '/relay/well'
/** Ends the relay. */
export const END_PATH = '/relay/end'
/** Where a server asks the relay to listen on another address of this machine, too: for workers in containers. */
export const LISTEN_PATH = '/relay/listen'
/** Holds the host and the wanted port that come with {@link LISTEN_PATH}. */
export const LISTEN_HEADER = 'x-runyard-listen'
/** Holds the host and port of the server that comes with a tether. */
export const SERVER_HEADER = 'x-runyard-server'

/** One call of a worker, received wholly. */
interface Call {
  readonly kind: Kind
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: Kept | null
  /** Aborts when the worker's connection is gone. */
  readonly gone: AbortSignal
}

/** What a {@link Relay} needs. */
export interface RelayOptions {
  /** Where bodies are kept. */
  readonly folder: string
  readonly secret: string
  /** Called when a server ends the relay. */
  readonly onEnd: () => void
}

/** An address besides the loopback one. */
interface Outer {
  readonly host: string
  readonly server: Server
  readonly port: number
}

/** A relay that listens on the loopback address, and for containers on one of their network. */
export class Relay {
  readonly #options: RelayOptions
  readonly #spool: Spool
  readonly #upstream: Upstream
  readonly #takes = new Takes()
  readonly #copies = new Copies()
  readonly #server: Server
  #outer: Outer | null = null
  #tether: ServerResponse | null = null
  #calls = 0

  constructor(options: RelayOptions) {
    this.#options = options
    this.#spool = new Spool(options.folder)
    this.#upstream = new Upstream(this.#spool)
    this.#server = this.#createServer(true)
  }

  /**
   * Begins to listen; 0 for any port. Another relay may share the port later, to take the place of this one.
   * @param beside whether it may be shared now, with a relay that hangs and is about to be ended
   * @throws the system's error
   */
  async listen(port: number, beside = false): Promise<number> {
    // What has the port could be the relay of another installation, which can share it too.
    if (port !== 0 && !beside) await requireFree(port)
    return bind(this.#server, '127.0.0.1', port, CAN_SHARE)
  }

  /**
   * Listens on another address too, instead of the one before. Commands are not taken there.
   * @param port the wanted one, which it has unless that is taken
   * @returns the port
   * @throws the system's error
   */
  async listenToo(host: string, port: number): Promise<number> {
    if (this.#outer?.host === host) return this.#outer.port
    const server = this.#createServer(false)
    const got = await bind(server, host, port).catch(error => {
      if (port === 0 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      return bind(server, host, 0)
    })
    const before = this.#outer
    this.#outer = { host, server, port: got }
    before?.server.close()
    return got
  }

  /** Whether a server is there. */
  get hasServer(): boolean {
    return this.#tether !== null
  }

  /** Whether nobody needs it now: neither a server is there, nor a worker's call is held. */
  get idle(): boolean {
    return this.#tether === null && this.#calls === 0
  }

  /** Ends all connections. */
  close(): void {
    for (const server of [this.#server, this.#outer?.server]) {
      server?.close()
      server?.closeAllConnections()
    }
    this.#upstream.close()
  }

  #createServer(commanded: boolean): Server {
    const times = { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS }
    const server = createServer({ ...times, noDelay: true }, (request, response) =>
      this.#receive(request, response, commanded),
    )
    server.maxConnections = MAX_CONNECTIONS
    return server
  }

  #receive(request: IncomingMessage, response: ServerResponse, commanded: boolean): void {
    const kind = kindOf(request.method, request.url)
    // Errors show as the end of the connection.
    response.on('error', () => {})
    if (kind !== null) {
      this.#calls += 1
      const handled = this.#handle(kind, request, response).catch(() => response.destroy())
      void handled.finally(() => {
        this.#calls -= 1
      })
    } else if (commanded && this.#mayCommand(request)) this.#obey(request, response)
    else refuse(request, response)
  }

  #obey(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === TETHER_PATH) this.#tie(request, response)
    else if (request.url === WELL_PATH) respond(response, 200, '{}')
    else if (request.url === END_PATH) response.end(this.#options.onEnd)
    else if (request.url === LISTEN_PATH) void this.#listenAsAsked(request, response)
    else refuse(request, response)
  }

  async #listenAsAsked(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume()
    const { host, port } = addressIn(request.headers[LISTEN_HEADER]) ?? { host: '', port: 0 }
    try {
      respond(response, 200, JSON.stringify({ port: await this.listenToo(host, port) }))
    } catch (error) {
      respond(response, 409, JSON.stringify({ error: (error as Error).message }))
    }
  }

  #mayCommand(request: IncomingMessage): boolean {
    const [given, wanted] = [request.headers.authorization ?? '', this.#options.secret].map(text =>
      createHash('sha256').update(text).digest(),
    )
    return request.method === 'POST' && timingSafeEqual(given!, wanted!)
  }

  /** The newest server is the one; only one can have the data directory. */
  #tie(request: IncomingMessage, response: ServerResponse): void {
    const address = addressIn(request.headers[SERVER_HEADER])
    if (address === null) {
      respond(response, 400, '{}')
      return
    }
    request.resume()
    const before = this.#tether
    this.#tether = response
    response.on('close', () => {
      if (this.#tether !== response) return
      this.#tether = null
      this.#upstream.address = null
    })
    response.writeHead(200)
    response.flushHeaders()
    before?.destroy()
    this.#upstream.address = address
  }

  async #handle(kind: Kind, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    const leave = () => gone.abort()
    response.on('close', leave)
    // Comes first, and nothing that is written after it arrives: Node ends its own side, too.
    request.socket.once('end', leave)
    let body: Kept | null = null
    try {
      if (request.method === 'POST') body = await this.#spool.receive(request, MAX_BODY_BYTES, kind === 'chunk')
      const call: Call = { kind, request, response, body, gone: gone.signal }
      if (kind === 'take') await this.#take(call)
      else if (kind === 'poll' || kind === 'ping') await this.#poll(call)
      else await this.#post(call)
    } catch (error) {
      if (!(error instanceof SpoolFull)) throw error
      request.resume()
      respond(response, kind === 'take' || kind === 'poll' ? 429 : 503, '{"error":"the relay has no room"}')
    } finally {
      request.socket.off('end', leave)
      await body?.drop()
    }
  }

  async #take(call: Call): Promise<void> {
    const { request, response, gone } = call
    const token = request.headers.authorization ?? ''
    const endMs = performance.now() + HOLD_MS
    // The end of one that is over already is read right after it.
    await new Promise(setImmediate)
    while (await this.#upstream.present(endMs, gone)) {
      if (!(await this.#mayTake(call, token))) continue
      const take = this.#takes.begin(token, Date.now())
      let outcome: 'delivered' | 'nothing' | 'lost' = 'lost'
      try {
        const answer = await this.#ask(call, gone)
        const written = await this.#answer(call, answer)
        outcome = answer.status !== 200 ? 'nothing' : written ? 'delivered' : 'lost'
        return
      } catch (error) {
        if (error instanceof SpoolFull) throw error
      } finally {
        // At once: the next take of the worker is not passed on before what this one had is reported.
        this.#takes.end(take, outcome, Date.now())
        if (outcome === 'lost' && gone.aborted) void this.#insist(call, token)
      }
      await pause()
    }
    if (gone.aborted) void this.#insist(call, token)
    else respond(response, 204, '')
  }

  /** First the server hears of what was lost before: it would take the job for lost by the worker. */
  async #mayTake(call: Call, token: string): Promise<boolean> {
    await this.#report(call, token)
    if (!this.#takes.isReporting(token)) return this.#upstream.address !== null
    await pause()
    return false
  }

  /** Tells the server which jobs never reached the worker. */
  async #report({ request }: Call, token: string): Promise<void> {
    const sinceMs = this.#takes.beginReport(token)
    if (sinceMs === null) return
    let told = false
    try {
      const added = [RELAY_HEADERS.undeliveredSince, String(sinceMs)]
      const mark = { method: 'GET', path: request.url ?? '', headers: ['Authorization', token], added, body: null }
      const answer = await this.#upstream.ask({ ...mark, signal: AbortSignal.timeout(HOLD_MS) })
      told = answer.status < 500 && answer.status !== 429
      await answer.body.drop()
    } catch {
      // It is told to the next server.
    } finally {
      this.#takes.endReport(token, told)
    }
  }

  /** Reports for a worker that may not ask again. */
  async #insist(call: Call, token: string): Promise<void> {
    const endMs = performance.now() + ORPHAN_MS
    while (this.#takes.isLost(token) && (await this.#upstream.present(endMs, null))) {
      await this.#report(call, token)
      if (this.#takes.isLost(token)) await pause()
    }
  }

  async #poll(call: Call): Promise<void> {
    const { response, gone, kind } = call
    const endMs = performance.now() + HOLD_MS
    do {
      try {
        if (this.#upstream.address !== null) {
          await this.#answer(call, await this.#ask(call, gone))
          return
        }
      } catch (error) {
        if (error instanceof SpoolFull) throw error
        await pause()
      }
    } while (kind !== 'ping' && (await this.#upstream.present(endMs, gone)))
    if (!gone.aborted) respond(response, kind === 'ping' ? 200 : 204, kind === 'ping' ? '{}' : '')
  }

  /** A result is wanted even when its worker has gone; a chunk would be sent again by it. */
  async #post(call: Call): Promise<void> {
    const { request, response, gone, kind, body } = call
    const signal = kind === 'chunk' ? gone : null
    const endMs = performance.now() + ORPHAN_MS
    const stream = `${request.headers.authorization}\n${request.url}`
    let added: string[] = []
    while (await this.#upstream.present(endMs, signal)) {
      try {
        const answer = await this.#ask(call, signal, added)
        if (kind === 'chunk' && answer.status === 200) this.#copies.kept(stream, body!.digest)
        await this.#answer(call, answer)
        return
      } catch (error) {
        if (error instanceof SpoolFull) throw error
        if (kind === 'chunk') added = [RELAY_HEADERS.again, String(this.#copies.ifKept(stream, body!.digest))]
        await pause()
      }
    }
    if (!gone.aborted) respond(response, 503, '{"error":"the server is away"}')
  }

  #ask({ request, body }: Call, signal: AbortSignal | null, added: readonly string[] = []): Promise<Answer> {
    const { method = 'GET', url = '', rawHeaders } = request
    return this.#upstream.ask({ method, path: url, headers: rawHeaders, added, body, signal })
  }

  /** True when the whole answer was handed to the network. */
  async #answer({ response, gone }: Call, answer: Answer): Promise<boolean> {
    try {
      if (gone.aborted || response.destroyed) return false
      const { status, body } = answer
      const length = status === 204 ? [] : ['Content-Length', String(body.bytes)]
      response.writeHead(status, [...answer.headers, ...length])
      const settled = new Promise<boolean>(resolve => {
        response.once('finish', () => resolve(true))
        response.once('close', () => resolve(response.writableFinished))
      })
      const content = body.read()
      if (Buffer.isBuffer(content)) response.end(content)
      else content.on('error', () => response.destroy()).pipe(response)
      return await settled
    } finally {
      await answer.body.drop()
    }
  }
}

function respond(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, text === '' ? {} : { 'Content-Type': 'application/json' }).end(text)
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  respond(response, 404, '{"error":"this address is for workers only"}')
}

function addressIn(header: string | string[] | undefined): Address | null {
  const [, host, port] = /^(.+):(\d+)$/.exec(String(header)) ?? []
  return host === undefined || port === undefined ? null : { host, port: Number(port) }
}

/** Elsewhere it is not known, or means something else. */
const CAN_SHARE = process.platform === 'linux'

async function requireFree(port: number): Promise<void> {
  const probe = createServer()
  await bind(probe, '127.0.0.1', port)
  await new Promise(resolve => probe.close(resolve))
}

async function bind(server: Server, host: string, port: number, reusePort = false): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, ...(reusePort && { reusePort }) }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  return (server.address() as AddressInfo).port
}

function pause(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, PAUSE_MS))
}

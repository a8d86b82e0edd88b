/**
 * The relay: a small process that listens at the address of workers, so that they do not notice when their
 * server is away (docs/adr/0012). It receives each call wholly, passes it on, and passes it on again if the
 * server ended before it responded.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { RESULT_BYTES } from '../core/jobs/result.ts'
import { isContentLength } from '../core/request-head.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { listenAtFile } from '../disk/socket-file.ts'
import { RelayAdmission } from './admission.ts'
import { CallForwarder } from './call-forwarder.ts'
import { Callers } from './callers.ts'
import { callKind } from './calls.ts'
import { CachedTokens, readTokenUpdate } from './known-tokens.ts'
import { respond } from './respond.ts'
import { SetAside } from './set-aside.ts'
import { Spool } from './spool.ts'
import { Upstream, type UpstreamAddress } from './upstream.ts'

/** As in server/listener: workers reuse connections for 15 s. */
const KEEP_ALIVE_MS = 75_000
const HEADERS_MS = 20_000
const REQUEST_MS = 600_000
const MAX_CONNECTIONS = 20_000
const CALM_MS = 3_000

/** The path of the tether: while a server's connection to it lives, the relay passes calls to that server. */
export const TETHER_PATH = '/relay/tether'
/** The path of the health check of the relay. */
export const WELL_PATH = '/relay/well'
/** The path that ends the relay. */
export const END_PATH = '/relay/end'
/** The path at which a server sends the tokens of workers. */
export const TOKENS_PATH = '/relay/tokens'
/** The path at which a server lets the relay listen on another address of this machine, for workers in containers. */
export const LISTEN_PATH = '/relay/listen'
/** The header with the host and the wanted port of {@link LISTEN_PATH}. */
export const LISTEN_HEADER = 'x-runyard-listen'
/** The header with the host and port of the server of a tether. */
export const SERVER_HEADER = 'x-runyard-server'
/** The header with the term of the server of a tether: its database and its epoch. */
export const TERM_HEADER = 'x-runyard-term'

/** The header with the bytes of the largest body that the server of a tether reads. */
export const BODY_HEADER = 'x-runyard-largest-body'

/** The term of one of several servers on one database. */
export interface ServerTerm {
  /** Name of the database, in letters and digits. */
  readonly database: string
  readonly epoch: number
}

/** An address besides the loopback one. */
interface Outer {
  readonly host: string
  readonly server: Server
  readonly port: number
}

/** A relay that listens on the loopback address, and on an address of the network of containers. */
export class Relay {
  readonly #options
  readonly #upstream: Upstream
  readonly #tokens
  readonly #callers = new Callers()
  readonly #forwarder
  readonly #server: Server
  #outer: Outer | null = null
  #socket: Server | null = null
  #tether: ServerResponse | null = null
  /** Term of the last server that has one. */
  #term: ServerTerm | null = null
  #calls = 0

  constructor(options: {
    /** The folder of bodies and the hashes of tokens. */
    readonly folder: string
    readonly secret: string
    /** The folder of bodies that end servers. */
    readonly setAside: string
    /** Uptime of a server before it gets a body that may have ended others, in ms; 3,000 by default. */
    readonly calmMs?: number
    /** Called when a server ends the relay. */
    readonly onEnd: () => void
  }) {
    this.#options = options
    const spool = new Spool(options.folder)
    const upstream = new Upstream(spool)
    this.#upstream = upstream
    this.#tokens = new CachedTokens(join(options.folder, 'tokens.json'))
    const admission = new RelayAdmission(this.#tokens, upstream)
    const { setAside, calmMs = CALM_MS } = options
    const parts = { spool, upstream, admission, callers: this.#callers, setAside: new SetAside(setAside), calmMs }
    this.#forwarder = new CallForwarder(parts)
    this.#server = this.#createServer(true)
  }

  /**
   * Begins to listen; 0 for any port. Another relay may share the port later, to replace this one.
   * @param beside true to share the port with a relay that hangs and will be ended
   * @throws the system's error
   */
  async listen(port: number, beside = false): Promise<number> {
    // The port may be that of another installation's relay, which could share it, too.
    if (port !== 0 && !beside) await requireFree(port)
    return bind(this.#server, '127.0.0.1', port, CAN_SHARE)
  }

  /**
   * Listens on another address too, in place of the previous one. It takes no commands there.
   * @param port the wanted port; another one is used if that is taken
   * @returns the port
   * @throws the system's error
   */
  async listenToo(host: string, port: number): Promise<number> {
    if (this.#outer?.host === host) return this.#outer.port
    const server = this.#createServer(false)
    const boundPort = await bind(server, host, port).catch(error => {
      if (port === 0 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      return bind(server, host, 0)
    })
    const previous = this.#outer
    this.#outer = { host, server, port: boundPort }
    previous?.server.close()
    return boundPort
  }

  /**
   * Listens at a socket in the file system too, where it takes no commands either.
   * @throws the system's error
   */
  async listenAt(path: string): Promise<void> {
    const server = this.#createServer(false)
    await listenAtFile(server, path)
    this.#socket = server
  }

  /** True while a server is connected. */
  get hasServer(): boolean {
    return this.#tether !== null
  }

  /** True while no server is connected and no call is held. */
  get idle(): boolean {
    return this.#tether === null && this.#calls === 0
  }

  /** Ends all connections. */
  close(): void {
    for (const server of [this.#server, this.#outer?.server, this.#socket]) {
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
    // A worker that shut its writing side after its call gets its response; see CallForwarder.
    Object.assign(server, { httpAllowHalfOpen: true })
    server.on('connection', socket => this.#callers.noteConnection(socket))
    return server
  }

  #receive(request: IncomingMessage, response: ServerResponse, commanded: boolean): void {
    const kind = callKind(request.method, request.url)
    // An error ends the connection, which has its own handler.
    response.on('error', () => {})
    const length = request.headers['content-length']
    if (length !== undefined && !isContentLength(length)) {
      respond(response, 400, '{"error":"the Content-Length is not a number, or begins with 0"}', {
        Connection: 'close',
      })
    } else if (kind !== null) {
      this.#calls += 1
      const handled = this.#forwarder.pass(kind, request, response).catch(() => response.destroy())
      void handled.finally(() => {
        this.#calls -= 1
      })
    } else if (commanded && this.#mayCommand(request)) this.#runCommand(request, response)
    else refuse(request, response)
  }

  #runCommand(request: IncomingMessage, response: ServerResponse): void {
    this.#callers.markServer(request.socket)
    if (request.url === TETHER_PATH) this.#connectServer(request, response)
    else if (request.url === WELL_PATH) respond(response, 200, '{}')
    else if (request.url === END_PATH) response.end(this.#options.onEnd)
    else if (request.url === TOKENS_PATH) void this.#receiveTokens(request, response)
    else if (request.url === LISTEN_PATH) void this.#listenAsAsked(request, response)
    else refuse(request, response)
  }

  async #listenAsAsked(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume()
    const { host, port } = addressFromHeader(request.headers[LISTEN_HEADER]) ?? { host: '', port: 0 }
    try {
      respond(response, 200, JSON.stringify({ port: await this.listenToo(host, port) }))
    } catch (error) {
      respond(response, 409, JSON.stringify({ error: (error as Error).message }))
    }
  }

  async #receiveTokens(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const news = readTokenUpdate(await text(request).catch(() => ''))
    if (news !== null) this.#tokens.update(news)
    respond(response, news === null ? 400 : 200, '{}')
  }

  #mayCommand(request: IncomingMessage): boolean {
    return request.method === 'POST' && isSameSecret(request.headers.authorization ?? '', this.#options.secret)
  }

  /** The newest server counts. One of an earlier term, which may wake up late, is refused. */
  #connectServer(request: IncomingMessage, response: ServerResponse): void {
    const address = addressFromHeader(request.headers[SERVER_HEADER])
    const term = termFromHeader(request.headers[TERM_HEADER])
    request.resume()
    if (address === null || isEarlierTerm(term, this.#term)) {
      respond(response, address === null ? 400 : 409, '{}')
      return
    }
    this.#term = term
    const previousTether = this.#tether
    this.#tether = response
    response.on('close', () => {
      if (this.#tether !== response) return
      this.#tether = null
      this.#upstream.address = null
    })
    // A server that ends its side of the connection has ended: unlike a worker it waits for no response there.
    request.socket.once('end', () => response.destroy())
    response.writeHead(200)
    response.flushHeaders()
    previousTether?.destroy()
    this.#forwarder.largestBody = largestBodyFromHeader(request.headers[BODY_HEADER])
    this.#upstream.address = address
  }
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  respond(response, 404, '{"error":"this address is for workers only"}')
}

function addressFromHeader(header: string | string[] | undefined): UpstreamAddress | null {
  const [, host, port] = /^(.+):(\d+)$/.exec(String(header)) ?? []
  return host === undefined || port === undefined ? null : { host, port: Number(port) }
}

function largestBodyFromHeader(header: string | string[] | undefined): number {
  const text = String(header)
  return /^\d{1,15}$/.test(text) ? Number(text) : RESULT_BYTES.read
}

function termFromHeader(header: string | string[] | undefined): ServerTerm | null {
  const [, database, epoch] = /^(\S+) (\d+)$/.exec(String(header)) ?? []
  return database === undefined ? null : { database, epoch: Number(epoch) }
}

/** True if a later term of the same database began. */
function isEarlierTerm(term: ServerTerm | null, latest: ServerTerm | null): boolean {
  return term !== null && latest !== null && term.database === latest.database && term.epoch < latest.epoch
}

/** Other systems lack the option, or give it another meaning. */
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

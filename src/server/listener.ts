import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { LOCAL_CONSOLE } from '../api/console/origin.ts'
import type { Delivery, Fetch, HandedRequest, IncomingBody } from '../api/surface.ts'
import { isS3Call, keepsReserved } from '../api/surfaces.ts'
import type { EndpointId } from '../core/ids.ts'
import { isContentLength, REQUEST_ID, withSingleSlashes } from '../core/request-head.ts'
import { listenAtFile } from '../disk/socket-file.ts'
import { clientAddress, peerAddress } from '../gateway/entrance/forwarded.ts'
import type { Entrance } from '../gateway/entrance/route.ts'
import { BodyTurns } from './body-turns.ts'
import { type CallSender, isCall } from './call-messages.ts'
import type { ConnectionTotals } from './connection-totals.ts'
import { CONNECTION_LIMITS, type ConnectionLimits, Connections, connectionCounts, hasBody } from './connections.ts'
import { answerHalfClosed } from './half-closed.ts'
import { handOver } from './handed-request.ts'
import { type HostRefusal, hostCheck, NO_TARGET, namedHost, plainHost, type ServerHosts } from './hosts.ts'
import { type Mount, mounted } from './mount.ts'
import type { PassedRequests } from './passed-requests.ts'
import type { TakeCall } from './received-calls.ts'
import { newRequestId, requestIdFromHeaders } from './request-ids.ts'
import type { StandIn } from './stand-in.ts'
import { type ListenerTls, overTls } from './tls.ts'

/**
 * Workers reuse idle connections for 15 s, and a reset then loses a result, so idle connections live longer
 * (docs/internals/worker-protocol.md, Connections).
 */
const KEEP_ALIVE_MS = 75_000
const HEADERS_MS = 30_000
/** Limit of bytes of the line and the headers of a request; above it the response is 431. */
const HEADER_BYTES = 16_384
const CHECK_MS = 5_000
/** Time for which new connections may be silent when the listener is closed, in milliseconds. */
const SILENT_MS = 1_000

/** Options of a listener. */
export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** A socket in the file system to listen at instead of host and port. */
  readonly file?: string
  /** The descriptor of a listening socket to take over instead of opening one; it has to be at host and port. */
  readonly inherited?: number
  readonly maxConnections: number
  /** Called for each connection that is refused by a limit. */
  readonly onFull?: () => void
  /** True to refuse all requests from an address; by default none are refused. */
  readonly refuses?: (address: string | undefined) => boolean
  /** The host names of the server; requests for others are refused. By default all are accepted. */
  readonly hosts?: ServerHosts
  /** True if a peer is a trusted proxy, whose fields about the client count; by default no peer is trusted. */
  readonly trusts?: (address: string) => boolean
  /** The host name of the console besides its name below localhost; none by default. */
  readonly consoleHost?: string | null
  /** The reason to refuse a request by its head; null to take it. By default all are taken. */
  readonly callProblem?: (incoming: IncomingMessage) => HostRefusal | null
  /** Load-balancing endpoints; none by default. */
  readonly mount?: Mount
  /** New connections wait, unread, until it resolves; by default they do not wait. */
  readonly opening?: Promise<void>
  /** Handler in place of surfaces and endpoints at this time; null without one, as by default. */
  readonly standIn?: () => StandIn | null
  /** Limits that differ from the defaults. */
  readonly limits?: Partial<ConnectionLimits>
  /** The certificate of a listener that speaks HTTPS alone; plain HTTP by default. */
  readonly tls?: ListenerTls
  /** Longest handshake of TLS in milliseconds, in place of the default. */
  readonly handshakeMs?: number
  /** True if other threads of this process listen at the same address, each with a socket of its own. */
  readonly reusesPort?: boolean
  /** Sums of all threads that listen; those of this listener by default. */
  readonly totals?: ConnectionTotals
  /** Called for a connection above the limit, so that another thread makes room; by default there is none. */
  readonly crowded?: () => void
  /** Gets the requests that are for no endpoint, in place of the surfaces; none by default. */
  readonly passer?: StandIn | null
  /** Sends job operations to the deciding thread in place of {@link passer}; none by default. */
  readonly calls?: CallSender | null
  /** Accepts only requests that threads of this server pass on; by default all are accepted. */
  readonly passed?: PassedRequests | null
  /** A field that every response has, as a name and a value; none by default. */
  readonly field?: readonly [name: string, value: string]
}

/** A listening socket with its surfaces. */
export interface Listener {
  /** The bound address, as an origin. */
  readonly url: string
  readonly port: number
  /** Ends a request that has a reserved place without an account, if there is one. */
  makeRoom(): void
  /** Responds to a request whose connection another thread has. @param address of its client, if known */
  readonly take: TakeCall
  /** Takes no new connections and ends idle ones; resolves when all are gone, after `graceMs` at the latest. */
  close(graceMs: number): Promise<void>
}

/**
 * Listens for HTTP/1.1.
 * @throws the system's error when the address cannot be bound
 */
export async function listen(surface: Fetch, options: ListenOptions): Promise<Listener> {
  const { host, maxConnections, onFull = () => {}, refuses = () => false, trusts = () => false, limits = {} } = options
  const { tls, field, handshakeMs, passer = null, calls = null, passed = null } = options
  const upgraded = (socket: Duplex) => connections.upgraded(socket as Socket)
  const isBusy = (socket: Duplex) => connections.isBusy(socket as Socket)
  const checkHost = options.hosts === undefined ? () => null : hostCheck(options.hosts)
  const { callProblem = () => null } = options
  const hostProblem = (incoming: IncomingMessage) => callProblem(incoming) ?? checkHost(incoming)
  const urlHost = urlHosts()
  const consoleHosts = [LOCAL_CONSOLE, ...(options.consoleHost == null ? [] : [plainHost(options.consoleHost)])]
  const isReserved = (incoming: IncomingMessage) =>
    keepsReserved(incoming, consoleHosts.includes(plainHost(namedHost(incoming) ?? '')))
  // A server that stands by has no domains of endpoints; the active one has them, and refuses other names.
  const isPassedOn = (incoming: IncomingMessage) =>
    options.mount !== undefined && hostProblem(incoming)?.status === 421 && standIn()?.passesOn?.(incoming) === true
  const isForeign = (incoming: IncomingMessage) => passed?.accepts(incoming) === false
  const refusesAny = (incoming: IncomingMessage) =>
    isForeign(incoming) || refuses(peerAddress(incoming)) || (hostProblem(incoming) !== null && !isPassedOn(incoming))
  const enters = (incoming: IncomingMessage, endpointId: EndpointId | null) =>
    connections.enters(incoming, endpointId, () => false)
  const refuseFull = (outgoing: ServerResponse, requestId: string) => connections.refuse(outgoing, requestId)
  const standIn = options.standIn ?? (() => null)
  const others = { refuses: refusesAny, isPassedOn, isBusy, enters, refuse: refuseFull, upgraded, standIn }
  const mount = options.mount === undefined ? null : mounted(options.mount, others)
  const answer = answering(surface, trusts, () => connections, options.mount?.entrance ?? null)
  const respond = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (field !== undefined) outgoing.setHeader(...field)
    if (isForeign(incoming)) return void incoming.socket.destroy()
    const requestId = requestIdFromHeaders(incoming)
    const problem = lengthProblem(incoming) ?? hostProblem(incoming)
    const instead = standIn()
    const isContainer = refuses(peerAddress(incoming))
    if (isContainer && (instead !== null || !isForFiles(incoming))) refuse(outgoing, requestId, CONTAINER)
    else if (problem !== null && !(problem.status === 421 && isPassedOn(incoming))) refuse(outgoing, requestId, problem)
    else if (instead !== null) {
      const isCounted = instead.isCounting === true || connections.enters(incoming, null, () => false)
      if (!isCounted) return refuseFull(outgoing, requestId)
      // The server that gets it next has limits of its own.
      connections.untimed(incoming)
      outgoing.setHeader(REQUEST_ID, requestId)
      instead.handle(incoming, outgoing, problem !== null)
    } else if (!isContainer && mount?.takes(incoming, outgoing)) connections.untimed(incoming)
    else if (!namesTarget(incoming)) refuse(outgoing, requestId, NO_TARGET)
    else if (calls !== null && isCall(incoming)) {
      outgoing.setHeader(REQUEST_ID, requestId)
      calls.handle(incoming, outgoing)
    } else if (passer !== null) {
      connections.untimed(incoming)
      outgoing.setHeader(REQUEST_ID, requestId)
      passer.handle(incoming, outgoing)
    } else {
      // Before anything reads the path.
      tidyTarget(incoming)
      if (!connections.enters(incoming, null, () => isReserved(incoming))) return refuseFull(outgoing, requestId)
      incoming.headers.host = urlHost(incoming.headers.host ?? '')
      void answer(incoming, outgoing)
    }
  }
  const server = createServer(
    {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: HEADERS_MS,
      requestTimeout: 0,
      connectionsCheckingInterval: CHECK_MS,
      maxHeaderSize: HEADER_BYTES,
      noDelay: true,
      // A request without a body needs none of the events of a stream. Whoever waits for its end has to ask `hasBody`.
      optimizeEmptyRequests: true,
      ...(mount === null ? {} : { shouldUpgradeCallback: mount.shouldUpgrade }),
    },
    respond,
  )
  answerHalfClosed(server)
  mount?.attach(server)
  const connections = new Connections(
    server,
    { ...CONNECTION_LIMITS, ...connectionCounts(maxConnections), ...limits },
    onFull,
    options.totals,
    options.crowded ?? null,
  )
  server.on('clientError', (error, socket) => {
    if (socket.writable && connections.isUnanswered(socket as Socket)) socket.write(answerToUnreadable(error))
    socket.destroy()
  })
  let url = ''
  const unfollow = tls === undefined ? () => {} : overTls(server, connections, tls, () => url, handshakeMs)
  const release = options.opening === undefined ? () => {} : holdConnections(server, options.opening)
  const bound = await bind(server, options)
  url = formatOrigin(host, bound, tls === undefined ? 'http' : 'https')
  return {
    url,
    port: bound,
    makeRoom: () => void connections.makeRoom(),
    take: (incoming, outgoing, address) => {
      passed?.trust(incoming, address)
      connections.passed(incoming, outgoing)
      respond(incoming, outgoing)
    },
    async close(graceMs) {
      unfollow()
      release()
      await closeServer(server, graceMs, connections)
      connections.close()
    },
  }
}

/** Answers requests with a surface. */
function answering(
  surface: Fetch,
  trusts: (address: string) => boolean,
  connections: () => Connections,
  entrance: Entrance | null,
): ReturnType<typeof getRequestListener> {
  return getRequestListener(
    async (request, env) => {
      const incoming = env.incoming as IncomingMessage
      const outgoing = env.outgoing as ServerResponse
      let isHanded = false
      const balanced = (handed: HandedRequest) => {
        isHanded = true
        connections().untimed(incoming)
        return handOver(entrance!, incoming, outgoing, handed)
      }
      const response = await surface(request, {
        delivery: trackDelivery(outgoing),
        requestId: requestIdFromHeaders(incoming),
        address: () => callerAddress(incoming, trusts),
        admits: account => connections().owned(incoming, account),
        body: () => incomingBody(incoming, () => connections().account(incoming)),
        ending: () => closeSignal(outgoing, incoming.socket),
        target: () => targets.get(incoming) ?? incoming.url!,
        untimed: () => connections().untimed(incoming),
        streams: () => connections().streams(incoming),
        ...(entrance !== null && { balanced }),
      })
      if (isHanded) return RESPONSE_ALREADY_SENT
      const length = response.headers.get('content-length')
      if (length !== null) connections().answers(incoming, Number(length))
      return response
    },
    {
      errorHandler: error => {
        // An error with this name is about the address of the request.
        const isUnreadable = (error as Error).name === 'RequestError'
        const text = isUnreadable ? NO_ADDRESS : '{"error":"an internal error occurred"}'
        const headers = { ...JSON_HEADERS, [REQUEST_ID]: newRequestId() }
        return new Response(text, { status: isUnreadable ? 400 : 500, headers })
      },
      // The rest of a body is read by Connections.
      autoCleanupIncoming: false,
    },
  )
}

/** Targets of requests as they were sent, where they have another form since. */
const targets = new WeakMap<IncomingMessage, string>()

/** True for a request to the S3 door. */
function isForFiles({ url = '' }: IncomingMessage): boolean {
  return isS3Call(withSingleSlashes(url))
}

/** Gives the path single slashes. */
function tidyTarget(incoming: IncomingMessage): void {
  const sentUrl = incoming.url!
  incoming.url = withSingleSlashes(sentUrl)
  if (incoming.url !== sentUrl) targets.set(incoming, sentUrl)
}

/** @returns the port */
async function bind(
  server: Server,
  { host, port, file, inherited, reusesPort = false }: ListenOptions,
): Promise<number> {
  if (file !== undefined) {
    await listenAtFile(server, file)
    return port
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(inherited === undefined ? { host, port, reusePort: reusesPort } : { fd: inherited }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  if (inherited !== undefined) checkAddress(server, host, port)
  return (server.address() as AddressInfo).port
}

/** The settings decide who reaches the server, so a socket with another rule is refused. */
function checkAddress(server: Server, host: string, port: number): void {
  const bound = server.address()
  const at = bound === null || typeof bound === 'string' ? null : bound
  if (at !== null && at.address === host && (port === 0 || at.port === port)) return
  server.close()
  const where = at === null ? 'no port' : `${at.address} port ${at.port}`
  throw new Error(`the socket that was passed on has ${where}; --host and --port have to name its address`)
}

const NO_ADDRESS = '{"error":"the host and the path of the request are not an address"}'

const NO_LENGTH = { status: 400, error: 'the Content-Length of the request is not a number, or begins with 0' } as const

/** Problem of a length that another program on the way may have read differently. */
function lengthProblem({ headers }: IncomingMessage): HostRefusal | null {
  const length = headers['content-length']
  return length === undefined || isContentLength(length) ? null : NO_LENGTH
}

/**
 * Gives a host as URLs have it: `[::ffff:127.0.0.1]` and `localhost:` are well-formed, and have another form
 * there. The latest is remembered.
 */
function urlHosts(): (host: string) => string {
  let latest = { given: '', host: '' }
  return given => {
    if (given !== latest.given) latest = { given, host: URL.parse(`http://${given}`)?.host ?? given }
    return latest.host
  }
}

const JSON_HEADERS = { 'content-type': 'application/json' }

/** Refusal of containers, which have a listener of their own. */
const CONTAINER = { status: 403, error: 'workers in containers reach this server at their worker address only' }

function refuse(outgoing: ServerResponse, requestId: string, { status, error }: HostRefusal | typeof CONTAINER): void {
  outgoing.writeHead(status, { ...JSON_HEADERS, [REQUEST_ID]: requestId, connection: 'close' })
  outgoing.end(JSON.stringify({ error }))
}

/** The URL of a request. HTTP/1.0 needs no host, and `OPTIONS *` has no path; surfaces need both. */
function namesTarget({ url = '', headers: { host } }: IncomingMessage): boolean {
  return /^(?:\/|https?:\/\/.)/i.test(url) && host !== undefined && host !== ''
}

/** The origin under which programs on this machine reach a listener on `host`. */
export function formatOrigin(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  if (host === '0.0.0.0') return `${scheme}://127.0.0.1:${port}`
  if (host === '::') return `${scheme}://[::1]:${port}`
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** True if only programs on this machine can reach the address. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

/** The address of the peer; empty for a socket in the file system. */
function callerAddress(incoming: IncomingMessage, trusts: (address: string) => boolean): string {
  return clientAddress({ peer: peerAddress(incoming) ?? '', host: '', rawHeaders: incoming.rawHeaders }, trusts)
}

/** All listeners have one event loop. */
const turns = new BodyTurns()

/**
 * The body of a request without the web stream that the request would make of it, which takes a sixth of a short call.
 * @param owner its account; empty while unknown
 */
function incomingBody(incoming: IncomingMessage, owner: () => string): IncomingBody | null {
  if (!hasBody(incoming)) return null
  return {
    pieces: () => turns.pieces(incoming, owner),
    drop: () => void incoming.on('error', () => {}).resume(),
  }
}

/**
 * Outcome of a response: `finish` means that the system has its last byte, an earlier `close` that it was cut off.
 */
function trackDelivery(outgoing: ServerResponse): Delivery {
  return {
    onSettled(callback) {
      let settled = false
      const settle = (delivered: boolean) => {
        if (settled) return
        settled = true
        callback(delivered)
      }
      if (outgoing.destroyed) settle(false)
      outgoing.once('finish', () => settle(true))
      outgoing.once('close', () => settle(outgoing.writableFinished))
    },
  }
}

/** Aborts at the end of the client's data, or of its connection. */
function closeSignal(outgoing: ServerResponse, socket: Socket): AbortSignal {
  const ended = new AbortController()
  const end = () => ended.abort()
  if (socket.readableEnded || socket.destroyed) end()
  socket.once('end', end).once('close', end)
  outgoing.once('close', () => socket.off('end', end).off('close', end))
  return ended.signal
}

/** Limit of connections that wait for the opening of a listener, as in the queue of the system. */
const MAX_HELD = 511

/** Keeps new connections from all listeners of a server until it opens. @returns ends those that wait */
function holdConnections(server: Server, opening: Promise<void>): () => void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  const heldSockets = new Set<Socket>()
  const hold = (socket: Socket) => {
    if (heldSockets.size === MAX_HELD) return void socket.destroy()
    heldSockets.add(socket)
    // A client may leave before the server opens. One that ends its side without a request has left.
    socket.on('error', () => {}).once('close', () => heldSockets.delete(socket))
    socket.once('end', () => void (heldSockets.has(socket) && socket.destroy()))
  }
  server.on('connection', hold)
  void opening.then(() => {
    server.off('connection', hold)
    for (const listener of listeners) server.on('connection', listener)
    for (const socket of heldSockets) server.emit('connection', socket)
    heldSockets.clear()
  })
  return () => {
    for (const socket of heldSockets) socket.destroy()
  }
}

async function closeServer(server: Server, graceMs: number, connections: Connections): Promise<void> {
  // That of HTTP also ends new connections, whose first request may be on its way: with a socket that outlives
  // the server it is answered.
  const closed = new Promise<void>(resolve => void NetServer.prototype.close.call(server, () => resolve()))
  connections.endIdle()
  // Data that came while this process was suspended is read first: timers run before reads, immediates after them.
  const endSilent = () => setImmediate(() => setImmediate(() => server.closeIdleConnections()))
  const ofSilent = setTimeout(endSilent, Math.min(SILENT_MS, graceMs))
  const timer = setTimeout(() => {
    server.closeAllConnections()
    connections.endAll()
  }, graceMs)
  await closed
  clearTimeout(ofSilent)
  clearTimeout(timer)
}

/** Status and sentence of each error of the parser of requests. */
const READING_ERRORS: Readonly<Record<string, readonly [status: number, sentence: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the line and the headers of the request have more than 16 KB, or are too many'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'the chunks of the request have too large extensions'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the headers of the request did not come in time'],
}

/**
 * The whole response to a request that cannot be read, as it is written to the socket, whose connection then ends.
 * @param error that of the parser, whose `reason` is a few words; see `clientError` of `node:http`
 */
function answerToUnreadable(error: Error & { readonly code?: string; readonly reason?: string }): string {
  const { code = '', reason } = error
  const detail = reason === undefined ? '' : ` (${reason.slice(0, 200)})`
  const [status, sentence] = READING_ERRORS[code] ?? [400, `the request cannot be read as HTTP/1.1${detail}`]
  const body = JSON.stringify({ error: sentence })
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `${REQUEST_ID}: ${newRequestId()}`,
    'connection: close',
    '',
    body,
  ]
  return lines.join('\r\n')
}

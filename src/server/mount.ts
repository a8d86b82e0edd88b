/** Places of load-balancing endpoints in a listener: names of hosts, and paths below `/lb/`. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { LOCAL_CONSOLE } from '../api/console/origin.ts'
import { cacheLast } from '../core/cache-last.ts'
import { TASKS_PATH, taskIdFromSegment } from '../core/endpoints/task.ts'
import { RETRY_UNAVAILABLE_S } from '../core/errors.ts'
import { type EndpointId, FLASH, isEndpointId } from '../core/ids.ts'
import { absoluteTarget, REQUEST_ID } from '../core/request-head.ts'
import { textBefore } from '../core/text-parts.ts'
import type { Entrance, GatewayRoute } from '../gateway/entrance/route.ts'
import { plainHost } from './hosts.ts'
import { requestIdFromHeaders } from './request-ids.ts'
import type { StandIn } from './stand-in.ts'

/** Parts with which a listener serves load-balancing endpoints. */
export interface Mount {
  readonly entrance: Entrance
  /** Endpoints are hosts below this domain; null for those below `localhost` alone. */
  readonly domain: string | null
  /**
   * The endpoint that has a name as its domain; by default no endpoint has one.
   * @param name in lower case, without a port and a dot at the end
   */
  readonly findEndpoint?: (name: string) => EndpointId | null
  /** Hosts that are never endpoints, although they lie below the domain. */
  readonly ownHosts: readonly string[]
  /**
   * Hosts at which there is no endpoint, below whatever path: that of the console, besides its name below localhost.
   */
  readonly closedHosts: readonly string[]
}

const PREFIX = '/lb/'
/** Ids are labels of host names, too. */
const MAX_ID_LENGTH = 63

/** Parts of a request that name its destination. */
export type AddressedRequest = Pick<IncomingMessage, 'url' | 'headers'>

/**
 * Returns the endpoint that a request names; null for a request to the rest of the server. A host wins over
 * the path. Names of hosts are compared without case, port and a dot at the end.
 */
export function routing({
  domain,
  ownHosts,
  closedHosts,
  findEndpoint = () => null,
}: Omit<Mount, 'entrance'>): (asked: AddressedRequest) => GatewayRoute | null {
  const domainHosts = domain === null ? [] : [plainHost(domain)]
  // One may be below the other, as in x.localhost: the longest match counts.
  const domains = ['localhost', 'lb.localhost', ...domainHosts]
    .map(name => `.${name}`)
    .sort((a, b) => b.length - a.length)
  const ownNames = new Set([...ownHosts.map(plainHost), ...domainHosts])
  const closed = new Set([LOCAL_CONSOLE, ...closedHosts.map(plainHost)])
  const ofHost = cacheLast((host): HostMeaning | null => {
    const name = plainHost(host)
    if (closed.has(name)) return null
    if (ownNames.has(name)) return { endpointId: null, isFlash: false, other: null }
    const suffix = domains.find(end => name.endsWith(end))
    if (suffix === undefined) return { endpointId: null, isFlash: false, other: name }
    const label = name.slice(0, name.length - suffix.length)
    return { endpointId: isEndpointId(label) ? label : null, isFlash: label === FLASH, other: null }
  })
  return ({ url = '/', headers: { host } }) => {
    const target = absoluteTarget(url)
    // The authority of an absolute target is the host, and the header does not count (RFC 9112, 3.2.2).
    const named = ofHost(target?.host ?? host ?? '')
    if (named === null) return null
    const { other } = named
    // Not cached: domains of endpoints change.
    const endpointId = other === null ? named.endpointId : findEndpoint(other)
    const path = target === null ? url : fromSlash(target.rest)
    const isNamed = endpointId !== null || named.isFlash
    const absoluteHost = target?.host ?? null
    if (isNamed) return { endpointId, prefix: null, path, host: absoluteHost }
    return ofPath(path, absoluteHost) ?? ofTask(path, absoluteHost)
  }
}

/** The meaning of a host name. */
interface HostMeaning {
  readonly endpointId: EndpointId | null
  /** True where headers name the endpoint. */
  readonly isFlash: boolean
  /** A name that is not the server's own, and may be the domain of an endpoint; null for any other. */
  readonly other: string | null
}

/** The id of an endpoint with its prefix; null for a text that is no id. */
const prefixed = cacheLast(id => (isEndpointId(id) ? { endpointId: id, prefix: PREFIX + id } : null))

/** Slashes may be repeated up to the id; the rest of the path is the worker's own. */
function ofPath(path: string, host: string | null): GatewayRoute | null {
  const start = idStart(path)
  if (start < 0) return null
  const id = textBefore(path.slice(start, start + MAX_ID_LENGTH + 1), '/', '?')
  const named = prefixed(id)
  if (named === null) return null
  const { endpointId, prefix } = named
  return { endpointId, prefix, path: fromSlash(path.slice(start + id.length)), host }
}

/** Place of the id below `/lb/`; -1 for any other path. */
function idStart(path: string): number {
  if (path.startsWith(PREFIX) && path[PREFIX.length] !== '/') return PREFIX.length
  return /^\/+lb\/+/.exec(path)?.[0].length ?? -1
}

/** The program of a task: its client makes a host name of an id that has a path. */
function ofTask(path: string, host: string | null): GatewayRoute | null {
  if (!path.startsWith(TASKS_PATH)) return null
  const rest = path.slice(TASKS_PATH.length)
  const end = rest.search(/[/?]/)
  const segment = end < 0 ? rest : rest.slice(0, end)
  const id = taskIdFromSegment(segment)
  if (id === null || !isEndpointId(id)) return null
  return { endpointId: id, prefix: null, path: fromSlash(rest.slice(segment.length)), host, isTask: true }
}

function fromSlash(path: string): string {
  return path.startsWith('/') ? path : `/${path}`
}

/** Handling of requests that are not for an endpoint. */
export interface OtherRequests {
  /** True to refuse the caller, or the host that it names, for any request. */
  readonly refuses: (incoming: IncomingMessage) => boolean
  /** True for a request that another server gets, because its host is unknown here. */
  readonly isPassedOn: (incoming: IncomingMessage) => boolean
  /** True if earlier requests on this connection have no answer yet. */
  readonly isBusy: (socket: Duplex) => boolean
  /** Gives a request its place; false without one. */
  readonly enters: (incoming: IncomingMessage, endpointId: EndpointId | null) => boolean
  /** Responds to a request without a place. */
  readonly refuse: (outgoing: ServerResponse, requestId: string) => void
  /** Called for a socket that left HTTP. */
  readonly upgraded: (socket: Duplex) => void
  /** Handler in place of the endpoints at this time; null without one. */
  readonly standIn: () => StandIn | null
}

/** The load-balancing endpoints in a server. */
export interface Mounted {
  /** Option of the server: upgrades of other requests are answered as ordinary requests. */
  shouldUpgrade(incoming: IncomingMessage): boolean
  /** Handles a request for an endpoint; false for other requests. */
  takes(incoming: IncomingMessage, outgoing: ServerResponse): boolean
  /** Handles the events of the server other than `request`. */
  attach(server: Server): void
}

/** Adds load-balancing endpoints to a server. */
export function mounted(mount: Mount, others: OtherRequests): Mounted {
  const { refuses, isPassedOn, isBusy, enters, refuse: refuseFull, upgraded, standIn } = others
  const routeOf = routing(mount)
  const { entrance } = mount
  const isFor = (incoming: IncomingMessage) =>
    !refuses(incoming) && (routeOf(incoming) !== null || isPassedOn(incoming))
  return {
    // Clients offer the upgrade to HTTP/2 unasked, with requests that need an answer in any case. And data of another
    // protocol would come before the answers that are still due.
    shouldUpgrade: incoming =>
      !/\bh2c?\b/i.test(incoming.headers.upgrade ?? '') && !isBusy(incoming.socket) && isFor(incoming),
    takes(incoming, outgoing) {
      const route = routeOf(incoming)
      if (route === null) return false
      if (enters(incoming, route.endpointId)) entrance.handle(incoming, outgoing, route)
      else refuseFull(outgoing, requestIdFromHeaders(incoming))
      return true
    },
    attach(server) {
      server.on('checkContinue', (incoming, outgoing) => {
        // The entrance sends it when it needs the body.
        if (standIn() !== null || !isFor(incoming)) outgoing.writeContinue()
        server.emit('request', incoming, outgoing)
      })
      server.on('upgrade', (incoming, socket, head) => {
        // An error ends it, and its owner receives the end.
        socket.on('error', () => {})
        upgraded(socket)
        const route = routeOf(incoming)
        const instead = standIn()
        const requestId = requestIdFromHeaders(incoming)
        if (route === null && !isPassedOn(incoming))
          refuse(socket, requestId, 400, 'there is nothing to upgrade to at this path')
        else if (instead?.isCounting !== true && !enters(incoming, route?.endpointId ?? null)) {
          refuse(socket, requestId, 503, 'the server has too many connections')
        } else if (instead !== null) instead.upgrade(incoming, socket, head)
        else if (route !== null) entrance.upgrade(incoming, socket, head, route)
      })
      server.on('connect', (incoming, socket) => {
        socket.on('error', () => {})
        refuse(socket, requestIdFromHeaders(incoming), 405, 'this server is not a proxy and does not accept CONNECT')
      })
    },
  }
}

const TITLES = { 400: 'Bad Request', 405: 'Method Not Allowed', 503: 'Service Unavailable' } as const

function refuse(socket: Duplex, requestId: string, status: keyof typeof TITLES, error: string): void {
  const body = JSON.stringify({ error })
  const lines = [
    `HTTP/1.1 ${status} ${TITLES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    `${REQUEST_ID}: ${requestId}`,
    ...(status === 503 ? [`retry-after: ${RETRY_UNAVAILABLE_S}`] : []),
    ...(status === 405 ? ['allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'] : []),
    'connection: close',
    '',
    body,
  ]
  socket.resume()
  socket.end(lines.join('\r\n'), () => socket.destroy())
}

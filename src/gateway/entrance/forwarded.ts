/** The sender of a request. `X-Forwarded-` headers count only if a trusted proxy sent them. */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { textBefore, withoutEnd } from '../../core/text-parts.ts'

/** The client of a request, and the address by which it reached the server. */
export interface Sender {
  /** For `X-Forwarded-For`: the client, then the trusted proxies in order; the last address is the peer. */
  readonly client: string
  readonly protocol: 'http' | 'https'
  readonly host: string
  /** The prefix that a trusted proxy removed from the path; else empty. */
  readonly prefix: string
  /** Without the headers that describe the sender. */
  readonly rawHeaders: readonly string[]
}

/** The parts of a received request that determine its {@link Sender}. */
export interface ReceivedRequest {
  readonly peer: string
  /** True if it came to this server over TLS. */
  readonly isSecure?: boolean
  readonly host: string
  readonly rawHeaders: readonly string[]
}

const PEER = Symbol('peer')
type PassedRequest = IncomingMessage & { [PEER]?: string }

/** The address that opened the connection of a request; undefined for a socket in the file system. */
export function peerAddress(incoming: IncomingMessage): string | undefined {
  return (incoming as PassedRequest)[PEER] ?? incoming.socket.remoteAddress
}

/** Records the address that opened the connection on which another thread received a request. */
export function setPeerAddress(incoming: IncomingMessage, address: string): void {
  ;(incoming as PassedRequest)[PEER] = address
}

/** True if TLS has decrypted the data of a socket. */
export function isSecure(socket: object): boolean {
  return 'encrypted' in socket && socket.encrypted === true
}

/** A predicate that is true if an address is in the given addresses and networks, such as `10.0.0.0/8` or `::1`. */
export function addressList(networks: readonly string[]): (address: string) => boolean {
  if (networks.length === 0) return () => false
  const list = new BlockList()
  for (const network of networks) {
    const [base = '', length] = network.split('/')
    const family = isIP(base) === 6 ? 'ipv6' : 'ipv4'
    if (length === undefined) list.addAddress(base, family)
    else list.addSubnet(base, Number(length), family)
  }
  return address => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/**
 * The sender of a request. Headers about the sender are dropped unless a trusted proxy sent them.
 * @param isTrusted true for the address of a trusted proxy
 * @param rawHeaders those of the request that count, in place of all
 */
export function readSender(
  request: ReceivedRequest,
  isTrusted: (address: string) => boolean,
  rawHeaders = request.rawHeaders,
): Sender {
  const { peer, isSecure = false, host } = request
  const peerProtocol = isSecure ? 'https' : 'http'
  const client = peer.replace(/^::ffff:(?=\d+\.)/i, '')
  const otherHeaders = withoutForwarded(rawHeaders)
  const direct: Sender = { client, protocol: peerProtocol, host, prefix: '', rawHeaders: otherHeaders }
  if (otherHeaders === rawHeaders || !isTrusted(client)) return direct
  const values = (name: string) => headerValues(rawHeaders, name)
  const [protocol] = values('x-forwarded-proto')
  const [forwardedHost] = values('x-forwarded-host')
  const [prefix] = values('x-forwarded-prefix')
  return {
    client: [...forwardedChain(values('x-forwarded-for'), isTrusted), client].join(', '),
    protocol: protocol === undefined ? peerProtocol : protocol.toLowerCase() === 'https' ? 'https' : 'http',
    host: forwardedHost ?? host,
    prefix: prefix !== undefined && isPath(prefix) ? withoutEnd(prefix, '/') : '',
    rawHeaders: otherHeaders,
  }
}

/**
 * True for a prefix that is a plain path. Many proxies pass on the prefix of a client, and redirects and cookies
 * contain it: `//host` would lead to another server.
 */
function isPath(prefix: string): boolean {
  const segments = withoutEnd(prefix, '/').split('/').slice(1)
  return prefix.startsWith('/') && segments.every(segment => SEGMENT.test(segment) && !/^\.{1,2}$/.test(segment))
}

const SEGMENT = /^[A-Za-z0-9._~%@:+-]+$/

/** The address of the client: that of the peer, or the one that trusted proxies name. */
export function clientAddress(request: ReceivedRequest, isTrusted: (address: string) => boolean): string {
  return textBefore(readSender(request, isTrusted).client, ',')
}

/**
 * The addresses from the right up to and including the first that is not a trusted proxy's; all to the left of it
 * could be forged.
 */
function forwardedChain(addresses: readonly string[], isTrusted: (address: string) => boolean): string[] {
  const chain: string[] = []
  for (const address of addresses.toReversed()) {
    if (isIP(address) === 0) break
    chain.unshift(address)
    if (!isTrusted(address)) break
  }
  return chain
}

function headerValues(rawHeaders: readonly string[], lowerName: string): string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.toLowerCase() === lowerName) values.push(...rawHeaders[index + 1]!.split(','))
  }
  return values.map(value => value.trim()).filter(value => value !== '')
}

/** The headers without fields about the sender: the same array if it has none. */
function withoutForwarded(rawHeaders: readonly string[]): readonly string[] {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (isForwardedField(rawHeaders[at]!))
      return rawHeaders.filter((_, index) => !isForwardedField(rawHeaders[index - (index % 2)]!))
  }
  return rawHeaders
}

/**
 * True if a header describes the sender. The first letter is compared first, because it rules out most headers.
 * Underscores count as hyphens: applications behind CGI and WSGI read `X_Forwarded_For` as the same field.
 */
function isForwardedField(name: string): boolean {
  const first = name[0]
  const begins = first === 'x' || first === 'X' || first === 'f' || first === 'F'
  return begins && /^(?:x[-_]forwarded[-_]|forwarded$|x[-_]real[-_]ip$)/i.test(name)
}

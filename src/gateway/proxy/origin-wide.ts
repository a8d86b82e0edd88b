/**
 * Responses as clients may see them: without fields about an origin or domain that several endpoints share, and
 * with URLs below their path.
 */

import { textBefore } from '../../core/text-parts.ts'
import { namesConsoleCookie } from '../entrance/credentials.ts'
import { isBeyondOrigin, isOriginWide } from '../http1/fields.ts'
import type { ResponseHead } from '../http1/response-head.ts'
import type { ProxyRequest } from './proxy-request.ts'

/** The address of an endpoint as the client of a request sees it. */
export type SeenAt = Pick<ProxyRequest, 'endpointId' | 'prefix' | 'host' | 'protocol'>

/**
 * A response with those of its fields that the endpoint may set, and URLs that lead its client back to the endpoint.
 * @param seen its prefix is null for an endpoint with a host of its own: only fields that act beyond its origin are
 * removed then
 * @returns the same object where nothing changes
 */
export function withinEndpoint(head: ResponseHead, seen: SeenAt): ResponseHead {
  const { headers } = head
  const { prefix } = seen
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!
    if (isCookie(name) || !isKept(name, prefix) || (prefix !== null && hasLocation(name))) {
      return { ...head, headers: changed(headers, seen) }
    }
  }
  return head
}

function changed(headers: readonly string[], seen: SeenAt): string[] {
  const { prefix } = seen
  const keptHeaders: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    if (isCookie(name)) {
      const cookie = headers[at + 1]!
      // Nobody is signed in to the console by an endpoint.
      if (!namesConsoleCookie(cookie.split(';', 1)[0]!)) keptHeaders.push(name, narrowed(cookie, prefix))
    } else if (hasLocation(name)) keptHeaders.push(name, clientLocation(name, headers[at + 1]!, seen))
    else if (isKept(name, prefix)) keptHeaders.push(name, headers[at + 1]!)
  }
  return keptHeaders
}

function isKept(name: string, prefix: string | null): boolean {
  return !isBeyondOrigin(name) && (prefix === null || !isOriginWide(name))
}

function isCookie(name: string): boolean {
  return name.length === 10 && name.toLowerCase() === 'set-cookie'
}

/** Browsers take the last of each attribute (RFC 6265, 5.3). */
function narrowed(cookie: string, prefix: string | null): string {
  const [pair = '', ...attributes] = cookie.split(';')
  const keptAttributes: string[] = []
  let path = ''
  for (const attribute of attributes) {
    const [name = '', ...value] = attribute.split('=')
    const lower = name.trim().toLowerCase()
    if (lower === 'path' && prefix !== null) path = value.join('=').trim()
    else if (lower !== 'domain') keptAttributes.push(attribute)
  }
  if (prefix === null) return [pair, ...keptAttributes].join(';')
  const within = path === prefix || path.startsWith(`${prefix}/`)
  return [pair, ...keptAttributes, ` Path=${within ? path : prefix}`].join(';')
}

/**
 * True for a field whose URLs clients follow or store; proxies such as Apache and nginx adjust the same fields. All
 * other fields and bodies belong to the application, which gets its prefix in `X-Forwarded-Prefix`.
 */
function hasLocation(name: string): boolean {
  switch (name.length) {
    case 7:
      return name.toLowerCase() === 'refresh'
    case 8:
      return name.toLowerCase() === 'location'
    case 16:
      return name.toLowerCase() === 'content-location'
    default:
      return false
  }
}

/**
 * The value of such a field for the client.
 * @param value of the worker's field, already checked for control characters
 */
function clientLocation(name: string, value: string, at: SeenAt): string {
  const { prefix } = at
  if (prefix === null) return value
  if (name.toLowerCase() !== 'refresh') return clientUrl(value, prefix, at)
  const url = REFRESH.exec(value)?.[0].length
  return url === undefined ? value : value.slice(0, url) + clientUrl(value.slice(url), prefix, at)
}

/** The part of a `Refresh` before its URL, such as `5; url='`. */
const REFRESH = /^[\d.]+[ \t]*[;,][ \t]*(?:url[ \t]*=[ \t]*)?["']?/i

/** The beginning of an absolute URL, or of one that begins with its host. */
const BEFORE_HOST = /^(?:(https?):)?\/\//i

/** The URL with the prefix, if it is a path or has the host of the request; else unchanged. */
function clientUrl(url: string, prefix: string, at: SeenAt): string {
  const { host, protocol } = at
  const match = BEFORE_HOST.exec(url)
  if (match === null) return url.startsWith('/') ? belowPrefix(url, prefix, at) : url
  const [before, scheme = protocol] = match
  const authority = textBefore(url.slice(before.length), '/', '?', '#', '\\')
  const rest = url.slice(before.length + authority.length)
  if (hostAndPort(authority, scheme) !== hostAndPort(host, protocol)) return url
  const path = belowPrefix(rest.startsWith('/') ? rest : `/${rest}`, prefix, at)
  // A client of HTTP/1.0 may have named no host, and a URL needs one.
  if (authority === '') return path
  // For a worker that ignores X-Forwarded-Proto all clients use plain HTTP: its redirect would send the key in plain
  // text.
  if (protocol === 'https' && scheme.toLowerCase() === 'http') return `https://${host}${path}`
  return before + authority + path
}

/** Applications that read their prefix add it themselves: with that of a proxy in front of the server, or without. */
function belowPrefix(path: string, prefix: string, { endpointId }: SeenAt): string {
  // `/../x` is `/x` for a client, and would leave the prefix.
  const plain = DOTS.test(path) ? withoutDots(path) : path
  const ownPrefix = `/lb/${endpointId}`
  if (isBelow(plain, prefix)) return plain
  const outer = prefix.endsWith(ownPrefix) ? prefix.slice(0, -ownPrefix.length) : ''
  return isBelow(plain, ownPrefix) && outer !== '' ? outer + plain : prefix + plain
}

function isBelow(path: string, prefix: string): boolean {
  return path.startsWith(prefix) && (path.length === prefix.length || '/?#'.includes(path[prefix.length]!))
}

/** A segment of one or two dots, with the separators that browsers accept. */
const DOTS = /[/\\](?:\.|%2e){1,2}(?:[/\\?#]|$)/i
const ONE_DOT = /^(?:\.|%2e)$/i
const TWO_DOTS = /^(?:\.|%2e){2}$/i

/** RFC 3986, 5.2.4. */
function withoutDots(path: string): string {
  const end = textBefore(path, '?', '#').length
  const segments = path.slice(1, end).split(/[/\\]/)
  const keptSegments: string[] = []
  for (const segment of segments) {
    if (TWO_DOTS.test(segment)) keptSegments.pop()
    else if (!ONE_DOT.test(segment)) keptSegments.push(segment)
  }
  const last = segments.at(-1) ?? ''
  if (ONE_DOT.test(last) || TWO_DOTS.test(last)) keptSegments.push('')
  return `/${keptSegments.join('/')}${path.slice(end)}`
}

/** A host for comparison: in lower case, without a dot at the end of the name and the port of the scheme. */
function hostAndPort(authority: string, scheme: string): string {
  const standard = scheme.toLowerCase() === 'https' ? ':443' : ':80'
  const lower = authority.toLowerCase()
  const bare = lower.endsWith(standard) ? lower.slice(0, -standard.length) : lower
  return bare.replace(/\.(?=:\d*$|$)/, '')
}

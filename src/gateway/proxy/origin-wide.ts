/**
 * Responses as clients may see them: without fields about an origin or domain that several endpoints share, and
 * with URLs below their path.
 */

import { namesConsoleCookie } from '../entrance/credentials.ts'
import { isBeyondOrigin, isOriginWide } from '../http1/fields.ts'
import type { ResponseHead } from '../http1/response-head.ts'
import { clientLocation, hasLocation, type SeenAt } from './client-locations.ts'

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
  const kept: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    if (isCookie(name)) {
      const cookie = headers[at + 1]!
      // Nobody is signed in to the console by an endpoint.
      if (!namesConsoleCookie(cookie.split(';', 1)[0]!)) kept.push(name, narrowed(cookie, prefix))
    } else if (hasLocation(name)) kept.push(name, clientLocation(name, headers[at + 1]!, seen))
    else if (isKept(name, prefix)) kept.push(name, headers[at + 1]!)
  }
  return kept
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
  const kept: string[] = []
  let path = ''
  for (const attribute of attributes) {
    const [name = '', ...value] = attribute.split('=')
    const lower = name.trim().toLowerCase()
    if (lower === 'path' && prefix !== null) path = value.join('=').trim()
    else if (lower !== 'domain') kept.push(attribute)
  }
  if (prefix === null) return [pair, ...kept].join(';')
  const within = path === prefix || path.startsWith(`${prefix}/`)
  return [pair, ...kept, ` Path=${within ? path : prefix}`].join(';')
}

/** Removes fields about a whole origin or domain from responses: several endpoints share one. */

import { namesConsoleCookie } from '../entrance/credentials.ts'
import { isBeyondOrigin, isOriginWide } from '../http1/fields.ts'
import type { ResponseHead } from '../http1/response-head.ts'

/**
 * A response with those of its fields that the endpoint may set.
 * @param prefix the path of the endpoint; null where it has a host of its own, so that only what acts beyond its origin concerns others
 * @returns the same object where nothing changes
 */
export function withinEndpoint(head: ResponseHead, prefix: string | null): ResponseHead {
  const { headers } = head
  for (let at = 0; at < headers.length; at += 2) {
    if (isCookie(headers[at]!) || !isKept(headers[at]!, prefix)) {
      return { ...head, headers: changed(headers, prefix) }
    }
  }
  return head
}

function changed(headers: readonly string[], prefix: string | null): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    if (isCookie(name)) {
      const cookie = headers[at + 1]!
      // Nobody is signed in to the console by an endpoint.
      if (!namesConsoleCookie(cookie.split(';', 1)[0]!)) kept.push(name, narrowed(cookie, prefix))
    } else if (isKept(name, prefix)) kept.push(name, headers[at + 1]!)
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

/**
 * API keys in requests for load-balancing endpoints, and their removal before the request is forwarded; and cookies
 * of the console, which browsers send to every port of its host.
 */

import { isConsoleCookie } from '../../core/accounts/session.ts'
import { readAuthorizationKey } from '../../core/request-head.ts'

/** The parts of a request that can carry a key. */
export interface RequestFields {
  /** Path and query as received. */
  readonly path: string
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[]
}

/** A request without its API keys. */
export interface RequestWithoutKeys extends RequestFields {
  /**
   * The subprotocol that carried the key, if no other was offered; else null. Browsers close a WebSocket whose
   * handshake response names none of the subprotocols that they offered, so the gateway names it if the worker names
   * none.
   */
  readonly subprotocol: string | null
}

const QUERY_KEY = 'api_key'
/** The prefix of a subprotocol that carries a key. */
const SUBPROTOCOL = 'runyard.key.'

/**
 * Every text of a request that may be an API key, each once: `Authorization` with or without `Bearer`, the query
 * parameter `api_key`, a WebSocket subprotocol `runyard.key.KEY`. Most requests have at most one.
 */
export function presentedKeys({ path, rawHeaders }: RequestFields): readonly string[] {
  const keys: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (isNamed(name, 'authorization')) addKey(keys, readAuthorizationKey(rawHeaders[at + 1]))
    else if (isNamed(name, 'sec-websocket-protocol')) {
      for (const protocol of listProtocols(rawHeaders[at + 1]!)) {
        if (protocol.startsWith(SUBPROTOCOL)) addKey(keys, protocol.slice(SUBPROTOCOL.length))
      }
    }
  }
  if (path.includes(QUERY_KEY)) for (const part of queryParts(path)) addKey(keys, keyFromPart(part))
  return keys
}

function addKey(keys: string[], key: string | null): void {
  if (key !== null && key !== '' && !keys.includes(key)) keys.push(key)
}

/**
 * The request without the given keys, everything else byte for byte as received. Texts that look like a key and are
 * not one belong to the application and stay, except subprotocols `runyard.key.*`. Every `api_key` is removed from
 * `Referer`, because it may be another key than the one of this request.
 */
export function withoutKeys({ path, rawHeaders }: RequestFields, keys: readonly string[]): RequestWithoutKeys {
  const keptHeaders: string[] = []
  const keyProtocols: string[] = []
  let hasOthers = false
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    const value = rawHeaders[at + 1]!
    if (isNamed(name, 'authorization')) {
      if (!isOneOf(keys, readAuthorizationKey(value))) keptHeaders.push(name, value)
    } else if (isNamed(name, 'cookie')) {
      const cookies = withoutConsoleCookies(value)
      if (cookies !== '') keptHeaders.push(name, cookies)
    } else if (isNamed(name, 'referer'))
      keptHeaders.push(
        name,
        withoutParts(value, part => keyFromPart(part) !== null),
      )
    else if (isNamed(name, 'sec-websocket-protocol')) {
      const protocols = listProtocols(value)
      const passed = protocols.filter(protocol => !protocol.startsWith(SUBPROTOCOL))
      if (passed.length > 0) keptHeaders.push(name, passed.length === protocols.length ? value : passed.join(', '))
      hasOthers ||= passed.length > 0
      keyProtocols.push(...protocols.filter(protocol => protocol.startsWith(SUBPROTOCOL)))
    } else keptHeaders.push(name, value)
  }
  const subprotocol = hasOthers ? null : (keyProtocols[0] ?? null)
  return { path: withoutParts(path, part => isOneOf(keys, keyFromPart(part))), rawHeaders: keptHeaders, subprotocol }
}

/** A Cookie header without the console's cookies: the same text if it has none. */
function withoutConsoleCookies(value: string): string {
  const pairs = value.split(';')
  const keptPairs = pairs.filter(pair => !namesConsoleCookie(pair))
  return keptPairs.length === pairs.length ? value : keptPairs.join(';').trim()
}

/**
 * True if a cookie, as `name=value`, has the name of the console's. Browsers send a nameless cookie as its value
 * alone.
 */
export function namesConsoleCookie(pair: string): boolean {
  const [name = ''] = pair.replace(/^[\s=]+/, '').split('=')
  return isConsoleCookie(name)
}

/** Compares lengths first, because most names differ there. @param lower the name in lower case */
function isNamed(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

function withoutParts(path: string, isKey: (part: string) => boolean): string {
  if (!path.includes(QUERY_KEY)) return path
  const parts = queryParts(path)
  const keptParts = parts.filter(part => !isKey(part))
  if (keptParts.length === parts.length) return path
  const start = path.slice(0, path.indexOf('?'))
  return keptParts.length === 0 ? start : `${start}?${keptParts.join('&')}`
}

function queryParts(path: string): readonly string[] {
  const start = path.indexOf('?')
  return start < 0 ? [] : path.slice(start + 1).split('&')
}

function keyFromPart(part: string): string | null {
  if (!part.startsWith(`${QUERY_KEY}=`)) return null
  const value = part.slice(QUERY_KEY.length + 1)
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

function listProtocols(value: string): string[] {
  return value
    .split(',')
    .map(protocol => protocol.trim())
    .filter(protocol => protocol !== '')
}

function isOneOf(keys: readonly string[], key: string | null): boolean {
  return key !== null && keys.includes(key)
}

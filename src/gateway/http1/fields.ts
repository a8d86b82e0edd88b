/** The header fields that an intermediary treats specially. */
import { REQUEST_ID } from '../../core/request-head.ts'

/**
 * Hop-by-hop fields, which are never passed on unchanged (RFC 9110, 7.6.1). The gateway answers `expect` itself and
 * makes its own framing.
 */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'transfer-encoding', 'upgrade', 'http2-settings'],
])

/**
 * Fields about framing, routing, access or control, which take effect before the trailers arrive (RFC 9110, 6.5.1).
 */
const FORBIDDEN_IN_TRAILERS = new Set([
  ...['content-length', 'content-encoding', 'content-type', 'content-range', 'content-disposition', 'content-location'],
  ...[
    'trailer',
    'host',
    'expect',
    'max-forwards',
    'range',
    'pragma',
    'accept-ranges',
    'origin',
    'referer',
    'user-agent',
  ],
  ...['authorization', 'www-authenticate', 'authentication-info', 'cookie', 'cookie2', 'set-cookie', 'set-cookie2'],
  ...[
    'cache-control',
    'age',
    'expires',
    'date',
    'vary',
    'location',
    'refresh',
    'retry-after',
    'link',
    'content-security-policy',
  ],
  ...['forwarded', 'via', 'x-real-ip', 'x-runpod-worker-id', REQUEST_ID, 'traceparent', 'tracestate', 'baggage'],
])
/**
 * Beginnings of the names of other such fields: conditions, credentials for proxies, addresses of clients, rights of
 * pages of other origins.
 */
const FORBIDDEN_BEGINNINGS = ['if-', 'proxy-', 'x-forwarded-', 'access-control-', 'x-accel-', 'x-runyard-', 'sec-']

/** In a response: the worker that answered. In a request: the worker that the client wants. */
export const WORKER_ID = 'X-Runpod-Worker-Id'
/** The header that names a request, as the gateway writes it. */
export const REQUEST_ID_FIELD = 'X-Request-Id'

/** True if a field is for one connection only. @param lower its name in lower case */
export function isHopByHop(lower: string): boolean {
  return HOP_BY_HOP.has(lower)
}

/** The trailers that may be passed on, as names and values in turn. */
export function allowedTrailers(raw: readonly string[]): string[] {
  const allowed: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    // CGI and WSGI read `_` as `-`.
    const lower = raw[at]!.toLowerCase().replaceAll('_', '-')
    if (!isForbiddenInTrailers(lower)) allowed.push(raw[at]!, raw[at + 1]!)
  }
  return allowed
}

/** @param lower the name in lower case, with `-` for `_` */
function isForbiddenInTrailers(lower: string): boolean {
  return (
    HOP_BY_HOP.has(lower) ||
    FORBIDDEN_IN_TRAILERS.has(lower) ||
    isOriginWide(lower) ||
    isBeyondOrigin(lower) ||
    FORBIDDEN_BEGINNINGS.some(beginning => lower.startsWith(beginning))
  )
}

/**
 * True when a field of a response holds for a whole origin, or for more of it than the path of the response: a page
 * below `/lb/` shares its origin with others.
 */
export function isOriginWide(name: string): boolean {
  return ORIGIN_WIDE.test(name)
}

/**
 * True when a field of a response acts beyond its origin: on cookies and sessions of the whole domain, or on a proxy
 * in front of the server, which would answer with files of its own.
 */
export function isBeyondOrigin(name: string): boolean {
  return BEYOND_ORIGIN.test(name)
}

const ORIGIN_WIDE =
  /^(?:service-worker-allowed|strict-transport-security|public-key-pins(?:-report-only)?|expect-ct|nel|report-to|reporting-endpoints|origin-agent-cluster|alt-svc|accept-ch(?:-lifetime)?|critical-ch|set-login|use-as-dictionary|shared-storage-write)$/i
const BEYOND_ORIGIN =
  /^(?:clear-site-data|(?:sec|secure)-session-registration|set-cookie2|x-accel-redirect|x-sendfile|x-lighttpd-send-file)$/i

/**
 * The fields that a `Connection` field names, which makes them hop-by-hop fields too.
 * @returns names in lower case; null if it names none, the common case
 */
export function namedByConnection(connection: string): string[] | null {
  const lower = connection.toLowerCase()
  if (lower === 'keep-alive' || lower === 'close' || lower === 'upgrade') return null
  const names = lower.split(',').map(option => option.trim())
  const fieldNames = names.filter(
    name => name !== '' && name !== 'keep-alive' && name !== 'close' && name !== 'upgrade',
  )
  return fieldNames.length > 0 ? fieldNames : null
}

/** True if a comma-separated list such as `Connection` has this option. @param option in lower case */
export function hasOption(list: string, option: string): boolean {
  const lower = list.toLowerCase()
  return lower === option || lower.split(',').some(part => part.trim() === option)
}

/** The fields without those of these names. @param names in lower case */
export function withoutFields(raw: readonly string[], names: readonly string[]): string[] {
  const otherFields: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (!names.includes(raw[at]!.toLowerCase())) otherFields.push(raw[at]!, raw[at + 1]!)
  }
  return otherFields
}

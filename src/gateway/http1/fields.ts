/** The header fields that an intermediary treats specially. */

/**
 * Hop-by-hop fields, which are never passed on as they came (RFC 9110, 7.6.1). The gateway answers `expect` itself and makes
 * the framing anew.
 */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'transfer-encoding', 'upgrade', 'http2-settings'],
])

/** Fields about framing, routing or access, which are decided before the trailers arrive. */
const FORBIDDEN_IN_TRAILERS = new Set([
  ...[
    'content-length',
    'content-encoding',
    'content-type',
    'content-range',
    'trailer',
    'host',
    'expect',
    'max-forwards',
  ],
  ...['authorization', 'cookie', 'set-cookie', 'cache-control', 'x-runpod-worker-id', 'forwarded'],
])

/** In a response: the worker that answered. In a request: the worker that the client wants. */
export const WORKER_ID = 'X-Runpod-Worker-Id'
/** The header that names a request, as the gateway writes it. */
export const REQUEST_ID_FIELD = 'X-Request-Id'

/** Whether a field is for one connection only. @param lower its name in lower case */
export function isHopByHop(lower: string): boolean {
  return HOP_BY_HOP.has(lower)
}

/** The trailers that may be passed on, as names and values in turn. */
export function allowedTrailers(raw: readonly string[]): string[] {
  const passed: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const lower = raw[at]!.toLowerCase()
    if (HOP_BY_HOP.has(lower) || FORBIDDEN_IN_TRAILERS.has(lower) || lower.startsWith('x-forwarded-')) continue
    passed.push(raw[at]!, raw[at + 1]!)
  }
  return passed
}

/**
 * The fields that a `Connection` field names, which makes them hop-by-hop fields, too.
 * @returns names in lower case; null for none, the common case
 */
export function namedByConnection(connection: string): string[] | null {
  const lower = connection.toLowerCase()
  if (lower === 'keep-alive' || lower === 'close' || lower === 'upgrade') return null
  const names = lower.split(',').map(option => option.trim())
  const others = names.filter(name => name !== '' && name !== 'keep-alive' && name !== 'close' && name !== 'upgrade')
  return others.length > 0 ? others : null
}

/** Whether a comma-separated list such as `Connection` has this option. @param option in lower case */
export function hasOption(list: string, option: string): boolean {
  const lower = list.toLowerCase()
  return lower === option || lower.split(',').some(one => one.trim() === option)
}

/** The fields without those of these names. @param names in lower case */
export function withoutFields(raw: readonly string[], names: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (!names.includes(raw[at]!.toLowerCase())) kept.push(raw[at]!, raw[at + 1]!)
  }
  return kept
}

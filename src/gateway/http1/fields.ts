/** Header fields as far as an intermediary has to know them. */

/**
 * Fields of one connection only, which are never passed on as they came (RFC 9110, 7.6.1). `expect` is answered by us, and
 * framing is made anew.
 */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'transfer-encoding', 'upgrade', 'http2-settings'],
])

/** Fields that say something about framing, routing or access, which is settled before the trailers come. */
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

/** Says which worker answered, and which one is wanted. */
export const WORKER_ID = 'X-Runpod-Worker-Id'

/** Whether a field, by its name in lower case, is of one connection only. */
export function isHopByHop(lower: string): boolean {
  return HOP_BY_HOP.has(lower)
}

/** Names and values in turn of the trailers that may be passed on. */
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
 * The options of a `Connection` field that name other fields, which are then of one connection only, too.
 * @returns names in lower case; null when there is none, as nearly always
 */
export function namedByConnection(connection: string): string[] | null {
  const lower = connection.toLowerCase()
  if (lower === 'keep-alive' || lower === 'close' || lower === 'upgrade') return null
  const names = lower.split(',').map(option => option.trim())
  const others = names.filter(name => name !== '' && name !== 'keep-alive' && name !== 'close' && name !== 'upgrade')
  return others.length > 0 ? others : null
}

/** Whether a list such as that of `Connection` has this option. */
export function hasOption(list: string, option: string): boolean {
  const lower = list.toLowerCase()
  return lower === option || lower.split(',').some(one => one.trim() === option)
}

/** The fields without those that `Connection` names. */
export function withoutFields(raw: readonly string[], names: readonly string[]): string[] {
  const kept: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (!names.includes(raw[at]!.toLowerCase())) kept.push(raw[at]!, raw[at + 1]!)
  }
  return kept
}

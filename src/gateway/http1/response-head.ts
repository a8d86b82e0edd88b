import { isContentLength, REQUEST_ID } from '../../core/request-head.ts'
import { hasOption, isHopByHop, namedByConnection, WORKER_ID, withoutFields } from './fields.ts'

/** Framing of the body of a response: a number of bytes, chunks, or everything until the connection ends. */
export type Framing = number | 'chunked' | 'until-close'

/** The head of a response. */
export interface ResponseHead {
  readonly status: number
  readonly reason: string
  /** The fields to pass on, as names and values in turn, without `Transfer-Encoding` and hop-by-hop fields. */
  readonly headers: string[]
  readonly framing: Framing
  /** True if the connection may be used again after this response. */
  readonly keepAlive: boolean
  /** Time for which the worker keeps an idle connection, by its `Keep-Alive` field; null without that field. */
  readonly idleSeconds: number | null
  /** The value of `Upgrade`; null without that field. */
  readonly upgrade: string | null
  /** The id of the request as this response has it; null without one. */
  readonly requestId: string | null
}

/** Content types of event streams, which send when something happens. */
const STREAM = /^(text\/event-stream|application\/(x-ndjson|jsonl|json-seq)|multipart\/x-mixed-replace)\s*(;|$)/i

/** True if the body may pause for long although the worker works. @param head null before the response */
export function mayBeSilent(head: Pick<ResponseHead, 'headers'> | null): boolean {
  const { headers = [] } = head ?? {}
  return headers.some(
    (name, at) => at % 2 === 0 && name.toLowerCase() === 'content-type' && STREAM.test(headers[at + 1]!),
  )
}

/** A response that is not HTTP/1.1, or could be read in two ways. */
export class MalformedResponse extends Error {
  constructor(problem: string) {
    super(problem)
    this.name = 'MalformedResponse'
  }
}

/** A whole head, so that no part goes unchecked: no bare CR or LF, no folded lines, only tokens as names. */
const HEAD =
  /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*:[\t\x20-\x7e\x80-\xff]*)*$/

/** Field lines alone, the form of trailers. */
const FIELDS =
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*:[\t\x20-\x7e\x80-\xff]*(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+[ \t]*:[\t\x20-\x7e\x80-\xff]*)*$/

const SPACE = 0x20
const WORKER_ID_LOWER = WORKER_ID.toLowerCase()

/** The fields about framing and the connection. */
interface SpecialFields {
  contentLength: string | null
  transferEncoding: string | null
  connection: string | null
  keepAlive: string | null
  upgrade: string | null
  trailer: string | null
  requestId: string | null
}

/**
 * Parses a head.
 * @param text the head in latin1, without the empty line at its end
 * @param toHead true if it answers a HEAD request and so has no body
 * @throws MalformedResponse
 */
export function parseResponseHead(text: string, toHead: boolean): ResponseHead {
  if (!HEAD.test(text)) throw new MalformedResponse(headProblem(text))
  const lineEnd = text.indexOf('\r\n')
  const status = Number(text.slice(9, 12))
  const reason = lineEnd < 0 ? text.slice(13) : text.slice(13, lineEnd)
  const special: SpecialFields = {
    contentLength: null,
    transferEncoding: null,
    connection: null,
    keepAlive: null,
    upgrade: null,
    trailer: null,
    requestId: null,
  }
  const bodiless = toHead || status < 200 || status === 204 || status === 304
  const headers = lineEnd < 0 ? [] : readFields(text, lineEnd + 2, special)
  const framing = responseFraming(special, text.charCodeAt(7) === 0x30, bodiless)
  const { connection, keepAlive, upgrade, contentLength } = special
  const names = connection === null ? null : namedByConnection(connection)
  const passedHeaders = names === null ? headers : withoutFields(headers, names)
  // A 204 must not have a length (RFC 9110, 8.6).
  if (contentLength !== null && status !== 204 && status >= 200) passedHeaders.push('Content-Length', contentLength)
  if (special.trailer !== null && framing === 'chunked') passedHeaders.push('Trailer', special.trailer)
  // A 426 must name the protocol (RFC 9110, 15.5.22).
  if (status === 426 && upgrade !== null) passedHeaders.push('Upgrade', upgrade, 'Connection', 'Upgrade, close')
  return {
    status,
    reason,
    framing,
    upgrade,
    requestId: special.requestId,
    headers: passedHeaders,
    keepAlive:
      framing !== 'until-close' &&
      text.charCodeAt(7) === 0x31 &&
      (connection === null || !hasOption(connection, 'close')),
    idleSeconds: keepAlive === null ? null : readIdleSeconds(keepAlive),
  }
}

/**
 * Parses trailers.
 * @param text in latin1, without the empty line at its end
 * @returns names and values in turn
 * @throws MalformedResponse
 */
export function parseTrailers(text: string): string[] {
  if (!FIELDS.test(text)) throw new MalformedResponse('its trailers are not fields')
  const fields: string[] = []
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    fields.push(line.slice(0, colon).trimEnd(), line.slice(colon + 1).trim())
  }
  return fields
}

/** The fields that are passed on as they came, as names and values in turn. The others go into `special`. */
function readFields(text: string, start: number, special: SpecialFields): string[] {
  const headers: string[] = []
  for (let at = start; ; ) {
    const end = text.indexOf('\r\n', at)
    const colon = text.indexOf(':', at)
    const name = text.slice(at, colon).trimEnd()
    // Nearly all values follow one space, and have none behind them.
    const start = text.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1
    const value = text.slice(start, end < 0 ? text.length : end).trim()
    const lower = name.toLowerCase()
    if (!readSpecial(lower, value, special)) headers.push(name, value)
    if (end < 0) return headers
    at = end + 2
  }
}

/** True if a field is not passed on unchanged. */
function readSpecial(lower: string, value: string, special: SpecialFields): boolean {
  switch (lower) {
    case 'content-length':
      if (special.contentLength !== null) throw new MalformedResponse('it has more than one Content-Length')
      special.contentLength = value
      return true
    case 'transfer-encoding':
      if (special.transferEncoding !== null) throw new MalformedResponse('it has more than one Transfer-Encoding')
      special.transferEncoding = value
      return true
    case 'connection':
      special.connection = special.connection === null ? value : `${special.connection}, ${value}`
      return true
    case 'keep-alive':
      special.keepAlive = value
      return true
    case 'upgrade':
      special.upgrade = value
      return true
    case 'trailer':
      special.trailer = special.trailer === null ? value : `${special.trailer}, ${value}`
      return true
    case REQUEST_ID:
      special.requestId = value
      return true
    default:
      return isHopByHop(lower) || lower === WORKER_ID_LOWER
  }
}

/** RFC 9112, 6.3, without its leniency. */
function responseFraming(
  { contentLength, transferEncoding }: SpecialFields,
  isOld: boolean,
  bodiless: boolean,
): Framing {
  if (transferEncoding !== null) {
    if (contentLength !== null) throw new MalformedResponse('it has a Content-Length and a Transfer-Encoding')
    if (isOld) throw new MalformedResponse('it is HTTP/1.0 and has a Transfer-Encoding')
    if (transferEncoding.toLowerCase() !== 'chunked') {
      throw new MalformedResponse(`its Transfer-Encoding is not chunked alone`)
    }
    return bodiless ? 0 : 'chunked'
  }
  if (contentLength === null) return bodiless ? 0 : 'until-close'
  if (!isContentLength(contentLength)) {
    throw new MalformedResponse('its Content-Length is not a number, or begins with 0')
  }
  return bodiless ? 0 : Number(contentLength)
}

function readIdleSeconds(keepAlive: string): number | null {
  const timeout = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(keepAlive)?.[1]
  return timeout === undefined ? null : Number(timeout)
}

/** Reason why a head does not match, as a phrase for the operator of the worker. */
function headProblem(text: string): string {
  if (!/^HTTP\/1\.[01] [1-9]\d\d/.test(text)) return 'it does not begin with a status line of HTTP/1.1'
  if (/\r\n[ \t]/.test(text)) return 'it has a folded header line'
  if (/\r(?!\n)|(?<!\r)\n/.test(text)) return 'it has a bare CR or LF in its head'
  return 'it has a line that is not a header'
}

import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { RequestTrace } from '../../core/observing/request-trace.ts'
import { isContentLength, REQUEST_ID } from '../../core/request-head.ts'
import type { ProxyRequest } from '../proxy/proxy-request.ts'
import type { Affinity } from '../queue/reservation.ts'
import { hasOption, isHopByHop, namedByConnection, REQUEST_ID_FIELD, WORKER_ID, withoutFields } from './fields.ts'

/** Framing of the body of a request, on both connections. */
export type BodyFraming = 'none' | 'length' | 'chunked'

/** The head of a request for the worker, and the fields that the gateway uses. */
export interface RequestHead {
  /** The whole head in latin1, with the empty line at its end. */
  readonly text: string
  readonly body: BodyFraming
  /** Length of the body; null if the request does not state it. */
  readonly bodyBytes: number | null
  readonly affinity: Affinity | null
  readonly expectsContinue: boolean
  /** True if it asks the worker to switch to another protocol. */
  readonly upgrades: boolean
  /** The value of `Max-Forwards`; with 0 the gateway answers itself. Null if it does not apply. */
  readonly maxForwards: number | null
}

/** Fields of the request line that the gateway uses. */
export interface RequestLine {
  readonly method: string
  /** `1.0` or `1.1`. */
  readonly version: string
  /** True if the client may switch the connection to another protocol. */
  readonly upgrade: boolean
}

/** The fields that decide how the request is handled. */
interface SpecialFields {
  length: string | null
  encoding: string | null
  connection: string | null
  upgrade: string | null
  te: string | null
  workerId: string | null
  expect: boolean
  hosts: number
  maxForwards: string | null
}

/** Fields that only the gateway sets; those of the client are dropped. */
const SET_HERE = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix', REQUEST_ID],
])
/** Fields that the gateway reads. */
const READ_HERE = new Set(['content-length', 'max-forwards', 'x-runpod-worker-id', 'x-real-ip'])
/** No control characters or spaces, which could be read as the end of the path. */
const PATH = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/
const HOST = /^[\x21-\x7e\x80-\xff]*$/

/**
 * The head for the worker, without hop-by-hop fields and with those of the gateway.
 * @throws AppError `invalid` for a head that the gateway and the worker could read in two ways, and for a malformed
 * `X-Runpod-Worker-Id`
 */
export function requestHead(line: RequestLine, call: ProxyRequest): RequestHead {
  if (!PATH.test(call.path)) throw new AppError('invalid', 'the path of the request has characters that no path has')
  if (!HOST.test(call.host)) throw new AppError('invalid', 'the Host of the request has characters that no host has')
  const special = noSpecialFields()
  const raw = call.trace === undefined ? call.rawHeaders : withoutFields(call.rawHeaders, traceFields(call.trace))
  let fields = passedFields(raw, special)
  const names = special.connection === null ? null : namedByConnection(special.connection)
  if (names !== null) fields = passedFields(withoutFields(raw, names), noSpecialFields())
  if (call.trace !== undefined) fields += `traceparent: ${call.trace.traceparent}\r\n`
  const body = requestFraming(special, line)
  const upgrade = line.upgrade ? special.upgrade : null
  const trailers = upgrade === null && special.te !== null && hasOption(special.te, 'trailers')
  const maxForwards = readMaxForwards(line.method, special.maxForwards)
  const text =
    `${line.method} ${call.path} HTTP/1.1\r\nHost: ${call.host}\r\n${fields}${REQUEST_ID_FIELD}: ${call.requestId}\r\n${forwardedFields(call)}` +
    (body === 'none'
      ? ''
      : body === 'length'
        ? `Content-Length: ${special.length}\r\n`
        : 'Transfer-Encoding: chunked\r\n') +
    (upgrade === null ? '' : `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`) +
    (trailers ? 'TE: trailers\r\nConnection: TE\r\n' : '') +
    (special.maxForwards === null
      ? ''
      : `Max-Forwards: ${maxForwards === null ? special.maxForwards : maxForwards - 1}\r\n`)
  return {
    text: `${text}\r\n`,
    body: body === 'length' && special.length === '0' ? 'none' : body,
    bodyBytes: special.length === null ? null : Number(special.length),
    maxForwards,
    affinity: special.workerId === null ? null : readAffinity(special.workerId),
    upgrades: upgrade !== null,
    expectsContinue: special.expect && line.version !== '1.0',
  }
}

/** A request whose body has another length than its fields say. @param bytes the length */
export function withLength(call: ProxyRequest, bytes: number): ProxyRequest {
  const rawHeaders = [...withoutFields(call.rawHeaders, ['content-length']), 'Content-Length', String(bytes)]
  return { ...call, rawHeaders }
}

/** The state of a trace goes with its context, which a client may have sent malformed. */
function traceFields({ clientSpanId }: RequestTrace): string[] {
  return clientSpanId === null ? ['traceparent', 'tracestate'] : ['traceparent']
}

function noSpecialFields(): SpecialFields {
  return {
    length: null,
    encoding: null,
    connection: null,
    upgrade: null,
    te: null,
    workerId: null,
    expect: false,
    hosts: 0,
    maxForwards: null,
  }
}

/** The lines of the fields that are passed on as they came. The others go into `special`. */
function passedFields(raw: readonly string[], special: SpecialFields): string {
  let lines = ''
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!
    const value = raw[at + 1]!
    if (!readSpecial(name.toLowerCase(), value, special)) lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** True if a field is not passed on unchanged. */
function readSpecial(lower: string, value: string, special: SpecialFields): boolean {
  switch (lower) {
    case 'host':
      special.hosts += 1
      if (special.hosts > 1) throw new AppError('invalid', 'the request has more than one Host')
      return true
    case 'content-length':
      if (special.length !== null) throw new AppError('invalid', 'the request has more than one Content-Length')
      special.length = value
      return true
    case 'transfer-encoding':
      if (special.encoding !== null) throw new AppError('invalid', 'the request has more than one Transfer-Encoding')
      special.encoding = value
      return true
    case 'connection':
      special.connection = special.connection === null ? value : `${special.connection}, ${value}`
      return true
    case 'upgrade':
      special.upgrade = special.upgrade === null ? value : `${special.upgrade}, ${value}`
      return true
    case 'te':
      special.te = special.te === null ? value : `${special.te}, ${value}`
      return true
    case 'expect':
      special.expect = value.toLowerCase() === '100-continue'
      return true
    case 'max-forwards':
      special.maxForwards = value
      return true
    case 'x-runpod-worker-id':
      if (special.workerId !== null) throw new AppError('invalid', `the request has more than one ${WORKER_ID}`)
      special.workerId = value
      return true
    default:
      // CGI and WSGI read `_` as `-`: a twin could pass for a field that the gateway sets or drops.
      return SET_HERE.has(lower) || isHopByHop(lower) || (lower.includes('_') && isTwin(lower.replaceAll('_', '-')))
  }
}

/** True if the gateway sets, drops or reads the field of this name. @param name in lower case, with `-` for `_` */
function isTwin(name: string): boolean {
  return SET_HERE.has(name) || isHopByHop(name) || READ_HERE.has(name)
}

/** RFC 9112, 6.3, without its leniency. The parser of the server refuses most of it before. */
function requestFraming({ length, encoding }: SpecialFields, { version, upgrade }: RequestLine): BodyFraming {
  if (encoding !== null) {
    if (length !== null) throw new AppError('invalid', 'the request has a Content-Length and a Transfer-Encoding')
    if (version === '1.0') throw new AppError('invalid', 'the request is HTTP/1.0 and has a Transfer-Encoding')
    if (encoding.toLowerCase() !== 'chunked') {
      throw new AppError('invalid', 'the Transfer-Encoding of the request is not chunked alone')
    }
  }
  if (length !== null && !isContentLength(length)) {
    throw new AppError('invalid', 'the Content-Length of the request is not a number, or begins with 0')
  }
  const framing = encoding !== null ? 'chunked' : length !== null ? 'length' : 'none'
  if (upgrade && framing !== 'none' && length !== '0') {
    throw new AppError('invalid', 'a request that asks for another protocol with Upgrade cannot have a body')
  }
  return framing
}

/** RFC 9110, 7.6.2. */
function readMaxForwards(method: string, value: string | null): number | null {
  if (value === null || (method !== 'TRACE' && method !== 'OPTIONS')) return null
  return /^\d{1,9}$/.test(value) ? Number(value) : null
}

type SenderFields = Pick<ProxyRequest, 'client' | 'host' | 'protocol' | 'prefix'>

/** The latest sender, and its fields: a client sends many requests, and a proxy may be the only client. */
let latest: SenderFields & { readonly fields: string } = {
  client: '',
  host: '',
  protocol: 'http',
  prefix: null,
  fields: senderFields({ client: '', host: '', protocol: 'http', prefix: null }),
}

function forwardedFields({ client, host, protocol, prefix }: ProxyRequest): string {
  const isSame = latest.client === client && latest.host === host && latest.prefix === prefix
  if (!isSame || latest.protocol !== protocol) {
    latest = { client, host, protocol, prefix, fields: senderFields({ client, host, protocol, prefix }) }
  }
  return latest.fields
}

function senderFields({ client, host, protocol, prefix }: SenderFields): string {
  const senders = client.includes(',')
    ? client
        .split(',')
        .map(address => `for=${node(address.trim())}`)
        .join(', ')
    : `for=${node(client)}`
  return (
    `X-Forwarded-For: ${client}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: ${protocol}\r\n` +
    (prefix === null ? '' : `X-Forwarded-Prefix: ${prefix}\r\n`) +
    `Forwarded: ${senders};host=${quoted(host)};proto=${protocol}\r\n` +
    // After the `Via` lines of earlier proxies (RFC 9110, 7.6.3).
    'Via: 1.1 runyard\r\n'
  )
}

/** An address in the form of the parameter `for` (RFC 7239, 6). */
function node(address: string): string {
  return address.includes(':') && !address.startsWith('[') ? `"[${address}]"` : quoted(address)
}

function quoted(text: string): string {
  if (/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text)) return text
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/**
 * Reads the header `X-Runpod-Worker-Id`: an id alone, or after `strict` or `strict-resume`.
 * @throws AppError `invalid`
 */
export function readAffinity(value: string): Affinity {
  const match = /^(?:(strict|strict-resume)[ \t]+)?([A-Za-z0-9_-]{1,128})$/.exec(value.trim())
  const id = match?.[2]
  if (id === undefined || (match?.[1] === undefined && (id === 'strict' || id === 'strict-resume'))) {
    const forms = '"<worker>", "strict <worker>" or "strict-resume <worker>"'
    throw new AppError('invalid', `the header ${WORKER_ID} must be ${forms}, where <worker> is the id of a worker`)
  }
  return { kind: (match?.[1] ?? 'soft') as Affinity['kind'], workerId: id as WorkerId }
}

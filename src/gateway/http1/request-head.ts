import { AppError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { ProxyRequest } from '../proxy/proxy-request.ts'
import type { Affinity } from '../queue/reservation.ts'
import { hasOption, isHopByHop, namedByConnection, WORKER_ID, withoutFields } from './fields.ts'

/** How the body of a request comes in and goes on. */
export type BodyFraming = 'none' | 'length' | 'chunked'

/** What a worker is to be sent before the body. */
export interface RequestHead {
  /** In latin1, with the empty line at its end. */
  readonly text: string
  readonly body: BodyFraming
  /** How long the body is; null where that is not told. */
  readonly bodyBytes: number | null
  readonly affinity: Affinity | null
  readonly expectsContinue: boolean
  /** Whether it asks the worker for another protocol. */
  readonly upgrades: boolean
  /** What `Max-Forwards` said: 0 is answered here. Null where it does not count. */
  readonly maxForwards: number | null
}

/** The request's line as far as the gateway needs it. */
export interface RequestLine {
  readonly method: string
  /** `1.0` or `1.1`. */
  readonly version: string
  /** Whether the connection is to speak another protocol. */
  readonly upgrade: boolean
}

/** Fields that are found on the way and decide about the request. */
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

/** Who asked, and under which name, is said by us alone; what a client claims about it is dropped. */
const SET_HERE = new Set([
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix'],
])
/** Fields that are read here. */
const READ_HERE = new Set(['content-length', 'max-forwards', 'x-runpod-worker-id', 'x-real-ip'])
/** No control characters and no spaces: a path that could be read as more than one. */
const PATH = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/
const HOST = /^[\x21-\x7e\x80-\xff]*$/

/**
 * The head that goes to the worker: hop-by-hop fields removed, ours set.
 * @throws AppError `invalid` for what could be read in two ways by us and the worker, and for a malformed wish
 */
export function requestHead(line: RequestLine, call: ProxyRequest): RequestHead {
  if (!PATH.test(call.path)) throw new AppError('invalid', 'the path of the request has characters that no path has')
  if (!HOST.test(call.host)) throw new AppError('invalid', 'the Host of the request has characters that no host has')
  const found = noSpecialFields()
  let fields = passedFields(call.rawHeaders, found)
  const names = found.connection === null ? null : namedByConnection(found.connection)
  if (names !== null) fields = passedFields(withoutFields(call.rawHeaders, names), noSpecialFields())
  const body = framingOf(found, line)
  const upgrade = line.upgrade ? found.upgrade : null
  const trailers = upgrade === null && found.te !== null && hasOption(found.te, 'trailers')
  const maxForwards = maxForwardsOf(line.method, found.maxForwards)
  const text =
    `${line.method} ${call.path} HTTP/1.1\r\nHost: ${call.host}\r\n${fields}${forwardedFields(call)}` +
    (body === 'none'
      ? ''
      : body === 'length'
        ? `Content-Length: ${found.length}\r\n`
        : 'Transfer-Encoding: chunked\r\n') +
    (upgrade === null ? '' : `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`) +
    (trailers ? 'TE: trailers\r\nConnection: TE\r\n' : '') +
    (found.maxForwards === null
      ? ''
      : `Max-Forwards: ${maxForwards === null ? found.maxForwards : maxForwards - 1}\r\n`)
  return {
    text: `${text}\r\n`,
    body: body === 'length' && found.length === '0' ? 'none' : body,
    bodyBytes: found.length === null ? null : Number(found.length),
    maxForwards,
    affinity: found.workerId === null ? null : readAffinity(found.workerId),
    upgrades: upgrade !== null,
    expectsContinue: found.expect && line.version !== '1.0',
  }
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

/** The lines of the fields that are passed on as they came. */
function passedFields(raw: readonly string[], found: SpecialFields): string {
  let lines = ''
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!
    const value = raw[at + 1]!
    if (!readSpecial(name.toLowerCase(), value, found)) lines += `${name}: ${value}\r\n`
  }
  return lines
}

function readSpecial(lower: string, value: string, found: SpecialFields): boolean {
  switch (lower) {
    case 'host':
      found.hosts += 1
      if (found.hosts > 1) throw new AppError('invalid', 'the request has more than one Host')
      return true
    case 'content-length':
      if (found.length !== null) throw new AppError('invalid', 'the request has more than one Content-Length')
      found.length = value
      return true
    case 'transfer-encoding':
      if (found.encoding !== null) throw new AppError('invalid', 'the request has more than one Transfer-Encoding')
      found.encoding = value
      return true
    case 'connection':
      found.connection = found.connection === null ? value : `${found.connection}, ${value}`
      return true
    case 'upgrade':
      found.upgrade = found.upgrade === null ? value : `${found.upgrade}, ${value}`
      return true
    case 'te':
      found.te = found.te === null ? value : `${found.te}, ${value}`
      return true
    case 'expect':
      found.expect = value.toLowerCase() === '100-continue'
      return true
    case 'max-forwards':
      found.maxForwards = value
      return true
    case 'x-runpod-worker-id':
      if (found.workerId !== null) throw new AppError('invalid', `the request has more than one ${WORKER_ID}`)
      found.workerId = value
      return true
    default:
      // Applications behind CGI and WSGI read `_` as `-`, so that a twin could pass for a field that we set or leave out.
      return SET_HERE.has(lower) || isHopByHop(lower) || (lower.includes('_') && isTwin(lower.replaceAll('_', '-')))
  }
}

/** Whether a name is, but for its underscores, one of a field that decides something here. */
function isTwin(name: string): boolean {
  return SET_HERE.has(name) || isHopByHop(name) || READ_HERE.has(name)
}

/** RFC 9112, 6.3, without its leniency; most of it was refused by the parser before. */
function framingOf({ length, encoding }: SpecialFields, { version, upgrade }: RequestLine): BodyFraming {
  if (encoding !== null) {
    if (length !== null) throw new AppError('invalid', 'the request has a Content-Length and a Transfer-Encoding')
    if (version === '1.0') throw new AppError('invalid', 'the request is HTTP/1.0 and has a Transfer-Encoding')
    if (encoding.toLowerCase() !== 'chunked') {
      throw new AppError('invalid', 'the Transfer-Encoding of the request is not chunked alone')
    }
  }
  if (length !== null && !/^(?:0|[1-9]\d{0,14})$/.test(length)) {
    throw new AppError('invalid', 'the Content-Length of the request is no number, or begins with 0')
  }
  const framing = encoding !== null ? 'chunked' : length !== null ? 'length' : 'none'
  if (upgrade && framing !== 'none' && length !== '0') {
    throw new AppError('invalid', 'a request that asks for another protocol with Upgrade cannot have a body')
  }
  return framing
}

/** RFC 9110, 7.6.2. */
function maxForwardsOf(method: string, value: string | null): number | null {
  if (value === null || (method !== 'TRACE' && method !== 'OPTIONS')) return null
  return /^\d{1,9}$/.test(value) ? Number(value) : null
}

function forwardedFields({ client, host, protocol, prefix }: ProxyRequest): string {
  const whom = client.includes(',')
    ? client
        .split(',')
        .map(address => `for=${node(address.trim())}`)
        .join(', ')
    : `for=${node(client)}`
  return (
    `X-Forwarded-For: ${client}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: ${protocol}\r\n` +
    (prefix === null ? '' : `X-Forwarded-Prefix: ${prefix}\r\n`) +
    `Forwarded: ${whom};host=${quoted(host)};proto=${protocol}\r\n` +
    // Behind those of the proxies before us, in lines of their own (RFC 9110, 7.6.3).
    'Via: 1.1 runyard\r\n'
  )
}

/** An address as `for` has it (RFC 7239, 6). */
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

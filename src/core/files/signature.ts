/**
 * AWS Signature Version 4 as the receiver of a request reads it: texts only, without keys and hashes. Packages for it
 * sign requests; none checks them (docs/adr/0099-files-over-s3.md).
 */
import { FileError } from './file-error.ts'

/** Longest time for which a presigned URL is valid, in seconds. */
const MAX_EXPIRES_S = 604_800
/** Most by which the time of a request may differ from that of the server. */
const MAX_SKEW_MS = 15 * 60_000
const ALGORITHM = 'AWS4-HMAC-SHA256'
/** Limit of the headers that a signature names. */
const MAX_SIGNED_HEADERS = 100

/** The head of a request as it was sent. */
export interface SignedHead {
  readonly method: string
  /** Path and query, as they were sent. */
  readonly target: string
  /** The value of a header, by its name in lower case; null without one. Several values are joined by commas. */
  readonly header: (name: string) => string | null
  /** The names of all headers, in lower case. */
  readonly headerNames: readonly string[]
}

/** A signature and the facts that it covers. */
export interface Signature {
  readonly accessKeyId: string
  /** Day, region and service for which its key is made: `20260131`, `us-east-1`, `s3`. */
  readonly scope: readonly [day: string, region: string, service: string]
  /** Instant of the signature, as `20260131T235959Z`. */
  readonly timestamp: string
  readonly atMs: number
  /** Time for which a presigned URL is valid; null for a signature in the headers. */
  readonly expiresMs: number | null
  readonly signedHeaders: readonly string[]
  readonly signature: string
  /** The hash of the body as the request names it: 64 hexadecimal digits, `UNSIGNED-PAYLOAD` or `STREAMING-…`. */
  readonly payload: string
}

/** Path and query of a request target. */
export interface RequestTarget {
  /** Decoded; a valid percent-encoding of UTF-8. */
  readonly path: string
  /** Decoded names and values, in the order of the request. */
  readonly query: readonly (readonly [name: string, value: string])[]
}

/** @throws FileError `InvalidArgument` for an encoding that is not one of UTF-8 */
export function readTarget(target: string): RequestTarget {
  const mark = target.indexOf('?')
  const path = decode(mark === -1 ? target : target.slice(0, mark))
  const texts = mark === -1 ? [] : target.slice(mark + 1).split('&')
  const query = texts
    .filter(text => text !== '')
    .map(text => {
      const equals = text.indexOf('=')
      return equals === -1
        ? ([decode(text), ''] as const)
        : ([decode(text.slice(0, equals)), decode(text.slice(equals + 1))] as const)
    })
  return { path, query }
}

/**
 * Reads the signature of a request from its query or its Authorization header.
 * @throws FileError `AccessDenied` without one, and for headers that it should cover; else what is wrong with it
 */
export function readSignature(head: SignedHead, { query }: RequestTarget): Signature {
  const values = new Map(query)
  const signature = values.has('X-Amz-Signature') ? readQuery(values) : readHeader(head, values)
  const signed = new Set(signature.signedHeaders)
  const isOpen = (name: string) => (name.startsWith('x-amz-') || name === 'content-md5') && !signed.has(name)
  const open = signed.has('host') ? head.headerNames.find(isOpen) : 'host'
  if (open !== undefined) throw new FileError('AccessDenied', `the signature does not cover the header ${open}`)
  return signature
}

function readQuery(values: ReadonlyMap<string, string>): Signature {
  const code = 'AuthorizationQueryParametersError'
  const value = (name: string) => {
    const text = values.get(name)
    if (text === undefined) throw new FileError(code, `the query has no ${name}`)
    return text
  }
  if (value('X-Amz-Algorithm') !== ALGORITHM) throw new FileError(code, `X-Amz-Algorithm must be ${ALGORITHM}`)
  const expires = value('X-Amz-Expires')
  if (!/^\d{1,6}$/.test(expires) || Number(expires) < 1 || Number(expires) > MAX_EXPIRES_S) {
    throw new FileError(code, `X-Amz-Expires must be 1 to ${MAX_EXPIRES_S} seconds`)
  }
  const about = readCredential(value('X-Amz-Credential'), value('X-Amz-Date'), code)
  const names = readNames(value('X-Amz-SignedHeaders'), code)
  const payload = values.get('X-Amz-Content-Sha256') ?? 'UNSIGNED-PAYLOAD'
  const signature = readHex(value('X-Amz-Signature'), code)
  return { ...about, expiresMs: Number(expires) * 1_000, signedHeaders: names, signature, payload }
}

function readHeader(head: SignedHead, values: ReadonlyMap<string, string>): Signature {
  const text = head.header('authorization')
  if (text === null) {
    const isOld = values.has('AWSAccessKeyId')
    throw new FileError(
      isOld ? 'InvalidRequest' : 'AccessDenied',
      isOld ? OLD_SIGNATURE : 'the request has no signature; presign it, or send it with a key for S3',
    )
  }
  if (text.startsWith('AWS ')) throw new FileError('InvalidRequest', OLD_SIGNATURE)
  const code = 'AuthorizationHeaderMalformed'
  if (!text.startsWith(`${ALGORITHM} `)) throw new FileError(code)
  const fields = new Map(
    text
      .slice(ALGORITHM.length + 1)
      .split(',')
      .map(field => {
        const equals = field.indexOf('=')
        return [field.slice(0, Math.max(0, equals)).trim(), field.slice(equals + 1).trim()] as const
      }),
  )
  const field = (name: string) => {
    const value = fields.get(name)
    if (value === undefined) throw new FileError(code, `the Authorization header has no ${name}`)
    return value
  }
  const date = head.header('x-amz-date')
  if (date === null) throw new FileError('AccessDenied', 'the request has no header x-amz-date')
  const payload = head.header('x-amz-content-sha256')
  if (payload === null) throw new FileError('InvalidRequest', 'the request has no header x-amz-content-sha256')
  return {
    ...readCredential(field('Credential'), date, code),
    expiresMs: null,
    signedHeaders: readNames(field('SignedHeaders'), code),
    signature: readHex(field('Signature'), code),
    payload,
  }
}

const OLD_SIGNATURE = "this is AWS Signature Version 2; use Version 4, in boto3 with Config(signature_version='s3v4')"

type SignatureFault = 'AuthorizationHeaderMalformed' | 'AuthorizationQueryParametersError'

/** Ids of API keys, and all that clients may be set up with by mistake; the store is not asked for others. */
const ACCESS_KEY_ID = /^[\w/+=.-]{1,128}$/

function readCredential(text: string, timestamp: string, code: SignatureFault) {
  const parts = text.split('/')
  const [day = '', region = '', service = '', end] = parts.slice(-4)
  const accessKeyId = parts.slice(0, -4).join('/')
  if (parts.length < 5 || !ACCESS_KEY_ID.test(accessKeyId)) {
    throw new FileError(code, 'the credential must be <access key id>/<day>/<region>/s3/aws4_request')
  }
  if (service !== 's3' || end !== 'aws4_request') {
    throw new FileError(code, 'the credential must end with /s3/aws4_request')
  }
  const atMs = /^\d{8}T\d{6}Z$/.test(timestamp)
    ? Date.parse(timestamp.replace(TIMESTAMP, '$1-$2-$3T$4:$5:$6Z'))
    : Number.NaN
  if (Number.isNaN(atMs)) throw new FileError(code, 'X-Amz-Date must be a time such as 20260131T235959Z')
  if (!timestamp.startsWith(`${day}T`)) throw new FileError(code, 'the day of the credential is not that of X-Amz-Date')
  return { accessKeyId, scope: [day, region, service] as const, timestamp, atMs }
}

const TIMESTAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/

/** Names of headers in lower case (RFC 9110, 5.6.2), with `;` between them. */
const HEADER_NAMES = /^[-!#$%&'*+.^_`|~0-9a-z;]+$/

function readNames(text: string, code: SignatureFault): string[] {
  const names = text.split(';')
  const isSorted = names.every((name, at) => name !== '' && (at === 0 || names[at - 1]! < name))
  if (names.length > MAX_SIGNED_HEADERS || !isSorted || !HEADER_NAMES.test(text)) {
    throw new FileError(
      code,
      'SignedHeaders must be names in lower case, each once, in their order, with ; between them',
    )
  }
  return names
}

function readHex(text: string, code: SignatureFault): string {
  if (!/^[0-9a-f]{64}$/.test(text)) throw new FileError(code, 'the signature must have 64 hexadecimal digits')
  return text
}

/** Problem of the time of a signature; null if it counts now. */
export function signatureTimeProblem({ atMs, expiresMs }: Signature, nowMs: number): FileError | null {
  if (expiresMs === null) return Math.abs(nowMs - atMs) > MAX_SKEW_MS ? new FileError('RequestTimeTooSkewed') : null
  if (atMs - nowMs > MAX_SKEW_MS) return new FileError('AccessDenied', 'the URL is not valid yet')
  return nowMs > atMs + expiresMs ? new FileError('AccessDenied', 'the URL has expired') : null
}

/** The request in the form of which the hash is signed. */
export function canonicalRequest(head: SignedHead, { path, query }: RequestTarget, signature: Signature): string {
  const { signedHeaders, payload } = signature
  const pairs = query
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [uriEncode(name), uriEncode(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? order(x, y) : order(a, b)))
  const headers = signedHeaders.map(name => `${name}:${(head.header(name) ?? '').trim().replace(/ +/g, ' ')}\n`)
  return [
    head.method,
    path.split('/').map(uriEncode).join('/'),
    pairs.map(([name, value]) => `${name}=${value}`).join('&'),
    headers.join(''),
    signedHeaders.join(';'),
    payload,
  ].join('\n')
}

/** The text that is signed. @param hash SHA-256 of the canonical request, hexadecimal */
export function textToSign({ timestamp, scope }: Signature, hash: string): string {
  return [ALGORITHM, timestamp, scopeText(scope), hash].join('\n')
}

/**
 * The text that the signature of a chunk signs.
 * @param hashes of nothing and of the chunk, or of all trailers alone
 */
export function chunkTextToSign(
  kind: 'PAYLOAD' | 'TRAILER',
  { timestamp, scope }: Signature,
  previous: string,
  hashes: readonly string[],
): string {
  return [`${ALGORITHM}-${kind}`, timestamp, scopeText(scope), previous, ...hashes].join('\n')
}

function scopeText(scope: Signature['scope']): string {
  return [...scope, 'aws4_request'].join('/')
}

/** Percent-encoding in which all but letters, digits and `-._~` is encoded. */
export function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}

function order(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new FileError('InvalidArgument', 'the address is not UTF-8 in percent-encoding')
  }
}

/** A client of the S3 door of a rig, whose requests a package signs that is not ours. */
import assert from 'node:assert/strict'
import { AwsV4Signer } from 'aws4fetch'
import type { RequestEnv } from '../../src/api/surface.ts'
import type { Answer, Rig } from './rig.ts'

/** A pair of keys. */
export interface S3Pair {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** A new API key with a scope, by its id, with its pair. */
export async function newPair(rig: Rig, scope: object, key?: string): Promise<S3Pair> {
  const body = { name: 'files', scope: { type: 'restricted', management: 'none', jobs: 'none', ...scope } }
  const { status, json, text } = await rig.ask('POST', '/v2/account/keys', {
    body,
    ...(key === undefined ? {} : { key }),
  })
  assert.equal(status, 201, text)
  return json.s3
}

/** Options of a request to the S3 door. */
export interface S3Asking {
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  /** Seconds for which a presigned URL is valid; the headers are signed when left out. */
  readonly expires?: number
  /** Address of the client; unknown by default. */
  readonly address?: string
  /** The target that is sent in place of the one of the signed URL. */
  readonly target?: string
  /** Changes the request after it was signed. */
  readonly change?: (headers: Headers) => void
}

const BASE = 'http://localhost:8080'

/** Signs a request with AWS Signature Version 4. */
export async function signed(rig: Rig, pair: S3Pair, method: string, path: string, asking: S3Asking = {}) {
  const url = new URL(`${BASE}/s3${path}`)
  if (asking.expires !== undefined) url.searchParams.set('X-Amz-Expires', String(asking.expires))
  const datetime = new Date(rig.clock.now()).toISOString().replace(/[:-]|\.\d{3}/g, '')
  const signer = new AwsV4Signer({
    url: url.href,
    method,
    headers: asking.expires === undefined ? { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', ...asking.headers } : {},
    ...pair,
    service: 's3',
    region: 'us-east-1',
    datetime,
    signQuery: asking.expires !== undefined,
    allHeaders: true,
  })
  return signer.sign()
}

/** Sends a signed request to the S3 door. */
export async function askS3(
  rig: Rig,
  pair: S3Pair,
  method: string,
  path: string,
  asking: S3Asking = {},
): Promise<Answer> {
  const { url, headers } = await signed(rig, pair, method, path, asking)
  asking.change?.(headers)
  return sendS3(rig, method, url.href, headers, asking)
}

/** Sends a request to the S3 door as it is. */
export async function sendS3(
  rig: Rig,
  method: string,
  url: string,
  headers: Headers,
  { body, address, target }: S3Asking = {},
): Promise<Answer> {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const sentHeaders = new Headers(headers)
  sentHeaders.set('host', new URL(url).host)
  if (bytes !== undefined && !sentHeaders.has('content-length')) sentHeaders.set('content-length', String(bytes.length))
  const env: RequestEnv = {
    delivery: { onSettled: () => {} },
    requestId: 'request-1',
    ...(address === undefined ? {} : { address: () => address }),
    ...(target === undefined ? {} : { target: () => target }),
    ...(bytes === undefined ? {} : { body: () => ({ pieces: () => inPieces(bytes), drop: () => {} }) }),
  }
  const response = await rig.surface(new Request(url, { method, headers: sentHeaders }), env)
  return { status: response.status, headers: response.headers, text: await response.text(), json: null }
}

/** Bytes in pieces that cut everything. */
async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000)
}

/** The code of an error; null for no error. */
export function s3Code({ text }: Answer): string | null {
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? null
}

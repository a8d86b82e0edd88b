/** A bucket that checks signatures as S3 does (AWS Signature Version 4), with its own code. */
import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export const accessId = 'AKIDEXAMPLE'
export const accessSecret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'

export type Stored = { body: Buffer; contentType: string | undefined; region: string }

export class BucketServer {
  readonly stored = new Map<string, Stored>()
  /** Answers to the next requests, in order; the bucket does not read these requests. */
  readonly troubles: { status: number; code: string }[] = []
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const refuse = (status: number, code: string) =>
      response.writeHead(status).end(`<Error><Code>${code}</Code><Message>no</Message></Error>`)
    const trouble = this.troubles.shift()
    if (trouble) return refuse(trouble.status, trouble.code)
    const region = verify(request)
    if (region === undefined) return refuse(403, 'SignatureDoesNotMatch')
    const key = decodeURIComponent((request.url ?? '').split('?')[0] as string)
    if (request.method === 'PUT') {
      if (request.headers['content-length'] === undefined) return refuse(411, 'MissingContentLength')
      this.stored.set(key, { body: Buffer.concat(chunks), contentType: request.headers['content-type'], region })
      return response.end()
    }
    const object = this.stored.get(key)
    return object ? response.end(object.body) : refuse(404, 'NoSuchKey')
  })

  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/** The region that the request is signed for; undefined if its signature is wrong. */
function verify(request: IncomingMessage): string | undefined {
  const url = new URL(request.url ?? '', 'http://bucket')
  const given = url.searchParams.get('X-Amz-Signature')
  return given === null ? verifyHeader(request, url) : verifyQuery(request, url, given)
}

function verifyHeader(request: IncomingMessage, url: URL): string | undefined {
  const parts = /Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)/.exec(request.headers.authorization ?? '')
  const [, credential = '', signedHeaders = '', signature] = parts ?? []
  const date = String(request.headers['x-amz-date'])
  const payload = String(request.headers['x-amz-content-sha256'])
  return check({ request, url, credential, signedHeaders, date, payload, signature })
}

function verifyQuery(request: IncomingMessage, url: URL, signature: string): string | undefined {
  const query = url.searchParams
  const [credential, signedHeaders, date] = ['Credential', 'SignedHeaders', 'Date'].map(
    name => query.get(`X-Amz-${name}`) ?? '',
  )
  query.delete('X-Amz-Signature')
  return check({
    request,
    url,
    credential: credential!,
    signedHeaders: signedHeaders!,
    date: date!,
    payload: 'UNSIGNED-PAYLOAD',
    signature,
  })
}

type Claim = {
  request: IncomingMessage
  url: URL
  credential: string
  signedHeaders: string
  date: string
  payload: string
  signature: string | undefined
}

function check({ request, url, credential, signedHeaders, date, payload, signature }: Claim): string | undefined {
  const [id, day = '', region = '', service = '', end = ''] = credential.split('/')
  if (id !== accessId || service !== 's3' || end !== 'aws4_request') return undefined
  const names = signedHeaders.split(';')
  const query = Array.from(url.searchParams, ([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`).sort()
  const canonical = [
    ...[
      request.method,
      url.pathname
        .split('/')
        .map(step => percentEncode(decodeURIComponent(step)))
        .join('/'),
      query.join('&'),
    ],
    ...[...names.map(name => `${name}:${String(request.headers[name]).trim()}`), '', signedHeaders, payload],
  ].join('\n')
  const scope = `${day}/${region}/${service}/${end}`
  const text = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n')
  const key = [day, region, service, end].reduce<string | Buffer>(
    (last, part) => hmac(last, part),
    `AWS4${accessSecret}`,
  )
  return hmac(key, text).toString('hex') === signature && names.includes('host') ? region : undefined
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function percentEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, letter => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * HTTP/1.1 over a plain socket, so that a test sees each byte of a response, also those that a client library hides.
 */
import { connect, type Socket } from 'node:net'
import { patient } from '../../support/patience.ts'

/** A response as it was on the wire. */
export interface RawAnswer {
  /** The whole first line. */
  readonly statusLine: string
  /** Names in lower case, in their order; a repeated name appears twice. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/** Parts of a request beside its first line; Host, Connection and the length of the body are added. */
export interface RawRequest {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const PATIENCE_MS = 20_000

/**
 * Sends one request on a connection of its own and reads its answer to the end.
 * @param line method and path, such as `GET /healthz`
 * @throws when the answer is no HTTP/1.1, is cut off, or does not come in time
 */
export async function rawAsk(port: number, line: string, { headers = {}, body }: RawRequest = {}): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1')
  socket.setTimeout(patient(PATIENCE_MS), () => socket.destroy(new Error(`no answer to ${line} in time`)))
  const length = body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }
  const all = { Host: `127.0.0.1:${port}`, Connection: 'close', ...length, ...headers }
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${line} HTTP/1.1\r\n${head.join('')}\r\n${body ?? ''}`)
  return parseAnswer(await readToEnd(socket))
}

/**
 * Reads an answer from the bytes of a connection that has ended.
 * @throws when its head or body is not whole
 */
export function parseAnswer(bytes: Buffer): RawAnswer {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) throw new Error(`the answer has no head: ${JSON.stringify(bytes.toString('latin1').slice(0, 200))}`)
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const headers = lines.map(line => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
  })
  const of = (name: string) => headers.find(([key]) => key === name)?.[1]
  const rest = bytes.subarray(headEnd + 4)
  const chunked = of('transfer-encoding') === 'chunked'
  const body = chunked ? unchunked(rest) : exactly(rest, of('content-length'))
  return { statusLine, headers, body: body.toString('utf8') }
}

function exactly(rest: Buffer, length: string | undefined): Buffer {
  if (length === undefined || Number(length) === rest.length) return rest
  throw new Error(`the answer promised ${length} bytes and had ${rest.length}`)
}

function unchunked(rest: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.subarray(at, lineEnd).toString('latin1'), 16)
    if (lineEnd < 0 || Number.isNaN(size)) throw new Error('the chunks of the answer break off')
    at = lineEnd + 2
    if (size === 0) return Buffer.concat(pieces)
    if (at + size + 2 > rest.length) throw new Error('a chunk of the answer is cut off')
    pieces.push(rest.subarray(at, at + size))
    at += size + 2
  }
}

function readToEnd(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = []
    socket.on('data', (piece: Buffer) => pieces.push(piece))
    socket.on('error', reject)
    socket.on('close', failed => failed || resolve(Buffer.concat(pieces)))
  })
}

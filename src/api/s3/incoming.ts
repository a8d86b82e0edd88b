import { createHash, type Hash } from 'node:crypto'
import { AwsChunks } from '../../core/files/aws-chunks.ts'
import { FileError } from '../../core/files/file-error.ts'
import type { Clock } from '../../ports/clock.ts'
import { pacedPieces } from '../paced-body.ts'
import type { S3Call } from './call.ts'
import { Checksums } from './checksums.ts'
import { isSame } from './signing.ts'

/** The body of an upload. */
export interface Incoming {
  /** Bytes of the file, as the request announces them. */
  readonly bytes: number
  /** The bytes of the file, checked: throws a FileError at their end where they are not what the request says. */
  readonly pieces: () => AsyncGenerator<Uint8Array>
  /** The MD5 of the bytes; only once, when all were read, and where it was asked for. */
  readonly md5: () => string
}

/**
 * The body of a request, in one of the forms of S3.
 * @throws FileError for a form that is not known, or a body without a length
 */
export function readIncoming(call: S3Call, clock: Clock, needsMd5 = false): Incoming {
  const { head, signature } = call
  const { payload } = signature
  const checksums = new Checksums(head.header, head.headerNames, needsMd5)
  const isChunked = payload.startsWith('STREAMING-')
  if (/^[0-9a-f]{64}$/.test(payload)) checksums.expectSha256(payload)
  else if (payload !== 'UNSIGNED-PAYLOAD' && !STREAMING.has(payload)) {
    throw new FileError('NotImplemented', 'this x-amz-content-sha256 is not supported')
  }
  const codings = (head.header('content-encoding') ?? '').split(',').map(coding => coding.trim().toLowerCase())
  if (codings.some(coding => !['', 'identity', 'aws-chunked'].includes(coding))) {
    throw new FileError('NotImplemented', 'a file keeps no Content-Encoding; send it without one')
  }
  const length = head.header(isChunked ? 'x-amz-decoded-content-length' : 'content-length')
  const hasBody = head.header('transfer-encoding') !== null
  if (length === null && (isChunked || hasBody)) throw new FileError('MissingContentLength')
  if (!/^\d{1,15}$/.test(length ?? '0'))
    throw new FileError('InvalidArgument', 'the length of the body is not a number')
  return {
    bytes: Number(length ?? '0'),
    md5: () => checksums.md5(),
    async *pieces() {
      const sent = paced(call, clock)
      for await (const data of isChunked ? unchunked(sent, call, checksums) : sent) {
        checksums.add(data)
        yield data
      }
      checksums.check()
    },
  }
}

const STREAMING: ReadonlySet<string> = new Set([
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
])

/** @throws FileError `RequestTimeout`, `IncompleteBody`, `InvalidAccessKeyId` when the key ends */
function paced(call: S3Call, clock: Clock): AsyncGenerator<Uint8Array> {
  return pacedPieces(call, clock, call.ended, {
    slow: () => new FileError('RequestTimeout'),
    cut: cause => (cause instanceof FileError ? cause : new FileError('IncompleteBody', undefined, { cause })),
    over: () => new FileError('InvalidAccessKeyId'),
  })
}

/** The content of chunks, with their signatures checked. */
async function* unchunked(
  sent: AsyncIterable<Uint8Array>,
  { signature, key }: S3Call,
  checksums: Checksums,
): AsyncGenerator<Uint8Array> {
  const isSigned = signature.payload.startsWith('STREAMING-AWS4-')
  const hasTrailers = signature.payload.endsWith('-TRAILER')
  const chunks = new AwsChunks()
  let previous = signature.signature
  let claimed = ''
  let hash: Hash | null = null
  for await (const piece of sent) {
    for (const part of chunks.push(piece)) {
      if (part.kind === 'begin') {
        if (isSigned && part.signature === null) throw new FileError('SignatureDoesNotMatch', 'a chunk is not signed')
        claimed = part.signature ?? ''
        hash = isSigned ? createHash('sha256') : null
      } else if (part.kind === 'data') {
        hash?.update(part.data)
        yield part.data
      } else if (part.kind === 'end') {
        if (hash === null) continue
        previous = key.chunk(previous, hash.digest('hex'))
        if (!isSame(previous, claimed)) throw new FileError('SignatureDoesNotMatch', 'a chunk has a wrong signature')
      } else {
        if (isSigned && hasTrailers) checkTrailers(part.trailers, trailers => key.trailers(previous, trailers))
        checksums.take(part.trailers)
      }
    }
  }
  if (!chunks.isOver) throw new FileError('IncompleteBody')
}

const TRAILER_SIGNATURE = 'x-amz-trailer-signature'

/** @throws FileError `SignatureDoesNotMatch` */
function checkTrailers(trailers: ReadonlyMap<string, string>, sign: (text: string) => string): void {
  const signed = [...trailers].filter(([name]) => name !== TRAILER_SIGNATURE)
  const expected = sign(signed.map(([name, value]) => `${name}:${value}\n`).join(''))
  if (!isSame(expected, trailers.get(TRAILER_SIGNATURE) ?? '')) {
    throw new FileError('SignatureDoesNotMatch', 'the trailers have a wrong signature')
  }
}

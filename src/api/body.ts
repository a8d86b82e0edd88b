import { AppError } from '../core/errors.ts'
import type { LimitedBody } from '../services/worker-calls.ts'

/** How far a body is kept, and how far it is read at all. */
export interface BodyLimit {
  readonly keptBytes: number
  readonly readBytes: number
}

/**
 * Reads a body, counting while reading: what is over the limit is never held. `text` is null when it was.
 * @throws AppError `invalid` when the connection ended before the body did
 */
export async function readLimited(request: Request, limit: BodyLimit): Promise<LimitedBody> {
  const body = request.body as ReadableStream<Uint8Array> | null
  if (body === null) return { text: '', bytes: 0, ended: true }
  let pieces: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const piece of body.values({ preventCancel: true })) {
      bytes += piece.byteLength
      if (bytes <= limit.keptBytes) pieces.push(piece)
      else pieces = []
      if (bytes > limit.readBytes) break
    }
  } catch (error) {
    throw new AppError('invalid', 'the connection ended before the request body did', { cause: error })
  }
  if (bytes > limit.readBytes) {
    // A rest that nobody reads would end the connection under the next request, which may be another job's result.
    body.pipeTo(new WritableStream()).catch(() => {})
    return { text: null, bytes, ended: false }
  }
  return { text: bytes > limit.keptBytes ? null : decode(pieces, bytes), bytes, ended: true }
}

/**
 * The text of a body that must fit.
 * @throws AppError `too_large`; at once when the length is announced
 */
export async function readText(request: Request, maxBytes: number): Promise<string> {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > maxBytes) throw tooLarge(`${announced} bytes`, maxBytes)
  const body = await readLimited(request, { keptBytes: maxBytes, readBytes: maxBytes })
  if (body.text === null) throw tooLarge(`more than ${maxBytes} bytes`, maxBytes)
  return body.text
}

function tooLarge(size: string, maxBytes: number): AppError {
  return new AppError('too_large', `the request body is too large: ${size}, the limit is ${maxBytes} bytes`)
}

function decode(pieces: readonly Uint8Array[], bytes: number): string {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return new TextDecoder().decode(whole)
}

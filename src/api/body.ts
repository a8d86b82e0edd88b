import { AppError } from '../core/errors.ts'
import type { LimitedBody } from '../services/worker-calls.ts'

/** How far a body is kept, and how far it is read at all. */
export interface BodyLimit {
  readonly keptBytes: number
  readonly readBytes: number
}

/** What a body may hold in any case; a server full of these is still a small one. */
const FREE_BYTES = 65_536

/**
 * How many bytes of request bodies may be held at once, all requests together. Small bodies always find room, so those who
 * send little are served while others send too much.
 */
export class BodyRoom {
  readonly #maxBytes: number
  #heldBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Reads a body up to a limit and keeps its room until `use` is over.
   * @throws AppError `rate_limited` when there is no room, `invalid` when the connection ended before the body did
   */
  async limited<Value>(request: Request, limit: BodyLimit, use: (body: LimitedBody) => Promise<Value>): Promise<Value> {
    let own = 0
    const hold = (bytes: number) => {
      const more = Math.max(0, bytes - FREE_BYTES) - own
      if (more > 0 && this.#heldBytes + more > this.#maxBytes) return false
      own += more
      this.#heldBytes += more
      return true
    }
    try {
      return await use(await readLimited(request, limit, hold))
    } finally {
      hold(0)
    }
  }

  /**
   * Reads the text of a body that must fit, and keeps its room until `use` is over.
   * @throws AppError as {@link limited}, and `too_large`, at once when the length is announced
   */
  async text<Value>(request: Request, maxBytes: number, use: (text: string) => Promise<Value>): Promise<Value> {
    const announced = Number(request.headers.get('content-length') ?? 0)
    if (announced > maxBytes) throw tooLarge(`${announced} bytes`, maxBytes)
    return this.limited(request, { keptBytes: maxBytes, readBytes: maxBytes }, async ({ text }) => {
      if (text === null) throw tooLarge(`more than ${maxBytes} bytes`, maxBytes)
      return use(text)
    })
  }
}

/**
 * Reads a body, counting while reading: what is over the limit is never held. `text` is null when it was.
 * @param hold told how many bytes are held now; false when there is no room for them
 */
async function readLimited(request: Request, limit: BodyLimit, hold: (bytes: number) => boolean): Promise<LimitedBody> {
  const body = request.body as ReadableStream<Uint8Array> | null
  if (body === null) return { text: '', bytes: 0, ended: true }
  let pieces: Uint8Array[] = []
  let bytes = 0
  let full = false
  try {
    for await (const piece of body.values({ preventCancel: true })) {
      bytes += piece.byteLength
      if (bytes > limit.readBytes) break
      // What finds no room is counted all the same: whether it is too large is the better answer.
      if (!full && bytes <= limit.keptBytes && hold(bytes)) {
        pieces.push(piece)
        continue
      }
      full ||= bytes <= limit.keptBytes
      pieces = []
      hold(0)
    }
  } catch (error) {
    throw new AppError('invalid', 'the connection ended before the request body did', { cause: error })
  }
  if (bytes > limit.readBytes) {
    // A rest that nobody reads would end the connection under the next request, which may be another job's result.
    body.pipeTo(new WritableStream()).catch(() => {})
    return { text: null, bytes, ended: false }
  }
  if (bytes > limit.keptBytes) return { text: null, bytes, ended: true }
  if (full) throw new AppError('rate_limited', 'too many large requests are coming in', { retryAfterSeconds: 5 })
  return { text: decode(pieces, bytes), bytes, ended: true }
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

import { MalformedResponse, parseResponseHead, parseTrailers, type ResponseHead } from './response-head.ts'

/** Receives a response while it arrives. */
export interface ResponseReader {
  /** Called for each interim response (1xx), too; those have no body. */
  onHead(head: ResponseHead): void
  /** @param last true if this is known to be the last piece */
  onBody(piece: Buffer, last: boolean): void
}

/** Maximum size of the head, and of the trailers, in bytes. */
export const RESPONSE_HEAD_BYTES = 65_536
/** Maximum length of the line with the size of a chunk and its extensions, in bytes. */
const SIZE_LINE_BYTES = 1_024
const EMPTY = Buffer.alloc(0)
const CR = 13
const LF = 10
const STATUS_LINE = Buffer.from('HTTP/1.')

type State =
  | 'idle'
  | 'head'
  | 'length'
  | 'until-close'
  | 'size'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  | 'done'
  | 'switched'

/**
 * Parses the responses on one connection to a worker. Strict: a response that could be read in two ways is refused.
 */
export class ResponseParser {
  #reader: ResponseReader | null = null
  #toHead = false
  #state: State = 'idle'
  /** The start of a head or a line whose end has not arrived yet. */
  #held: Buffer = EMPTY
  /** Bytes of the body or the chunk that have not arrived yet. */
  #left = 0
  #head: ResponseHead | null = null
  /** Names and values in turn, once the response is complete. */
  trailers: readonly string[] = []

  /** True if any byte of the response has arrived. */
  get begun(): boolean {
    return this.#state !== 'head' || this.#held.length > 0
  }

  /** True if the response is complete. */
  get done(): boolean {
    return this.#state === 'done'
  }

  /** True if a 101 switched the connection to another protocol. */
  get switched(): boolean {
    return this.#state === 'switched'
  }

  /** The head of the final response. */
  get head(): ResponseHead | null {
    return this.#head
  }

  /** Waits for the next response. */
  begin(reader: ResponseReader, toHead: boolean): void {
    this.#reader = reader
    this.#toHead = toHead
    this.#state = 'head'
    this.#held = EMPTY
    this.#head = null
    this.trailers = []
  }

  /**
   * Parses the next bytes, which the caller may overwrite afterwards.
   * @returns bytes after the response or a 101; nearly always empty
   * @throws MalformedResponse
   */
  take(bytes: Buffer): Buffer {
    let rest = bytes
    while (rest.length > 0) {
      if (this.#state === 'done' || this.#state === 'switched' || this.#state === 'idle') return rest
      rest = this.#step(rest)
    }
    return rest
  }

  /** Ends the input: the worker sends no more. @returns true if the response is complete */
  end(): boolean {
    if (this.#state === 'until-close') this.#state = 'done'
    return this.#state === 'done'
  }

  #step(bytes: Buffer): Buffer {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes)
      case 'length':
      case 'chunk':
        return this.#readBody(bytes)
      case 'until-close':
        this.#reader?.onBody(bytes, false)
        return EMPTY
      case 'size':
        return this.#readSize(bytes)
      case 'chunk-end':
        return this.#readChunkEnd(bytes)
      default:
        return this.#readTrailers(bytes)
    }
  }

  #readHead(bytes: Buffer): Buffer {
    const all = this.#joined(bytes)
    const end = all.indexOf('\r\n\r\n', Math.max(0, this.#held.length - 3), 'latin1')
    if (end < 0) {
      refuseIfMalformed(all, STATUS_LINE)
      return this.#hold(all, RESPONSE_HEAD_BYTES, 'its head is larger than 64 KiB')
    }
    if (end > RESPONSE_HEAD_BYTES) throw new MalformedResponse('its head is larger than 64 KiB')
    const head = parseResponseHead(all.toString('latin1', 0, end), this.#toHead)
    this.#held = EMPTY
    const { status, framing } = head
    if (status === 101) this.#state = 'switched'
    else if (status >= 200) {
      this.#head = head
      this.#state = framing === 0 ? 'done' : framing === 'chunked' ? 'size' : 'length'
      if (framing === 'until-close') this.#state = 'until-close'
      this.#left = typeof framing === 'number' ? framing : 0
    }
    this.#reader?.onHead(head)
    return all.subarray(end + 4)
  }

  #readBody(bytes: Buffer): Buffer {
    const isWhole = bytes.length >= this.#left
    const piece = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    this.#left -= piece.length
    const last = isWhole && this.#state === 'length'
    if (isWhole) this.#state = last ? 'done' : 'chunk-end'
    this.#reader?.onBody(piece, last)
    return bytes.length > piece.length ? bytes.subarray(piece.length) : EMPTY
  }

  #readSize(bytes: Buffer): Buffer {
    const all = this.#joined(bytes)
    const end = all.indexOf(LF)
    if (end < 0) return this.#hold(all, SIZE_LINE_BYTES, 'the size of a chunk is too long')
    if (end > SIZE_LINE_BYTES) throw new MalformedResponse('the size of a chunk is too long')
    const line = all.toString('latin1', 0, end)
    const size = /^([0-9A-Fa-f]{1,13})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r$/.exec(line)?.[1]
    if (size === undefined) throw new MalformedResponse('the size of a chunk is not a number')
    this.#held = EMPTY
    this.#left = Number.parseInt(size, 16)
    this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    return all.subarray(end + 1)
  }

  #readChunkEnd(bytes: Buffer): Buffer {
    const all = this.#joined(bytes)
    if (all[0] !== CR || (all.length > 1 && all[1] !== LF)) {
      throw new MalformedResponse('a chunk is longer than its size')
    }
    if (all.length < 2) return this.#hold(all, 2, '')
    this.#held = EMPTY
    this.#state = 'size'
    return all.subarray(2)
  }

  #readTrailers(bytes: Buffer): Buffer {
    const all = this.#joined(bytes)
    if (all[0] === CR && all[1] === LF) return this.#finish(all.subarray(2))
    const end = all.indexOf('\r\n\r\n', Math.max(0, this.#held.length - 3), 'latin1')
    if (end < 0) {
      refuseIfMalformed(all, EMPTY)
      return this.#hold(all, RESPONSE_HEAD_BYTES, 'its trailers are larger than 64 KiB')
    }
    if (end > RESPONSE_HEAD_BYTES) throw new MalformedResponse('its trailers are larger than 64 KiB')
    this.trailers = parseTrailers(all.toString('latin1', 0, end))
    return this.#finish(all.subarray(end + 4))
  }

  #finish(rest: Buffer): Buffer {
    this.#held = EMPTY
    this.#state = 'done'
    return rest
  }

  #joined(bytes: Buffer): Buffer {
    return this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
  }

  #hold(all: Buffer, maxBytes: number, problem: string): Buffer {
    if (all.length > maxBytes + 4) throw new MalformedResponse(problem)
    this.#held = Buffer.from(all)
    return EMPTY
  }
}

/**
 * Refuses text that can never become a head or trailers without waiting for its end, which may never come.
 * @param first the required beginning
 */
function refuseIfMalformed(received: Buffer, first: Buffer): void {
  const comparedBytes = Math.min(received.length, first.length)
  if (received.compare(first, 0, comparedBytes, 0, comparedBytes) !== 0) {
    throw new MalformedResponse('it does not begin with a status line of HTTP/1.1')
  }
  for (let at = received.indexOf(LF); at >= 0; at = received.indexOf(LF, at + 1)) {
    if (received[at - 1] !== CR) throw new MalformedResponse('it has a bare LF in its head or its trailers')
  }
}

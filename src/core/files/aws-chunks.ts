/**
 * The body of a request with the content coding `aws-chunked`: chunks with their size, perhaps a signature, and
 * trailers behind the last one.
 */
import { FileError } from './file-error.ts'

/** The next part of a body. */
export type ChunkPart =
  /** A chunk begins. The one of 0 bytes is the last. */
  | { readonly kind: 'begin'; readonly bytes: number; readonly signature: string | null }
  | { readonly kind: 'data'; readonly data: Uint8Array }
  /** All bytes of the chunk were read. */
  | { readonly kind: 'end' }
  /** The trailers, with their names in lower case; the last part of all. */
  | { readonly kind: 'trailers'; readonly trailers: ReadonlyMap<string, string> }

/** Limits of a line, and of the number of trailers. */
const MAX_LINE_BYTES = 1_024
const MAX_TRAILERS = 20

type Place = 'head' | 'data' | 'data-end' | 'trailers' | 'over'

/** Reads such a body piece by piece. Holds at most one line. */
export class AwsChunks {
  #place: Place = 'head'
  #left = 0
  #line: number[] = []
  #isLast = false
  #trailerLines = 0
  readonly #trailers = new Map<string, string>()

  /** True once everything was read. */
  get isOver(): boolean {
    return this.#place === 'over'
  }

  /** @throws FileError `InvalidRequest` for a body of another form, `IncompleteBody` for bytes behind its end */
  *push(piece: Uint8Array): Generator<ChunkPart> {
    let at = 0
    while (at < piece.length) {
      if (this.#place === 'over') throw new FileError('IncompleteBody')
      if (this.#place === 'data') {
        const data = piece.subarray(at, at + this.#left)
        at += data.length
        this.#left -= data.length
        yield { kind: 'data', data }
        if (this.#left > 0) continue
        this.#place = 'data-end'
        yield { kind: 'end' }
        continue
      }
      const end = piece.indexOf(LF, at)
      const rest = piece.subarray(at, end === -1 ? piece.length : end)
      if (this.#line.length + rest.length > MAX_LINE_BYTES) throw malformed('a line is too long')
      this.#line.push(...rest)
      if (end === -1) return
      at = end + 1
      const line = this.#finishLine()
      yield* this.#read(line)
    }
  }

  #finishLine(): string {
    const line = String.fromCharCode(...this.#line)
    this.#line = []
    if (!line.endsWith('\r')) throw malformed('a line does not end with CR LF')
    return line.slice(0, -1)
  }

  *#read(line: string): Generator<ChunkPart> {
    if (this.#place === 'head') yield* this.#readHead(line)
    else if (this.#place === 'data-end') {
      if (line !== '') throw malformed('a chunk is longer than its size')
      this.#place = 'head'
    } else if (line === '') {
      this.#place = 'over'
      yield { kind: 'trailers', trailers: this.#trailers }
    } else {
      const colon = line.indexOf(':')
      this.#trailerLines += 1
      if (colon < 1 || this.#trailerLines > MAX_TRAILERS) throw malformed('a trailer is not a name and a value')
      this.#trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim())
    }
  }

  *#readHead(line: string): Generator<ChunkPart> {
    const match = /^([0-9a-fA-F]{1,10})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line)
    if (match === null) throw malformed('a chunk does not begin with its size')
    const bytes = Number.parseInt(match[1]!, 16)
    yield { kind: 'begin', bytes, signature: match[2] ?? null }
    this.#left = bytes
    this.#isLast = bytes === 0
    this.#place = this.#isLast ? 'trailers' : 'data'
    if (this.#isLast) yield { kind: 'end' }
  }
}

const LF = 0x0a

function malformed(what: string): FileError {
  return new FileError('InvalidRequest', `the body is not aws-chunked: ${what}`)
}

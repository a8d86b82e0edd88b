/** Finds members of a JSON body in its bytes, so that nothing else of the body has to be parsed. */

/** The place of the value of a member in the bytes of a body, without the white space around it. */
export interface MemberPlace {
  /** Bytes before it. */
  readonly start: number
  readonly end: number
}

/** Limit of bytes of a value that is read. */
export const MAX_MEMBER_BYTES = 1_024

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c]
const OPENING = new Set([0x7b, 0x5b])
const CLOSING = new Set([0x7d, 0x5d])
const OBJECT = 0x7b
/** Length of a character of a name that is written as an escape. */
const ESCAPE_BYTES = 6

/**
 * Reads a JSON object piece by piece, and finds some members of its outermost object. It costs the length of what it
 * reads, and holds one name at most.
 */
export class MemberScan<Name extends string> {
  /** The values that were found; of members with one name the last, which workers read. */
  readonly places = new Map<Name, MemberPlace>()
  /** The members that were found more than once. */
  readonly repeated = new Set<Name>()
  /** True once nothing more is to be read: the body has ended, or is no object. */
  over = false
  readonly #names: ReadonlySet<string>
  readonly #longest: number
  #depth = 0
  #offset = 0
  /** Inside of a string. */
  #inText = false
  /** Number of backslashes right before the next byte is odd. */
  #escaped = false
  /** True where a string of the outermost object is a key. */
  #atKey = false
  /** Bytes of the key that is read; null outside of one, and for one that is too long. */
  #key: number[] | null = null
  /** The wanted member whose value is read; null outside of one. */
  #name: Name | null = null
  /** Offset of the value that is read; null before it. */
  #start: number | null = null
  /** Offset after its last byte until now. */
  #end = 0

  /** @param names of the wanted members, in ASCII */
  constructor(names: readonly Name[]) {
    this.#names = new Set(names)
    this.#longest = ESCAPE_BYTES * Math.max(...names.map(({ length }) => length))
  }

  /** Reads the next piece. */
  push(piece: Uint8Array): void {
    let at = 0
    while (at < piece.length && !this.over) at = this.#inText ? this.#text(piece, at) : this.#structure(piece, at)
    this.#offset += piece.length
  }

  /** @returns the place of the next byte to read */
  #structure(piece: Uint8Array, at: number): number {
    const byte = piece[at]!
    if (byte === QUOTE) this.#beginText(this.#offset + at)
    else if (OPENING.has(byte)) this.#open(byte, this.#offset + at)
    else if (CLOSING.has(byte)) this.#close(this.#offset + at)
    else if (byte === COMMA) {
      if (this.#depth === 1) this.#endValue()
      this.#atKey = this.#depth === 1
    } else if (byte === COLON) this.#atKey = false
    else if (byte > 0x20) this.#literal(this.#offset + at)
    return at + 1
  }

  #open(byte: number, offset: number): void {
    if (this.#depth === 0 && byte !== OBJECT) this.over = true
    if (this.#depth === 1) this.#start ??= offset
    this.#depth += 1
    this.#atKey = this.#depth === 1
  }

  #close(offset: number): void {
    if (this.#depth === 1) this.#endValue()
    this.#depth -= 1
    if (this.#depth === 1) this.#end = offset + 1
    if (this.#depth <= 0) this.over = true
  }

  /** A byte of a number or of a word. */
  #literal(offset: number): void {
    if (this.#depth === 0) this.over = true
    if (this.#depth !== 1) return
    this.#start ??= offset
    this.#end = offset + 1
  }

  #beginText(offset: number): void {
    if (this.#depth === 0) {
      this.over = true
      return
    }
    this.#inText = true
    this.#escaped = false
    if (this.#depth !== 1) return
    if (this.#atKey) this.#key = []
    else this.#start ??= offset
  }

  #text(piece: Uint8Array, at: number): number {
    const quote = piece.indexOf(QUOTE, at)
    const end = quote < 0 ? piece.length : quote
    let backslashes = 0
    while (end - backslashes > at && piece[end - backslashes - 1] === BACKSLASH) backslashes += 1
    const isOdd = backslashes % 2 === 1
    const escaped = end - backslashes === at && this.#escaped ? !isOdd : isOdd
    this.#keep(piece, at, end)
    if (quote < 0) {
      this.#escaped = escaped
      return end
    }
    this.#escaped = false
    if (escaped) this.#keep(piece, quote, quote + 1)
    else this.#endText(this.#offset + quote + 1)
    return quote + 1
  }

  #keep(piece: Uint8Array, from: number, to: number): void {
    if (this.#key === null) return
    if (this.#key.length + to - from > this.#longest) this.#key = null
    else for (let at = from; at < to; at += 1) this.#key.push(piece[at]!)
  }

  #endText(end: number): void {
    this.#inText = false
    if (this.#depth !== 1) return
    if (this.#atKey) this.#name = this.#wanted()
    else this.#end = end
    this.#key = null
    if (this.#atKey) this.#start = null
  }

  #wanted(): Name | null {
    const written = this.#key === null ? '' : String.fromCharCode(...this.#key)
    const name = written.includes('\\') ? unescaped(written) : written
    return this.#names.has(name) ? (name as Name) : null
  }

  #endValue(): void {
    const name = this.#name
    if (name !== null && this.#start !== null) {
      if (this.places.has(name)) this.repeated.add(name)
      this.places.set(name, { start: this.#start, end: this.#end })
    }
    this.#name = null
    this.#start = null
  }
}

/** The characters of a string of JSON; as it is written where it is malformed. */
function unescaped(written: string): string {
  try {
    return String(JSON.parse(`"${written}"`))
  } catch {
    return written
  }
}

/** The value at a place: undefined if it has more than {@link MAX_MEMBER_BYTES}, or is not JSON. */
export function memberValue(pieces: readonly Uint8Array[], { start, end }: MemberPlace): unknown {
  if (end - start > MAX_MEMBER_BYTES) return undefined
  try {
    return JSON.parse(textAt(pieces, { start, end }, MAX_MEMBER_BYTES))
  } catch {
    return undefined
  }
}

/** The text at a place, or its beginning. @param maxBytes of it */
export function textAt(pieces: readonly Uint8Array[], { start, end }: MemberPlace, maxBytes: number): string {
  const until = Math.min(end, start + maxBytes)
  const parts: Uint8Array[] = []
  let offset = 0
  for (const piece of pieces) {
    const from = Math.max(start, offset)
    const to = Math.min(until, offset + piece.length)
    if (from < to) parts.push(piece.subarray(from - offset, to - offset))
    offset += piece.length
  }
  const decoder = new TextDecoder()
  return parts.map(part => decoder.decode(part, { stream: true })).join('') + decoder.decode()
}

/** The pieces of a body with other bytes in a place. The pieces around it are not copied. */
export function replaced(pieces: readonly Uint8Array[], { start, end }: MemberPlace, by: Uint8Array): Uint8Array[] {
  const before: Uint8Array[] = []
  const after: Uint8Array[] = []
  let offset = 0
  for (const piece of pieces) {
    const pieceEnd = offset + piece.length
    if (offset < start) before.push(piece.subarray(0, Math.min(piece.length, start - offset)))
    if (pieceEnd > end) after.push(piece.subarray(Math.max(0, end - offset)))
    offset = pieceEnd
  }
  return [...before, by, ...after]
}

/** Finds the member `model` of a JSON body in its bytes, so that nothing else of the body has to be parsed. */

/** The place of a text in the bytes of a body. */
export interface FoundText {
  readonly text: string
  /** Bytes before it, with its quotes where it has some. */
  readonly start: number
  readonly end: number
}

/** Limit of bytes of the name of a model. */
export const MAX_MODEL_BYTES = 1_024

const KEY = '"model"'
const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c]
const OPENING = new Set([0x7b, 0x5b])
const CLOSING = new Set([0x7d, 0x5d])
const OBJECT = 0x7b

/**
 * Reads a JSON object piece by piece until it has found the member `model` of its outermost object. It costs the
 * length of what it reads, and holds at most {@link MAX_MODEL_BYTES}.
 */
export class ModelScan {
  /** The member; null while it is not found. */
  found: FoundText | null = null
  /** True once nothing more is to be read: it is found, or the body has none that is a text. */
  over = false
  #depth = 0
  #offset = 0
  /** Inside of a string. */
  #inText = false
  /** Number of backslashes right before the next byte is odd. */
  #escaped = false
  /** True where a string of the outermost object is a key. */
  #atKey = false
  /** True if the last key of the outermost object was `model`, and its value has not begun. */
  #isNext = false
  /** Bytes of the string that is kept; null for one that is skipped. */
  #kept: number[] | null = null
  #keptAt = 0

  /** Reads the next piece. */
  push(piece: Uint8Array): void {
    let at = 0
    while (at < piece.length && !this.over) at = this.#inText ? this.#text(piece, at) : this.#structure(piece, at)
    this.#offset += piece.length
  }

  /** @returns the place of the next byte to read */
  #structure(piece: Uint8Array, at: number): number {
    const byte = piece[at]!
    if (byte === QUOTE) this.#begin(this.#offset + at)
    else if (OPENING.has(byte)) {
      if (this.#isNext || (this.#depth === 0 && byte !== OBJECT)) this.over = true
      this.#depth += 1
      this.#atKey = this.#depth === 1
    } else if (CLOSING.has(byte)) {
      this.#depth -= 1
      if (this.#depth <= 0) this.over = true
    } else if (byte === COMMA) {
      this.#atKey = this.#depth === 1
    } else if (byte === COLON) this.#atKey = false
    else if (byte > 0x20 && (this.#isNext || this.#depth === 0)) this.over = true
    return at + 1
  }

  #begin(offset: number): void {
    if (this.#depth === 0) {
      this.over = true
      return
    }
    this.#inText = true
    this.#escaped = false
    const isKept = this.#depth === 1 && (this.#atKey || this.#isNext)
    this.#kept = isKept ? [QUOTE] : null
    this.#keptAt = offset
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
    this.#keep(piece, quote, quote + 1)
    this.#escaped = false
    if (!escaped) this.#end(this.#offset + quote + 1)
    return quote + 1
  }

  #keep(piece: Uint8Array, from: number, to: number): void {
    const kept = this.#kept
    if (kept === null) return
    const most = this.#isNext ? MAX_MODEL_BYTES : KEY.length
    if (kept.length + to - from <= most) for (let at = from; at < to; at += 1) kept.push(piece[at]!)
    else if (this.#isNext) this.over = true
    else this.#kept = null
  }

  #end(end: number): void {
    this.#inText = false
    const kept = this.#kept
    if (kept === null || this.over) return
    const text = new TextDecoder().decode(Uint8Array.from(kept))
    if (!this.#isNext) {
      this.#isNext = text === KEY
      return
    }
    this.over = true
    const value = parsed(text)
    if (value !== null) this.found = { text: value, start: this.#keptAt, end }
  }
}

function parsed(json: string): string | null {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}

/** The pieces of a body with other bytes in a place. The pieces around it are not copied. */
export function replaced(
  pieces: readonly Uint8Array[],
  { start, end }: Pick<FoundText, 'start' | 'end'>,
  by: Uint8Array,
): Uint8Array[] {
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

/**
 * Finds the messages of the official worker SDK in output, wherever they stand in a line: a progress bar has
 * no line break at its end, and threads print beside each other. A message is a JSON object with exactly
 * these members, in this order:
 *
 *     {"requestId": "<job>" or null, "message": "...", "level": "..."}
 *
 * Each byte is looked at a bounded number of times: a message that breaks off can overlap the next one only
 * by the brace and the quote with which that begins.
 */

/** A message in output, as bytes from `start` to before `end`. */
export interface MessageSpan {
  readonly start: number
  readonly end: number
  /** True when the output ends within it, so that more bytes decide. `end` is then the end of the output. */
  readonly isOpen: boolean
}

const BEGIN = Buffer.from('{"requestId"')
const COLON = Buffer.from(':')
const NULL = Buffer.from('null')
const MESSAGE = Buffer.from('"message"')
const LEVEL = Buffer.from('"level"')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from('}')

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const BRACE = 0x7b

/** The output ends here. */
const OPEN = -1
/** This is no message. */
const NONE = -2

/**
 * The first message in `bytes` from a position on, or the beginning of one at their end; null without either.
 * @param maxBytes the size from which a message does not count
 */
export function findMessage(bytes: Buffer, position: number, maxBytes: number): MessageSpan | null {
  for (let start = bytes.indexOf(BEGIN, position); start !== -1; start = bytes.indexOf(BEGIN, start + 1)) {
    const limit = Math.min(bytes.length, start + maxBytes)
    const end = findEnd(bytes.subarray(0, limit), start)
    if (end >= 0) return { start, end, isOpen: false }
    if (end === OPEN && limit === bytes.length) return { start, end: limit, isOpen: true }
  }
  const start = startOfBegin(bytes, position)
  return start === bytes.length ? null : { start, end: bytes.length, isOpen: true }
}

/** Position of a part of {@link BEGIN} at the end of the bytes, which has one brace; their end without one. */
function startOfBegin(bytes: Buffer, start: number): number {
  const last = bytes.subarray(Math.max(start, bytes.length - BEGIN.length + 1))
  const brace = last.lastIndexOf(BRACE)
  if (brace === -1) return bytes.length
  const tail = last.subarray(brace)
  return tail.equals(BEGIN.subarray(0, tail.length)) ? bytes.length - tail.length : bytes.length
}

function findEnd(bytes: Buffer, start: number): number {
  let at = word(bytes, start, BEGIN)
  at = word(bytes, at, COLON)
  at = either(text(bytes, at), word(bytes, at, NULL))
  for (const name of [MESSAGE, LEVEL]) {
    at = word(bytes, at, COMMA)
    at = word(bytes, at, name)
    at = word(bytes, at, COLON)
    at = text(bytes, at)
  }
  return word(bytes, at, CLOSE)
}

function either(position: number, other: number): number {
  return position === NONE ? other : position
}

/** Position behind a word that may have a space before it. */
function word(bytes: Buffer, start: number, expected: Buffer): number {
  if (start < 0) return start
  const at = bytes[start] === SPACE ? start + 1 : start
  const part = bytes.subarray(at, at + expected.length)
  if (!part.equals(expected.subarray(0, part.length))) return NONE
  return part.length < expected.length ? OPEN : at + expected.length
}

/** Position behind a string that may have a space before it. */
function text(bytes: Buffer, start: number): number {
  if (start < 0) return start
  const first = bytes[start] === SPACE ? start + 1 : start
  if (first >= bytes.length) return OPEN
  if (bytes[first] !== QUOTE) return NONE
  for (let at = first + 1; at < bytes.length; at += 1) {
    const byte = bytes[at] as number
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at += 1
    // A carriage return or an escape sequence of other output in between.
    else if (byte < SPACE) return NONE
  }
  return OPEN
}

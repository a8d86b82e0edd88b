/** Turns the bytes that a worker writes into lines for people. */

import { withoutEnd } from '../../core/text-parts.ts'
import type { LogLine } from '../../ports/worker-logs.ts'
import { findMessage } from './sdk-messages.ts'

/** Limit of the kept part of a line, in bytes. */
export const MAX_LINE_BYTES = 64 * 1024

/** Limit of the kept lines of one message: an escaped newline takes two bytes. */
const MAX_MESSAGE_LINES = 1_000

const TAB = 0x09
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const ESCAPE = 0x1b
const SPACE = 0x20
const OPENING_BRACKET = 0x5b
const ESCAPED_NEWLINE = Buffer.from('\\n')

const EMPTY: Buffer = Buffer.alloc(0)

/**
 * One line of output, without its newline, as it is shown. Where `RUNPOD_ENDPOINT_ID` is set the official worker SDK
 * writes each message as a JSON object `{"requestId","message","level"}`: it is shown as `LEVEL message`, one entry
 * for each line of the message. Of a line that overwrites itself with carriage returns the last state is shown.
 */
function readLine(bytes: Buffer): LogLine[] {
  const text = cut(bytes).toString('utf8')
  const message = readSdkMessage(text)
  if (message !== null) {
    return splitMessage(message.text).map(line => ({ line, jobId: message.jobId }))
  }
  const shown = withoutEnd(text, '\r')
  return [{ line: shown.slice(shown.lastIndexOf('\r') + 1), jobId: null }]
}

function splitMessage(message: string): string[] {
  const lines = message.split('\n', MAX_MESSAGE_LINES + 1)
  if (lines.length <= MAX_MESSAGE_LINES) return lines
  return [...lines.slice(0, MAX_MESSAGE_LINES), `... (only ${MAX_MESSAGE_LINES} lines of a message are kept)`]
}

/**
 * The first bytes up to and with the newline that is the given number of line ends behind their start; all of them
 * when they have fewer. Escaped newlines count: each is a line of a message.
 */
export function firstLines(bytes: Buffer, lines: number): Buffer {
  let newline = bytes.indexOf(NEWLINE)
  let escaped = bytes.indexOf(ESCAPED_NEWLINE)
  for (let linesLeft = lines; newline !== -1 || escaped !== -1; ) {
    const isNewline = escaped === -1 || (newline !== -1 && newline < escaped)
    const end = isNewline ? newline + 1 : escaped + ESCAPED_NEWLINE.length
    linesLeft -= 1
    if (linesLeft === 0) return bytes.subarray(0, end)
    if (isNewline) newline = bytes.indexOf(NEWLINE, end)
    else escaped = bytes.indexOf(ESCAPED_NEWLINE, end)
  }
  return bytes
}

function readSdkMessage(text: string): { text: string; jobId: string | null } | null {
  if (!text.startsWith('{')) return null
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return null
  }
  const { requestId, message, level } = parsed as Record<string, unknown>
  if (typeof message !== 'string' || typeof level !== 'string') return null
  return { text: `${level} ${message}`, jobId: typeof requestId === 'string' && requestId !== '' ? requestId : null }
}

/** Never cuts in the middle of a character. */
function cut(bytes: Buffer): Buffer {
  if (bytes.length <= MAX_LINE_BYTES) return bytes
  let end = MAX_LINE_BYTES
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

/** A line with its end in the output. */
export interface EndedLine extends LogLine {
  /** The position behind it, unique: the lines of one message take its last bytes. */
  readonly position: number
  /** The position behind all output that was written at once with it. */
  readonly end: number
}

/** Visibility of bytes in order: spaces and escape sequences, such as those of colors, are blank. */
class Visibility {
  #isBlank = true
  #within: 'text' | 'escape' | 'sequence' = 'text'

  get isBlank(): boolean {
    return this.#isBlank
  }

  see(bytes: Buffer): void {
    // A carriage return overwrites the text before it.
    const returned = bytes.lastIndexOf(CARRIAGE_RETURN)
    if (returned !== -1) this.clear()
    for (let at = returned + 1; at < bytes.length && this.#isBlank; at += 1) this.#seeByte(bytes[at] as number)
  }

  clear(): void {
    this.#isBlank = true
    this.#within = 'text'
  }

  #seeByte(byte: number): void {
    if (this.#within === 'text' && byte === ESCAPE) this.#within = 'escape'
    else if (this.#within === 'escape' && byte === OPENING_BRACKET) this.#within = 'sequence'
    // Parameters, up to the letter that ends it.
    else if (this.#within === 'sequence') this.#within = byte >= 0x20 && byte <= 0x3f ? 'sequence' : 'text'
    else this.#isBlank = this.#within === 'text' && (byte === SPACE || byte === TAB)
  }
}

/**
 * Assembles lines from blocks in order. A message of the SDK ends the previous line and is a line of its own, with
 * the newline that follows it. Holds of an unfinished line only the shown part, and of an unfinished message only its
 * limit.
 */
export class LineAssembler {
  /** The beginning of the unfinished line. */
  #text: Buffer = EMPTY
  /** The bytes that follow it: the beginning of a message, perhaps. */
  #rest: Buffer = EMPTY
  /** The content before the unfinished line since the last newline. */
  #isBehind: 'nothing' | 'message' | 'message in text' = 'nothing'
  readonly #visibility = new Visibility()

  /** The lines that a block completes. @param start its position */
  push(block: Buffer, start: number): EndedLine[] {
    const lines: EndedLine[] = []
    let lineStart = 0
    for (let newline = block.indexOf(NEWLINE); newline !== -1; newline = block.indexOf(NEWLINE, lineStart)) {
      this.#add(block.subarray(lineStart, newline), start + newline, lines)
      this.#complete(start + newline + 1, lines)
      lineStart = newline + 1
    }
    this.#add(block.subarray(lineStart), start + block.length, lines)
    return lines
  }

  /** The unfinished line, if any, at the final end of the output. @param end the end of the output */
  finish(end: number): EndedLine[] {
    const lines: EndedLine[] = []
    if (this.#text.length + this.#rest.length > 0) this.#complete(end, lines)
    return lines
  }

  /** Drops the unfinished line. */
  reset(): void {
    this.#text = EMPTY
    this.#rest = EMPTY
    this.#isBehind = 'nothing'
    this.#visibility.clear()
  }

  /** Adds bytes without a newline to the unfinished line. @param end the position behind them */
  #add(bytes: Buffer, end: number, lines: EndedLine[]): void {
    const joined = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const begin = end - joined.length
    let searched = 0
    for (;;) {
      const message = findMessage(joined, searched, MAX_LINE_BYTES)
      this.#see(joined.subarray(searched, message?.start ?? joined.length))
      this.#rest = message?.isOpen === true ? Buffer.from(joined.subarray(message.start)) : EMPTY
      if (message === null || message.isOpen) return
      const isSeen = !this.#visibility.isBlank
      const isMidLine = isSeen || this.#isBehind === 'message in text'
      if (isSeen) lines.push(...placed(readLine(this.#text), begin + message.start))
      const read = readLine(joined.subarray(message.start, message.end))
      lines.push(...placed(isMidLine ? read.map(line => ({ ...line, isMidLine })) : read, begin + message.end))
      this.reset()
      this.#isBehind = isMidLine ? 'message in text' : 'message'
      searched = message.end
    }
  }

  /** Adds text outside of messages to the unfinished line. */
  #see(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#visibility.see(bytes)
    this.#text = capped(this.#text.length === 0 ? bytes : Buffer.concat([this.#text, bytes]))
  }

  #complete(end: number, lines: EndedLine[]): void {
    this.#see(this.#rest)
    if (this.#isBehind === 'nothing' || !this.#visibility.isBlank) lines.push(...placed(readLine(this.#text), end))
    this.reset()
  }
}

function placed(lines: readonly LogLine[], end: number): EndedLine[] {
  return lines.map((line, index) => ({ ...line, position: end - (lines.length - 1 - index), end }))
}

/** One byte more than the shown part, to recognize a line that is too long. */
function capped(bytes: Buffer): Buffer {
  return Buffer.from(bytes.subarray(0, MAX_LINE_BYTES + 1))
}

/** Turns the bytes that a worker writes into lines for people. */
import type { LogLine } from '../../ports/worker-logs.ts'

/** How much of a line is kept, in bytes. */
export const MAX_LINE_BYTES = 64 * 1024

const NEWLINE = 0x0a

/**
 * One line of output, without its newline, as it is shown. Where `RUNPOD_ENDPOINT_ID` is set the official worker SDK
 * writes each message as a JSON object `{"requestId","message","level"}`: it is shown as `LEVEL message`, one entry
 * for each line of the message. Of a line that overwrites itself with carriage returns the last state is shown.
 */
export function readLine(bytes: Buffer): LogLine[] {
  const text = cut(bytes).toString('utf8')
  const message = readSdkMessage(text)
  if (message !== null) {
    return message.text.split('\n').map(line => ({ line, jobId: message.jobId }))
  }
  const shown = text.replace(/\r+$/, '')
  return [{ line: shown.slice(shown.lastIndexOf('\r') + 1), jobId: null }]
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

/** Never in the middle of a character. */
function cut(bytes: Buffer): Buffer {
  if (bytes.length <= MAX_LINE_BYTES) return bytes
  let end = MAX_LINE_BYTES
  while (end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}

/** A line with where it ends in the output. */
export interface EndedLine extends LogLine {
  /** The position behind it, unique: the lines of one message take the last bytes of it. */
  readonly position: number
  /** The position behind all that was written at once with it. */
  readonly end: number
}

/** Puts lines together from blocks that come in order. Holds no more of an unfinished line than is shown of it. */
export class LineAssembler {
  #partial: Buffer = Buffer.alloc(0)

  /** The lines that a block completes. @param start its position */
  push(block: Buffer, start: number): EndedLine[] {
    const lines: EndedLine[] = []
    let from = 0
    for (let newline = block.indexOf(NEWLINE); newline !== -1; newline = block.indexOf(NEWLINE, from)) {
      lines.push(...this.#complete(block.subarray(from, newline), start + newline + 1))
      from = newline + 1
    }
    this.#partial = capped(Buffer.concat([this.#partial, block.subarray(from)]))
    return lines
  }

  /** The unfinished line, if there is one, which nothing will follow any more. @param end the end of the output */
  finish(end: number): EndedLine[] {
    return this.#partial.length === 0 ? [] : this.#complete(Buffer.alloc(0), end)
  }

  /** Drops the unfinished line. */
  reset(): void {
    this.#partial = Buffer.alloc(0)
  }

  #complete(rest: Buffer, end: number): EndedLine[] {
    const lines = readLine(Buffer.concat([this.#partial, rest]))
    this.#partial = Buffer.alloc(0)
    return lines.map((line, index) => ({ ...line, position: end - (lines.length - 1 - index), end }))
  }
}

/** One byte more than is shown, to recognize a line that is too long. */
function capped(bytes: Buffer): Buffer {
  return bytes.length > MAX_LINE_BYTES + 1 ? Buffer.from(bytes.subarray(0, MAX_LINE_BYTES + 1)) : bytes
}

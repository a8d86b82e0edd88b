/** Turns the bytes that a worker writes into lines for people. */
import type { LogLine } from '../ports/worker-logs.ts'

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

/** Puts lines together from blocks that come in order. Holds no more of an unfinished line than is shown of it. */
export class LineAssembler {
  #partial: Buffer = Buffer.alloc(0)

  /** The lines that the block completes. */
  push(block: Buffer): LogLine[] {
    const lines: LogLine[] = []
    let start = 0
    for (let end = block.indexOf(NEWLINE); end !== -1; end = block.indexOf(NEWLINE, start)) {
      lines.push(...readLine(Buffer.concat([this.#partial, block.subarray(start, end)])))
      this.#partial = Buffer.alloc(0)
      start = end + 1
    }
    this.#partial = capped(Buffer.concat([this.#partial, block.subarray(start)]))
    return lines
  }

  /** Drops the unfinished line. */
  reset(): void {
    this.#partial = Buffer.alloc(0)
  }
}

/**
 * Finds the last lines of an output whose blocks come from its end to its beginning.
 * A last line without a newline is one of them (`shown`), or not and only measured (`left`).
 */
export class LineCollector {
  readonly #wanted: number
  readonly #unfinished: 'shown' | 'left'
  readonly #lines: LogLine[][] = []
  #count = 0
  #partial: Buffer = Buffer.alloc(0)
  #pastLastNewline = false
  #unfinishedBytes = 0

  constructor(wanted: number, unfinished: 'shown' | 'left') {
    this.#wanted = Math.max(0, wanted)
    this.#unfinished = unfinished
  }

  /** Whether earlier blocks would change nothing. */
  get full(): boolean {
    return this.#count >= this.#wanted && (this.#unfinished === 'shown' || this.#pastLastNewline)
  }

  /** How many bytes stand after the last newline; known where those are `left`. */
  get unfinishedBytes(): number {
    return this.#unfinishedBytes
  }

  /** Takes the block that stands before those that were pushed so far. */
  push(block: Buffer): void {
    let end = block.length
    while (!this.full) {
      const newline = end === 0 ? -1 : block.lastIndexOf(NEWLINE, end - 1)
      this.#measure(end - newline - 1)
      if (newline === -1) break
      this.#complete(block.subarray(newline + 1, end))
      end = newline
    }
    if (!this.full) this.#partial = capped(Buffer.concat([block.subarray(0, end), this.#partial]))
  }

  /** The lines, oldest first. The beginning of the output ends the line that is still open. */
  finish(): LogLine[] {
    if (!this.full && (this.#pastLastNewline || this.#partial.length > 0)) this.#complete(Buffer.alloc(0))
    return this.#wanted === 0 ? [] : this.#lines.reverse().flat().slice(-this.#wanted)
  }

  #measure(bytes: number): void {
    if (this.#unfinished === 'left' && !this.#pastLastNewline) this.#unfinishedBytes += bytes
  }

  #complete(beginning: Buffer): void {
    const bytes = Buffer.concat([beginning, this.#partial])
    const isLast = !this.#pastLastNewline
    this.#partial = Buffer.alloc(0)
    this.#pastLastNewline = true
    if (isLast && (bytes.length === 0 || this.#unfinished === 'left')) return
    const lines = readLine(bytes)
    this.#lines.push(lines)
    this.#count += lines.length
  }
}

/** One byte more than is shown, so that a line that is too long can be told from one that just fits. */
function capped(bytes: Buffer): Buffer {
  return bytes.length > MAX_LINE_BYTES + 1 ? Buffer.from(bytes.subarray(0, MAX_LINE_BYTES + 1)) : bytes
}

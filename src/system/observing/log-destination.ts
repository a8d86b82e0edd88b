/** Destination of the lines of the log. It never waits and never fails, and reports missing lines. */
import { constants, fstatSync, openSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import type { Timer } from './log-rate-limit.ts'

/** Limit of bytes that wait while no write succeeds; later lines are dropped. */
const MAX_WAITING_BYTES = 1_048_576
/**
 * Dropping ends at this number of waiting bytes, so that one line reports all missing ones, and not
 * one line for each.
 */
const RESUME_BYTES = MAX_WAITING_BYTES / 2
/** Pause before the next attempt to write; it doubles after each failure. */
const PAUSE_MS = { first: 20, longest: 1_000 }
const NEWLINE = 10

/** Lines that are missing in a log. */
export interface MissingLines {
  readonly lines: number
  /** Reason of the failed writes, as the end of a sentence. */
  readonly problem: string
  /** Time since the first missing line, in ms. */
  readonly forMs: number
}

/** Options of {@link LogDestination}. */
export interface LogDestinationOptions {
  /** Writes as much as the system takes at once. @returns the number of bytes @throws the system's error */
  readonly write: (bytes: Uint8Array) => number
  readonly after: Timer
  /** Monotonic, in ms. */
  readonly now: () => number
  /** Called when lines are written again after some were dropped; its line replaces the missing ones. */
  readonly resumed: (missing: MissingLines) => void
}

/**
 * A file, pipe or terminal for lines. While it cannot be written, as on a full disk, or because its reader does not
 * read, the first lines wait, later ones are dropped and counted, and the write is tried again. No line is cut.
 */
export class LogDestination {
  readonly #options
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #pauseMs = PAUSE_MS.first
  #problem = ''
  /** The first dropped line since the last report of missing lines. */
  #missing: { readonly sinceMs: number; lines: number } | null = null
  #isResuming = false
  #dropped = 0

  constructor(options: LogDestinationOptions) {
    this.#options = options
  }

  /** Number of dropped lines since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** @param text whole lines */
  write(text: string): void {
    if (this.#missing !== null && this.#waitingBytes <= RESUME_BYTES) this.#resume(this.#missing)
    const bytes = Buffer.from(text)
    if (this.#waiting.length > 0) {
      this.#add(bytes)
      return
    }
    const unwritten = this.#write(bytes)
    if (unwritten.byteLength === 0) return
    this.#hold(unwritten)
    this.#options.after(this.#pauseMs, this.#retry)
  }

  /** Writes the waiting lines, as far as the system takes them: for the end of the process. */
  end(): void {
    const unwritten = this.#write(this.#take())
    if (unwritten.byteLength > 0) this.#hold(unwritten)
  }

  #add(bytes: Buffer): void {
    const hasRoom = this.#missing === null && this.#waitingBytes + bytes.byteLength <= MAX_WAITING_BYTES
    if (hasRoom || this.#isResuming) {
      this.#hold(bytes)
      return
    }
    this.#missing ??= { sinceMs: this.#options.now(), lines: 0 }
    const lines = linesIn(bytes)
    this.#missing.lines += lines
    this.#dropped += lines
  }

  #hold(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.byteLength
  }

  #take(): Buffer {
    const bytes = Buffer.concat(this.#waiting)
    this.#waiting.length = 0
    this.#waitingBytes = 0
    return bytes
  }

  readonly #retry = (): void => {
    const previousBytes = this.#waitingBytes
    const unwritten = this.#write(this.#take())
    if (unwritten.byteLength > 0) this.#hold(unwritten)
    const hasProgress = unwritten.byteLength < previousBytes
    this.#pauseMs = hasProgress ? PAUSE_MS.first : Math.min(2 * this.#pauseMs, PAUSE_MS.longest)
    if (this.#waiting.length > 0) this.#options.after(this.#pauseMs, this.#retry)
    else if (this.#missing !== null) this.#resume(this.#missing)
  }

  #resume({ lines, sinceMs }: { readonly lines: number; readonly sinceMs: number }): void {
    this.#missing = null
    this.#isResuming = true
    this.#options.resumed({ lines, problem: this.#problem, forMs: Math.round(this.#options.now() - sinceMs) })
    this.#isResuming = false
  }

  /** @returns the part that could not be written */
  #write(bytes: Buffer): Buffer {
    let unwritten = bytes
    try {
      while (unwritten.byteLength > 0) unwritten = unwritten.subarray(this.#options.write(unwritten))
    } catch (error) {
      this.#problem = describeProblem(error as NodeJS.ErrnoException)
    }
    return unwritten
  }
}

/** A destination for standard error. @param resumed as in {@link LogDestinationOptions} */
export function createStandardError(after: Timer, resumed: LogDestinationOptions['resumed']): LogDestination {
  const handle = openStandardError()
  return new LogDestination({
    write: bytes => writeSync(handle, bytes),
    after,
    now: () => performance.now(),
    resumed,
  })
}

/** A handle whose writes do not wait for a reader. */
function openStandardError(): number {
  const standardError = 2
  // On a pipe or a socket, writes of this stream do not wait, nor do those of others.
  process.stderr.on('error', () => {})
  if (!isatty(standardError) && !fstatSync(standardError).isFIFO()) return standardError
  try {
    // The same pipe or terminal by another handle: others with the first handle wait as before.
    return openSync('/proc/self/fd/2', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return standardError
  }
}

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  EAGAIN: 'its reader did not read',
  EPIPE: 'it had no reader',
}

function describeProblem({ code = '', message }: NodeJS.ErrnoException): string {
  return PROBLEMS[code] ?? `it could not be written: ${code === '' ? message : code}`
}

function linesIn(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1
  return lines
}

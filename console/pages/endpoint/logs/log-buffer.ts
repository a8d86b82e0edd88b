/** The newest lines of a log, each with a stable number. */
import type { LogLine } from './log-line.ts'

/** Limit of stored lines. */
export const MAX_LINES = 100_000
/** Limit of characters of all lines together; a line has up to 64 KiB. */
const MAX_CHARACTERS = 64 * 1024 * 1024

/** Lines by number; the oldest ones are dropped. */
export class LogBuffer {
  #lines: LogLine[] = []
  /** Index of the first stored line. */
  #head = 0
  #characters = 0
  /** Number of the first stored line, which is the number of dropped lines. */
  first = 0

  /** The number of the next line. */
  get end(): number {
    return this.first + this.#lines.length - this.#head
  }

  push(line: LogLine): void {
    this.#lines.push(line)
    this.#characters += line.raw.length
  }

  get(number: number): LogLine | undefined {
    return number < this.first ? undefined : this.#lines[this.#head + number - this.first]
  }

  /** True if the buffer is over a limit. */
  get isFull(): boolean {
    return this.end - this.first > MAX_LINES || this.#characters > MAX_CHARACTERS
  }

  /** Drops the oldest lines until the buffer is within its limits. */
  trim(): void {
    while (this.isFull && this.end > this.first + 1) {
      this.#characters -= this.#lines[this.#head]!.raw.length
      this.#head += 1
      this.first += 1
    }
    if (this.#head > MAX_LINES / 4) {
      this.#lines = this.#lines.slice(this.#head)
      this.#head = 0
    }
  }
}

/** The newest lines of a log, each with a number that it keeps. */
import type { LogLine } from './log-line.ts'

/** Lines that are kept. */
export const MAX_LINES = 100_000
/** Characters of all lines together; a line has up to 64 KiB. */
const MAX_CHARACTERS = 64 * 1024 * 1024

/** Lines by number; the oldest ones go. */
export class LogBuffer {
  #lines: LogLine[] = []
  /** Index of the first line that is kept. */
  #head = 0
  #characters = 0
  /** Number of the first line that is kept, so also how many have gone. */
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

  /** Whether more is kept than may be. */
  get isFull(): boolean {
    return this.end - this.first > MAX_LINES || this.#characters > MAX_CHARACTERS
  }

  /** Lets the oldest lines go until no more is kept than may be. */
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

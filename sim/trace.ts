import type { VirtualClock } from './clock.ts'
import { fnv1a } from './random.ts'

/** All visible steps of a run in order, as one hash. Two runs of a seed must have the same. */
export class Trace {
  readonly #clock: VirtualClock
  readonly #listen: ((line: string) => void) | undefined
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #lines = 0

  /** @param listen receives every line */
  constructor(clock: VirtualClock, listen?: (line: string) => void) {
    this.#clock = clock
    this.#listen = listen
  }

  /** Number of lines. */
  get lines(): number {
    return this.#lines
  }

  /** The hash as sixteen hexadecimal digits. */
  get hash(): string {
    return [this.#high, this.#low].map(part => part.toString(16).padStart(8, '0')).join('')
  }

  /** Adds a line with the current time. */
  add(kind: string, what: string): void {
    const line = `${this.#clock.monotonic()} ${kind} ${what}`
    this.#low = fnv1a(line, this.#low)
    this.#high = fnv1a(line, this.#high ^ this.#low)
    this.#lines += 1
    this.#listen?.(line)
  }
}

import type { VirtualClock } from './clock.ts'
import { fnv1a } from './random.ts'

/** Everything that can be seen of a run, in its order, as one hash: two runs of a seed must have the same. */
export class Trace {
  readonly #clock: VirtualClock
  readonly #listen: ((line: string) => void) | undefined
  #low = 0x811c9dc5
  #high = 0x9e3779b9
  #lines = 0

  /** @param listen is given every line */
  constructor(clock: VirtualClock, listen?: (line: string) => void) {
    this.#clock = clock
    this.#listen = listen
  }

  /** How many things were seen. */
  get lines(): number {
    return this.#lines
  }

  /** Sixteen hexadecimal digits. */
  get hash(): string {
    return [this.#high, this.#low].map(part => part.toString(16).padStart(8, '0')).join('')
  }

  /** Notes what is seen now. */
  add(kind: string, what: string): void {
    const line = `${this.#clock.monotonic()} ${kind} ${what}`
    this.#low = fnv1a(line, this.#low)
    this.#high = fnv1a(line, this.#high ^ this.#low)
    this.#lines += 1
    this.#listen?.(line)
  }
}

import type { Clock } from '../ports/clock.ts'

/** A costly reading: one at a time, and for a while everybody who asks gets the last one. A reading that failed is not kept. */
export class KeptReading<Result> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #keepMs: number
  readonly #read: () => Promise<Result>
  #latest: { readonly result: Promise<Result>; endedAtMs: number | null } | null = null

  /** @param keepMs how long a result is kept from its end on */
  constructor(clock: Pick<Clock, 'monotonic'>, keepMs: number, read: () => Promise<Result>) {
    this.#clock = clock
    this.#keepMs = keepMs
    this.#read = read
  }

  /** The last result, or a new one. */
  get(): Promise<Result> {
    const { endedAtMs = 0 } = this.#latest ?? {}
    if (this.#latest !== null && (endedAtMs === null || this.#clock.monotonic() - endedAtMs < this.#keepMs)) {
      return this.#latest.result
    }
    const reading = { result: this.#read(), endedAtMs: null as number | null }
    this.#latest = reading
    reading.result.then(
      () => {
        reading.endedAtMs = this.#clock.monotonic()
      },
      () => {
        this.#latest = null
      },
    )
    return reading.result
  }
}

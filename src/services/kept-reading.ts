import type { Clock } from '../ports/clock.ts'

/** How long a result counts. */
export interface KeptReadingRule {
  /** From its end on. */
  readonly keepMs: number
  /** Whether an older result is still given while it is read anew, so that only the first caller waits. */
  readonly servesOld?: boolean
}

/** A costly reading: one at a time, and for a while everybody who asks gets the last result. A failure is not kept. */
export class KeptReading<Result> {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #rule: KeptReadingRule
  readonly #read: () => Promise<Result>
  #kept: { readonly result: Result; readonly endedAtMs: number } | null = null
  #reading: Promise<Result> | null = null

  constructor(clock: Pick<Clock, 'monotonic'>, rule: KeptReadingRule, read: () => Promise<Result>) {
    this.#clock = clock
    this.#rule = rule
    this.#read = read
  }

  /** The last result, or a new one. */
  get(): Promise<Result> {
    const kept = this.#kept
    if (kept !== null && this.#clock.monotonic() - kept.endedAtMs < this.#rule.keepMs)
      return Promise.resolve(kept.result)
    this.#reading ??= this.#begun()
    if (kept === null || this.#rule.servesOld !== true) return this.#reading
    // Who asks next is told of the failure.
    this.#reading.catch(() => {})
    return Promise.resolve(kept.result)
  }

  async #begun(): Promise<Result> {
    try {
      const result = await this.#read()
      this.#kept = { result, endedAtMs: this.#clock.monotonic() }
      return result
    } catch (error) {
      this.#kept = null
      throw error
    } finally {
      this.#reading = null
    }
  }
}

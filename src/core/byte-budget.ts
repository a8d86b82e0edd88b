/** A rate of bytes that several callers share. */

/** Limit of the bytes that may pass. */
export interface ByteRate {
  readonly bytesPerSecond: number
  /** Bytes that may pass at once after a pause. */
  readonly burstBytes: number
}

/** Part of a clock that a budget needs. */
export interface BudgetClock {
  /** Milliseconds of a monotonic clock. */
  monotonic(): number
  /** Calls back once after `ms` milliseconds. */
  after(ms: number, callback: () => void): unknown
}

/**
 * Lets bytes pass at a rate. Callers wait in the order of their calls: a busy one waits for all others between two of
 * its pieces, and one with few bytes waits at most for one piece of each.
 */
export class ByteBudget {
  readonly #rate: ByteRate
  readonly #clock: BudgetClock
  readonly #waiting: { readonly bytes: number; readonly pass: () => void }[] = []
  #left: number
  #atMs: number
  #isWaiting = false

  /** @param clock clock that measures the rate */
  constructor(rate: ByteRate, clock: BudgetClock) {
    this.#rate = rate
    this.#clock = clock
    this.#left = rate.burstBytes
    this.#atMs = clock.monotonic()
  }

  /** Takes bytes that passed. Resolves when the next bytes of the same caller may pass. */
  take(bytes: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ bytes, pass: resolve })
    this.#serve()
    return promise
  }

  #serve(): void {
    if (this.#isWaiting) return
    const { bytesPerSecond, burstBytes } = this.#rate
    const nowMs = this.#clock.monotonic()
    this.#left = Math.min(burstBytes, this.#left + ((nowMs - this.#atMs) * bytesPerSecond) / 1000)
    this.#atMs = nowMs
    let served = 0
    for (const { bytes, pass } of this.#waiting) {
      if (this.#left <= 0) break
      this.#left -= bytes
      served += 1
      pass()
    }
    this.#waiting.splice(0, served)
    if (this.#waiting.length === 0) return
    this.#isWaiting = true
    this.#clock.after(Math.ceil((-this.#left * 1000) / bytesPerSecond) + 1, () => {
      this.#isWaiting = false
      this.#serve()
    })
  }
}

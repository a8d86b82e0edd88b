/** When a relay that does not answer hangs, rather than being slow or on a machine that is. All times are of a clock that only grows, in ms. */

/** How long a relay has for an answer to whether it is well. */
export const ANSWER_MS = 2_000
/** Between an answer and the next question. */
export const EVERY_MS = 1_000
/** A deadline that is noticed so much too late was missed by whoever asks: the machine is overloaded, or has slept. */
const LATE_MS = 500
/** Questions in a row without an answer. */
const MISSES = 3
/** The same of a relay that works, or waits for a processor. */
const BUSY_MISSES = 20
/** A relay that lasts so long has got over what made the one before it hang. */
const CALM_MS = 600_000
const MOST_DOUBLINGS = 4

/** What the process of a relay did while a question was open; null where the system does not tell. */
export interface Effort {
  /** It waits for a processor. */
  readonly runnable: boolean
  /** Processor time that it has used so far, in any unit. */
  readonly used: number
}

/** Counts the questions that a relay leaves open. */
export class Pulse {
  #misses = 0
  #busyMisses = 0
  #doublings = 0
  #replacedAtMs = Number.NEGATIVE_INFINITY

  /** It has answered. */
  answered(nowMs: number): void {
    this.#misses = 0
    this.#busyMisses = 0
    if (nowMs - this.#replacedAtMs > CALM_MS) this.#doublings = 0
  }

  /**
   * It has not answered a question.
   * @param askedAtMs when it was asked
   * @returns whether it is to be replaced
   */
  missed(askedAtMs: number, nowMs: number, before: Effort | null, after: Effort | null): boolean {
    if (nowMs - askedAtMs > ANSWER_MS + LATE_MS) return false
    const isBusy = after !== null && (after.runnable || (before !== null && after.used > before.used))
    this.#busyMisses += 1
    this.#misses = isBusy ? 0 : this.#misses + 1
    const patience = 2 ** this.#doublings
    return this.#misses >= MISSES * patience || this.#busyMisses >= BUSY_MISSES * patience
  }

  /** Another one has taken its place: each replacement soon after another takes twice as long to come about. */
  replaced(nowMs: number): void {
    this.#misses = 0
    this.#busyMisses = 0
    this.#doublings = Math.min(this.#doublings + 1, MOST_DOUBLINGS)
    this.#replacedAtMs = nowMs
  }
}

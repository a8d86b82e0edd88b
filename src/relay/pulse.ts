/**
 * Decides when a relay that does not respond hangs, and is not slow or on a slow machine. All times are
 * of a monotonic clock, in ms.
 */

/** Timeout of a health check of the relay. */
export const ANSWER_MS = 2_000
/** Interval between a response and the next check. */
export const EVERY_MS = 1_000
/** Lateness of a deadline after which the machine is overloaded or slept, and the relay is not to blame. */
const LATE_MS = 500
/** Limit of unanswered checks in a row. */
const MISSES = 3
/** The same for a relay that works or waits for a processor. */
const BUSY_MISSES = 20
/** Uptime after which a relay counts as recovered from the cause of its predecessor's hang. */
const CALM_MS = 600_000
const MAX_DOUBLINGS = 4

/** Activity of the process of a relay during a check; null if the system does not show it. */
export interface Effort {
  /** True while it waits for a processor. */
  readonly runnable: boolean
  /** Processor time used so far, in any unit. */
  readonly used: number
}

/** Counts the checks that a relay does not answer. */
export class Pulse {
  #misses = 0
  #busyMisses = 0
  #doublings = 0
  #replacedAtMs = Number.NEGATIVE_INFINITY

  /** Records a response. */
  answered(nowMs: number): void {
    this.#misses = 0
    this.#busyMisses = 0
    if (nowMs - this.#replacedAtMs > CALM_MS) this.#doublings = 0
  }

  /**
   * Records a check without a response.
   * @param askedAtMs when the check began
   * @returns true if it should be replaced
   */
  missed(askedAtMs: number, nowMs: number, previousEffort: Effort | null, after: Effort | null): boolean {
    if (nowMs - askedAtMs > ANSWER_MS + LATE_MS) return false
    const isBusy = after !== null && (after.runnable || (previousEffort !== null && after.used > previousEffort.used))
    this.#busyMisses += 1
    this.#misses = isBusy ? 0 : this.#misses + 1
    const patience = 2 ** this.#doublings
    return this.#misses >= MISSES * patience || this.#busyMisses >= BUSY_MISSES * patience
  }

  /** Records a replacement. Each one soon after another waits twice as long. */
  replaced(nowMs: number): void {
    this.#misses = 0
    this.#busyMisses = 0
    this.#doublings = Math.min(this.#doublings + 1, MAX_DOUBLINGS)
    this.#replacedAtMs = nowMs
  }
}

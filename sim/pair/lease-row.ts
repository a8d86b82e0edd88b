/** How long a lease lasts, in milliseconds of the store's clock. */
export const LEASE_MS = 6_000

/** Which server has the lease, as the store knows it. */
export interface LeaseState {
  /** Grows with each take; 0 before the first. */
  readonly epoch: number
  readonly server: string | null
  /** On the clock of the store. */
  readonly untilMs: number
  readonly released: boolean
}

/** The row of the lease in the store. All its instants are those of the store's clock, and each call is one transaction. */
export class LeaseRow {
  readonly #nowMs: () => number
  readonly #taken: (before: LeaseState, now: LeaseState) => void
  readonly #checksExpiry: boolean
  #state: LeaseState = { epoch: 0, server: null, untilMs: 0, released: true }

  /**
   * @param nowMs the clock of the store
   * @param taken called at the instant at which a server takes it
   * @param checksExpiry whether a lease that has not run out is left to its server; false to test the checkers
   */
  constructor(nowMs: () => number, taken: (before: LeaseState, now: LeaseState) => void, checksExpiry = true) {
    this.#nowMs = nowMs
    this.#taken = taken
    this.#checksExpiry = checksExpiry
  }

  /** What the row says. */
  get state(): LeaseState {
    return this.#state
  }

  /** Takes a lease that was released or has run out. @returns its epoch; null when another server has it */
  take(server: string): number | null {
    const before = this.#state
    if (this.#checksExpiry && !before.released && this.#nowMs() < before.untilMs) return null
    this.#state = { epoch: before.epoch + 1, server, untilMs: this.#nowMs() + LEASE_MS, released: false }
    this.#taken(before, this.#state)
    return this.#state.epoch
  }

  /** Lets the lease last longer, also one that has run out and that nobody took. @returns false when it belongs to another epoch */
  renew(epoch: number): boolean {
    if (this.#state.epoch !== epoch || this.#state.released) return false
    this.#state = { ...this.#state, untilMs: this.#nowMs() + LEASE_MS }
    return true
  }

  /** Gives the lease up. */
  release(epoch: number): void {
    if (this.#state.epoch === epoch) this.#state = { ...this.#state, released: true }
  }
}

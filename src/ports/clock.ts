/** Time. Timers and timestamps come from here only, so that the simulator controls them. */
export interface Clock {
  /** Epoch milliseconds, for timestamps that are stored. May jump when the machine's clock is set. */
  now(): number
  /** Milliseconds of a monotonic clock, for durations. */
  monotonic(): number
  /**
   * Calls `callback` once after `ms` milliseconds.
   * @returns cancels the timer; calling it late or twice does nothing
   */
  after(ms: number, callback: () => void): () => void
}

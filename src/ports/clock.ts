/** Time. Everything that waits or stamps takes it from here, so that the simulator can run it. */
export interface Clock {
  /** Epoch milliseconds, for stamps that are stored. May jump when the machine's clock is set. */
  now(): number
  /** Milliseconds that only grow, for durations. */
  monotonic(): number
  /**
   * Calls `callback` once after `ms` milliseconds.
   * @returns a function that takes the timer back; calling it late or twice does nothing
   */
  after(ms: number, callback: () => void): () => void
}

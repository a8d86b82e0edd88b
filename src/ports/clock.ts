/** Time. Timers and timestamps come from here only, so that the simulator controls them. */
export interface Clock {
  /**
   * Epoch milliseconds of the server's time, for timestamps that are stored. It runs by the monotonic clock and never goes back while a server runs; a step of the
   * machine's clock does not move it (docs/adr/0079).
   */
  now(): number
  /** Milliseconds of a monotonic clock, for durations. */
  monotonic(): number
  /**
   * Calls `callback` once after `ms` milliseconds.
   * @returns cancels the timer; calling it late or twice does nothing
   */
  after(ms: number, callback: () => void): () => void
}

/** A step of the machine's clock that the server's time has not followed. */
export interface ClockStep {
  /** What the machine's clock shows less the server's time: above zero when it was set forward. */
  readonly byMs: number
  /** When it was noticed, or grew or shrank by another step, in epoch milliseconds of the server's time. */
  readonly sinceMs: number
}

/** What both clocks show. */
export interface ClockReading {
  /** The server's time, in epoch milliseconds. */
  readonly nowMs: number
  /** The machine's clock, in epoch milliseconds. */
  readonly machineMs: number
  /** Null while they agree to some seconds. */
  readonly step: ClockStep | null
}

/** What a later server needs to go on with the time of this one. */
export interface ClockMark {
  /** The start of the machine's system that this was read in; empty where it has no name. */
  readonly boot: string
  /** Milliseconds from that start to the instant of the mark, sleep included. */
  readonly sinceBootMs: number
  /** The server's time at that instant. */
  readonly nowMs: number
  /** The step that it had not followed. */
  readonly step: ClockStep | null
}

/** The server's time beside the machine's clock. */
export interface ServerTime {
  /** What both clocks show now. */
  read(): ClockReading
  /** The mark of this instant. */
  mark(): ClockMark
  /**
   * Goes on from another time, at a start or a takeover: only before anything has been done by this one.
   * @param since when a step was noticed that had been there before; null for none
   */
  resume(nowMs: number, since: number | null): void
}

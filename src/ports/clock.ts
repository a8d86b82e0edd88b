/** Time. Timers and timestamps come from here only, so that the simulator controls them. */
export interface Clock {
  /**
   * Epoch milliseconds of the server's time, for timestamps that are stored. It runs by the monotonic clock and never
   * goes back while a server runs; a step of the machine's clock does not move it (docs/adr/0079).
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

/** Resolves after some milliseconds, or once the signal aborts. */
export function pause(clock: Pick<Clock, 'after'>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, end)
    if (signal?.aborted === true) end()
    else signal?.addEventListener('abort', end, { once: true })
  })
}

/** A step of the machine's clock that the server's time has not followed. */
export interface ClockStep {
  /** The machine's clock minus the server's time: above zero when the clock was set forward. */
  readonly byMs: number
  /**
   * Time at which the step was noticed or last changed by another step, in epoch milliseconds of the server's time.
   */
  readonly sinceMs: number
}

/** Times of both clocks. */
export interface ClockReading {
  /** The server's time, in epoch milliseconds. */
  readonly nowMs: number
  /** The machine's clock, in epoch milliseconds. */
  readonly machineMs: number
  /** Null while both agree to some seconds. */
  readonly step: ClockStep | null
}

/** Data with which a later server continues the time of this one. */
export interface ClockMark {
  /** Id of the boot of the machine in which this was read; empty if the system has no such id. */
  readonly boot: string
  /** Milliseconds from that start to the instant of the mark, sleep included. */
  readonly sinceBootMs: number
  /** The server's time at that instant. */
  readonly nowMs: number
  /** The step that the server's time had not followed. */
  readonly step: ClockStep | null
}

/** The server's time beside the machine's clock. */
export interface ServerTime {
  /** Reads both clocks. */
  read(): ClockReading
  /** The mark of this instant. */
  mark(): ClockMark
  /**
   * Continues another time, at a start or a takeover: only before any use of the present one.
   * @param since time at which an older step was noticed; null without one
   */
  resume(nowMs: number, since: number | null): void
}

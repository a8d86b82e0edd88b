import type { KeptTime } from '../../core/server-time.ts'
import type { ClockMark } from '../clock.ts'

/** The server's time, as the store has it. */
export interface KeptClock extends KeptTime {
  /** Instant at which a step of the machine's clock was noticed that was not followed; null for no step. */
  readonly stepSinceMs: number | null
  /** Until when retention removes nothing; null unless it waits. */
  readonly heldUntilMs: number | null
  /** True when the next start takes the time of the machine's clock. */
  readonly isAccepted: boolean
}

/** The server's time across restarts and takeovers. All instants are its epoch milliseconds. */
export interface ClockStore {
  /** Null before the first start. */
  read(): Promise<KeptClock | null>
  /** Keeps the present time, and nothing else. */
  keep(mark: ClockMark): Promise<void>
  /**
   * Keeps until an instant all rows that retention would remove before it. Rows that the reader of `heldUntilMs`
   * removes by their age are left to it.
   */
  hold(untilMs: number): Promise<void>
  /** Retention waits no longer. */
  endHold(): Promise<void>
  /** The next start takes the time of the machine's clock, or not. */
  accept(accepted: boolean): Promise<void>
  /**
   * Takes the time of the machine's clock: moves everything that waits or runs, and all workers, so that the rest
   * of each limit stays as it is, and stores the mark. Finished jobs are moved back with the time, and not
   * forward: their retention applies.
   * @param byMs milliseconds by which the time moves, below zero for back
   * @param mark of the new time
   */
  adopt(byMs: number, mark: ClockMark): Promise<void>
}

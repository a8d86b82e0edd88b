/** The server's time across restarts, takeovers and steps of the machine's clock (docs/adr/0079). */

/** A difference of the machine's clock above this one is a step. A smaller one is corrected gradually. */
export const CLOCK_STEP_MS = 2_000
/** Gap above which the clock at a start can be wrong, and above which a lasting step is not trusted: 24 hours. */
export const CLOCK_DOUBT_MS = 24 * 60 * 60_000

/** Time that an earlier server stored. */
export interface KeptTime {
  /** Boot id of the machine at the time; empty if the system has no boot id. */
  readonly boot: string
  readonly sinceBootMs: number
  /** Time of that server then, in epoch milliseconds. */
  readonly nowMs: number
  /** Milliseconds since then by the clock of the database; null if the database has no clock. */
  readonly databaseAgoMs: number | null
}

/** Times of the clocks of this machine at a start. */
export interface ClocksAtStart {
  /** Epoch milliseconds. */
  readonly machineMs: number
  readonly boot: string
  readonly sinceBootMs: number
}

/**
 * The time with which a server continues. Exact in the same boot of the machine. After another boot, or on another
 * machine, the clock of the database measures the elapsed time; without such a clock, the machine's clock does. The
 * time never goes back.
 * @returns epoch milliseconds
 */
export function resumedTime(kept: KeptTime, here: ClocksAtStart): number {
  const sinceMs = here.sinceBootMs - kept.sinceBootMs
  if (here.boot !== '' && here.boot === kept.boot && sinceMs >= 0) return kept.nowMs + sinceMs
  const machineAgoMs = Math.max(0, here.machineMs - kept.nowMs)
  if (kept.databaseAgoMs === null) return kept.nowMs + machineAgoMs
  const databaseAgoMs = Math.max(0, kept.databaseAgoMs)
  // If both clocks show such a gap, one of them can be wrong: the smaller gap expires nothing early.
  const agoMs = databaseAgoMs > CLOCK_DOUBT_MS ? Math.min(databaseAgoMs, machineAgoMs) : databaseAgoMs
  return kept.nowMs + agoMs
}

/**
 * A difference of clocks for people, such as `2 h 5 min ahead`.
 * @param byMs above zero if the machine's clock is ahead
 */
export function clockDifference(byMs: number): string {
  return `${spanText(Math.abs(byMs))} ${byMs >= 0 ? 'ahead of' : 'behind'}`
}

function spanText(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} days${hours % 24 === 0 ? '' : ` ${hours % 24} h`}`
}

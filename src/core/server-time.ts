/** The server's time across restarts, takeovers and steps of the machine's clock (docs/adr/0079). */

/** A difference of the machine's clock above this one is a step. A smaller one is made up for, little by little. */
export const CLOCK_STEP_MS = 2_000
/** A gap above this one before a start may be a wrong clock, and a step that lasts so long may be none: 24 hours. */
export const CLOCK_DOUBT_MS = 24 * 60 * 60_000

/** Time that an earlier server has left, as the store has it. */
export interface KeptTime {
  /** The start of the machine's system that it was read in; empty where that has no name. */
  readonly boot: string
  readonly sinceBootMs: number
  /** Its time then, in epoch milliseconds. */
  readonly nowMs: number
  /** Milliseconds since then by the clock of the database; null where the database has none of its own. */
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
 * The time with which a server goes on. In the same run of the machine's system that is known exactly. After another start, or on another machine, the clock of the
 * database says how much time has passed, and where it has none, the machine's clock. The time never goes back.
 * @returns epoch milliseconds
 */
export function resumedTime(kept: KeptTime, here: ClocksAtStart): number {
  const sinceMs = here.sinceBootMs - kept.sinceBootMs
  if (here.boot !== '' && here.boot === kept.boot && sinceMs >= 0) return kept.nowMs + sinceMs
  const machineAgoMs = Math.max(0, here.machineMs - kept.nowMs)
  if (kept.databaseAgoMs === null) return kept.nowMs + machineAgoMs
  const databaseAgoMs = Math.max(0, kept.databaseAgoMs)
  // Of two clocks that say so much, one may be wrong: the smaller time ends nothing early.
  const agoMs = databaseAgoMs > CLOCK_DOUBT_MS ? Math.min(databaseAgoMs, machineAgoMs) : databaseAgoMs
  return kept.nowMs + agoMs
}

/** A difference of clocks for people, such as `2 h 5 min ahead`. @param byMs above zero where the machine's clock is ahead */
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

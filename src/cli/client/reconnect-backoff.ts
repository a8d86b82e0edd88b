import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, EXIT } from '../exit.ts'

const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 5_000
/** Time for which a command retries while the server is unavailable, in ms. */
const MAX_AWAY_MS = 300_000

/** Waits between retries while a server that has responded before is restarted. */
export class ReconnectBackoff {
  #waitMs = FIRST_WAIT_MS
  #awaySinceMs: number | null = null
  #answered = false

  /** Records a response of the server, which resets the wait. */
  answered(): void {
    this.#answered = true
    this.#awaySinceMs = null
    this.#waitMs = FIRST_WAIT_MS
  }

  /**
   * Waits before the next attempt, longer each time.
   * @throws the error if a retry is pointless: the server refused, never responded, or is unavailable for five minutes
   */
  async after(error: unknown): Promise<void> {
    if (!this.#answered || !(error instanceof CliError) || error.exitCode !== EXIT.unavailable) throw error
    this.#awaySinceMs ??= performance.now()
    if (performance.now() - this.#awaySinceMs > MAX_AWAY_MS) throw error
    await sleep(this.#waitMs)
    this.#waitMs = Math.min(2 * this.#waitMs, MAX_WAIT_MS)
  }
}

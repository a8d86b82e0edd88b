import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, EXIT } from '../exit.ts'

const FIRST_MS = 250
const MOST_MS = 5_000
/** How long a server may be away before it is given up. */
const AWAY_MS = 300_000

/** Waits while a server that has answered before is restarted. */
export class ReconnectBackoff {
  #waitMs = FIRST_MS
  #awaySinceMs: number | null = null
  #answered = false

  /** The server has answered. */
  answered(): void {
    this.#answered = true
    this.#awaySinceMs = null
    this.#waitMs = FIRST_MS
  }

  /**
   * Waits before the next try, for longer each time.
   * @throws the error when another try makes no sense: the server refuses, has never answered, or is away for five minutes
   */
  async after(error: unknown): Promise<void> {
    if (!this.#answered || !(error instanceof CliError) || error.exitCode !== EXIT.unavailable) throw error
    this.#awaySinceMs ??= performance.now()
    if (performance.now() - this.#awaySinceMs > AWAY_MS) throw error
    await sleep(this.#waitMs)
    this.#waitMs = Math.min(2 * this.#waitMs, MOST_MS)
  }
}

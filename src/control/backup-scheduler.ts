import { toAppError } from '../core/errors.ts'
import type { BackupFolder } from '../ports/backups.ts'
import type { Ports } from '../ports/ports.ts'

/** Time after which a backup that failed is tried again, unless the next one is due before. */
const RETRY_MS = 15 * 60_000
/** Interval between checks for the end of another backup. */
const BUSY_MS = 60_000
/** The longest sleep: the clock may be set in the meantime. */
const LOOK_MS = 60 * 60_000

/**
 * Makes backups in a folder. The next one is due when the newest file there is old enough, so a restart neither makes
 * one early nor skips one.
 */
export class BackupScheduler {
  readonly #emit
  readonly #clock
  readonly #folder
  readonly #ending = new AbortController()
  /** Time of the newest reported backup; null for no backup, undefined before the first report. */
  #reported: number | null | undefined

  constructor({ emit, clock }: Ports, folder: BackupFolder) {
    this.#emit = emit
    this.#clock = clock
    this.#folder = folder
  }

  /**
   * Makes a backup if one is due.
   * @returns time of the next step
   */
  async step(nowMs: number): Promise<number> {
    const { everyMs } = this.#folder
    try {
      const newest = await this.#folder.newest(nowMs)
      this.#report(newest?.atMs ?? null, newest?.bytes ?? null)
      const dueMs = newest === null ? nowMs : newest.atMs + everyMs
      if (dueMs > nowMs) return Math.min(dueMs, nowMs + LOOK_MS)
      return await this.#make(nowMs)
    } catch (error) {
      if (this.#reported === undefined) this.#report(null, null)
      const { code, message } = toAppError(error)
      if (code === 'conflict') return nowMs + BUSY_MS
      if (!this.#ending.signal.aborted) this.#emit('backup.failed', { folder: this.#folder.path, problem: message })
      return nowMs + Math.min(RETRY_MS, everyMs)
    }
  }

  /** Gives up a backup that is being made; to be called when the steps end. */
  end(): void {
    this.#ending.abort()
  }

  async #make(nowMs: number): Promise<number> {
    const beganMs = this.#clock.monotonic()
    const { file, atMs, bytes } = await this.#folder.make(this.#ending.signal)
    const tookMs = Math.round(this.#clock.monotonic() - beganMs)
    this.#reported = atMs
    this.#emit('backup.made', { file, atMs, bytes, tookMs })
    return nowMs + Math.min(this.#folder.everyMs, LOOK_MS)
  }

  /** Runs also when the newest backup differs from the reported one: a file can be deleted or truncated. */
  #report(newestAtMs: number | null, bytes: number | null): void {
    if (this.#reported === newestAtMs) return
    this.#reported = newestAtMs
    const { path, everyMs } = this.#folder
    this.#emit('backup.scheduled', { folder: path, everyMs, newestAtMs, bytes })
  }
}

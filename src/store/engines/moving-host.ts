import type { Host } from './host.ts'
import type { StoreStats } from './sqlite-engine.ts'
import type { InlineHost } from './sqlite-inline.ts'

/**
 * An engine that runs inline until it is moved to a thread. Both have the database open for a moment; inline calls
 * are done before the first call goes to the thread.
 */
export class MovingHost implements Host {
  readonly #inline: InlineHost
  readonly #openThread: () => Promise<Host>
  #host: Host
  #moving: Promise<void> | null = null

  /** @param openThread opens the same database in a thread */
  constructor(inline: InlineHost, openThread: () => Promise<Host>) {
    this.#inline = inline
    this.#openThread = openThread
    this.#host = inline
  }

  /** True once calls go to the thread. */
  get hasMoved(): boolean {
    return this.#host !== this.#inline
  }

  call(name: string, args: readonly unknown[]): Promise<unknown> {
    return this.#host.call(name, args)
  }

  stats(): Promise<StoreStats> {
    return this.#host.stats()
  }

  /**
   * Resolves when calls go to the thread; a second call waits for the same move.
   * @throws AppError `unavailable` when it could not be opened there; then it stays inline, and the next call tries
   * again
   */
  move(): Promise<void> {
    this.#moving ??= this.#move().catch(error => {
      this.#moving = null
      throw error
    })
    return this.#moving
  }

  async close(): Promise<void> {
    await this.#moving?.catch(() => {})
    await this.#host.close()
  }

  async #move(): Promise<void> {
    const thread = await this.#openThread()
    this.#inline.flush()
    this.#host = thread
    await this.#inline.close()
  }
}

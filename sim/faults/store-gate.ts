import { layered } from '../../src/ports/store/operations.ts'
import type { Store } from '../../src/ports/store/store.ts'
import type { Life } from '../life.ts'
import type { World } from '../world.ts'

/** Point at which the server crashes: just before or just after its `writes`-th change of the store from now. */
export interface CrashPoint {
  readonly writes: number
  readonly when: 'before' | 'after'
}

/**
 * The store of one run of the server. It closes when the server ends, it can crash the server, and it can be slow:
 * then calls wait for each other as at a busy disk.
 */
export class StoreGate {
  readonly store: Store
  readonly #world: World
  readonly #life: Life
  readonly #crash: () => void
  #point: { writes: number; readonly when: 'before' | 'after' } | null = null
  #freeAtMs = 0

  /** @param crash crashes the server */
  constructor(world: World, store: Store, life: Life, crash: () => void) {
    this.#world = world
    this.#life = life
    this.#crash = crash
    const gated = layered(
      store,
      (call, _, { reads }) =>
        (...args) =>
          this.#call(reads, () => call(...args)),
    )
    this.store = { ...gated, close: async () => {} }
  }

  /** Arms a crash. */
  crashAt(point: CrashPoint): void {
    this.#point = { ...point }
  }

  async #call(isRead: boolean, run: () => Promise<unknown>): Promise<unknown> {
    this.#world.activity += 1
    const waitMs = this.#queueDelayMs()
    if (waitMs > 0) await this.#life.sleep(waitMs)
    // A crash at a read equals a crash between two changes.
    const crash = !isRead && this.#reached()
    if (crash === 'before') this.#crash()
    if (this.#life.over) return new Promise(() => {})
    const result = await this.#life.guard(run())
    if (crash !== 'after') return result
    this.#crash()
    return new Promise(() => {})
  }

  /** Wait of a call for earlier ones; calls keep their order. */
  #queueDelayMs(): number {
    const nowMs = this.#world.clock.monotonic()
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + this.#world.storeDelayMs
    return this.#freeAtMs - nowMs
  }

  #reached(): 'before' | 'after' | null {
    if (this.#point === null) return null
    this.#point.writes -= 1
    if (this.#point.writes > 0) return null
    const { when } = this.#point
    this.#point = null
    return when
  }
}

import { layered } from '../../src/ports/store/operations.ts'
import type { Store } from '../../src/ports/store/store.ts'
import type { Life } from '../life.ts'
import type { World } from '../world.ts'
import type { StoreLink } from './store-link.ts'

/**
 * Something that happens to a server just before, in the middle of, or just after its `writes`-th
 * change of the store from now.
 */
export interface StrikePoint {
  readonly writes: number
  readonly when: 'before' | 'under way' | 'after'
  /** Time until a change that is under way arrives. */
  readonly arrivesMs: number
  /** True if the server does not receive the result of the change just before the strike. */
  readonly loses: boolean
  readonly strike: () => void
}

/**
 * The store as one process of a server reaches it. A sent call also arrives if the process
 * stands still or has ended.
 */
export class LinkedStore {
  readonly store: Store
  readonly #world: World
  readonly #life: Life
  readonly #link: StoreLink
  readonly #called: (isRead: boolean) => void
  #point: StrikePoint | null = null
  #left = 0
  #freeAtMs = 0

  /** @param called receives for each call whether it is a read */
  constructor(world: World, life: Life, link: StoreLink, store: Store, called: (isRead: boolean) => void) {
    this.#world = world
    this.#life = life
    this.#link = link
    this.#called = called
    const linked = layered(
      store,
      (call, _, { reads }) =>
        (...args) =>
          this.#call(reads, () => call(...args)),
    )
    this.store = { ...linked, close: async () => {} }
  }

  /** Arms a crash point; null disarms it. */
  strikeAt(point: StrikePoint | null): void {
    this.#point = point
    this.#left = point?.writes ?? 0
  }

  async #call(isRead: boolean, run: () => Promise<unknown>): Promise<unknown> {
    this.#called(isRead)
    const waitMs = this.#queueDelayMs()
    if (waitMs > 0) await this.#life.sleep(waitMs)
    const point = isRead ? null : this.#reached()
    if (point?.when === 'before') point.strike()
    if (point?.when === 'under way') {
      // The connection as it was when the change was sent carries it.
      const arrival = new Promise<void>(resolve => this.#world.clock.after(point.arrivesMs, resolve))
      point.strike()
      return this.#life.guard(arrival.then(run))
    }
    if (point?.when !== 'after') return this.#link.ask(this.#life, run)
    const link = this.#link
    return link.ask(this.#life, async () => {
      link.losesAnswers = point.loses
      try {
        return await run()
      } finally {
        point.strike()
        link.losesAnswers = false
      }
    })
  }

  /** Wait of a call for earlier ones; calls keep their order. */
  #queueDelayMs(): number {
    const nowMs = this.#world.clock.monotonic()
    this.#freeAtMs = Math.max(nowMs, this.#freeAtMs) + this.#world.storeDelayMs
    return this.#freeAtMs - nowMs
  }

  #reached(): StrikePoint | null {
    const point = this.#point
    if (point === null) return null
    this.#left -= 1
    if (this.#left > 0) return null
    this.#point = null
    return point
  }
}

import type { ClockMark } from '../../src/ports/clock.ts'
import type { Store } from '../../src/ports/store/store.ts'
import type { VirtualClock } from '../clock.ts'

/**
 * The clock of a database that has one of its own, as PostgreSQL: it dates the server's time when that is stored, and
 * returns the time that has passed since then.
 */
export class DatabaseClock {
  readonly #world: VirtualClock
  readonly #nowMs: () => number
  /** By the kept time of the server: the instant at which it was stored, and its age at that instant. */
  readonly #kept = new Map<number, { atMs: number; lateMs: number }>()

  /** @param nowMs time of this clock */
  constructor(world: VirtualClock, nowMs: () => number) {
    this.#world = world
    this.#nowMs = nowMs
  }

  /** A store with this clock. */
  over(store: Store): Store {
    const { clock } = store
    return {
      ...store,
      clock: {
        ...clock,
        keep: mark => {
          this.#date(mark)
          return clock.keep(mark)
        },
        adopt: (byMs, mark) => {
          this.#date(mark)
          return clock.adopt(byMs, mark)
        },
        read: async () => {
          const storedMark = await clock.read()
          const dated = storedMark === null ? undefined : this.#kept.get(storedMark.nowMs)
          if (storedMark === null || dated === undefined) return storedMark
          // A time that was long on its way is behind when another server goes on with it.
          this.#world.disagree(dated.lateMs)
          return { ...storedMark, databaseAgoMs: this.#nowMs() - dated.atMs }
        },
      },
    }
  }

  #date({ nowMs }: ClockMark): void {
    this.#kept.set(nowMs, { atMs: this.#nowMs(), lateMs: Math.max(0, this.#world.now() - nowMs) })
  }
}

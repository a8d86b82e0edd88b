import type { Emit } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import { type FullStore, StoreFull, type StoreRoom } from '../../ports/store/store-full.ts'

/**
 * Time after the last refusal from which the store counts as one that takes changes: waiting changes are tried each
 * second.
 */
const OVER_MS = 15_000

/** Records refused changes of a full store, and reports the first one of each time that it is full. */
export class StoreRoomWatch implements StoreRoom {
  readonly #emit: Emit
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  #full: FullStore | null = null
  #lastMs = 0

  constructor(emit: Emit, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#emit = emit
    this.#clock = clock
  }

  full(): FullStore | null {
    if (this.#full !== null && this.#clock.monotonic() - this.#lastMs > OVER_MS) this.#full = null
    return this.#full
  }

  /** Checks an error of the store. */
  readonly look = (error: unknown): void => {
    if (!(error instanceof StoreFull)) return
    const before = this.full()
    this.#lastMs = this.#clock.monotonic()
    if (before !== null) return
    const { reason } = error
    this.#full = { reason, sinceMs: this.#clock.now() }
    this.#emit('store.full', { problem: reason })
  }
}

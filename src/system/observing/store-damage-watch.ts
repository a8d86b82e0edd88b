import type { DamageReport } from '../../core/observing/store-damage.ts'
import type { Emit } from '../../events.ts'
import { type StoreDamage, StoreDamaged } from '../../ports/store/store-damage.ts'

/** Keeps the first damage of the store, and reports it once. */
export class StoreDamageWatch implements StoreDamage {
  readonly #emit: Emit
  readonly #now: () => number
  #met: DamageReport | null = null

  /** @param now Unix milliseconds */
  constructor(emit: Emit, now: () => number) {
    this.#emit = emit
    this.#now = now
  }

  met(): DamageReport | null {
    return this.#met
  }

  /** Checks an error of the store. */
  readonly look = (error: unknown): void => {
    if (this.#met !== null || !(error instanceof StoreDamaged)) return
    const { where, databaseMessage } = error
    this.#met = { where, databaseMessage, sinceMs: this.#now() }
    this.#emit('store.damaged', { where, problem: databaseMessage })
  }
}

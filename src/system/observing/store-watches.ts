import { AppError } from '../../core/errors.ts'
import type { DamageReport } from '../../core/observing/store-trouble.ts'
import type { Emit } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import type { StoreLayer } from '../../ports/store/operations.ts'
import {
  type FullStore,
  type StoreDamage,
  StoreDamaged,
  StoreFull,
  type StoreRoom,
} from '../../ports/store/store-trouble.ts'

/** Keeps the first damage of the store, and reports it once. */
export class StoreDamageWatch implements StoreDamage {
  readonly #emit
  readonly #now
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

/**
 * Time after the last refusal from which the store counts as one that takes changes: waiting changes are tried each
 * second.
 */
const OVER_MS = 15_000

/** Records refused changes of a full store, and reports the first one of each time that it is full. */
export class StoreRoomWatch implements StoreRoom {
  readonly #emit
  readonly #clock
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
    const previous = this.full()
    this.#lastMs = this.#clock.monotonic()
    if (previous !== null) return
    const { reason } = error
    this.#full = { reason, sinceMs: this.#clock.now() }
    this.#emit('store.full', { problem: reason })
  }
}

/**
 * Layer around the store that reports the duration of each call.
 * @param report called with the name of the operation, such as `jobs.claim`, its duration in ms, and true if the
 *   store was unavailable
 * @param failed called with each error
 */
export function createMeasuring(
  clock: Clock,
  report: (operation: string, tookMs: number, unavailable: boolean) => void,
  failed: (error: unknown) => void = () => {},
): StoreLayer {
  return (call, operation) =>
    async (...args) => {
      const startMs = clock.monotonic()
      try {
        const value = await call(...args)
        report(operation, clock.monotonic() - startMs, false)
        return value
      } catch (error) {
        report(operation, clock.monotonic() - startMs, error instanceof AppError && error.code === 'unavailable')
        failed(error)
        throw error
      }
    }
}

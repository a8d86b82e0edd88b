import { AppError } from '../../src/core/errors.ts'
import { layered } from '../../src/ports/store/operations.ts'
import type { Store } from '../../src/ports/store/store.ts'

/** Time of a fault: before the call changes anything, or after the change, so that only its result is lost. */
export type Fault = 'before' | 'after'

/** Decides whether a call fails; null when it does not. Names are those of the port: `jobs.claim`. */
export type DecideFault = (name: string, args: readonly unknown[]) => Fault | null

/** A store whose calls fail as `decide` returns, with the error of an unavailable store. */
export function faultyStore(store: Store, decide: DecideFault): Store {
  return layered(store, (call, name) => async (...args) => {
    const fault = decide(name, args)
    if (fault === 'before') throw new AppError('unavailable', `${name} failed before it did anything, as planned`)
    const result = await call(...args)
    if (fault === 'after') throw new AppError('unavailable', `${name} failed after it was done, as planned`)
    return result
  })
}

/** A store whose calls stop the virtual clock until the database responds. */
export function watchedStore(store: Store, clock: { busy: number }): Store {
  return layered(store, call => (...args) => {
    clock.busy += 1
    return call(...args).finally(() => (clock.busy -= 1))
  })
}

/** Faults that a test plans one by one. */
export class PlannedFaults {
  readonly #planned = new Map<string, Fault[]>()

  /** Makes the next call of this name fail, or the next after those already planned. */
  failNext(name: string, fault: Fault): void {
    this.#planned.set(name, [...(this.#planned.get(name) ?? []), fault])
  }

  /** For {@link faultyStore}. */
  readonly decide: DecideFault = name => this.#planned.get(name)?.shift() ?? null
}

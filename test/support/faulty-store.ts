import { AppError } from '../../src/core/errors.ts'
import type { Store } from '../../src/ports/store/store.ts'

/** Whether a call fails before it changes anything, or after the change, so that only its result is lost. */
export type Fault = 'before' | 'after'

/** Decides whether a call fails; null when it does not. Names are those of the port: `jobs.claim`. */
export type DecideFault = (name: string, args: readonly unknown[]) => Fault | null

/** A store whose calls fail as `decide` returns, with the error of an unavailable store. */
export function faultyStore(store: Store, decide: DecideFault): Store {
  const { close, ...parts } = store
  const wrapped = Object.entries(parts).map(([part, methods]) => [part, withFaults(part, methods, decide)])
  return { ...(Object.fromEntries(wrapped) as Omit<Store, 'close'>), close: () => close() }
}

/** A store whose calls stop the virtual clock until the database responds. */
export function watchedStore(store: Store, clock: { busy: number }): Store {
  const { close, ...parts } = store
  const wrapped = Object.entries(parts).map(([part, methods]) => [part, watched(methods, clock)])
  return { ...(Object.fromEntries(wrapped) as Omit<Store, 'close'>), close: () => close() }
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

type Methods = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>

function watched(methods: object, clock: { busy: number }): Methods {
  const wrap = (run: Methods[string]) => {
    return (...args: unknown[]) => {
      clock.busy += 1
      return run!(...args).finally(() => (clock.busy -= 1))
    }
  }
  return Object.fromEntries(Object.entries(methods as Methods).map(([method, run]) => [method, wrap(run)]))
}

function withFaults(part: string, methods: object, decide: DecideFault): Methods {
  const wrap = (method: string, run: Methods[string]) => {
    const name = `${part}.${method}`
    return async (...args: unknown[]) => {
      const fault = decide(name, args)
      if (fault === 'before') throw new AppError('unavailable', `${name} failed before it did anything, as planned`)
      const result = await run?.(...args)
      if (fault === 'after') throw new AppError('unavailable', `${name} failed after it was done, as planned`)
      return result
    }
  }
  return Object.fromEntries(Object.entries(methods as Methods).map(([method, run]) => [method, wrap(method, run)]))
}

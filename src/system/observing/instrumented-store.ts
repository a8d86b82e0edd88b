import { AppError } from '../../core/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Store } from '../../ports/store/store.ts'

type Methods = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>

/**
 * A store that reports the duration of each call.
 * @param report called with the name of the operation, such as `jobs.claim`, its duration in ms, and whether the store was unavailable
 * @param failed called with each error
 */
export function instrumentedStore(
  store: Store,
  clock: Clock,
  report: (operation: string, tookMs: number, unavailable: boolean) => void,
  failed: (error: unknown) => void = () => {},
): Store {
  const { close, ...parts } = store
  const measured =
    (operation: string, run: Methods[string]) =>
    async (...args: unknown[]) => {
      const startMs = clock.monotonic()
      try {
        const value = await run?.(...args)
        report(operation, clock.monotonic() - startMs, false)
        return value
      } catch (error) {
        report(operation, clock.monotonic() - startMs, error instanceof AppError && error.code === 'unavailable')
        failed(error)
        throw error
      }
    }
  const groups = Object.entries(parts).filter(([, methods]) => typeof methods === 'object')
  const wrapped = groups.map(([part, methods]) => {
    const entries = Object.entries(methods as unknown as Methods)
    return [part, Object.fromEntries(entries.map(([name, run]) => [name, measured(`${part}.${name}`, run)]))]
  })
  return { ...(Object.fromEntries(wrapped) as Omit<Store, 'close'>), close: () => close() }
}

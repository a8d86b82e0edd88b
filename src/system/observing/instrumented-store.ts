import { AppError } from '../../core/errors.ts'
import type { Clock } from '../../ports/clock.ts'
import type { StoreLayer } from '../../ports/store/operations.ts'

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

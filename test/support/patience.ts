/** Longer waits of tests on a machine with other work. */
import { availableParallelism, loadavg } from 'node:os'

/** Maximum of {@link patience}: a hanging test fails on every machine. */
const MAX_PATIENCE = 6
/** The factor that a slow machine gets by hand. */
const { RUNYARD_TEST_PATIENCE: factor = '1' } = process.env

/**
 * Factor of all waits of tests: 1 on a machine that does nothing, and one more for each process per processor. It is
 * measured at each call, over the last minute.
 */
export function patience(): number {
  return Math.min(MAX_PATIENCE, Number(factor) * (1 + loadavg()[0]! / availableParallelism()))
}

/** A time in milliseconds that would be enough on a machine that does nothing, as it is enough on this one now. */
export function patient(ms: number): number {
  return Math.round(ms * patience())
}

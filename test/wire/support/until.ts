/** Waiting with a deadline. */
import { setTimeout as sleep } from 'node:timers/promises'
import { patient } from '../../support/patience.ts'

export { sleep }

/** Longest pause between two looks, in milliseconds. */
const MAX_PAUSE_MS = 500
/** A pause is at most this part of the time waited so far, so that a long wait costs little and is barely longer. */
const PAUSE_SHARE = 1 / 20

/**
 * The first value of `look` that is neither undefined, null nor false.
 * @param forMs time that is enough on a machine that does nothing; it grows with the load
 * @param everyMs least pause between two looks; pauses grow with the time waited
 * @throws if no such value appears in time, with `what` and the last value
 */
export async function until<Value>(
  condition: string,
  look: () => Value | undefined | null | false | Promise<Value | undefined | null | false>,
  forMs = 30_000,
  everyMs = 50,
): Promise<Value> {
  const began = performance.now()
  let budgetMs = patient(forMs)
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== null && value !== false) return value
    const waitedMs = performance.now() - began
    // The load may have grown since the beginning.
    if (waitedMs > budgetMs) budgetMs = Math.max(budgetMs, patient(forMs))
    if (waitedMs > budgetMs) throw new Error(`after ${budgetMs} ms still waiting for ${condition}`)
    await sleep(Math.max(everyMs, Math.min(MAX_PAUSE_MS, waitedMs * PAUSE_SHARE)))
  }
}

/** Duration of a run, in milliseconds, with its result. */
export async function timed<Value>(run: () => Promise<Value>): Promise<{ value: Value; ms: number }> {
  const began = performance.now()
  const value = await run()
  return { value, ms: performance.now() - began }
}

/** Waiting with a deadline. */
import { setTimeout as sleep } from 'node:timers/promises'

export { sleep }

/**
 * The first value of `look` that is neither undefined, null nor false.
 * @throws when there is none in time, with `what` and the last thing that was seen
 */
export async function until<Value>(
  what: string,
  look: () => Value | undefined | null | false | Promise<Value | undefined | null | false>,
  forMs = 30_000,
  everyMs = 50,
): Promise<Value> {
  const deadline = performance.now() + forMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (performance.now() > deadline) throw new Error(`after ${forMs} ms still waiting for ${what}`)
    await sleep(everyMs)
  }
}

/** How long something takes, in milliseconds, with its result. */
export async function timed<Value>(run: () => Promise<Value>): Promise<{ value: Value; ms: number }> {
  const began = performance.now()
  const value = await run()
  return { value, ms: performance.now() - began }
}

/** A lock in memory that several threads share. */

/** Tries before a thread that waits gives its processor away. */
const SPINS = 200
/** Time for which it does, in milliseconds: whoever has the lock may have lost its processor. */
const PAUSE_MS = 0.1

/** Takes the lock in one word of shared memory. Hold it for a few instructions, which cannot throw. */
export function lock(words: Int32Array, at: number): void {
  for (let tries = 1; Atomics.compareExchange(words, at, 0, 1) !== 0; tries += 1) {
    if (tries % SPINS === 0) Atomics.wait(words, at, 1, PAUSE_MS)
  }
}

/** Gives the lock back. */
export function unlock(words: Int32Array, at: number): void {
  Atomics.store(words, at, 0)
}

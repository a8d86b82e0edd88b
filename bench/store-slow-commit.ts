/** Additional duration of a flush on the emulated slow disk, in milliseconds. */
export const SLOW_FLUSH_MS = 5

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** A commit on a slow disk: blocks the thread like fsync. */
export function slowCommit(commit: () => void): void {
  Atomics.wait(sleeper, 0, 0, SLOW_FLUSH_MS)
  commit()
}

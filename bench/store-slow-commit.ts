/** How much longer a flush of the emulated slow disk takes. */
export const SLOW_FLUSH_MS = 5

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** A commit on a slow disk: the thread stands still, as it does in fsync. */
export function slowCommit(commit: () => void): void {
  Atomics.wait(sleeper, 0, 0, SLOW_FLUSH_MS)
  commit()
}

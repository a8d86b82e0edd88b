import type { Clock } from '../ports/clock.ts'

/** The longest that a timer of Node takes; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** The machine's time. A timer that waits keeps the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: startTimer,
}

function startTimer(ms: number, callback: () => void): () => void {
  // The shortest timer of Node takes a millisecond and more.
  if (ms <= 0) {
    const immediate = setImmediate(callback)
    return () => clearImmediate(immediate)
  }
  let remaining = ms
  let timer: NodeJS.Timeout
  const arm = () => {
    const step = Math.min(remaining, LONGEST_TIMER_MS)
    remaining -= step
    timer = setTimeout(remaining > 0 ? arm : callback, step)
  }
  arm()
  return () => clearTimeout(timer)
}

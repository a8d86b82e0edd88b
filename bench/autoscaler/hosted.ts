/**
 * The scalers of the hosted service, as its documentation describes them: QUEUE_DELAY adds a worker if jobs wait
 * longer than the delay, REQUEST_COUNT wants the queued and running jobs divided by the count. A worker ends
 * after an idle timeout of 5 s.
 */
import type { Autoscaler } from './pool.ts'

const IDLE_MS = 5_000

/** Adds a worker each time that the wait of the first job grows by the delay. */
export function hostedQueueDelay(delayMs: number): Autoscaler {
  let addedAtMs = Number.NEGATIVE_INFINITY
  return {
    everyMs: 500,
    idleMs: IDLE_MS,
    passes() {},
    decide({ nowMs, headQueuedAtMs, ready, starting, queued, inFlight }) {
      const present = ready + starting
      if (queued + inFlight === 0) return 0
      if (present === 0) {
        addedAtMs = nowMs
        return 1
      }
      const waits = headQueuedAtMs !== null && nowMs - headQueuedAtMs >= delayMs
      if (!waits) return queued === 0 ? Math.max(1, Math.ceil(inFlight)) : present
      if (nowMs - addedAtMs < delayMs) return present
      addedAtMs = nowMs
      return Math.min(present + 1, queued + inFlight)
    },
  }
}

/** Wants a worker for each `count` jobs. */
export function hostedRequestCount(count: number): Autoscaler {
  return {
    everyMs: 500,
    idleMs: IDLE_MS,
    passes() {},
    decide: ({ queued, inFlight }) => Math.ceil((queued + inFlight) / count),
  }
}

/**
 * The pod autoscaler of Knative Serving, as its documentation describes it
 * (knative.dev/docs/serving/autoscaling/kpa-specific), with its defaults: a decision every 2 s from the average
 * concurrency of a stable window of 60 s and of a panic window of a tenth of it, divided by the target. It panics if
 * the panic window wants twice the number of ready pods, and then only adds pods until a stable window passes without
 * such a want. One decision multiplies the pods by a thousand at most and by a half at least. Zero only after a
 * stable window without requests; the grace period is left out, in its favor.
 */
import type { Autoscaler, PoolState } from './pool.ts'

const TICK_MS = 2_000
const STABLE_MS = 60_000
const PANIC_MS = 6_000
const PANIC_FACTOR = 2
const MAX_UP = 1_000
const MAX_DOWN = 2

/** @param concurrency the hard limit of a pod @param utilization the part of it that is the target, 0.7 by default */
export function knative(concurrency: number, utilization: number): Autoscaler {
  const target = Math.max(0.01, concurrency * utilization)
  /** The sums of jobs over time of the last intervals, the newest last. */
  const intervals: number[] = []
  let interval = 0
  let intervalMs = 0
  let panicSinceMs: number | null = null
  let panicMost = 0

  const average = (windowMs: number) => {
    const last = intervals.slice(-windowMs / TICK_MS)
    return last.reduce((sum, part) => sum + part, 0) / windowMs
  }

  return {
    everyMs: TICK_MS,
    idleMs: 0,
    passes(ms, jobs) {
      for (let remainingMs = ms; remainingMs > 0; ) {
        const part = Math.min(remainingMs, TICK_MS - intervalMs)
        interval += part * jobs
        intervalMs += part
        remainingMs -= part
        if (intervalMs < TICK_MS) continue
        intervals.push(interval)
        if (intervals.length > STABLE_MS / TICK_MS) intervals.shift()
        interval = 0
        intervalMs = 0
      }
    },
    decide({ nowMs, ready: isReady, queued, inFlight }: PoolState) {
      const ready = Math.max(1, isReady)
      const within = (wanted: number) => Math.min(Math.max(wanted, Math.floor(ready / MAX_DOWN)), MAX_UP * ready)
      const stable = average(STABLE_MS)
      const fromStable = stable === 0 ? 0 : within(Math.ceil(stable / target))
      const fromPanic = within(Math.ceil(average(PANIC_MS) / target))
      if (fromPanic / ready >= PANIC_FACTOR) panicSinceMs = nowMs
      else if (panicSinceMs !== null && nowMs - panicSinceMs > STABLE_MS) panicSinceMs = null
      if (panicSinceMs === null) panicMost = 0
      else panicMost = Math.max(panicMost, fromPanic, fromStable, isReady)
      const wanted = panicSinceMs === null ? fromStable : panicMost
      // The activator asks for a first pod at once.
      return Math.max(wanted, queued + inFlight > 0 ? 1 : 0)
    },
  }
}

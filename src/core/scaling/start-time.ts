/** How long workers of an endpoint take from their place to their first take, as measured. */
import type { Worker } from '../workers/worker.ts'

/** The median of the workers that became ready, present and ended, in milliseconds; null where none did. */
export function measuredStartMs(workers: readonly Worker[], exits: readonly Worker[]): number | null {
  const times = [...workers, ...exits]
    .flatMap(worker => (worker.readyAtMs === null ? [] : [Math.max(0, worker.readyAtMs - beganAtMs(worker))]))
    .sort((a, b) => a - b)
  return times[Math.floor((times.length - 1) / 2)] ?? null
}

/** How much of a start of this length a worker has before it, in milliseconds; 0 for one that is ready. */
export function remainingStartMs(worker: Worker, startMs: number, nowMs: number): number {
  if (worker.state !== 'STARTING') return 0
  return Math.min(startMs, Math.max(0, beganAtMs(worker) + startMs - nowMs))
}

function beganAtMs({ placedAtMs, createdAtMs }: Worker): number {
  return placedAtMs ?? createdAtMs
}

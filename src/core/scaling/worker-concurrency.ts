/** Jobs that workers run at once, as far as their takes have shown. */
import type { Worker } from '../workers/worker.ts'

/**
 * Jobs that one worker runs at once.
 * @param typical value of its endpoint's workers, for one that has not taken jobs yet
 */
export function expectedConcurrency({ state, capacity }: Worker, typical: number): number {
  return state === 'READY' ? Math.max(1, capacity) : Math.max(capacity, typical)
}

/**
 * Jobs that a further worker of the endpoint will run at once: the median of the ready workers, the smaller of
 * two, so that one worker that asked for many jobs does not decide for all. Without a ready one, the median of
 * ended workers that were ready; 1 without these.
 */
export function typicalConcurrency(workers: readonly Worker[], exits: readonly Worker[]): number {
  const ready = workers.filter(({ state }) => state === 'READY')
  const measured = ready.length > 0 ? ready : exits.filter(({ readyAtMs }) => readyAtMs !== null)
  const sorted = measured.map(({ capacity }) => capacity).sort((a, b) => a - b)
  return Math.max(1, sorted[Math.floor((sorted.length - 1) / 2)] ?? 1)
}

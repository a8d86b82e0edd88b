/** Measured time of workers of an endpoint from their placement to their first take. */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Worker } from '../workers/worker.ts'

/** Median of the workers that became ready, present and ended, in milliseconds; null without any. */
export function measuredStartMs(workers: readonly Worker[], exits: readonly Worker[]): number | null {
  const times = [...workers, ...exits]
    .flatMap(worker => (worker.readyAtMs === null ? [] : [Math.max(0, worker.readyAtMs - beganAtMs(worker))]))
    .sort((a, b) => a - b)
  return times[Math.floor((times.length - 1) / 2)] ?? null
}

/** Existing and ended workers of an endpoint. */
interface KnownWorkers {
  readonly endpoint: Pick<Endpoint, 'version'>
  readonly workers: readonly Worker[]
  readonly exits: readonly Worker[]
}

/** {@link measuredStartMs} of the workers of the endpoint's present release. */
export function presentStartMs({ endpoint, workers, exits }: KnownWorkers): number | null {
  const isPresent = ({ version }: Worker) => version === endpoint.version
  return measuredStartMs(workers.filter(isPresent), exits.filter(isPresent))
}

/** Remaining time of a worker's start of this length, in milliseconds; 0 for a ready worker. */
export function remainingStartMs(worker: Worker, startMs: number, nowMs: number): number {
  if (worker.state !== 'STARTING') return 0
  return Math.min(startMs, Math.max(0, beganAtMs(worker) + startMs - nowMs))
}

function beganAtMs({ placedAtMs, createdAtMs }: Worker): number {
  return placedAtMs ?? createdAtMs
}

/** How long workers of an endpoint take from their place to their first take, as measured. */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Worker } from '../workers/worker.ts'

/** The median of the workers that became ready, present and ended, in milliseconds; null where none did. */
export function measuredStartMs(workers: readonly Worker[], exits: readonly Worker[]): number | null {
  const times = [...workers, ...exits]
    .flatMap(worker => (worker.readyAtMs === null ? [] : [Math.max(0, worker.readyAtMs - beganAtMs(worker))]))
    .sort((a, b) => a - b)
  return times[Math.floor((times.length - 1) / 2)] ?? null
}

/** The workers of an endpoint that are there, and those that have ended. */
interface KnownWorkers {
  readonly endpoint: Pick<Endpoint, 'version'>
  readonly workers: readonly Worker[]
  readonly exits: readonly Worker[]
}

/** As {@link measuredStartMs}, of the workers of the endpoint's present release. */
export function presentStartMs({ endpoint, workers, exits }: KnownWorkers): number | null {
  const isPresent = ({ version }: Worker) => version === endpoint.version
  return measuredStartMs(workers.filter(isPresent), exits.filter(isPresent))
}

/** How much of a start of this length a worker has before it, in milliseconds; 0 for one that is ready. */
export function remainingStartMs(worker: Worker, startMs: number, nowMs: number): number {
  if (worker.state !== 'STARTING') return 0
  return Math.min(startMs, Math.max(0, beganAtMs(worker) + startMs - nowMs))
}

function beganAtMs({ placedAtMs, createdAtMs }: Worker): number {
  return placedAtMs ?? createdAtMs
}

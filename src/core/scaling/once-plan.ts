/** Plan for the one worker of a task, which runs once. */
import { takesJobs } from '../workers/worker.ts'
import type { Drain, EndpointSnapshot } from './scale.ts'

/** Result of {@link planOnce}. */
export interface OncePlan {
  readonly start: number
  readonly desired: number
  readonly drain: readonly Drain[]
}

/**
 * Starts the worker of a task that never had one. Nothing takes its place after its end, and nothing but a request of
 * its owner ends it before.
 */
export function planOnce({ endpoint, workers, exits }: EndpointSnapshot): OncePlan {
  const isOver = endpoint.workersMax === 0 || exits.length > 0
  const unwanted = endpoint.workersMax === 0 ? workers.filter(takesJobs) : []
  return {
    start: isOver || workers.length > 0 ? 0 : 1,
    desired: isOver ? 0 : 1,
    drain: unwanted.map(worker => ({ worker, reason: 'requested' as const })),
  }
}

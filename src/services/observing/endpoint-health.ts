import { notFound } from '../../core/errors.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { countWorkers, isReady, shownWorkers } from '../../core/observing/worker-status.ts'
import { type EndpointSnapshot, waitingCount } from '../../core/scaling/scale.ts'
import type { LoadBalancer } from '../balancing/load-balancer.ts'

/** Counts of jobs, or of running and queued requests, and of workers of an endpoint, by the names that clients use. */
export interface EndpointHealth {
  readonly jobs: { completed: number; failed: number; inProgress: number; inQueue: number; retried: number }
  readonly workers: {
    idle: number
    initializing: number
    ready: number
    running: number
    throttled: number
    unhealthy: number
  }
}

/**
 * The health of an endpoint. Reading it starts no worker.
 * @throws AppError `not_found`
 */
export async function readEndpointHealth(balancing: LoadBalancer, id: EndpointId): Promise<EndpointHealth> {
  const snapshot = await balancing.snapshot(id)
  if (snapshot === null) throw notFound('endpoint', id)
  return endpointHealth(snapshot)
}

/** Counts of workers of an endpoint, for clients that wait for a worker. `readyWorkers` has ids, oldest first. */
export interface WorkerMetrics extends EndpointHealth {
  readonly readyWorkers: readonly WorkerId[]
}

/**
 * As {@link readEndpointHealth}, with the workers that are ready.
 * @throws AppError `not_found`
 */
export async function readWorkerMetrics(balancing: LoadBalancer, id: EndpointId): Promise<WorkerMetrics> {
  const snapshot = await balancing.snapshot(id)
  if (snapshot === null) throw notFound('endpoint', id)
  const ready = shownWorkers(snapshot).filter(isReady)
  return { readyWorkers: ready.map(({ id }) => id), ...endpointHealth(snapshot) }
}

function endpointHealth(snapshot: EndpointSnapshot): EndpointHealth {
  const { completed, failed, retried } = snapshot.counters
  const { queue } = snapshot
  const { idle, initializing, ready, running, throttled, unhealthy } = countWorkers(shownWorkers(snapshot))
  return {
    jobs: { completed, failed, inProgress: queue.inProgress, inQueue: waitingCount(queue), retried },
    workers: { idle, initializing, ready, running, throttled, unhealthy },
  }
}

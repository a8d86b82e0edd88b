import { notFound } from '../core/errors.ts'
import type { EndpointId, WorkerId } from '../core/ids.ts'
import type { EndpointSnapshot } from '../core/scale.ts'
import { crashed } from '../core/worker.ts'
import type { Store } from '../ports/store.ts'

/** Counts of jobs and workers of an endpoint, as clients know them. */
export interface Health {
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
 * The health of an endpoint. Looking at it wakes nothing.
 * @throws AppError `not_found`
 */
export async function readHealth(store: Store, id: EndpointId): Promise<Health> {
  const snapshot = await store.endpoints.snapshot(id)
  if (snapshot === null) throw notFound('endpoint', id)
  return healthOf(snapshot)
}

/** The workers of an endpoint, as clients that wait for one ask for them. `readyWorkers` are ids, the oldest first. */
export interface WorkerMetrics extends Health {
  readonly readyWorkers: readonly WorkerId[]
}

/**
 * As {@link readHealth}, with the workers that are ready.
 * @throws AppError `not_found`
 */
export async function readWorkerMetrics(store: Store, id: EndpointId): Promise<WorkerMetrics> {
  const snapshot = await store.endpoints.snapshot(id)
  if (snapshot === null) throw notFound('endpoint', id)
  const ready = snapshot.workers.filter(worker => worker.state !== 'STARTING')
  return { readyWorkers: ready.map(worker => worker.id), ...healthOf(snapshot) }
}

function healthOf({ counters, queue, workers, exits, endpoint }: EndpointSnapshot): Health {
  const { completed, failed, retried } = counters
  const started = workers.filter(worker => worker.state !== 'STARTING')
  const running = started.filter(worker => worker.held > 0).length
  const idle = started.length - running
  const ended = exits[0] !== undefined && crashed(exits[0]) && exits[0].version === endpoint.version ? 1 : 0
  const ailing = workers.filter(worker => worker.problem !== null).length
  return {
    jobs: { completed, failed, inProgress: queue.inProgress, inQueue: queue.queued + queue.queuedLowPriority, retried },
    workers: {
      ...{ idle, initializing: workers.length - started.length, ready: idle + running },
      ...{ running, throttled: 0, unhealthy: ailing > 0 || started.length > 0 ? ailing : ended },
    },
  }
}

import type { WorkerId } from '../ids.ts'
import type { EndpointSnapshot } from '../scaling/scale.ts'
import type { QueuedWorker } from '../workers/placement.ts'
import { reclaimText, waitForPlaceText } from '../workers/platform-report.ts'
import { crashed, exitText, isPaused, type Worker, type WorkerLoad, waitsForPlace } from '../workers/worker.ts'
import { problemText } from '../workers/worker-problem.ts'
import { pauseText, type UrgentNames } from './pause-words.ts'

/** The statuses of a worker that clients see. */
export const WORKER_STATUSES = ['RUNNING', 'IDLE', 'INITIALIZING', 'THROTTLED', 'UNHEALTHY'] as const
/** One of {@link WORKER_STATUSES}. */
export type WorkerStatus = (typeof WORKER_STATUSES)[number]

/** The workers of an endpoint at one instant. */
export type EndpointWorkers = Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits' | 'queuedWorkers'>

/** A worker as all surfaces show and count it. */
export interface ShownWorker {
  readonly id: WorkerId
  readonly version: number
  readonly status: WorkerStatus
  /** True if its endpoint has a newer version. */
  readonly isStale: boolean
  /** Jobs that it holds or still has to stop. */
  readonly held: number
  /** The stored record; null for one without a place. */
  readonly worker: Worker | null
  /** Null unless it waits for a place. */
  readonly queued: QueuedWorker | null
  /** Obstacle that keeps it from working, as a clause; null without an obstacle. */
  readonly reason: string | null
}

/**
 * The workers of an endpoint that people see, oldest first: those that have not ended, those without a place, and the
 * last one that crashed until another one is ready in its place.
 * @param names of endpoints for which workers are paused
 */
export function shownWorkers(of: EndpointWorkers, names: UrgentNames = new Map()): ShownWorker[] {
  const { endpoint, workers, queuedWorkers } = of
  const shown: ShownWorker[] = []
  const show = (id: WorkerId, version: number, more: Omit<ShownWorker, 'id' | 'version' | 'isStale'>) =>
    shown.push({ id, version, isStale: version !== endpoint.version, ...more })
  const failing = failingWorker(of)
  if (failing !== null) {
    const reason = failing.exit && exitText(failing, failing.exit)
    show(failing.id, failing.version, { status: 'UNHEALTHY', held: 0, worker: failing, queued: null, reason })
  }
  for (const worker of workers) {
    const { id, version, held, problem } = worker
    const reason = problem === null ? (pauseText(worker, names) ?? platformReason(worker)) : problemText(problem)
    show(id, version, { status: workerStatus(worker), held, worker, queued: null, reason })
  }
  for (const queued of queuedWorkers) {
    const { id, version, reason, resource } = queued
    const status = resource === 'models' ? 'INITIALIZING' : 'THROTTLED'
    show(id, version, { status, held: 0, worker: null, queued, reason })
  }
  return shown
}

/** Number of workers of each kind; they sum to `total`. `ready` are those of them that work or wait for work. */
export interface WorkerCounts {
  readonly running: number
  readonly idle: number
  readonly initializing: number
  readonly throttled: number
  readonly unhealthy: number
  readonly total: number
  readonly ready: number
}

/** The counts of {@link shownWorkers}. */
export function countWorkers(shown: readonly ShownWorker[]): WorkerCounts {
  const count = (status: WorkerStatus) => shown.filter(worker => worker.status === status).length
  return {
    running: count('RUNNING'),
    idle: count('IDLE'),
    initializing: count('INITIALIZING'),
    throttled: count('THROTTLED'),
    unhealthy: count('UNHEALTHY'),
    total: shown.length,
    ready: shown.filter(isReady).length,
  }
}

/** True if the worker works, or may get work. */
export function isReady({ status, worker }: ShownWorker): boolean {
  return status === 'RUNNING' || (status === 'IDLE' && worker?.state === 'READY')
}

/** The obstacle that the platform of a worker reports. */
function platformReason(worker: WorkerLoad): string | null {
  const { platform } = worker
  if (platform === null) return null
  if (platform.leaves !== null) return reclaimText(platform.leaves)
  return platform.waits !== null && waitsForPlace(worker) ? waitForPlaceText(platform.waits) : null
}

/**
 * The status of a worker that has not ended. One that ends without ever having been ready counts as it did before; a
 * frozen one is idle. A paused one cannot run now, whatever it holds. One that waits for a place on its platform has
 * the status of one that waits for a place on the machine.
 */
function workerStatus(worker: WorkerLoad): WorkerStatus {
  const { state, held, problem, readyAtMs } = worker
  if (problem !== null) return 'UNHEALTHY'
  if (isPaused(worker)) return 'THROTTLED'
  if (held > 0) return 'RUNNING'
  if (waitsForPlace(worker)) return 'THROTTLED'
  return state === 'STARTING' || readyAtMs === null ? 'INITIALIZING' : 'IDLE'
}

function failingWorker({ endpoint, workers, exits }: EndpointWorkers): Worker | null {
  const last = exits[0]
  if (last === undefined || !crashed(last) || last.version !== endpoint.version) return null
  return workers.some(({ state, problem }) => state !== 'STARTING' || problem !== null) ? null : last
}

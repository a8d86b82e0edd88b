/**
 * Workers of an endpoint whose newest release is a canary: a share of them runs it, the others run the previous
 * release.
 */
import { ROLLED_OUT } from '../endpoints/rollout-facts.ts'
import { takesJobs, type WorkerLoad } from '../workers/worker.ts'
import type { PlannedRelease } from './rollout.ts'
import { desiredWorkers, type EndpointSnapshot } from './scale.ts'

/** The endpoint as the plan of each of its two releases sees it: with its own workers and its part of workersMax. */
export interface CanaryViews {
  readonly base: EndpointSnapshot
  readonly canary: EndpointSnapshot
}

/**
 * Divides an endpoint between its canary and its base, so that each can be planned by itself.
 *
 * The canary gets its percentage of the workers that the load keeps busy or needs, rounded up, and never all of
 * workersMax. The base is planned for the whole load, so jobs and requests have enough workers even if the canary
 * does not work. Without load the canary has no workers after the idle timeout. Its workers are not frozen.
 * @returns null if the newest release is not a canary
 */
export function canaryViews({ snapshot, canary }: PlannedRelease, nowMs: number): CanaryViews | null {
  if (canary === null) return null
  const { endpoint, percent } = canary
  const isCanary = ({ version }: WorkerLoad) => version === endpoint.version
  const own = snapshot.workers.filter(isCanary)
  const others = snapshot.workers.filter(worker => !isCanary(worker))
  const { workersMin, workersMax } = snapshot.endpoint
  const loaded: EndpointSnapshot = { ...withoutCanaryJobs(snapshot, own), workers: others, rollout: ROLLED_OUT }
  const taking = others.filter(takesJobs)
  const busy = taking.filter(({ held }) => held > 0)
  const { desired } = desiredWorkers(loaded, nowMs)
  const wanted = canaryWorkers(percent, Math.max(desired, busy.length), workersMax)
  // Idle workers of the base start no worker of the canary, and its existing workers end after their idle time.
  const share = canaryWorkers(percent, Math.max(desired, taking.length), workersMax)
  const ready = own.filter(({ state }) => state === 'READY').length
  const ofBase = workersMax - Math.max(share, own.length)
  const baseMax = Math.max(0, Math.min(Math.max(1, ofBase), workersMax - own.length))
  const baseMin = Math.min(baseMax, Math.max(0, workersMin - ready))
  const canaryMax = Math.min(share, Math.max(own.filter(takesJobs).length, workersMax - others.length))
  return {
    base: { ...loaded, endpoint: { ...loaded.endpoint, workersMin: baseMin, workersMax: baseMax } },
    canary: {
      ...withoutNamed(snapshot, own),
      endpoint: { ...endpoint, workersMin: Math.min(wanted, canaryMax), workersMax: canaryMax, flashboot: 'OFF' },
      workers: own,
      rollout: ROLLED_OUT,
    },
  }
}

/** Number of workers of a canary. @param workers number that the load needs, or that exist */
function canaryWorkers(percent: number, workers: number, workersMax: number): number {
  if (workers === 0) return 0
  return Math.max(0, Math.min(Math.ceil((workers * percent) / 100), workersMax - 1))
}

/** The snapshot without the jobs of the canary, which need no worker of the base. */
function withoutCanaryJobs(snapshot: EndpointSnapshot, workers: readonly WorkerLoad[]): EndpointSnapshot {
  const held = workers.reduce((sum, worker) => sum + worker.held, 0)
  const { queue } = snapshot
  return { ...snapshot, queue: { ...queue, inProgress: Math.max(0, queue.inProgress - held) } }
}

/**
 * The snapshot with only those named workers that are in `workers`, and without ended ones that requests name: only
 * the base starts these again.
 */
function withoutNamed(snapshot: EndpointSnapshot, workers: readonly WorkerLoad[]): EndpointSnapshot {
  const { requests } = snapshot
  if (requests === undefined) return snapshot
  const named = requests.named.filter(id => workers.some(worker => worker.id === id))
  return { ...snapshot, requests: { ...requests, named, resumed: [] } }
}

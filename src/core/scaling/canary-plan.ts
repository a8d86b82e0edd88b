/** The workers of an endpoint whose newest release is a canary: a share of them run it, beside those of the release before. */
import { ROLLED_OUT } from '../endpoints/rollout-facts.ts'
import { takesJobs, type WorkerLoad } from '../workers/worker.ts'
import type { PlannedRelease } from './rollout.ts'
import { desiredWorkers, type EndpointSnapshot } from './scale.ts'

/** The endpoint as each of its two releases is planned, each with its own workers and its part of workersMax. */
export interface CanaryViews {
  readonly base: EndpointSnapshot
  readonly canary: EndpointSnapshot
}

/**
 * Divides an endpoint between its canary and the base of that, so that each can be planned by itself.
 *
 * The canary has its percentage of the workers that the load keeps busy or wants, rounded up, and never all that there may be. The
 * base is planned for the whole load, so jobs and requests have enough workers whether the canary works or not. Without load the canary
 * has none after the idle timeout. Its workers are not frozen.
 * @returns null where the newest release is no canary
 */
export function canaryViews({ snapshot, canary }: PlannedRelease, nowMs: number): CanaryViews | null {
  if (canary === null) return null
  const { endpoint, percent } = canary
  const isCanary = ({ version }: WorkerLoad) => version === endpoint.version
  const own = snapshot.workers.filter(isCanary)
  const others = snapshot.workers.filter(worker => !isCanary(worker))
  const { workersMin, workersMax } = snapshot.endpoint
  const loaded: EndpointSnapshot = { ...withoutJobsOf(snapshot, own), workers: others, rollout: ROLLED_OUT }
  const taking = others.filter(takesJobs)
  const busy = taking.filter(({ held }) => held > 0)
  const { desired } = desiredWorkers(loaded, nowMs)
  const wanted = shareOf(percent, Math.max(desired, busy.length), workersMax)
  // Beside idle workers of the base none is started, and those that there are go after their idle time.
  const share = shareOf(percent, Math.max(desired, taking.length), workersMax)
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

/** Number of workers that a canary has. @param workers those that the load wants, or that there are */
function shareOf(percent: number, workers: number, workersMax: number): number {
  if (workers === 0) return 0
  return Math.max(0, Math.min(Math.ceil((workers * percent) / 100), workersMax - 1))
}

/** Jobs that the canary runs ask for no worker of the base. */
function withoutJobsOf(snapshot: EndpointSnapshot, workers: readonly WorkerLoad[]): EndpointSnapshot {
  const held = workers.reduce((sum, worker) => sum + worker.held, 0)
  const { queue } = snapshot
  return { ...snapshot, queue: { ...queue, inProgress: Math.max(0, queue.inProgress - held) } }
}

/** Workers that requests wait for by name are started again by the base alone. */
function withoutNamed(snapshot: EndpointSnapshot, workers: readonly WorkerLoad[]): EndpointSnapshot {
  const { requests } = snapshot
  if (requests === undefined) return snapshot
  const named = requests.named.filter(id => workers.some(worker => worker.id === id))
  return { ...snapshot, requests: { ...requests, named, resumed: [] } }
}

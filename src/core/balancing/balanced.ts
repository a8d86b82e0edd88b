/**
 * Load-balancing endpoints in the terms of queue endpoints: waiting requests are the queue, requests and sockets in
 * flight are the jobs of workers. Scaling, placement, display and explanations therefore need few special cases.
 */

import type { WorkerId } from '../ids.ts'
import type { EndpointSnapshot, RequestFacts } from '../scaling/scale.ts'
import type { BalancedEndpoint, ServedAt, Target, TargetState } from '../workers/socket-address.ts'
import { isFrozen, takesJobs, type WorkerLoad } from '../workers/worker.ts'
import type { HealthProblem } from '../workers/worker-problem.ts'
import type { WorkerHealth } from './health-check.ts'
import { healthProblem } from './health-check.ts'
import type { TrafficLoad, WorkerTraffic } from './traffic.ts'

/** State of a worker that serves requests, besides its record. */
export interface ServingWorker {
  readonly health: WorkerHealth
  /** Null while unknown. */
  readonly servedAt: ServedAt | null
  /** Port of its health check, for people. */
  readonly port: number
}

/** The state of the workers of an endpoint, by id. */
export type ServingWorkers = (id: WorkerId) => ServingWorker | undefined

/**
 * State of a worker for the choice of requests. A worker that was healthy when it was frozen has to pass a health
 * check after its thaw.
 */
export function targetState(worker: Pick<WorkerLoad, 'state'>, serving: ServingWorker | undefined): TargetState {
  if (worker.state === 'DRAINING' || worker.state === 'STOPPING' || worker.state === 'EXITED') return 'draining'
  if (isFrozen(worker)) return 'starting'
  return serving?.health.state === 'healthy' ? 'ready' : 'starting'
}

/** The workers that can get requests, now or soon. */
export function balancingTargets(workers: readonly WorkerLoad[], serving: ServingWorkers): Target[] {
  return workers.flatMap(worker => {
    if (worker.serves === null) return []
    const { id: workerId, version } = worker
    const servedAt = serving(workerId)?.servedAt ?? null
    return [{ workerId, version, state: targetState(worker, serving(workerId)), servedAt }]
  })
}

/** Fields of an endpoint that concern the spread of its requests. */
export function balancedEndpoint(
  { endpoint, rollout }: Pick<EndpointSnapshot, 'endpoint' | 'rollout'>,
  maxConcurrency: number | null,
): BalancedEndpoint {
  const { id, owner, scaler, workersMax } = endpoint
  const newest = rollout.canary === null ? endpoint.version : null
  const version = rollout.stop === null ? newest : (rollout.working?.version ?? newest)
  const requestCount = scaler.type === 'REQUEST_COUNT' ? scaler.requestCount : 1
  return { id, owner, version, requestCount, maxConcurrency, paused: workersMax === 0 }
}

/** An endpoint with its requests. */
export type BalancedSnapshot = EndpointSnapshot & { readonly requests: RequestFacts }

/** An endpoint with its requests as the queue and as the work of its workers. */
export function withTraffic(
  snapshot: EndpointSnapshot,
  traffic: TrafficLoad,
  serving: ServingWorkers,
  more: Pick<RequestFacts, 'maxConcurrency' | 'peak'>,
): BalancedSnapshot {
  const byId = new Map(traffic.workers.map(of => [of.workerId, of]))
  const { queued, headQueuedAtMs } = waitingWork(snapshot, traffic)
  const inProgress = traffic.workers.reduce((sum, { inFlight }) => sum + inFlight, 0)
  const alive = new Set(snapshot.workers.map(({ id }) => id))
  return {
    ...snapshot,
    queue: { ...snapshot.queue, queued, inProgress, headQueuedAtMs },
    workers: snapshot.workers.map(worker => withRequests(worker, byId.get(worker.id), serving(worker.id))),
    requests: {
      ...more,
      resumed: traffic.resumed.filter(id => !alive.has(id)),
      named: traffic.named.filter(id => alive.has(id)),
      healthProblems: findHealthProblems(snapshot, serving),
    },
  }
}

/** The waiting requests; a task that has had no worker waits itself, also while nobody asks for it. */
function waitingWork(
  { endpoint, workers, exits }: EndpointSnapshot,
  { waiting, waitingSinceMs }: TrafficLoad,
): { queued: number; headQueuedAtMs: number | null } {
  const isTask = endpoint.runsOnce && endpoint.workersMax > 0 && workers.length + exits.length === 0
  if (!isTask) return { queued: waiting, headQueuedAtMs: waitingSinceMs }
  return { queued: Math.max(waiting, 1), headQueuedAtMs: endpoint.createdAtMs }
}

/**
 * A worker that serves requests, with its requests and the result of its health check; all other workers unchanged.
 */
export function withRequests(
  worker: WorkerLoad,
  traffic: WorkerTraffic | undefined,
  serving: ServingWorker | undefined,
): WorkerLoad {
  if (worker.serves === null) return worker
  const { state, readyAtMs } = worker
  // A task works also while nobody asks for its result.
  const held = Math.max(traffic?.inFlight ?? 0, worker.serves.once === true && state === 'READY' ? 1 : 0)
  const isIll = takesJobs(worker) && serving?.health.state === 'unhealthy'
  const problem = worker.problem ?? (isIll ? healthProblem(serving.health, worker.serves, serving.port) : null)
  // A worker that is out of the rotation for a moment gets no requests, like one that has not started.
  const waits = state === 'READY' && problem === null && serving?.health.state !== 'healthy'
  return {
    ...worker,
    held,
    problem,
    state: waits ? 'STARTING' : state,
    idleSinceMs: traffic === undefined ? readyAtMs : idleSince(worker, traffic),
  }
}

/** A thawed worker begins its idle time again. */
function idleSince({ thawedAtMs }: WorkerLoad, { idleSinceMs }: WorkerTraffic): number | null {
  return idleSinceMs === null || thawedAtMs === null ? idleSinceMs : Math.max(idleSinceMs, thawedAtMs)
}

function findHealthProblems(
  { workers }: EndpointSnapshot,
  servingWorker: ServingWorkers,
): Map<WorkerId, HealthProblem> {
  const problems = new Map<WorkerId, HealthProblem>()
  for (const { id, serves } of workers) {
    const serving = servingWorker(id)
    const problem =
      serves === null || serving === undefined ? null : healthProblem(serving.health, serves, serving.port)
    if (problem !== null) problems.set(id, problem)
  }
  return problems
}

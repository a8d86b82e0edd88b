import { type Endpoint, type EndpointCounters, idleTimeoutMs } from '../endpoints/endpoint.ts'
import type { EndpointId, WorkerId } from '../ids.ts'
import type { QueuedWorker } from '../workers/placement.ts'
import { type CrashBackoff, crashBackoff, takesJobs, type Worker, type WorkerLoad } from '../workers/worker.ts'
import type { HealthProblem } from '../workers/worker-problem.ts'
import { workersForDelay } from './queue-delay.ts'

/** The line of an endpoint at one instant. `queued` leaves low-priority jobs out; they never start a worker. */
export interface QueueLoad {
  readonly queued: number
  readonly queuedLowPriority: number
  /** Those of both that wait for a turn of their batch. */
  readonly queuedOfBatches: number
  readonly inProgress: number
  /** How many of `queued` and of `inProgress` are suspects, which run alone (see core/job). */
  readonly suspectsQueued: number
  readonly suspectsInProgress: number
  /** Since when the head of the line (low priority left out) waits, or a batch for its turn; of suspects only where no others wait. Null when nobody does. */
  readonly headQueuedAtMs: number | null
}

/** What a worker is about, for people who look at numbers. `idle` and `running` are READY without and with jobs. */
export type WorkerCondition = 'starting' | 'idle' | 'running' | 'draining' | 'stopping'

/** The line and the workers of one endpoint in numbers. */
export interface EndpointLoad {
  readonly endpointId: EndpointId
  readonly queue: QueueLoad
  readonly workers: Readonly<Record<WorkerCondition, number>>
}

/** What is known of the requests of a load-balancing endpoint besides its line and what its workers hold. */
export interface RequestFacts {
  /** Most requests in flight per worker; null for no limit. */
  readonly maxConcurrency: number | null
  /** Workers that have ended and that requests wait for by name. */
  readonly resumed: readonly WorkerId[]
  /** Most workers that were wanted at once lately, for as long as core/peak says; null while that is not known. */
  readonly peak: number | null
  /** What the last health checks of workers found that are not healthy. */
  readonly healthProblems: ReadonlyMap<WorkerId, HealthProblem>
}

/** One endpoint with everything that scaling, planning and explaining look at. */
export interface EndpointSnapshot {
  readonly endpoint: Endpoint
  readonly counters: EndpointCounters
  readonly queue: QueueLoad
  /** Workers that have not ended, oldest first. */
  readonly workers: readonly WorkerLoad[]
  /** Workers of its version that wait for a place on the machine, the first one first; at most 100. */
  readonly queuedWorkers: readonly QueuedWorker[]
  /** Workers that have ended, newest first, a bounded number. */
  readonly exits: readonly Worker[]
  /** Of a load-balancing endpoint, whose line and workers tell of its requests; see core/balanced. */
  readonly requests?: RequestFacts
}

/** How many workers there should be, and when the answer may change without anything happening. */
export interface ScaleDecision {
  readonly desired: number
  /** Null when only an event can change the decision. */
  readonly wakeAtMs: number | null
}

/**
 * The number of workers that an endpoint should have now, within its min and max. Jobs decide how many are needed; that
 * idle workers end is a matter of {@link idleWorkers}, so the number falls at once and the workers stay for their time.
 */
export function desiredWorkers(snapshot: EndpointSnapshot, nowMs: number): ScaleDecision {
  const { workersMin, workersMax } = snapshot.endpoint
  const { suspectsQueued, suspectsInProgress } = snapshot.queue
  const alone = suspectsQueued + suspectsInProgress
  const needed = neededWorkers(alone === 0 ? snapshot : withoutSuspects(snapshot), nowMs)
  return {
    desired: Math.min(Math.max(needed.desired + alone, workersMin), workersMax),
    wakeAtMs: needed.desired < workersMax ? needed.wakeAtMs : null,
  }
}

/** Each suspect needs a worker of its own; what is left is as if they were not there. */
function withoutSuspects(snapshot: EndpointSnapshot): EndpointSnapshot {
  const { queued, inProgress, suspectsQueued, suspectsInProgress } = snapshot.queue
  const queue = { ...snapshot.queue, queued: queued - suspectsQueued, inProgress: inProgress - suspectsInProgress }
  return { ...snapshot, queue: { ...queue, suspectsQueued: 0, suspectsInProgress: 0 } }
}

/** The back-off of the endpoint's current version. */
export function backoffOf(snapshot: EndpointSnapshot): CrashBackoff {
  return crashBackoff(snapshot.exits, snapshot.endpoint.version, snapshot.workers)
}

/** Workers that hold no job, with the instant at which their idle time is over; the longest idle first. */
export function idleWorkers(snapshot: EndpointSnapshot): { worker: WorkerLoad; dueAtMs: number }[] {
  const patience = idleTimeoutMs(snapshot.endpoint)
  return snapshot.workers
    .filter(worker => worker.state === 'READY' && worker.held === 0)
    .map(worker => ({ worker, dueAtMs: (worker.idleSinceMs ?? worker.createdAtMs) + patience }))
    .sort((a, b) => a.dueAtMs - b.dueAtMs || (a.worker.id < b.worker.id ? -1 : 1))
}

function neededWorkers(snapshot: EndpointSnapshot, nowMs: number): ScaleDecision {
  const { endpoint, queue } = snapshot
  if (endpoint.type === 'LOAD_BALANCER') return forRequests(snapshot)
  const work = queue.queued + queue.inProgress
  if (work === 0) return { desired: 0, wakeAtMs: null }
  if (endpoint.scaler.type === 'REQUEST_COUNT') {
    return { desired: Math.ceil(work / endpoint.scaler.requestCount), wakeAtMs: null }
  }
  if (queue.queued === 0) return { desired: 1, wakeAtMs: null }
  const { averageExecutionMs } = snapshot.counters
  const exits = snapshot.exits.filter(({ version }) => version === endpoint.version)
  const line = { ...queue, averageExecutionMs, workers: snapshot.workers, exits }
  return workersForDelay(line, endpoint.scaler.queueDelayS * 1000, nowMs)
}

/** What drains finishes what it has without anybody in its place; a limit below the target makes more workers needed. */
function forRequests({ endpoint, queue, workers, requests }: EndpointSnapshot): ScaleDecision {
  const inFlight = workers.filter(takesJobs).reduce((sum, { held }) => sum + held, 0)
  const target = endpoint.scaler.type === 'REQUEST_COUNT' ? endpoint.scaler.requestCount : 1
  const perWorker = Math.min(target, requests?.maxConcurrency ?? target)
  return { desired: Math.ceil((queue.queued + inFlight) / perWorker), wakeAtMs: null }
}

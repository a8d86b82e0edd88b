import { type Endpoint, type EndpointCounters, idleTimeoutMs } from '../endpoints/endpoint.ts'
import type { RolloutFacts } from '../endpoints/rollout-facts.ts'
import type { EndpointId, WorkerId } from '../ids.ts'
import type { QueuedWorker } from '../workers/placement.ts'
import {
  type CrashBackoff,
  crashBackoff,
  type StopReason,
  takesJobs,
  type Worker,
  type WorkerLoad,
  waitsForPlace,
} from '../workers/worker.ts'
import type { HealthProblem } from '../workers/worker-problem.ts'
import { workersForDelay } from './queue-delay.ts'

/** The queue of an endpoint at one instant. `queued` excludes low-priority jobs, which never start a worker. */
export interface QueueLoad {
  readonly queued: number
  readonly queuedLowPriority: number
  /** Jobs of both kinds that wait for the fair turn of their batch. */
  readonly queuedInBatches: number
  readonly inProgress: number
  /** Number of suspects in `queued` and in `inProgress`, which run alone (see core/jobs/job.ts). */
  readonly suspectsQueued: number
  readonly suspectsInProgress: number
  /**
   * Instant since which the head of the queue (without low priority) waits, or a batch for its turn; suspects
   * count only without other waiting jobs. Null for an empty queue.
   */
  readonly headQueuedAtMs: number | null
}

/**
 * Number of jobs or requests that wait for a worker, those of low priority and of batches included. Every answer and
 * every page that says how many wait says this number.
 */
export function waitingCount({ queued, queuedLowPriority }: Pick<QueueLoad, 'queued' | 'queuedLowPriority'>): number {
  return queued + queuedLowPriority
}

/** A snapshot with one more job or request that waits, such as one that is to be answered. @param nowMs its instant */
export function withOneMore(snapshot: EndpointSnapshot, nowMs: number): EndpointSnapshot {
  const { queue } = snapshot
  const headQueuedAtMs = queue.headQueuedAtMs ?? nowMs
  return { ...snapshot, queue: { ...queue, queued: queue.queued + 1, headQueuedAtMs } }
}

/** Conditions of workers in counters. `idle` and `running` are READY without and with jobs. */
export type WorkerCondition = 'starting' | 'idle' | 'running' | 'frozen' | 'draining' | 'stopping'

/** The numbers of jobs and workers of one endpoint. */
export interface EndpointLoad {
  readonly endpointId: EndpointId
  readonly queue: QueueLoad
  readonly workers: Readonly<Record<WorkerCondition, number>>
}

/** Facts of the requests of a load-balancing endpoint besides its queue and the load of its workers. */
export interface RequestFacts {
  /** Limit of requests in flight per worker; null for no limit. */
  readonly maxConcurrency: number | null
  /** Ended workers that waiting requests name. */
  readonly resumed: readonly WorkerId[]
  /** Workers that have not ended and that waiting requests name. */
  readonly named: readonly WorkerId[]
  /** Maximum number of workers needed within the window of core/scaling/max-window.ts; null while it is unknown. */
  readonly peak: number | null
  /** Problems in the last health checks of unhealthy workers. */
  readonly healthProblems: ReadonlyMap<WorkerId, HealthProblem>
}

/** One endpoint with everything that scaling, planning and explaining read. */
export interface EndpointSnapshot {
  readonly endpoint: Endpoint
  readonly counters: EndpointCounters
  readonly queue: QueueLoad
  /** Workers that have not ended, oldest first. */
  readonly workers: readonly WorkerLoad[]
  /** Workers of its version that wait for a place on the machine, the oldest first; at most 100. */
  readonly queuedWorkers: readonly QueuedWorker[]
  /** Workers that have ended, newest first, a bounded number. */
  readonly exits: readonly Worker[]
  /** Facts of the rollout of its release. */
  readonly rollout: RolloutFacts
  /** For a load-balancing endpoint, whose queue and workers count requests; see core/balancing/balanced.ts. */
  readonly requests?: RequestFacts
  /**
   * True if QUEUE_DELAY counts from the instant at which a further worker could be ready; see queue-delay.ts.
   * Omitted means false.
   */
  readonly startAware?: boolean
  /** True while a worker is to start although nothing needs it, until one is ready. Omitted means false. */
  readonly warming?: boolean
}

/** A worker to drain, with the reason. */
export interface Drain {
  readonly worker: WorkerLoad
  readonly reason: StopReason
}

/** Number of workers needed, and the instant at which it may change without an event. */
export interface ScaleDecision {
  readonly desired: number
  /** Null if only an event can change it. */
  readonly wakeAtMs: number | null
}

/**
 * Number of workers that an endpoint should have now, within its min and max. It follows from jobs, so it falls at
 * once; {@link idleWorkers} decides when idle workers end.
 */
export function desiredWorkers(snapshot: EndpointSnapshot, nowMs: number): ScaleDecision {
  const { workersMin, workersMax } = snapshot.endpoint
  const { suspectsQueued, suspectsInProgress } = snapshot.queue
  const alone = suspectsQueued + suspectsInProgress
  const needed = neededWorkers(alone === 0 ? snapshot : withoutSuspects(snapshot), nowMs)
  return {
    desired: Math.min(Math.max(needed.desired + alone, workersMin, snapshot.warming === true ? 1 : 0), workersMax),
    wakeAtMs: needed.desired < workersMax ? needed.wakeAtMs : null,
  }
}

/** The load without suspects: each of them needs a worker of its own. */
function withoutSuspects(snapshot: EndpointSnapshot): EndpointSnapshot {
  const { queued, inProgress, suspectsQueued, suspectsInProgress } = snapshot.queue
  const queue = { ...snapshot.queue, queued: queued - suspectsQueued, inProgress: inProgress - suspectsInProgress }
  return { ...snapshot, queue: { ...queue, suspectsQueued: 0, suspectsInProgress: 0 } }
}

/** The back-off of the endpoint's current version. */
export function currentBackoff(snapshot: EndpointSnapshot): CrashBackoff {
  return crashBackoff(snapshot.exits, snapshot.endpoint.version, snapshot.workers)
}

/** Workers without a job and the end of their idle time, the longest idle first. */
export function idleWorkers(snapshot: EndpointSnapshot): { worker: WorkerLoad; dueAtMs: number }[] {
  const patience = idleTimeoutMs(snapshot.endpoint)
  return snapshot.workers
    .filter(worker => worker.state === 'READY' && worker.held === 0)
    .map(worker => ({ worker, dueAtMs: (worker.idleSinceMs ?? worker.createdAtMs) + patience }))
    .sort((a, b) => a.dueAtMs - b.dueAtMs || (a.worker.id < b.worker.id ? -1 : 1))
}

/**
 * Workers that wait for a place on their platform and are no longer needed, the last ones first: while they wait
 * for room, the platform would add nodes for them.
 * @param current workers of the version that is planned
 */
export function unwantedWaiting(
  { queue }: Pick<EndpointSnapshot, 'queue'>,
  current: readonly WorkerLoad[],
  desired: number,
): WorkerLoad[] {
  if (queue.queued > 0 || current.length <= desired) return []
  const waiting = current.filter(waitsForPlace).sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  return waiting.slice(0, current.length - desired)
}

function neededWorkers(snapshot: EndpointSnapshot, nowMs: number): ScaleDecision {
  const { endpoint, queue } = snapshot
  if (endpoint.type === 'LOAD_BALANCER') return forRequests(snapshot)
  const work = queue.queued + queue.inProgress
  if (work === 0) return { desired: 0, wakeAtMs: null }
  if (endpoint.scaler.type === 'REQUEST_COUNT') {
    return { desired: Math.ceil(work / endpoint.scaler.requestCount), wakeAtMs: null }
  }
  if (queue.queued === 0) return { desired: queue.inProgress > heldByLeaving(snapshot.workers) ? 1 : 0, wakeAtMs: null }
  const { averageExecutionMs } = snapshot.counters
  const exits = snapshot.exits.filter(({ version }) => version === endpoint.version)
  const { workers, startAware = false } = snapshot
  const delayed = { ...queue, averageExecutionMs, workers, exits, startAware }
  return workersForDelay(delayed, endpoint.scaler.queueDelayS * 1000, nowMs)
}

/** Jobs that workers finish before they give up their place to others on the machine: they need no further worker. */
function heldByLeaving(workers: readonly WorkerLoad[]): number {
  const leaving = workers.filter(({ state, stopReason }) => state === 'DRAINING' && GIVES_UP_PLACE.has(stopReason))
  return leaving.reduce((sum, { held }) => sum + held, 0)
}

const GIVES_UP_PLACE: ReadonlySet<StopReason | null> = new Set(['evicted', 'over_share'])

/**
 * Load of the workers that stay: draining workers finish theirs, and a concurrency below the target needs more
 * workers.
 */
function forRequests({ endpoint, queue, workers, requests }: EndpointSnapshot): ScaleDecision {
  const inFlight = workers.filter(takesJobs).reduce((sum, { held }) => sum + held, 0)
  const target = endpoint.scaler.type === 'REQUEST_COUNT' ? endpoint.scaler.requestCount : 1
  const perWorker = Math.min(target, requests?.maxConcurrency ?? target)
  return { desired: Math.ceil((queue.queued + inFlight) / perWorker), wakeAtMs: null }
}

import { takesJobs, type WorkerLoad } from '../workers/worker.ts'
import { planLoadBalanced } from './balanced-plan.ts'
import { FREEZE_RULES, freezesIdle, type KeepRule, missingSpare, planFrozen } from './frozen-plan.ts'
import { planOnce } from './once-plan.ts'
import { planQueueRollout } from './queue-rollout.ts'
import { isUnproven } from './rollout.ts'
import {
  currentBackoff,
  type Drain,
  desiredWorkers,
  type EndpointSnapshot,
  idleWorkers,
  unwantedWaiting,
} from './scale.ts'

/** Interval until the next plan if fewer workers could be started than are needed. */
const SHORT_MS = 1_000

/** The room of the machine, or of the cluster. */
export interface Capacity {
  /**
   * Number of further workers that can be started, below zero where more exist because some are paused; null for no
   * limit.
   */
  readonly freeWorkers: number | null
  /** The resource that limits it, for messages: "the limit of 64 workers on this machine". */
  readonly bound: string
}

/** Decisions for one endpoint. `wakeAtMs` is the instant of the next plan without an event; null for never. */
export interface WorkerPlan {
  /** Number of workers to start, as far as the machine has room; see place.ts. */
  readonly start: number
  /** True if no work needs the worker and it should be frozen; see {@link missingSpare}. It gets only free room. */
  readonly isSpare: boolean
  readonly drain: readonly Drain[]
  /** Idle workers to freeze, and frozen ones to thaw. */
  readonly freeze: readonly WorkerLoad[]
  readonly thaw: readonly WorkerLoad[]
  readonly desired: number
  readonly wakeAtMs: number | null
}

/**
 * Compares the needed number of workers with the existing workers.
 *
 * Once a worker of the new version was ready, workers of old versions are drained, idle and busy ones alike, since
 * draining waits for their jobs; until then queue-rollout.ts decides. Idle workers end after their time, or are
 * frozen with FlashBoot, never below the number that is needed now. Frozen ones are thawed before any is started
 * (frozen-plan.ts). No worker starts during a crash back-off. A drained worker counts against max until it has
 * ended, and a frozen one always does, so max is never exceeded. balanced-plan.ts plans workers that serve
 * requests, once-plan.ts the one of a task.
 */
export function planWorkers(snapshot: EndpointSnapshot, nowMs: number, rules: KeepRule = FREEZE_RULES): WorkerPlan {
  const { endpoint, workers } = snapshot
  if (endpoint.runsOnce) return { ...planOnce(snapshot), isSpare: false, freeze: [], thaw: [], wakeAtMs: null }
  if (endpoint.type === 'LOAD_BALANCER') {
    const { drain, freeze, thaw, desired, missing, isSpare, wakeAtMs } = planLoadBalanced(snapshot, nowMs, rules)
    return { drain, freeze, thaw, desired, isSpare, ...starts(snapshot, missing, [wakeAtMs], nowMs) }
  }
  if (isUnproven(snapshot)) {
    const { drain, desired, missing, wakes } = planQueueRollout(snapshot, nowMs)
    const staying = workers.filter(takesJobs).length - drain.length
    const frozen = planFrozen(snapshot, { missing, staying }, rules, nowMs)
    const needed = missing - frozen.thaw.length
    return {
      drain: [...drain, ...frozen.drain],
      freeze: [],
      thaw: frozen.thaw,
      desired,
      isSpare: needed <= 0,
      ...starts(snapshot, Math.max(needed, missingSpare(snapshot)), [...wakes, frozen.wakeAtMs], nowMs),
    }
  }
  const scale = desiredWorkers(snapshot, nowMs)
  const outdated = workers.filter(worker => takesJobs(worker) && worker.version !== endpoint.version)
  const current = workers.filter(worker => takesJobs(worker) && worker.version === endpoint.version)
  const drains: Drain[] = outdated.map(worker => ({ worker, reason: 'outdated' as const }))
  const surplus = surplusWorkers(snapshot, current, scale.desired, nowMs)
  drains.push(...surplus.drain)

  const wanted = Math.max(0, scale.desired - current.length)
  const staying = current.length - surplus.drain.length
  const frozen = planFrozen(snapshot, { missing: wanted, staying }, rules, nowMs)
  drains.push(...frozen.drain)
  const needed = wanted - frozen.thaw.length
  const missing = Math.max(needed, missingSpare(snapshot))
  const wakes = [surplus.wakeAtMs, scale.wakeAtMs, frozen.wakeAtMs]
  return {
    drain: drains,
    freeze: surplus.freeze,
    thaw: frozen.thaw,
    desired: scale.desired,
    isSpare: needed <= 0,
    ...starts(snapshot, missing, wakes, nowMs),
  }
}

/** Number of missing workers that max and the back-off allow to start now. */
function starts(
  snapshot: EndpointSnapshot,
  missing: number,
  wakes: readonly (number | null)[],
  nowMs: number,
): Pick<WorkerPlan, 'start' | 'wakeAtMs'> {
  const { endpoint, workers } = snapshot
  const underMax = Math.max(0, endpoint.workersMax - workers.length)
  const backoff = currentBackoff(snapshot)
  const held = backoff.untilMs > nowMs
  const start = held ? 0 : Math.min(missing, underMax, backoff.crashes > 0 ? 1 : Number.POSITIVE_INFINITY)
  const shortUntilMs = held ? backoff.untilMs : nowMs + SHORT_MS
  return { start, wakeAtMs: earliest([...wakes, missing > start ? shortUntilMs : null]) }
}

/** The earliest instant, without nulls; null if all are null. */
export function earliest(instants: readonly (number | null)[]): number | null {
  const definite = instants.filter(instant => instant !== null)
  return definite.length === 0 ? null : Math.min(...definite)
}

function surplusWorkers(snapshot: EndpointSnapshot, current: readonly WorkerLoad[], desired: number, nowMs: number) {
  const { endpoint, queue } = snapshot
  const drain: Drain[] = []
  const freeze: WorkerLoad[] = []
  let remaining = current.length
  const overMax = remaining - endpoint.workersMax
  if (overMax > 0) {
    const byLoad = [...current].sort(
      (a, b) => a.held - b.held || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1),
    )
    drain.push(...byLoad.slice(0, overMax).map(worker => ({ worker, reason: 'scaled_down' as const })))
    remaining -= overMax
  }
  let wakeAtMs: number | null = null
  const leaving = new Set(drain.map(({ worker }) => worker.id))
  const stay = current.filter(({ id }) => !leaving.has(id))
  const waiting = unwantedWaiting(snapshot, stay, desired)
  drain.push(...waiting.map(worker => ({ worker, reason: 'scaled_down' as const })))
  remaining -= waiting.length
  if (queue.queued > 0) return { drain, freeze, wakeAtMs }
  for (const { worker, dueAtMs } of idleWorkers(snapshot)) {
    // A needed worker would be started again at once.
    if (remaining <= desired) break
    if (leaving.has(worker.id) || worker.version !== endpoint.version) continue
    if (dueAtMs > nowMs) {
      wakeAtMs = dueAtMs
      break
    }
    if (freezesIdle(endpoint) && worker.problem === null) freeze.push(worker)
    else drain.push({ worker, reason: 'idle' })
    remaining -= 1
  }
  return { drain, freeze, wakeAtMs }
}

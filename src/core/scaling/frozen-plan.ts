/**
 * Plan for frozen workers: they are thawed before any worker is started, and end when they are of no use or the
 * memory of the machine gets short.
 */
import type { Endpoint } from '../endpoints/endpoint.ts'
import { availableShare, type MachineMemory } from '../hardware/machine-use.ts'
import type { EndpointId } from '../ids.ts'
import { isFrozen, takesJobs, type Worker, type WorkerLoad } from '../workers/worker.ts'
import type { Drain, EndpointSnapshot } from './scale.ts'

/** Settings of frozen workers; times in milliseconds. */
export interface FreezeRules {
  /** Longest time for which a worker stays frozen before it ends. */
  readonly keepMs: number
  /** Percentage of the machine's memory below which frozen workers end, one after the other. */
  readonly minMemoryPercent: number
  /**
   * Most memory of the machine that all suspended workers have together, in bytes; null for half of what is free
   * without them.
   */
  readonly suspendedBytes: number | null
}

/** The settings that a plan needs. */
export type KeepRule = Pick<FreezeRules, 'keepMs'>

/** The defaults. */
export const FREEZE_RULES: FreezeRules = { keepMs: 3_600_000, minMemoryPercent: 10, suspendedBytes: null }

/** Result of {@link planFrozen}. */
export interface FrozenPlan {
  readonly thaw: readonly WorkerLoad[]
  readonly drain: readonly Drain[]
  /** Instant at which the plan may change without an event; null for never. */
  readonly wakeAtMs: number | null
}

/** Results of the plan for the other workers. */
export interface BesidesFrozen {
  /** Number of further workers needed. */
  readonly missing: number
  /** Number of workers of the version that accept jobs or requests and stay. */
  readonly staying: number
  /** Workers that requests wait for by name. */
  readonly named?: readonly string[]
}

/** True if the idle workers of an endpoint are frozen and not stopped. */
export function freezesIdle({ flashboot }: Pick<Endpoint, 'flashboot'>): boolean {
  return flashboot !== 'OFF'
}

/** Number of workers to start only to be frozen: PRIORITY_FLASHBOOT always keeps one. */
export function missingSpare({ endpoint, workers }: EndpointSnapshot): number {
  const { flashboot, workersMax, version } = endpoint
  if (flashboot !== 'PRIORITY_FLASHBOOT' || workersMax === 0) return 0
  return workers.some(worker => (takesJobs(worker) || isFrozen(worker)) && worker.version === version) ? 0 : 1
}

/**
 * Thaws as many workers as are missing: first those that requests name, then the most recently frozen, whose
 * memory is probably still resident. Ends those of other versions, which are never thawed, those beyond
 * workersMax, and those that were frozen for their time, except the last worker of an endpoint with
 * PRIORITY_FLASHBOOT.
 */
export function planFrozen(
  { endpoint, workers }: EndpointSnapshot,
  { missing, staying, named = [] }: BesidesFrozen,
  { keepMs }: KeepRule,
  nowMs: number,
): FrozenPlan {
  const frozen = workers.filter(worker => isFrozen(worker) && worker.pause === null)
  const drain: Drain[] = frozen
    .filter(({ version }) => version !== endpoint.version)
    .map(worker => ({ worker, reason: 'outdated' as const }))
  const isNamed = ({ id }: WorkerLoad) => named.includes(id)
  const usable = frozen
    .filter(({ version }) => version === endpoint.version)
    .sort(
      (a, b) =>
        Number(isNamed(b)) - Number(isNamed(a)) || (b.frozenAtMs ?? 0) - (a.frozenAtMs ?? 0) || (a.id < b.id ? -1 : 1),
    )
  const room = Math.max(0, endpoint.workersMax - staying)
  for (const worker of usable.slice(room)) drain.push({ worker, reason: 'scaled_down' })
  const stay = usable.slice(0, room)
  const count = Math.max(missing, stay.filter(isNamed).length)
  const thaw = stay.slice(0, count)
  const wakes: number[] = []
  for (const [index, worker] of stay.slice(count).entries()) {
    const isLast = endpoint.flashboot === 'PRIORITY_FLASHBOOT' && staying + thaw.length + index === 0
    const dueAtMs = (worker.frozenAtMs ?? nowMs) + keepMs
    if (isLast) continue
    if (dueAtMs > nowMs) wakes.push(dueAtMs)
    else drain.push({ worker, reason: 'frozen_too_long' })
  }
  return { thaw, drain, wakeAtMs: wakes.length === 0 ? null : Math.min(...wakes) }
}

/** True if less memory is available than frozen workers must leave free. @param leastShare from 0 to 1 */
export function isMemoryShort(memory: MachineMemory | null, leastShare: number): boolean {
  return memory !== null && availableShare(memory) < leastShare
}

/**
 * The worker that was frozen longest, those of PRIORITY_FLASHBOOT last; null if no worker is frozen, and while
 * another one ends for this reason, since its memory is not free yet.
 */
export function frozenLongest(
  workers: readonly Worker[],
  hasPriority: (endpointId: EndpointId) => boolean,
): Worker | null {
  if (workers.some(({ state, stopReason }) => stopReason === 'memory_short' && state !== 'EXITED')) return null
  const rank = ({ endpointId }: Worker) => Number(hasPriority(endpointId))
  return workers
    .filter(worker => isFrozen(worker) && worker.pause === null)
    .reduce<Worker | null>(
      (first, worker) =>
        first === null || rank(worker) - rank(first) < 0 || (rank(worker) === rank(first) && isLonger(worker, first))
          ? worker
          : first,
      null,
    )
}

function isLonger(a: Worker, b: Worker): boolean {
  return (a.frozenAtMs ?? 0) < (b.frozenAtMs ?? 0)
}

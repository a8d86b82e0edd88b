/** What becomes of frozen workers: they are thawed before any is started, and end when they are of no use. */
import type { Endpoint } from '../endpoints/endpoint.ts'
import { isFrozen, takesJobs, type WorkerLoad } from '../workers/worker.ts'
import type { Drain, EndpointSnapshot } from './scale.ts'

/** Settings of frozen workers; times in milliseconds. */
export interface FreezeRules {
  /** How long a worker stays frozen at most before it ends. */
  readonly keepMs: number
  /** Percentage of the machine's memory below which frozen workers end, one after the other. */
  readonly minMemoryPercent: number
}

/** What of these a plan needs. */
export type KeepRule = Pick<FreezeRules, 'keepMs'>

/** The defaults. */
export const FREEZE_RULES: FreezeRules = { keepMs: 3_600_000, minMemoryPercent: 10 }

/** What {@link planFrozen} finds. */
export interface FrozenPlan {
  readonly thaw: readonly WorkerLoad[]
  readonly drain: readonly Drain[]
  /** When the plan may change without an event; null for never. */
  readonly wakeAtMs: number | null
}

/** What the plan for the other workers says. */
export interface BesidesFrozen {
  /** Number of further workers wanted. */
  readonly missing: number
  /** Number of workers of the version that take jobs or requests and stay. */
  readonly staying: number
  /** Workers that requests wait for by name. */
  readonly named?: readonly string[]
}

/** Whether the idle workers of an endpoint are frozen instead of stopped. */
export function freezesIdle({ flashboot }: Pick<Endpoint, 'flashboot'>): boolean {
  return flashboot !== 'OFF'
}

/** Number of workers to start so that one is there to be frozen: PRIORITY_FLASHBOOT keeps one from the start. */
export function missingSpare({ endpoint, workers }: EndpointSnapshot): number {
  const { flashboot, workersMax, version } = endpoint
  if (flashboot !== 'PRIORITY_FLASHBOOT' || workersMax === 0) return 0
  return workers.some(worker => (takesJobs(worker) || isFrozen(worker)) && worker.version === version) ? 0 : 1
}

/**
 * Thaws as many as are missing, those that requests name first, then the ones frozen last, whose memory is in use most likely. Ends those of
 * other versions, which are never thawed, those beyond workersMax, and those that were frozen for their time, but for the last worker of an
 * endpoint with PRIORITY_FLASHBOOT.
 */
export function planFrozen(
  { endpoint, workers }: EndpointSnapshot,
  { missing, staying, named = [] }: BesidesFrozen,
  { keepMs }: KeepRule,
  nowMs: number,
): FrozenPlan {
  const frozen = workers.filter(isFrozen)
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

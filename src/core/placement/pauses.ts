/**
 * Pauses of workers in the middle of their jobs, for endpoints of higher priority (ADR 112): who may be paused for
 * whom, and when a paused worker has a right to room before everybody.
 */
import { PRIORITIES, type Priority } from '../endpoints/endpoint.ts'
import type { OwnerId } from '../ids.ts'
import type { WorkerPause } from '../workers/worker.ts'
import type { Occupant, PauseRules, PlacementRules, Tenant, WantedWake } from './placement-input.ts'

/** True if the first priority is higher than the second one. */
export function outranks(first: Priority, second: Priority): boolean {
  return PRIORITIES.indexOf(first) > PRIORITIES.indexOf(second)
}

/** True if a worker has a lower priority than an endpoint, and belongs to an account from which it may get room. */
export function yieldsTo(
  worker: Pick<Occupant, 'priority' | 'owner'>,
  tenant: { readonly priority: Priority; readonly owner: OwnerId },
  { acrossAccounts }: Pick<PauseRules, 'acrossAccounts'>,
): boolean {
  return outranks(tenant.priority, worker.priority) && (worker.owner === tenant.owner || acrossAccounts)
}

/** True if a worker may be paused for an endpoint, now or later; see `Occupant.pausableAtMs`. */
export function isPausable(worker: Occupant, tenant: Tenant, rules: PauseRules): boolean {
  const { phase, pausableAtMs, endpointId } = worker
  return phase === 'busy' && pausableAtMs !== null && endpointId !== tenant.id && yieldsTo(worker, tenant, rules)
}

/** Instant from which a paused worker has a right to room before everybody; null for one that only sleeps. */
export function overdueAtMs(
  wake: Pick<WantedWake, 'pausedSinceMs'> | undefined,
  { maxPauseMs }: Pick<PauseRules, 'maxPauseMs'>,
): number | null {
  return wake?.pausedSinceMs === undefined ? null : wake.pausedSinceMs + maxPauseMs
}

/**
 * Instant before which a worker that goes on is not paused again; null for any time. After the longest pause it stays
 * as long as one that has become ready.
 */
export function undisturbedUntilMs(
  { sinceMs }: Pick<WorkerPause, 'sinceMs'>,
  nowMs: number,
  { maxPauseMs, dwellMs }: Pick<PauseRules, 'maxPauseMs'> & Pick<PlacementRules, 'dwellMs'>,
): number | null {
  return nowMs - sinceMs >= maxPauseMs ? nowMs + dwellMs : null
}

/**
 * Order in which workers are paused: the lowest priority first, then the one that became ready last, which has usually
 * run the shortest part of its job.
 */
export function pauseOrder(a: Occupant, b: Occupant): number {
  return (
    PRIORITIES.indexOf(a.priority) - PRIORITIES.indexOf(b.priority) ||
    (b.readyAtMs ?? 0) - (a.readyAtMs ?? 0) ||
    (a.workerId < b.workerId ? -1 : 1)
  )
}

/**
 * Number of workers of an endpoint for which others were paused and that have not started since. Their starts come
 * before those of other endpoints: the room was made for them.
 */
export function promisedStarts(tenant: Pick<Tenant, 'id'>, occupants: readonly Occupant[]): number {
  const pauses = occupants.flatMap(({ pause }) => (pause?.for === tenant.id ? [pause.sinceMs] : []))
  if (pauses.length === 0) return 0
  const sinceMs = Math.min(...pauses)
  const began = ({ startingSinceMs, readyAtMs }: Occupant) => startingSinceMs ?? readyAtMs ?? 0
  const started = occupants.filter(
    worker => worker.endpointId === tenant.id && worker.pause === null && began(worker) >= sinceMs,
  )
  return Math.max(0, pauses.length - started.length)
}

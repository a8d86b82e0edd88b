/** Plan for the workers of a queue endpoint with a new release, until its first worker is ready. */

import { takesJobs, type WorkerLoad } from '../workers/worker.ts'
import { rolloutRoom, waitsForRoom } from './rollout-room.ts'
import { type Drain, desiredWorkers, type EndpointSnapshot, idleWorkers } from './scale.ts'

/** Result of {@link planQueueRollout}; plan.ts decides how many of the missing workers are started. */
export interface QueueRolloutPlan {
  readonly drain: readonly Drain[]
  readonly desired: number
  /** Number of further workers of the new release that are needed. */
  readonly missing: number
  /** Instants at which the plan may change without an event. */
  readonly wakes: readonly number[]
}

/**
 * Old workers that are ready continue to take jobs, and new ones start beside them as far as max and the machine
 * allow. Without room for both, one old worker at a time makes room while another one is ready; if the endpoint
 * has only one worker, because max is 1 or the machine is full, that one ends first. Old workers that are not
 * ready end at once. Idle ones end after their time, never below the needed number, and while one was recently in
 * use, a new one is needed.
 */
export function planQueueRollout(snapshot: EndpointSnapshot, nowMs: number): QueueRolloutPlan {
  const { endpoint, workers, queue } = snapshot
  const isOld = ({ version }: WorkerLoad) => version !== endpoint.version
  const taking = workers.filter(takesJobs)
  const useless = taking.filter(worker => isOld(worker) && worker.state !== 'READY')
  const drain: Drain[] = useless.map(worker => ({ worker, reason: 'outdated' }))
  const over = overMax(
    taking.filter(worker => !useless.includes(worker)),
    endpoint.workersMax,
  )
  drain.push(...over.map(worker => ({ worker, reason: isOld(worker) ? 'outdated' : 'scaled_down' }) as const))

  const ending = new Set(drain.map(({ worker }) => worker.id))
  const stay = taking.filter(({ id }) => !ending.has(id))
  const old = stay.filter(isOld)
  const scale = desiredWorkers(snapshot, nowMs)
  const wakes = scale.wakeAtMs === null ? [] : [scale.wakeAtMs]
  const idle = idleWorkers(snapshot).filter(({ worker }) => old.includes(worker))
  const wanted = Math.max(scale.desired, wantedForOld(snapshot, idle, nowMs, wakes))
  const missing = Math.max(0, wanted - (stay.length - old.length))
  const isHeldUp = stay.some(worker => !isOld(worker) && waitsForRoom(worker))
  if ((missing > 0 || isHeldUp) && old.length > 0 && drain.length === 0) {
    const room = rolloutRoom(snapshot, stay, old.length, nowMs)
    if (room.wakeAtMs !== null) wakes.push(room.wakeAtMs)
    if (room.isDue) return { drain: [{ worker: firstToGo(old), reason: 'outdated' }], desired: wanted, missing, wakes }
  }
  if (queue.queued === 0) drain.push(...idleOnes(idle, old.length - wanted, nowMs, wakes))
  return { drain, desired: wanted, missing, wakes }
}

/** 1 while an old worker is, or recently was, in use: it is replaced before it ends. */
function wantedForOld(snapshot: EndpointSnapshot, idle: readonly Idle[], nowMs: number, wakes: number[]): number {
  if (snapshot.endpoint.workersMax === 0) return 0
  const dueAtMs = Math.max(0, ...idle.map(one => one.dueAtMs))
  if (dueAtMs <= nowMs) return 0
  wakes.push(dueAtMs)
  return 1
}

type Idle = ReturnType<typeof idleWorkers>[number]

function idleOnes(idle: readonly Idle[], surplus: number, nowMs: number, wakes: number[]): Drain[] {
  const candidates = idle.slice(0, Math.max(0, surplus))
  const next = candidates.find(({ dueAtMs }) => dueAtMs > nowMs)
  if (next !== undefined) wakes.push(next.dueAtMs)
  return candidates.filter(({ dueAtMs }) => dueAtMs <= nowMs).map(({ worker }) => ({ worker, reason: 'idle' }))
}

/**
 * Workers above max, the least useful first: those that are not ready, then those with the fewest jobs, then the
 * youngest.
 */
function overMax(taking: readonly WorkerLoad[], max: number): WorkerLoad[] {
  const ready = ({ state }: WorkerLoad) => (state === 'READY' ? 1 : 0)
  const first = [...taking].sort(
    (a, b) => ready(a) - ready(b) || a.held - b.held || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1),
  )
  return first.slice(0, Math.max(0, taking.length - max))
}

function firstToGo(old: readonly WorkerLoad[]): WorkerLoad {
  return old.reduce((first, other) => {
    const later = other.held - first.held || other.createdAtMs - first.createdAtMs || (other.id < first.id ? -1 : 1)
    return later < 0 ? other : first
  })
}

/** Room for the first worker of a new release if max or the machine has none beside the old workers. */

import { isHopeless } from '../workers/placement.ts'
import { isFrozen, takesJobs, type WorkerLoad, waitsForPlace } from '../workers/worker.ts'
import { currentBackoff, type EndpointSnapshot } from './scale.ts'

/** Wait of a new worker for a place on the machine before an old one makes room for it, in milliseconds. */
export const SURGE_MS = 10_000
/** The same wait on a platform, which may have to add a machine first. */
export const PLATFORM_SURGE_MS = 180_000

/** `isDue` is true if an old worker makes room now; `wakeAtMs` is the earliest instant at which it may, if not. */
export interface RolloutRoom {
  readonly isDue: boolean
  /** Null for never. */
  readonly wakeAtMs: number | null
}

const NONE: RolloutRoom = { isDue: false, wakeAtMs: null }

/**
 * Decides if an old worker ends before a new one exists: one at a time, and none while new ones crash, so that the
 * remaining old ones continue.
 * @param workers those that accept work and stay
 * @param ready number of ready ones among them
 */
export function rolloutRoom(
  snapshot: EndpointSnapshot,
  workers: readonly WorkerLoad[],
  ready: number,
  nowMs: number,
): RolloutRoom {
  const { endpoint, queuedWorkers } = snapshot
  if (snapshot.workers.some(worker => !takesJobs(worker) && !isFrozen(worker))) return NONE
  const starting = workers.filter(({ state, version }) => version === endpoint.version && state === 'STARTING')
  const isWaiting = starting.length > 0 && starting.every(waitsForRoom)
  if (isWaiting) return roomFrom(Math.min(...starting.map(({ createdAtMs }) => createdAtMs)) + PLATFORM_SURGE_MS, nowMs)
  if (starting.length > 0 || currentBackoff(snapshot).untilMs > nowMs) return NONE
  const isFull = snapshot.workers.length >= endpoint.workersMax
  const isLast = ready <= 1
  if (isFull && (!isLast || endpoint.workersMax === 1)) return { isDue: true, wakeAtMs: null }
  const [first] = queuedWorkers
  // Room does not help a worker that can never fit on this machine, or one whose models are being downloaded.
  if (first === undefined || isHopeless(first) || first.resource === 'models') return NONE
  return roomFrom((first.downloadEndedAtMs ?? first.queuedAtMs) + SURGE_MS, nowMs)
}

function roomFrom(dueAtMs: number, nowMs: number): RolloutRoom {
  return { isDue: dueAtMs <= nowMs, wakeAtMs: dueAtMs <= nowMs ? null : dueAtMs }
}

/** True if the end of another worker may free the place for which it waits on its platform. */
export function waitsForRoom(worker: WorkerLoad): boolean {
  const kind = worker.platform?.waits?.kind
  return waitsForPlace(worker) && (kind === 'no_room' || kind === 'platform_quota')
}

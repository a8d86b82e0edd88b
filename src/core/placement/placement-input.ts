/** The input of core/placement/place.ts, and its decision. */
import type { Priority } from '../endpoints/endpoint.ts'
import type { MachineParts } from '../hardware/inventory.ts'
import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'
import type { Capacity } from '../scaling/plan.ts'
import type { Placement, Resource } from '../workers/placement.ts'
import type { CardRooms } from './card-room.ts'
import type { Copying, EndReason } from './leaving.ts'
import type { PlacedCompute } from './placed-compute.ts'

/** Settings of placement; times in milliseconds. */
export interface PlacementRules {
  /** True if workers of GPU endpoints wait on a machine without GPUs, instead of running without one. */
  readonly requireGpu: boolean
  /** Minimum time that a ready worker stays before it makes room for another endpoint. */
  readonly dwellMs: number
  /** Factor by which the vCPUs and the memory of the machine may be overcommitted to containers. */
  readonly cpuOvercommit: number
  readonly memoryOvercommit: number
}

/** The defaults. */
export const PLACEMENT_RULES: PlacementRules = {
  requireGpu: false,
  dwellMs: 30_000,
  cpuOvercommit: 4,
  memoryOvercommit: 2,
}

/** Settings of pauses. */
export interface PauseRules {
  /** Time after which a paused worker has a right to room before everybody, in milliseconds. */
  readonly maxPauseMs: number
  /** Limit of workers that are paused at once; 0 pauses none. */
  readonly maxPaused: number
  /** True if workers of one account may be paused for endpoints of another one. */
  readonly acrossAccounts: boolean
}

/**
 * The defaults. Gateways and address translation of large clouds forget a connection without traffic after 350 s, so
 * connections of a job that is paused for five minutes are usually still open.
 */
export const PAUSE_RULES: PauseRules = { maxPauseMs: 300_000, maxPaused: 8, acrossAccounts: false }

/** An endpoint that has or wants workers. */
export interface Tenant {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly name: string
  readonly compute: PlacedCompute
  /**
   * `machine` if its workers get a part of this machine; `platform` if their platform places them: then only turns,
   * slots and quotas limit them.
   */
  readonly placedBy: 'machine' | 'platform'
  readonly workersMin: number
  /** Its order beside other endpoints of its account, and the reason to pause workers of others. */
  readonly priority: Priority
  /** True if its workers have limits of vCPUs and memory, as containers do. */
  readonly limited: boolean
  /** Number of further workers that it wants now. */
  readonly wanted: number
  /** Its paused workers, then its sleeping ones that are wanted again; they come before further ones. */
  readonly wakes: readonly WantedWake[]
  /** Start of its wait for a worker; the present time for an endpoint that has just begun to want one. */
  readonly sinceMs: number
  /** True if jobs wait, which its idle workers are about to take. */
  readonly hasWork: boolean
  /** True if its wanted workers are for no work: it gets free room only, and nobody makes room for it. */
  readonly isSpare: boolean
}

/**
 * A sleeping worker that is wanted again: it needs the GPUs that it gave back, and no others. Or a paused worker,
 * which needs the same, or without GPUs its vCPUs.
 */
export interface WantedWake {
  readonly workerId: WorkerId
  readonly placement: Placement
  /** Start of its pause; absent for a worker that sleeps without a job. */
  readonly pausedSinceMs?: number
  /** Memory of its GPU that has to be free for it, in MiB; null if unknown. */
  readonly memoryMb: number | null
}

/**
 * Sleep state of a worker with GPUs whose memory can be given back, by its server (ADR 54) or by a suspend (ADR 109).
 * `able`: it sleeps when it has to make room. `falling`: it goes to sleep now. `asleep`: its GPUs are free for others,
 * and it needs them again to wake.
 */
export type OccupantSleep = 'able' | 'falling' | 'asleep'

/** A worker that has not ended and has a part of the machine. */
export interface Occupant {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  readonly owner: OwnerId
  readonly endpointName: string
  /** Null for a worker of an older version, whose resources are unknown. */
  readonly placement: Placement | null
  /**
   * `once` runs a task and makes room for nobody; `paused` has a job and does not run; `leaving` was asked to end;
   * `kept` is the reservation of a waiting endpoint, not a worker.
   */
  readonly phase: 'starting' | 'idle' | 'busy' | 'once' | 'paused' | 'frozen' | 'leaving' | 'kept'
  /** False for a reservation that nobody can make free: it has its cards, and no GPU of the limit of its account. */
  readonly hasWay?: boolean
  /** Time at which it became ready; null before that. */
  readonly readyAtMs: number | null
  /** Start of its start, or of its resume; null for one that has started. */
  readonly startingSinceMs: number | null
  /** Start of its idle time; null while it has a job. */
  readonly idleSinceMs: number | null
  /** Time of its freeze, and the priority of its endpoint (PRIORITY_FLASHBOOT); null for one that is not frozen. */
  readonly frozen: { readonly sinceMs: number; readonly hasPriority: boolean } | null
  /** See {@link OccupantSleep}; null for a worker that cannot sleep. */
  readonly sleep: OccupantSleep | null
  /**
   * True if it sleeps by a suspend: the server has measured that its GPUs are free, so they are free for everybody.
   * Else they are free for its own account.
   */
  readonly suspends: boolean
  /** Memory of its GPU that its suspend would copy now, in MiB; null if unknown, or if it has none to copy. */
  readonly copyMb: number | null
  /** Typical time of a start of its release, in milliseconds; null if unknown. */
  readonly startMs: number | null
  /** Reason why it ends to make room instead of being suspended; null for a worker that does not. */
  readonly endsSince: EndReason | null
  /** Priority of its endpoint; `low` while all its jobs are of low priority. */
  readonly priority: Priority
  /** Instant from which it may be paused in the middle of its job; null if it may not. */
  readonly pausableAtMs: number | null
  /** Start of its pause, and the endpoint for which it was paused; null for a worker that is not paused. */
  readonly pause: { readonly sinceMs: number; readonly for: EndpointId } | null
}

/** Limits of workers of an account and of their GPUs; null is unlimited. */
export interface WorkerQuota {
  readonly workers: number | null
  readonly gpus: number | null
}

/** The whole input of placement. */
export interface PlacementInput {
  readonly parts: MachineParts
  /** The measured memory of its cards; claims alone decide when left out. */
  readonly cards?: CardRooms
  /** The copies of GPU memory that it can make; every suspend pays when left out. */
  readonly copying?: Copying
  readonly capacity: Capacity
  readonly occupants: readonly Occupant[]
  /** All endpoints that want workers, and those of all occupants. */
  readonly tenants: readonly Tenant[]
  readonly rules: PlacementRules
  readonly pauseRules: PauseRules
  /** Limits of accounts; those that are left out are unlimited. */
  readonly quotas?: ReadonlyMap<OwnerId, WorkerQuota>
  readonly nowMs: number
}

/** A worker to start. */
export interface Placed {
  readonly endpointId: EndpointId
  readonly placement: Placement
  /** A sentence with the wanted and the given resources, if the machine has less than wanted. */
  readonly clamped: string | null
}

/** A sleeping worker to wake: its GPUs are its own again. */
export interface Woken {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
}

/** A worker that makes room. */
export interface Eviction {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  /** Its own endpoint for a sleeping worker that ends because a new one has room on another card. */
  readonly for: EndpointId
  /** True if it sleeps to make room and does not end. */
  readonly sleeps: boolean
  /** Reason why it ends, although it could be suspended; null for others. */
  readonly endsSince: EndReason | null
  /** True if it may be busy and ends after its job; else it stays if it has become busy. */
  readonly afterJob: boolean
}

/** A worker that is paused in the middle of its job. */
export interface Pause {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  /** The endpoint that gets its room. */
  readonly for: EndpointId
}

/** Workers without a place. */
export interface Unplaced {
  readonly endpointId: EndpointId
  readonly count: number
  readonly resource: Resource
  readonly reason: string
}

/** A sleeping worker that is wanted and whose GPUs are not free. */
export interface Unwoken extends Woken {
  readonly reason: string
}

/** A paused worker that can never go on, because its GPU is gone. It ends, and its job goes back. */
export interface Stranded extends Woken {
  readonly reason: string
}

/** The decision. `wakeAtMs` is the time at which it may change without an event; null for never. */
export interface PlacementDecision {
  readonly placed: readonly Placed[]
  readonly woken: readonly Woken[]
  readonly unwoken: readonly Unwoken[]
  readonly evictions: readonly Eviction[]
  readonly pauses: readonly Pause[]
  readonly stranded: readonly Stranded[]
  readonly unplaced: readonly Unplaced[]
  readonly wakeAtMs: number | null
}

/** What core/place looks at, and what it answers. */
import type { Compute } from '../endpoints/endpoint.ts'
import type { MachineParts } from '../hardware/inventory.ts'
import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'
import type { Capacity } from '../scaling/plan.ts'
import type { Placement, Resource } from '../workers/placement.ts'

/** What may be chosen about placing; times in milliseconds. */
export interface PlacementRules {
  /** Whether workers of GPU endpoints wait where there is no GPU at all, instead of running without. */
  readonly requireGpu: boolean
  /** So long a worker that is ready stays before it makes room for another endpoint. */
  readonly dwellMs: number
  /** How many times the vCPUs and the memory of the machine may be promised to containers. */
  readonly cpuOvercommit: number
  readonly memoryOvercommit: number
}

/** The rules unless others are chosen. */
export const PLACEMENT_RULES: PlacementRules = {
  requireGpu: false,
  dwellMs: 30_000,
  cpuOvercommit: 4,
  memoryOvercommit: 2,
}

/** An endpoint with workers or the wish for some. */
export interface Tenant {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly name: string
  readonly compute: Compute
  readonly workersMin: number
  /** Whether its workers are held to their limits of CPU and memory, as containers are. */
  readonly limited: boolean
  /** How many more workers it wants now. */
  readonly wanted: number
  /** Since when it wants one in vain; now for one that has just begun. */
  readonly sinceMs: number
  /** Whether jobs wait that its idle workers are about to take. */
  readonly hasWork: boolean
}

/** A worker that has not ended, and so has a part of the machine. */
export interface Occupant {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  readonly owner: OwnerId
  readonly endpointName: string
  /** Null for one of an older version, of which nobody knows what it uses. */
  readonly placement: Placement | null
  /** `leaving` has been asked to end; `kept` is no worker, but what an endpoint that waits keeps free for one. */
  readonly phase: 'starting' | 'idle' | 'busy' | 'leaving' | 'kept'
  /** Since when it is ready; null before that. */
  readonly readyAtMs: number | null
  /** Since when it has no job; null while it has. */
  readonly idleSinceMs: number | null
}

/** Most workers of an account, and most GPUs that they have; null for no limit. */
export interface WorkerQuota {
  readonly workers: number | null
  readonly gpus: number | null
}

/** Everything that placing looks at. */
export interface PlacementInput {
  readonly parts: MachineParts
  readonly capacity: Capacity
  readonly occupants: readonly Occupant[]
  /** All endpoints that want workers, and those of all occupants. */
  readonly tenants: readonly Tenant[]
  readonly rules: PlacementRules
  /** Most workers and GPUs of accounts; those that are left out have no such limit. */
  readonly quotas?: ReadonlyMap<OwnerId, WorkerQuota>
  readonly nowMs: number
}

/** A worker to start. */
export interface Placed {
  readonly endpointId: EndpointId
  readonly placement: Placement
  /** Where it gets less than was asked for, because the machine has not so much: both, as a sentence. */
  readonly clamped: string | null
}

/** A worker that makes room. */
export interface Eviction {
  readonly workerId: WorkerId
  readonly endpointId: EndpointId
  readonly for: EndpointId
  /** Whether it may work, and then ends after its job; else it is left alone once it works again. */
  readonly afterJob: boolean
}

/** Workers that have no place now. */
export interface Unplaced {
  readonly endpointId: EndpointId
  readonly count: number
  readonly resource: Resource
  readonly reason: string
}

/** What to do. `wakeAtMs` is when the answer may change without anything happening; null for never. */
export interface PlacementDecision {
  readonly placed: readonly Placed[]
  readonly evictions: readonly Eviction[]
  readonly unplaced: readonly Unplaced[]
  readonly wakeAtMs: number | null
}

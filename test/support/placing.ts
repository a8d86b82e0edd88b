/** Inputs of core/placement with defaults that a test can change. */
import type { EndpointId, OwnerId, WorkerId } from '../../src/core/ids.ts'
import type { CardRoom, CardRooms } from '../../src/core/placement/card-room.ts'
import { placeWorkers } from '../../src/core/placement/place.ts'
import type { PlacedCompute, PlacedGpuCompute } from '../../src/core/placement/placed-compute.ts'
import {
  type Occupant,
  PAUSE_RULES,
  type PauseRules,
  PLACEMENT_RULES,
  type PlacementDecision,
  type PlacementInput,
  type PlacementRules,
  type Tenant,
} from '../../src/core/placement/placement-input.ts'
import type { Capacity } from '../../src/core/scaling/plan.ts'
import { type AssignedGpu, type Placement, UNPLACED } from '../../src/core/workers/placement.ts'
import { aMachine } from './machines.ts'
import { NOW } from './snapshots.ts'

/** A requirement of GPUs of the pool of {@link aGpu}. */
export function gpus(fields: Partial<PlacedGpuCompute> = {}): PlacedGpuCompute {
  return {
    kind: 'gpu',
    pools: ['ADA_24'],
    excludedTypes: [],
    count: 1,
    allowedCudaVersions: [],
    minCudaVersion: null,
    ...fields,
  }
}

/** A requirement of vCPUs of flavors with 2 GB each. */
export function cpus(...counts: number[]): PlacedCompute {
  return { kind: 'cpu', configs: counts.map(vcpuCount => ({ flavor: 'cpu3c', vcpuCount })) }
}

/** An endpoint that needs one worker since now. */
export function aTenant(id: string, fields: Partial<Tenant> = {}): Tenant {
  return {
    id: id as EndpointId,
    owner: 'owner' as OwnerId,
    name: id,
    compute: gpus(),
    workersMin: 0,
    priority: 'normal',
    limited: true,
    placedBy: 'machine',
    wanted: 1,
    sinceMs: NOW,
    hasWork: false,
    isSpare: false,
    wakes: [],
    ...fields,
  }
}

/** A placement on GPUs by index, see {@link aGpu}. */
export function given(...indices: number[]): Placement {
  const assignedGpu = (index: number): AssignedGpu => {
    return { index, uuid: `GPU-${index}`, type: 'NVIDIA GeForce RTX 4090', memoryGb: 24 }
  }
  return { ...UNPLACED, gpus: indices.map(assignedGpu), pool: 'ADA_24' }
}

/** A placement with a share of a GPU, in GB; null for the whole GPU. */
export function shared(gb: number | null, index = 0): Placement {
  const { gpus: all, ...rest } = given(index)
  return { ...rest, gpus: gb === null ? all : all.map(gpu => ({ ...gpu, shareMb: gb * 1_024 })) }
}

/** The measured memory of the first card of {@link given}: 24 GB that are free. */
export function aCard(fields: Partial<CardRoom> = {}): CardRooms {
  const { totalMb = 24_576, foreignMb = 0 } = fields
  return new Map([['GPU-0', { totalMb, freeMb: totalMb - foreignMb, foreignMb, programs: [], ...fields }]])
}

/** A busy worker that became ready a minute ago. */
export function anOccupant(id: string, endpoint: string, fields: Partial<Occupant> = {}): Occupant {
  return {
    workerId: id as WorkerId,
    endpointId: endpoint as EndpointId,
    owner: 'owner' as OwnerId,
    endpointName: endpoint,
    placement: UNPLACED,
    phase: 'busy',
    readyAtMs: NOW - 60_000,
    startingSinceMs: null,
    idleSinceMs: null,
    frozen: null,
    sleep: null,
    suspends: false,
    copyMb: null,
    startMs: null,
    endsSince: null,
    priority: 'normal',
    pausableAtMs: null,
    pause: null,
    ...fields,
  }
}

/** A worker that has been idle for a second. */
export function anIdle(id: string, endpoint: string, fields: Partial<Occupant> = {}): Occupant {
  return anOccupant(id, endpoint, { phase: 'idle', idleSinceMs: NOW - 1_000, ...fields })
}

/** Optional inputs of a placement decision. */
export type Situation = Partial<Omit<PlacementInput, 'rules' | 'pauseRules' | 'capacity'>> & {
  readonly rules?: Partial<PlacementRules>
  readonly pauseRules?: Partial<PauseRules>
  readonly freeWorkers?: Capacity['freeWorkers']
}

/** The inputs of a placement decision; by default a machine without GPUs. */
export function placeInput({ rules, pauseRules, freeWorkers = null, ...fields }: Situation): PlacementInput {
  return {
    parts: aMachine(),
    capacity: { freeWorkers, bound: 'the limit of the test' },
    occupants: [],
    tenants: [],
    nowMs: NOW,
    rules: { ...PLACEMENT_RULES, ...rules },
    pauseRules: { ...PAUSE_RULES, ...pauseRules },
    ...fields,
  }
}

/** The decision in short: `endpoint: GPUs`, who is evicted for whom, and reasons. */
export function placed(situation: Situation) {
  return inShort(placeWorkers(placeInput(situation)))
}

/** See {@link placed}. */
export function inShort(decision: PlacementDecision) {
  return {
    placed: decision.placed.map(({ endpointId, placement }) => {
      const where = placement.gpus.map(({ index }) => index).join(',')
      return `${endpointId}: ${where === '' ? `${placement.vcpus} vCPUs` : where}`
    }),
    evicted: decision.evictions.map(
      ({ workerId, for: by, sleeps, endsSince, afterJob }) =>
        `${workerId} ${sleeps ? 'sleeps ' : ''}for ${by}${afterJob ? ' after its job' : ''}${endsSince === null ? '' : ` since ${endsSince}`}`,
    ),
    paused: decision.pauses.map(({ workerId, for: by }) => `${workerId} for ${by}`),
    stranded: decision.stranded.map(({ workerId, reason }) => `${workerId}: ${reason}`),
    woken: decision.woken.map(({ workerId }) => workerId),
    unwoken: decision.unwoken.map(({ workerId, reason }) => `${workerId}: ${reason}`),
    refused: decision.unplaced.map(({ endpointId, resource, reason }) => `${endpointId} ${resource}: ${reason}`),
    wakeInMs: decision.wakeAtMs === null ? null : decision.wakeAtMs - NOW,
  }
}

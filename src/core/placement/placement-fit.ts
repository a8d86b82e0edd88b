/** Whether there is room for one worker of an endpoint beside others, and where. See place.ts. */

import type { Compute, CpuConfig } from '../endpoints/endpoint.ts'
import { cpuMemoryGb } from '../hardware/catalog.ts'
import { type CatalogedGpu, cataloged, compareVersions, gpuKey, type MachineParts } from '../hardware/inventory.ts'
import { type Placement, UNPLACED } from '../workers/placement.ts'
import type { Occupant, PlacementRules, Tenant, WorkerQuota } from './placement-input.ts'

/** What a worker of an endpoint needs, and what there is at all. */
export interface Search {
  readonly tenant: Pick<Tenant, 'compute' | 'limited' | 'owner'>
  readonly parts: MachineParts
  readonly rules: PlacementRules
  /** How many more workers the driver takes. */
  readonly slots: number
  /** Why it takes no more, for people. */
  readonly bound: string
  /** What the account may have; no limit when left out. */
  readonly quota?: WorkerQuota | undefined
  /** Where given, GPUs that none of these has come before others of the same pool. */
  readonly preferFreeOf?: readonly Occupant[]
}

/** A place for a worker. */
export interface PlacementFit {
  readonly placement: Placement
  /** See `Placed.clamped`. */
  readonly clamped: string | null
}

/** What containers may be promised of the machine together. */
export interface Promises {
  readonly vcpus: number
  readonly memoryMb: number
}

type GpuCompute = Extract<Compute, { kind: 'gpu' }>

/** The first place that the endpoint's wishes name and that is free beside the others; null where there is none. */
export function findFit(search: Search, others: readonly Occupant[]): PlacementFit | null {
  if (search.slots < 1 || quotaReached(search, others) !== null) return null
  const { compute } = search.tenant
  if (compute.kind === 'cpu') return cpuRoom(search, compute.configs, others)
  if (withoutGpus(search)) return { placement: UNPLACED, clamped: null }
  return gpuRoom(search, compute, others)
}

/** Which limit of the account one more worker beside the others would pass; null for none. */
export function quotaReached(
  search: Pick<Search, 'tenant' | 'quota' | 'parts' | 'rules'>,
  others: readonly Occupant[],
): 'account_workers' | 'account_gpus' | null {
  const { quota, tenant } = search
  if (quota === undefined) return null
  const own = others.filter(({ owner }) => owner === tenant.owner)
  if (quota.workers !== null && own.length >= quota.workers) return 'account_workers'
  const gpus = own.reduce((sum, { placement }) => sum + (placement?.gpus.length ?? 0), 0)
  const { compute } = tenant
  const wanted = compute.kind === 'gpu' && !withoutGpus(search) ? compute.count : 0
  return quota.gpus !== null && wanted > 0 && gpus + wanted > quota.gpus ? 'account_gpus' : null
}

/** Whether the end of this worker could make room for one of the endpoint. */
export function helps(search: Search, { placement }: Occupant): boolean {
  if (search.slots < 1 || placement === null) return true
  const { compute, limited } = search.tenant
  if (compute.kind === 'cpu') return limited && (placement.vcpus !== null || placement.memoryMb !== null)
  const keys = new Set(suitableGpus(search.parts, compute).map(({ gpu }) => gpuKey(gpu)))
  return placement.gpus.some(gpu => keys.has(gpuKey(gpu)))
}

/** Whether the GPU endpoint's workers run without one, since this machine has never had any. */
export function withoutGpus({ parts, rules }: Pick<Search, 'parts' | 'rules'>): boolean {
  return !rules.requireGpu && !parts.hadGpus && parts.gpus.length === 0
}

/** What was read of machines, since one decision asks for it many times. */
const CATALOGS = new WeakMap<MachineParts, readonly CatalogedGpu[]>()

function catalogOf(parts: MachineParts): readonly CatalogedGpu[] {
  const known = CATALOGS.get(parts) ?? parts.gpus.map(cataloged)
  CATALOGS.set(parts, known)
  return known
}

/** GPUs of the pools, without the excluded types. */
export function chosenGpus(parts: MachineParts, { pools, excludedTypes }: GpuCompute): CatalogedGpu[] {
  return catalogOf(parts).filter(({ type, pool }) => pools.includes(pool) && !excludedTypes.includes(type))
}

/** Of {@link chosenGpus} those that are well, whose driver is new enough, and that can be one of so many. */
export function suitableGpus(parts: MachineParts, compute: GpuCompute): CatalogedGpu[] {
  return chosenGpus(parts, compute).filter(
    ({ gpu }) => gpu.problem === null && hasCuda(gpu.cuda, compute) && (compute.count === 1 || gpu.mig === null),
  )
}

/** Whether a CUDA version is as the endpoint wants it; where none is told, nothing is known against it. */
export function hasCuda(cuda: string | null, { minCudaVersion, allowedCudaVersions }: GpuCompute): boolean {
  if (cuda === null) return true
  if (minCudaVersion !== null && compareVersions(cuda, minCudaVersion) < 0) return false
  return allowedCudaVersions.length === 0 || allowedCudaVersions.includes(cuda)
}

/** The keys of the GPUs that these workers have; null where one of them may have any. */
export function gpusInUse(others: readonly Occupant[]): ReadonlySet<string> | null {
  const keys = new Set<string>()
  for (const { placement } of others) {
    if (placement === null) return null
    for (const gpu of placement.gpus) keys.add(gpuKey(gpu))
  }
  return keys
}

/** What may be promised, and what these workers have been promised of it. */
export function promises({ parts, rules }: Search, others: readonly Occupant[]): { all: Promises; given: Promises } {
  const sum = (of: (placement: Placement) => number | null) =>
    others.reduce((total, { placement }) => total + (placement === null ? 0 : (of(placement) ?? 0)), 0)
  return {
    all: { vcpus: parts.vcpus * rules.cpuOvercommit, memoryMb: parts.memoryGb * 1024 * rules.memoryOvercommit },
    given: { vcpus: sum(({ vcpus }) => vcpus), memoryMb: sum(({ memoryMb }) => memoryMb) },
  }
}

/** What a worker of a configuration gets: no more than the whole machine. */
export function limitsOf({ flavor, vcpuCount }: CpuConfig, parts: MachineParts): Promises {
  const memoryGb = Math.min(cpuMemoryGb(flavor, vcpuCount), Math.max(1, parts.memoryGb))
  return { vcpus: Math.min(vcpuCount, parts.vcpus), memoryMb: memoryGb * 1024 }
}

function cpuRoom(search: Search, configs: readonly CpuConfig[], others: readonly Occupant[]): PlacementFit | null {
  const { all, given } = promises(search, others)
  for (const config of configs) {
    const limits = limitsOf(config, search.parts)
    const fits = given.vcpus + limits.vcpus <= all.vcpus && given.memoryMb + limits.memoryMb <= all.memoryMb
    if (search.tenant.limited && !fits) continue
    const placement = { ...UNPLACED, ...limits, flavor: config.flavor }
    return { placement, clamped: clampedOf(config, limits) }
  }
  return null
}

function clampedOf({ flavor, vcpuCount }: CpuConfig, { vcpus, memoryMb }: Promises): string | null {
  const wantedGb = cpuMemoryGb(flavor, vcpuCount)
  if (vcpus === vcpuCount && memoryMb === wantedGb * 1024) return null
  return (
    `${vcpuCount} vCPUs and ${wantedGb} GB are asked for (${flavor}), and the whole machine has less; ` +
    `the worker gets ${vcpus} vCPUs and ${memoryMb / 1024} GB`
  )
}

/** The pools in their order; all GPUs of one pool, and where that is possible of one type. */
function gpuRoom(search: Search, compute: GpuCompute, others: readonly Occupant[]): PlacementFit | null {
  const used = gpusInUse(others)
  if (used === null) return null
  const free = suitableGpus(search.parts, compute).filter(({ gpu }) => !used.has(gpuKey(gpu)))
  for (const pool of compute.pools) {
    const ofPool = free.filter(gpu => gpu.pool === pool)
    if (ofPool.length < compute.count) continue
    const gpus = pickGpus(ofPool, compute.count, gpusInUse(search.preferFreeOf ?? []) ?? new Set()).map(
      ({ gpu: { index, uuid, memoryGb }, type }) => {
        return { index, uuid, type, memoryGb }
      },
    )
    return { placement: { ...UNPLACED, gpus, pool }, clamped: null }
  }
  return null
}

/** From the type of which least would be left over, so that larger groups stay whole; of several types only where it must be. */
function pickGpus(all: readonly CatalogedGpu[], count: number, later: ReadonlySet<string>): CatalogedGpu[] {
  const isLater = ({ gpu }: CatalogedGpu) => (later.has(gpuKey(gpu)) ? 1 : 0)
  const gpus = [...all].sort((a, b) => isLater(a) - isLater(b))
  const byType = new Map<string, CatalogedGpu[]>()
  for (const gpu of gpus) byType.set(gpu.type, [...(byType.get(gpu.type) ?? []), gpu])
  const missing = (group: CatalogedGpu[]) => group.slice(0, count).reduce((sum, gpu) => sum + isLater(gpu), 0)
  const groups = [...byType.values()]
    .filter(group => group.length >= count)
    .sort((a, b) => missing(a) - missing(b) || a.length - b.length)
  return (groups[0] ?? gpus).slice(0, count)
}

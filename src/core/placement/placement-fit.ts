/** Finds room for one worker of an endpoint beside others. See place.ts. */

import type { CpuConfig } from '../endpoints/endpoint.ts'
import { cpuMemoryGb } from '../hardware/catalog.ts'
import { type CatalogedGpu, cataloged, compareVersions, gpuKey, type MachineParts } from '../hardware/inventory.ts'
import { type AssignedGpu, fractionOfGpus, type Placement, shareOf, UNPLACED } from '../workers/placement.ts'
import { bindsGpus, claimedMb, hasShare } from './card-claims.ts'
import { type CardRooms, isFree, leavesCard } from './card-room.ts'
import type { NamedGpus, PlacedGpuCompute } from './placed-compute.ts'
import type { Occupant, PlacementRules, Tenant, WantedWake, WorkerQuota } from './placement-input.ts'
import { askedPlacement } from './wish.ts'

/** The needs of a worker of an endpoint, and the resources of the machine. */
export interface Search {
  readonly tenant: Pick<Tenant, 'compute' | 'limited' | 'owner' | 'placedBy'>
  readonly parts: MachineParts
  /** See `PlacementInput.cards`. */
  readonly cards?: CardRooms | undefined
  readonly rules: PlacementRules
  /** Number of further workers that the driver takes. */
  readonly slots: number
  /** Reason why the driver takes no more workers, for messages. */
  readonly bound: string
  /** Limits of the account; unlimited when left out. */
  readonly quota?: WorkerQuota | undefined
  /** Workers whose GPUs are chosen last within a pool. */
  readonly avoided?: readonly Occupant[]
  /**
   * A card on which a worker with a share began to start after this time takes no other one yet; all cards count when
   * left out.
   */
  readonly startsAfterMs?: number
  /** A sleeping worker that should wake: it needs its GPUs again and has the rest. Left out for a new worker. */
  readonly again?: WantedWake
}

/** A place for a worker. */
export interface PlacementFit {
  readonly placement: Placement
  /** See `Placed.clamped`. */
  readonly clamped: string | null
}

/** Resources that all containers may get together. */
export interface Promises {
  readonly vcpus: number
  readonly memoryMb: number
}

/** The first wanted place that is free beside the other workers; null if no place is free. */
export function findFit(search: Search, others: readonly Occupant[]): PlacementFit | null {
  if (search.slots < 1 || quotaReached(search, others) !== null) return null
  if (search.again !== undefined) return roomAgain(search, search.again, others)
  const { compute, placedBy } = search.tenant
  if (placedBy === 'platform') return { placement: askedPlacement(compute), clamped: null }
  if (compute.kind === 'cpu') return cpuRoom(search, compute.configs, others)
  if (withoutGpus(search)) return { placement: UNPLACED, clamped: null }
  return gpuRoom(search, compute, others)
}

/** The limit of the account that one more worker would exceed; null if it fits. */
export function quotaReached(
  search: Pick<Search, 'tenant' | 'quota' | 'parts' | 'rules' | 'again'>,
  others: readonly Occupant[],
): 'account_workers' | 'account_gpus' | null {
  const { quota, tenant, again } = search
  if (quota === undefined || (quota.workers === null && quota.gpus === null)) return null
  const own = others.filter(({ owner }) => owner === tenant.owner)
  if (again === undefined && quota.workers !== null && own.length >= quota.workers) return 'account_workers'
  const wanted = wantedGpus(search)
  return wanted > 0 && exceedsGpus(search, others, wanted) ? 'account_gpus' : null
}

/**
 * True if the account would have more GPUs than its limit with this number of further ones: now, where reservations
 * are nobody's yet, or once those that leave have given theirs to them.
 */
function exceedsGpus(
  { quota, tenant }: Pick<Search, 'tenant' | 'quota'>,
  others: readonly Occupant[],
  wanted: number,
): boolean {
  if (quota === undefined || quota.gpus === null) return false
  const awake = others.filter(({ owner, sleep }) => owner === tenant.owner && sleep !== 'asleep')
  const gpusOf = (workers: readonly Occupant[]) =>
    workers.reduce((sum, { placement }) => sum + fractionOfGpus(placement), 0)
  const now = gpusOf(awake.filter(({ phase }) => phase !== 'kept'))
  const later = gpusOf(awake.filter(one => one.phase !== 'leaving' && one.sleep !== 'falling' && one.hasWay !== false))
  // Hundredths of shares are no exact sums.
  return Math.max(now, later) + wanted > quota.gpus + 0.001
}

/** Number of GPUs that the worker needs; for a share its part of the largest suitable GPU. */
export function wantedGpus(search: Pick<Search, 'tenant' | 'parts' | 'rules' | 'again'>): number {
  if (search.again !== undefined) return fractionOfGpus(search.again.placement)
  const { compute, placedBy } = search.tenant
  if (compute.kind === 'gpu' && compute.memoryGb !== undefined && placedBy === 'machine' && !withoutGpus(search)) {
    const memoryGb = Math.max(compute.memoryGb, ...suitableGpus(search.parts, compute).map(({ gpu }) => gpu.memoryGb))
    return shareOf({ memoryGb }, compute.memoryGb * 1024)
  }
  return compute.kind === 'gpu' && (placedBy === 'platform' || !withoutGpus(search)) ? compute.count : 0
}

/** True if the end of this worker could make room for one of the endpoint. */
export function helps(search: Search, worker: Occupant): boolean {
  const { placement } = worker
  const { compute, limited, owner, placedBy } = search.tenant
  // Nothing on this machine ends for a worker that runs elsewhere.
  if (placedBy === 'platform') return search.slots < 1 && placement?.asked !== undefined
  if (search.slots < 1 || placement === null) return true
  if (search.again !== undefined) {
    if (search.again.placement.gpus.length === 0) return placement.vcpus !== null
    const keys = new Set(search.again.placement.gpus.map(gpuKey))
    return bindsGpus(worker, owner) && placement.gpus.some(gpu => keys.has(gpuKey(gpu)))
  }
  if (compute.kind === 'cpu') return limited && (placement.vcpus !== null || placement.memoryMb !== null)
  const keys = new Set(suitableGpus(search.parts, compute).map(({ gpu }) => gpuKey(gpu)))
  return bindsGpus(worker, owner) && placement.gpus.some(gpu => keys.has(gpuKey(gpu)))
}

/** True if workers of a GPU endpoint run without a GPU, because this machine never had one. */
export function withoutGpus({
  parts,
  rules,
}: {
  readonly parts: MachineParts
  readonly rules: Pick<PlacementRules, 'requireGpu'>
}): boolean {
  return !rules.requireGpu && !parts.hadGpus && parts.gpus.length === 0
}

/** A cache of results for inventories: one decision needs them many times. */
const CATALOGS = new WeakMap<MachineParts, readonly CatalogedGpu[]>()

function catalogedGpus(parts: MachineParts): readonly CatalogedGpu[] {
  const catalog = CATALOGS.get(parts) ?? parts.gpus.map(cataloged)
  CATALOGS.set(parts, catalog)
  return catalog
}

/** GPUs of the pools, without the excluded types. */
export function chosenGpus(parts: MachineParts, { pools, excludedTypes }: NamedGpus): CatalogedGpu[] {
  return catalogedGpus(parts).filter(({ type, pool }) => pools.includes(pool) && !excludedTypes.includes(type))
}

/** GPUs of {@link chosenGpus} without a problem, with a driver that is new enough, in groups of the wanted size. */
export function suitableGpus(parts: MachineParts, compute: NamedGpus): CatalogedGpu[] {
  return chosenGpus(parts, compute).filter(
    ({ gpu }) => gpu.problem === null && hasCuda(gpu.cuda, compute) && (compute.count === 1 || gpu.mig === null),
  )
}

/** True if a CUDA version fits the endpoint; an unknown version fits. */
export function hasCuda(cuda: string | null, { minCudaVersion, allowedCudaVersions }: NamedGpus): boolean {
  if (cuda === null) return true
  if (minCudaVersion !== null && compareVersions(cuda, minCudaVersion) < 0) return false
  return allowedCudaVersions.length === 0 || allowedCudaVersions.includes(cuda)
}

/**
 * The first GPU of a sleeping worker that the machine lost, or that cannot be used, as a clause; null if all are
 * usable.
 */
export function lostGpu({ parts }: Pick<Search, 'parts'>, { gpus }: Placement): string | null {
  for (const gpu of gpus) {
    const present = parts.gpus.find(other => gpuKey(other) === gpuKey(gpu))
    if (present === undefined) return `GPU ${gpu.index} (${gpu.type}) is no longer on this machine`
    if (present.problem !== null) return `GPU ${gpu.index} (${gpu.type}) cannot be used: ${present.problem}`
  }
  return null
}

/**
 * The GPUs that a sleeping or paused worker gave back, if all of them are free, and have its memory free. Or the vCPUs
 * of a paused one.
 */
function roomAgain(
  search: Search,
  { placement, memoryMb }: WantedWake,
  others: readonly Occupant[],
): PlacementFit | null {
  if (placement.gpus.length === 0) return hasVcpus(search, placement, others) ? { placement, clamped: null } : null
  const claims = claimedMb(others, search.tenant.owner)
  if (claims === null || lostGpu(search, placement) !== null) return null
  const isFreeAgain = (gpu: AssignedGpu) => {
    const key = gpuKey(gpu)
    const room = search.cards?.get(key)
    const { shareMb } = gpu
    if (shareMb !== undefined) return hasShare(gpu, claims.get(key) ?? 0, { room, shareMb, neededMb: memoryMb ?? 0 })
    return !claims.has(key) && isFree(room, memoryMb ?? 0)
  }
  return placement.gpus.every(isFreeAgain) ? { placement, clamped: null } : null
}

/** True if the vCPUs of a worker are free; its memory is its own all the time. */
function hasVcpus(search: Search, { vcpus }: Placement, others: readonly Occupant[]): boolean {
  if (vcpus === null) return true
  const { all, given } = promises(search, others)
  return given.vcpus + vcpus <= all.vcpus
}

/**
 * GPUs of a pool that are chosen last: those that sleeping workers need again, and those of
 * {@link Search.avoided}.
 */
function gpusForLater({ tenant, avoided = [] }: Search, others: readonly Occupant[]): ReadonlySet<string> {
  const keys = new Set(claimedMb(avoided, tenant.owner)?.keys() ?? [])
  for (const { sleep, placement } of others) {
    if (sleep === 'asleep') for (const gpu of placement?.gpus ?? []) keys.add(gpuKey(gpu))
  }
  return keys
}

/** The resources for containers, and the part that these workers have. A paused one has its memory alone. */
export function promises({ parts, rules }: Search, others: readonly Occupant[]): { all: Promises; given: Promises } {
  const sum = (workers: readonly Occupant[], of: (placement: Placement) => number | null) =>
    workers.reduce((total, { placement }) => total + (placement === null ? 0 : (of(placement) ?? 0)), 0)
  const running = others.filter(({ phase }) => phase !== 'paused')
  return {
    all: { vcpus: parts.vcpus * rules.cpuOvercommit, memoryMb: parts.memoryGb * 1024 * rules.memoryOvercommit },
    given: { vcpus: sum(running, ({ vcpus }) => vcpus), memoryMb: sum(others, ({ memoryMb }) => memoryMb) },
  }
}

/** The resources of a worker with a configuration, at most the whole machine. */
export function cappedResources({ flavor, vcpuCount }: CpuConfig, parts: MachineParts): Promises {
  const memoryGb = Math.min(cpuMemoryGb(flavor, vcpuCount), Math.max(1, parts.memoryGb))
  return { vcpus: Math.min(vcpuCount, parts.vcpus), memoryMb: memoryGb * 1024 }
}

function cpuRoom(search: Search, configs: readonly CpuConfig[], others: readonly Occupant[]): PlacementFit | null {
  const { all, given } = promises(search, others)
  for (const config of configs) {
    const limits = cappedResources(config, search.parts)
    const fits = given.vcpus + limits.vcpus <= all.vcpus && given.memoryMb + limits.memoryMb <= all.memoryMb
    if (search.tenant.limited && !fits) continue
    const placement = { ...UNPLACED, ...limits, flavor: config.flavor }
    return { placement, clamped: clampText(config, limits) }
  }
  return null
}

function clampText({ flavor, vcpuCount }: CpuConfig, { vcpus, memoryMb }: Promises): string | null {
  const wantedGb = cpuMemoryGb(flavor, vcpuCount)
  if (vcpus === vcpuCount && memoryMb === wantedGb * 1024) return null
  return (
    `${vcpuCount} vCPUs and ${wantedGb} GB are asked for (${flavor}), and the whole machine has less; ` +
    `the worker gets ${vcpus} vCPUs and ${memoryMb / 1024} GB`
  )
}

/** The first pool with enough free GPUs; all GPUs are of one pool, and if possible of one type. */
function gpuRoom(search: Search, compute: PlacedGpuCompute, others: readonly Occupant[]): PlacementFit | null {
  const claims = claimedMb(others, search.tenant.owner)
  if (claims === null) return null
  if (compute.memoryGb !== undefined) return shareRoom(search, compute, { others, claims })
  const later = gpusForLater(search, others)
  const free = suitableGpus(search.parts, compute).filter(
    ({ gpu }) => !claims.has(gpuKey(gpu)) && leavesCard(search.cards?.get(gpuKey(gpu))),
  )
  for (const pool of compute.pools) {
    const ofPool = free.filter(gpu => gpu.pool === pool)
    if (ofPool.length < compute.count) continue
    const gpus = pickGpus(ofPool, compute.count, later).map(({ gpu: { index, uuid, memoryGb }, type }) => {
      return { index, uuid, type, memoryGb }
    })
    return { placement: { ...UNPLACED, gpus, pool }, clamped: null }
  }
  return null
}

/**
 * A share of a GPU of the first pool that has room. Of several GPUs the fullest is chosen, so that whole ones stay
 * free; of equals one that no sleeping worker needs, and then the smallest.
 */
function shareRoom(
  search: Search,
  compute: PlacedGpuCompute,
  { others, claims }: { readonly others: readonly Occupant[]; readonly claims: ReadonlyMap<string, number> },
): PlacementFit | null {
  const shareMb = (compute.memoryGb ?? 0) * 1024
  const later = gpusForLater(search, others)
  const starting = startingCards(search, others)
  const claimOf = ({ gpu }: CatalogedGpu) => claims.get(gpuKey(gpu)) ?? 0
  const isLater = ({ gpu }: CatalogedGpu) => (later.has(gpuKey(gpu)) ? 1 : 0)
  const fitting = suitableGpus(search.parts, compute).filter(cataloged => {
    const key = gpuKey(cataloged.gpu)
    const room = search.cards?.get(key)
    if (starting.has(key) || exceedsGpus(search, others, shareOf(cataloged.gpu, shareMb))) return false
    return hasShare(cataloged.gpu, claimOf(cataloged), { room, shareMb, neededMb: shareMb })
  })
  for (const pool of compute.pools) {
    const [best] = fitting
      .filter(gpu => gpu.pool === pool)
      .sort((a, b) => isLater(a) - isLater(b) || claimOf(b) - claimOf(a) || a.gpu.memoryGb - b.gpu.memoryGb)
    if (best === undefined) continue
    const { index, uuid, memoryGb } = best.gpu
    const gpus = [{ index, uuid, type: best.type, memoryGb, shareMb }]
    return { placement: { ...UNPLACED, gpus, pool }, clamped: null }
  }
  return null
}

/** The keys of cards that wait for the start of a worker with a share: programs measure a card while they start. */
function startingCards({ startsAfterMs }: Search, others: readonly Occupant[]): ReadonlySet<string> {
  if (startsAfterMs === undefined) return new Set()
  const starting = others.filter(({ startingSinceMs }) => startingSinceMs !== null && startingSinceMs > startsAfterMs)
  const gpus = starting.flatMap(({ placement }) => placement?.gpus ?? [])
  return new Set(gpus.filter(({ shareMb }) => shareMb !== undefined).map(gpuKey))
}

/**
 * Chooses GPUs of the type that leaves the fewest over, so that larger groups stay whole; of several types only if
 * necessary.
 */
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

/** Reasons why a worker has no place, as precisely as the machine can be read. See place.ts. */
import { type CatalogedGpu, gpuKey, gpuSummary, type MachineParts } from '../hardware/inventory.ts'
import type { Resource } from '../workers/placement.ts'
import { bindsGpus, claimedMb, shareableMb, WHOLE_CARD } from './card-claims.ts'
import { inGb, isFree, leavesCard, otherUseText } from './card-room.ts'
import type { NamedGpus, PlacedGpuCompute } from './placed-compute.ts'
import {
  cappedResources,
  chosenGpus,
  hasCuda,
  lostGpu,
  type Promises,
  promises,
  quotaReached,
  type Search,
  suitableGpus,
} from './placement-fit.ts'
import type { Occupant, Tenant, WantedWake } from './placement-input.ts'

/** The missing resource. */
export interface PlacementFailure {
  readonly resource: Resource
  /** A clause for people. It names endpoints of the same owner only. */
  readonly reason: string
}

/** The account that wants a place. It sees only totals of other accounts. */
type Asker = Pick<Tenant, 'id' | 'owner'>

/** Limit of endpoints that are named in one reason. */
const MAX_NAMES = 5

/** The reason for no room beside these other workers. Call it only if no room exists. */
export function findPlacementFailure(search: Search, others: readonly Occupant[], asker: Asker): PlacementFailure {
  const { compute, placedBy } = search.tenant
  if (search.again !== undefined) return cardsBusy(search, search.again, others, asker)
  if (compute.kind === 'gpu' && placedBy === 'machine') {
    const never = neverFits(search.parts, compute)
    if (never !== null) return never
  }
  const reached = quotaReached(search, others)
  if (reached !== null) return quotaRefusal(reached, search)
  if (search.slots < 1 || placedBy === 'platform') return { resource: 'workers', reason: search.bound }
  return compute.kind === 'gpu' ? gpusBusy(search, compute, others, asker) : promisesGiven(search, others, asker)
}

/** The reason why a sleeping worker cannot get its GPUs back. */
function cardsBusy(search: Search, wake: WantedWake, others: readonly Occupant[], asker: Asker): PlacementFailure {
  const again = wake.placement
  if (again.gpus.length === 0) return vcpusTaken(search, again, others, asker)
  const lost = lostGpu(search, again)
  if (lost !== null) return { resource: 'gpu', reason: lost }
  const reached = quotaReached(search, others)
  if (reached !== null) return quotaRefusal(reached, search)
  const keys = new Set(again.gpus.map(gpuKey))
  const uses = (worker: Occupant) =>
    bindsGpus(worker, asker.owner) && (worker.placement?.gpus ?? []).some(gpu => keys.has(gpuKey(gpu)))
  const [kept, users] = [true, false].map(isKept =>
    others.filter(one => (one.phase === 'kept') === isKept && uses(one)),
  )
  const cards = again.gpus.map(({ index }) => index).join(', ')
  const which = again.gpus.length === 1 ? `its GPU ${cards} is` : `its GPUs ${cards} are`
  const unknown = unknownUser(others)
  if (unknown !== null) return unknown
  if (users!.length + kept!.length === 0) return { resource: 'gpu', reason: memoryLack(search, wake) }
  const how = users!.length > 0 ? `in use by ${names(users!, asker)}` : `kept for ${names(kept!, asker)}`
  return { resource: 'gpu', reason: `${which} ${how}` }
}

/** The reason why a paused worker without GPUs cannot go on. */
function vcpusTaken(
  search: Search,
  { vcpus }: WantedWake['placement'],
  others: readonly Occupant[],
  asker: Asker,
): PlacementFailure {
  if (search.slots < 1 || vcpus === null) return { resource: 'workers', reason: search.bound }
  const { all, given } = promises(search, others)
  const users = others.filter(({ placement, phase }) => placement?.vcpus != null && phase !== 'paused')
  const taken = `${round(given.vcpus)} of the ${round(all.vcpus)} that may be promised are taken by ${names(users, asker)}`
  return { resource: 'cpu', reason: `it needs ${round(vcpus)} vCPUs again, and ${taken}` }
}

/** The reason why a suspended worker cannot resume on a card that no worker has. */
function memoryLack({ cards }: Search, { placement, memoryMb }: WantedWake): string {
  const short = placement.gpus.find(gpu => !isFree(cards?.get(gpuKey(gpu)), memoryMb ?? 0)) ?? placement.gpus[0]!
  const room = cards?.get(gpuKey(short))
  if (room === undefined) return `its GPU ${short.index} is not free`
  return `it needs ${inGb(memoryMb ?? 0)} of its GPU ${short.index}, and ${inGb(room.freeMb)} are free: ${otherUseText(short, room)}`
}

function quotaRefusal(resource: 'account_workers' | 'account_gpus', { quota }: Search): PlacementFailure {
  const [limit, what] =
    resource === 'account_workers'
      ? [quota?.workers, 'workers that its account may have at once']
      : [quota?.gpus, 'GPUs that its account may have at once']
  return { resource, reason: `the limit of ${limit} ${what} is reached` }
}

function neverFits(parts: MachineParts, compute: PlacedGpuCompute): PlacementFailure | null {
  const { pools, excludedTypes, count } = compute
  const here = `this machine has ${parts.gpus.length === 0 ? 'no GPU' : gpuSummary(parts.gpus)}`
  const unread = parts.problem === null ? '' : ` (${parts.problem})`
  const chosen = chosenGpus(parts, compute)
  if (chosen.length === 0) {
    const without = excludedTypes.length === 0 ? '' : ` without the types ${excludedTypes.join(', ')}`
    return { resource: 'gpu_type', reason: `there is no GPU of ${poolNames(pools)}${without}: ${here}${unread}` }
  }
  const sound = chosen.filter(({ gpu }) => gpu.problem === null)
  if (sound.length === 0) {
    const [{ gpu, type }] = chosen as [CatalogedGpu]
    return { resource: 'gpu_type', reason: `GPU ${gpu.index} (${type}) cannot be used: ${gpu.problem}${unread}` }
  }
  if (!sound.some(({ gpu }) => hasCuda(gpu.cuda, compute))) return cudaRefusal(sound, compute)
  const suitable = suitableGpus(parts, compute)
  const { memoryGb } = compute
  if (memoryGb !== undefined) {
    const mostMb = Math.max(...suitable.map(({ gpu }) => shareableMb(gpu, 0, undefined)))
    if (memoryGb * 1024 <= mostMb) return null
    const reason = `a share of ${memoryGb} GB is larger than the ${inGb(mostMb)} of a GPU of ${oneOfPools(pools)} that workers may share: ${here}`
    return { resource: 'gpu_type', reason }
  }
  if (pools.some(pool => suitable.filter(gpu => gpu.pool === pool).length >= count)) return null
  const parted = sound.some(({ gpu }) => gpu.mig !== null) ? '; parts of a card cannot be used together' : ''
  return { resource: 'gpu_count', reason: `no machine has ${count} GPUs of ${oneOfPools(pools)}: ${here}${parted}` }
}

function cudaRefusal(
  sound: readonly CatalogedGpu[],
  { minCudaVersion, allowedCudaVersions }: NamedGpus,
): PlacementFailure {
  const versions = [...new Set(sound.map(({ gpu, type }) => `${type} have CUDA ${gpu.cuda}`))].join(', of type ')
  const wanted =
    minCudaVersion === null
      ? `one of ${allowedCudaVersions.join(', ')} is wanted`
      : `at least ${minCudaVersion} is wanted`
  return { resource: 'cuda', reason: `the GPUs of type ${versions}, ${wanted}` }
}

function gpusBusy(
  search: Search,
  compute: PlacedGpuCompute,
  others: readonly Occupant[],
  asker: Asker,
): PlacementFailure {
  const { parts, cards } = search
  const { pools, count, memoryGb } = compute
  const unknown = unknownUser(others)
  if (unknown !== null) return unknown
  if (memoryGb !== undefined) return sharesGiven(search, { compute, memoryGb }, others, asker)
  const gpus = suitableGpus(parts, compute).map(({ gpu }) => gpu)
  const suitable = new Set(gpus.map(gpuKey))
  const has = (worker: Occupant) =>
    bindsGpus(worker, asker.owner) ? (worker.placement?.gpus ?? []).map(gpuKey).filter(key => suitable.has(key)) : []
  const users = others.filter(worker => worker.phase !== 'kept' && has(worker).length > 0)
  const inUse = new Set(users.flatMap(has))
  const keepers = others.filter(worker => worker.phase === 'kept' && has(worker).some(key => !inUse.has(key)))
  const kept = new Set(keepers.flatMap(has).filter(key => !inUse.has(key)))
  const foreign = gpus.filter(gpu => {
    const key = gpuKey(gpu)
    return !inUse.has(key) && !kept.has(key) && !leavesCard(cards?.get(key))
  })
  const wanted =
    count === 1 ? `no free GPU of ${poolNames(pools)}` : `${count} free GPUs of ${oneOfPools(pools)} are wanted`
  const taken = [
    ...(inUse.size === 0
      ? []
      : [`${inUse.size} of ${suitable.size} in use by ${names(users, asker)}${frozenOnes(users)}`]),
    ...(kept.size === 0 ? [] : [`${kept.size} of ${suitable.size} kept for ${names(keepers, asker)}`]),
    ...foreign.slice(0, MAX_NAMES).map(gpu => otherUseText(gpu, cards!.get(gpuKey(gpu))!)),
  ]
  return { resource: 'gpu', reason: `${wanted}: ${taken.join(', ')}` }
}

/** The reason why no card has room for a share. */
function sharesGiven(
  { parts, cards }: Search,
  { compute, memoryGb }: { readonly compute: PlacedGpuCompute; readonly memoryGb: number },
  others: readonly Occupant[],
  asker: Asker,
): PlacementFailure {
  const claims = claimedMb(others, asker.owner) ?? new Map<string, number>()
  const clauses = suitableGpus(parts, compute)
    .slice(0, MAX_NAMES)
    .map(({ gpu }) => {
      const key = gpuKey(gpu)
      const room = cards?.get(key)
      const users = others.filter(worker => bindsGpus(worker, asker.owner) && hasGpu(worker, key))
      const leftMb = Math.min(shareableMb(gpu, claims.get(key) ?? 0, room), room?.freeMb ?? WHOLE_CARD)
      const left = leftMb > 0 ? `${inGb(leftMb)} of card ${gpu.index} are left` : `card ${gpu.index} is full`
      const beside = users.length === 0 ? '' : ` beside ${names(users, asker)}${frozenOnes(users)}`
      const foreign =
        room === undefined || room.foreignMb < memoryGb * 1024 * 0.1 ? '' : ` (${otherUseText(gpu, room)})`
      return `${left}${beside}${foreign}`
    })
  const reason = `no GPU of ${poolNames(compute.pools)} has ${inGb(memoryGb * 1024)} left: ${clauses.join(', ')}`
  return { resource: 'gpu', reason }
}

function hasGpu({ placement }: Occupant, key: string): boolean {
  return (placement?.gpus ?? []).some(gpu => gpuKey(gpu) === key)
}

function unknownUser(others: readonly Occupant[]): PlacementFailure | null {
  const unknown = others.find(({ placement }) => placement === null)
  if (unknown === undefined) return null
  const reason = `worker ${unknown.workerId} was started by an older version and may use any GPU; it is being replaced`
  return { resource: 'gpu', reason }
}

function promisesGiven(search: Search, others: readonly Occupant[], asker: Asker): PlacementFailure {
  const { all, given } = promises(search, others)
  const { compute } = search.tenant
  const limits = compute.kind === 'cpu' ? compute.configs.map(config => cappedResources(config, search.parts)) : []
  const isCpu = limits.every(({ vcpus }) => given.vcpus + vcpus > all.vcpus)
  const of = ({ vcpus, memoryMb }: Promises) => (isCpu ? vcpus : memoryMb)
  const figure = (amount: number) => (isCpu ? `${round(amount)}` : `${round(amount / 1024)} GB`)
  const say = (amount: number) => `${figure(amount)} ${isCpu ? 'vCPUs' : 'of memory'}`
  const users = others.filter(({ placement }) => placement?.vcpus != null)
  const [keepers, workers] = [true, false].map(isKept => users.filter(({ phase }) => (phase === 'kept') === isKept))
  const kept = of(promises(search, keepers!).given)
  const taken = `${figure(of(given) - kept)} of the ${figure(of(all))} that may be promised are taken by ${names(workers!, asker)}`
  const reason = `${say(Math.min(...limits.map(of)))} are wanted, and ${taken}`
  return {
    resource: isCpu ? 'cpu' : 'memory',
    reason: kept === 0 ? reason : `${reason}, ${say(kept)} are kept for ${names(keepers!, asker)}`,
  }
}

/** A GPU is bound to a frozen worker, since the memory is still in use. */
function frozenOnes(users: readonly Occupant[]): string {
  const frozen = users.filter(({ phase, sleep }) => phase === 'frozen' && sleep !== 'asleep').length
  if (frozen === 0) return ''
  if (frozen === users.length) return ' (frozen, with their memory still on the card)'
  return ` (${frozen} of ${users.length} workers frozen, with their memory still on the card)`
}

function names(users: readonly Occupant[], asker: Asker): string {
  const own = users.filter(({ owner, endpointId }) => owner === asker.owner && endpointId !== asker.id)
  const endpoints = [...new Set(own.map(({ endpointName }) => endpointName))].sort()
  const shown = endpoints.slice(0, MAX_NAMES).join(', ')
  const parts = [
    ...(endpoints.length === 0
      ? []
      : [`endpoint${endpoints.length === 1 ? '' : 's'} ${shown}${endpoints.length > MAX_NAMES ? ', ...' : ''}`]),
    ...(users.some(({ endpointId }) => endpointId === asker.id) ? ['its own workers'] : []),
    ...(users.some(({ owner }) => owner !== asker.owner) ? ['other accounts'] : []),
  ]
  return parts.length === 0 ? 'nobody' : parts.join(' and ')
}

function poolNames(pools: readonly string[]): string {
  return `${pools.length === 1 ? 'pool' : 'pools'} ${pools.join(', ')}`
}

function oneOfPools(pools: readonly string[]): string {
  return pools.length === 1 ? `pool ${pools[0]}` : `one of the pools ${pools.join(', ')}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

import { CPU_FLAVORS, GPU_POOLS, LOCATION_CODES } from './catalog-data.ts'
import { DATA_CENTERS, type GpuType } from './catalog-types.ts'

const POOL_BY_ID = new Map(GPU_POOLS.map(pool => [pool.id, pool]))
const FLAVOR_BY_ID = new Map(CPU_FLAVORS.map(flavor => [flavor.id, flavor]))
/** Every place that an endpoint can name: country codes and data centers. */
export const LOCATIONS: readonly string[] = [...LOCATION_CODES, ...DATA_CENTERS.map(({ id }) => id)]

/**
 * Everything wrong with a choice of pools and the types taken out of it, one sentence each.
 * @param local types of this machine with their pools, which the catalogue may not know
 */
export function gpuFailures(
  pools: readonly string[],
  excludedTypes: readonly string[],
  local: readonly Pick<GpuType, 'id' | 'pool'>[] = [],
): string[] {
  const failures: string[] = []
  if (pools.length === 0) failures.push('at least one GPU pool is needed')
  for (const pool of pools) {
    if (!POOL_BY_ID.has(pool)) {
      failures.push(`'${pool}' is not a GPU pool; the pools are ${[...POOL_BY_ID.keys()].join(', ')}`)
    }
  }
  const types = new Set([
    ...pools.flatMap(pool => POOL_BY_ID.get(pool)?.gpuTypes ?? []),
    ...local.flatMap(({ id, pool }) => (pool !== null && pools.includes(pool) ? [id] : [])),
  ])
  for (const [index, type] of excludedTypes.entries()) {
    if (type.startsWith('-')) failures.push(`excluded type '${type}' must not start with a hyphen`)
    else if (excludedTypes.indexOf(type) !== index) failures.push(`excluded type '${type}' is given twice`)
    else if (!types.has(type)) failures.push(`excluded type '${type}' is not a GPU type of the selected pools`)
  }
  return failures
}

/** Everything wrong with a list of locations (country codes and data centers), one sentence each. */
export function locationFailures(locations: readonly string[]): string[] {
  return locations
    .filter(location => !LOCATIONS.includes(location))
    .map(location => `'${location}' is not a location; the locations are ${LOCATIONS.join(', ')}`)
}

/** Everything wrong with one CPU configuration, one sentence each. Flavors take 2 to 32 vCPUs, GraphQL 1 as well. */
export function cpuFailures(flavor: string, vcpuCount: number): string[] {
  if (!FLAVOR_BY_ID.has(flavor)) {
    return [`'${flavor}' is not a CPU flavor; the flavors are ${[...FLAVOR_BY_ID.keys()].join(', ')}`]
  }
  const powerOfTwo = Number.isInteger(Math.log2(vcpuCount))
  if (!powerOfTwo || vcpuCount < 1 || vcpuCount > 32)
    return [`vcpuCount ${vcpuCount} is not a power of two from 1 to 32`]
  return []
}

/** Memory in GB of a CPU configuration; 4 GB a vCPU where the catalogue does not say. */
export function cpuMemoryGb(flavor: string, vcpuCount: number): number {
  return Math.max(1, Math.floor(vcpuCount * (FLAVOR_BY_ID.get(flavor)?.ramGbPerVcpu ?? 4)))
}

/** How much of something there is. */
export type Availability = 'NONE' | 'LOW' | 'MEDIUM' | 'HIGH'

/** LOW for one worker, MEDIUM for up to three, HIGH for more. @param workers how many could run at once */
export function availabilityOf(workers: number): Availability {
  if (workers < 1) return 'NONE'
  if (workers === 1) return 'LOW'
  return workers <= 3 ? 'MEDIUM' : 'HIGH'
}

/** How many workers of a CPU configuration a machine can run at once. */
export function cpuAvailability(
  flavor: string,
  vcpuCount: number,
  machine: { readonly vcpus: number; readonly memoryGb: number },
): Availability {
  const byCpu = machine.vcpus / vcpuCount
  const byMemory = machine.memoryGb / cpuMemoryGb(flavor, vcpuCount)
  return availabilityOf(Math.floor(Math.min(byCpu, byMemory)))
}

/** The pools in which GPU types are, and the types that are in none. */
export function poolsOfTypes(types: readonly string[]): { pools: string[]; unknown: string[] } {
  const poolOf = (type: string) => GPU_POOLS.find(pool => pool.gpuTypes.includes(type))?.id
  const pools = types.flatMap(type => poolOf(type) ?? [])
  return { pools: [...new Set(pools)], unknown: types.filter(type => poolOf(type) === undefined) }
}

/** The GPU types of pools, in the order of the pools. */
export function typesOfPools(pools: readonly string[]): string[] {
  return pools.flatMap(pool => POOL_BY_ID.get(pool)?.gpuTypes ?? [])
}

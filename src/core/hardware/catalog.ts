import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { CPU_FLAVORS, GPU_POOLS, LOCATION_CODES } from './catalog-data.ts'
import { DATA_CENTERS, GPU_TYPES, type GpuType } from './catalog-types.ts'

const POOL_BY_ID = new Map(GPU_POOLS.map(pool => [pool.id, pool]))
const FLAVOR_BY_ID = new Map(CPU_FLAVORS.map(flavor => [flavor.id, flavor]))
/** All places that an endpoint can name: country codes and data centers. */
export const LOCATIONS: readonly string[] = [...LOCATION_CODES, ...DATA_CENTERS.map(({ id }) => id)]

/**
 * All problems of a choice of pools and excluded types.
 * @param local types of this machine with their pools, which the catalog may not have; null if they are not known
 * now: then excluded types are not checked
 */
export function gpuProblems(
  pools: readonly string[],
  excludedTypes: readonly string[],
  local: readonly Pick<GpuType, 'id' | 'pool'>[] | null = [],
): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (pools.length === 0) problems.push(fieldProblem('compute.pools', 'must name at least one GPU pool'))
  for (const pool of pools) {
    if (!POOL_BY_ID.has(pool)) {
      const poolIds = [...POOL_BY_ID.keys()].join(', ')
      problems.push(fieldProblem('compute.pools', `is not a GPU pool; the pools are ${poolIds}`, `'${pool}'`))
    }
  }
  const types = new Set([
    ...pools.flatMap(pool => POOL_BY_ID.get(pool)?.gpuTypes ?? []),
    ...(local ?? []).flatMap(({ id, pool }) => (pool !== null && pools.includes(pool) ? [id] : [])),
  ])
  for (const [index, type] of excludedTypes.entries()) {
    const wrong = (problem: string) => problems.push(fieldProblem('compute.excludedTypes', problem, `'${type}'`))
    if (type.startsWith('-')) wrong('must not start with a hyphen')
    else if (excludedTypes.indexOf(type) !== index) wrong('is given twice')
    else if (local !== null && !types.has(type)) wrong('is not a GPU type of the selected pools')
  }
  return problems
}

/**
 * Memory of the largest GPU of a choice, in GB; null if the types of this machine are not known, or for an unknown
 * choice.
 * @param local types of this machine with their pools and memory; null if they are not known now
 */
export function largestGpu(
  pools: readonly string[],
  excludedTypes: readonly string[],
  local: readonly Pick<GpuType, 'id' | 'pool' | 'memoryGb'>[] | null = [],
): number | null {
  if (local === null) return null
  const types = [...GPU_TYPES, ...local].filter(
    ({ id, pool }) => pool !== null && pools.includes(pool) && !excludedTypes.includes(id),
  )
  return types.length === 0 ? null : Math.max(...types.map(({ memoryGb }) => memoryGb))
}

/** All problems of a list of locations (country codes and data centers). */
export function locationProblems(locations: readonly string[]): FieldProblem[] {
  const problem = `is not a location; the locations are ${LOCATIONS.join(', ')}`
  return locations
    .filter(location => !LOCATIONS.includes(location))
    .map(location => fieldProblem('locations', problem, `'${location}'`))
}

/** All problems of a CPU configuration. Flavors take 2 to 32 vCPUs, GraphQL 1 as well. */
export function cpuProblems(flavor: string, vcpuCount: number): FieldProblem[] {
  if (!FLAVOR_BY_ID.has(flavor)) {
    const flavorIds = [...FLAVOR_BY_ID.keys()].join(', ')
    return [fieldProblem('compute.configs', `is not a CPU flavor; the flavors are ${flavorIds}`, `'${flavor}'`)]
  }
  const powerOfTwo = Number.isInteger(Math.log2(vcpuCount))
  if (!powerOfTwo || vcpuCount < 1 || vcpuCount > 32)
    return [fieldProblem('compute.configs', 'is not a power of two from 1 to 32', `vcpuCount ${vcpuCount}`)]
  return []
}

/** Memory in GB of a CPU configuration; 4 GB a vCPU if the catalog does not give it. */
export function cpuMemoryGb(flavor: string, vcpuCount: number): number {
  return Math.max(1, Math.floor(vcpuCount * (FLAVOR_BY_ID.get(flavor)?.ramGbPerVcpu ?? 4)))
}

/** Availability of a resource, as a level. */
export type Availability = 'NONE' | 'LOW' | 'MEDIUM' | 'HIGH'

/**
 * LOW for one worker, MEDIUM for up to three, HIGH for more.
 * @param workers number of workers that can run at once
 */
export function availabilityFromCount(workers: number): Availability {
  if (workers < 1) return 'NONE'
  if (workers === 1) return 'LOW'
  return workers <= 3 ? 'MEDIUM' : 'HIGH'
}

/** Availability of a CPU configuration on a machine. */
export function cpuAvailability(
  flavor: string,
  vcpuCount: number,
  machine: { readonly vcpus: number; readonly memoryGb: number },
): Availability {
  const byCpu = machine.vcpus / vcpuCount
  const byMemory = machine.memoryGb / cpuMemoryGb(flavor, vcpuCount)
  return availabilityFromCount(Math.floor(Math.min(byCpu, byMemory)))
}

/** The pools of GPU types, and the types without a pool. */
export function poolsFromTypes(types: readonly string[]): { pools: string[]; unknown: string[] } {
  const findPool = (type: string) => GPU_POOLS.find(pool => pool.gpuTypes.includes(type))?.id
  const pools = types.flatMap(type => findPool(type) ?? [])
  return { pools: [...new Set(pools)], unknown: types.filter(type => findPool(type) === undefined) }
}

/** The GPU types of pools, in the order of the pools. */
export function typesFromPools(pools: readonly string[]): string[] {
  return pools.flatMap(pool => POOL_BY_ID.get(pool)?.gpuTypes ?? [])
}

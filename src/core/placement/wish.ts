import type { Compute } from '../endpoints/endpoint.ts'
import { cpuMemoryGb, typesFromPools } from '../hardware/catalog.ts'
import { type Placement, UNPLACED } from '../workers/placement.ts'
import type { WorkerWish } from '../workers/worker-wish.ts'

/** The wish of the workers of an endpoint. Pools come in their order, and within a pool the types of the catalog. */
export function wishFromCompute(compute: Compute): WorkerWish {
  if (compute.kind === 'cpu') {
    const cpus = compute.configs.map(({ flavor, vcpuCount }) => ({
      flavor,
      vcpus: vcpuCount,
      memoryMb: cpuMemoryGb(flavor, vcpuCount) * 1024,
    }))
    return { gpuTypes: [], gpuCount: 0, minCuda: null, cudaVersions: [], cpus }
  }
  const { pools, excludedTypes, count, minCudaVersion, allowedCudaVersions } = compute
  const gpuTypes = typesFromPools(pools).filter(type => !excludedTypes.includes(type))
  return { gpuTypes, gpuCount: count, minCuda: minCudaVersion, cudaVersions: allowedCudaVersions, cpus: [] }
}

/**
 * The placement of a worker that its platform places: no part of this machine, and the resources that it asks for.
 */
export function askedPlacement(compute: Compute): Placement {
  const { gpuCount, cpus } = wishFromCompute(compute)
  const pool = compute.kind === 'gpu' ? (compute.pools[0] ?? null) : null
  return { ...UNPLACED, asked: { gpus: gpuCount, pool, cpu: cpus[0] ?? null } }
}

import type { Compute, GpuCompute } from '../endpoints/endpoint.ts'

/** The GPUs that an endpoint names, whatever part of one its workers get. */
export type NamedGpus = Omit<GpuCompute, 'memoryGb'>

/** The hardware of an endpoint as placement needs it: a share is a number, see learned-memory.ts. */
export type PlacedCompute = Extract<Compute, { kind: 'cpu' }> | PlacedGpuCompute

/** The GPUs of {@link PlacedCompute}. */
export type PlacedGpuCompute = NamedGpus & {
  /** Share of one GPU, in GB; absent for whole GPUs. */
  readonly memoryGb?: number
}

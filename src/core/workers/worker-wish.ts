/** Requirements of a worker on a platform, before it has a place. */

/** Resources that a worker needs. A platform with machines of its own, such as Kubernetes, finds a place for it. */
export interface WorkerWish {
  /** Acceptable types of GPUs, as ids of the catalog, the preferred ones first; empty for a worker without GPUs. */
  readonly gpuTypes: readonly string[]
  /** Number of GPUs, all of one type; 0 for a worker without. */
  readonly gpuCount: number
  /** Lowest acceptable CUDA version, as `12.4`; null for any. */
  readonly minCuda: string | null
  /** Acceptable CUDA versions; empty for all. */
  readonly cudaVersions: readonly string[]
  /** Acceptable configurations of vCPUs and memory, the preferred one first; empty for no limit. */
  readonly cpus: readonly WishedCpu[]
}

/** A flavor of the catalog with its resources. */
export interface WishedCpu {
  readonly flavor: string
  readonly vcpus: number
  readonly memoryMb: number
}

/** The wish of a worker that runs anywhere. */
export const ANY_PLACE: WorkerWish = { gpuTypes: [], gpuCount: 0, minCuda: null, cudaVersions: [], cpus: [] }

import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'

/** A GPU that a worker has for itself, or a share of its memory. */
export interface AssignedGpu {
  /** Index on the machine, as the vendor's tool counts. */
  readonly index: number
  /** The vendor's id, which does not change when another card is added or fails; null without one. */
  readonly uuid: string | null
  /** The catalog's id of its type. */
  readonly type: string
  readonly memoryGb: number
  /** The worker's share of its memory, in MiB; absent for a whole GPU. */
  readonly shareMb?: number
}

/** Resources of a machine that a worker gets. */
export interface Placement {
  /** Whole GPUs that no other worker has at the same time, or a share of one; empty for a worker without GPUs. */
  readonly gpus: readonly AssignedGpu[]
  /** Pool of the GPUs in the catalog; null for a worker without GPUs. */
  readonly pool: string | null
  /** Limit of the processor time of a container, in vCPUs; null for no limit. */
  readonly vcpus: number | null
  /** Limit of the memory of a container, in MiB; null for no limit. */
  readonly memoryMb: number | null
  /** CPU flavor of the limits; absent without one, and in records of older versions. */
  readonly flavor?: string
  /**
   * Request to a platform with machines of its own; absent for a worker of this machine. The other members are
   * then empty.
   */
  readonly asked?: PlatformRequest
}

/** Resources that a worker requests from its platform, for quotas and bills before the platform reports a place. */
export interface PlatformRequest {
  readonly gpus: number
  /** Preferred pool; null for a worker without GPUs. */
  readonly pool: string | null
  /** Preferred configuration of vCPUs and memory; null for no limit. */
  readonly cpu: { readonly flavor: string; readonly vcpus: number; readonly memoryMb: number } | null
}

/** Placement of a worker that may use the machine as it is, without a GPU of its own. */
export const UNPLACED: Placement = { gpus: [], pool: null, vcpus: null, memoryMb: null }

/** Number of GPUs that a worker has, or requests from its platform. */
export function countGpus(placement: Pick<Placement, 'gpus' | 'asked'> | null): number {
  return placement === null ? 0 : (placement.asked?.gpus ?? placement.gpus.length)
}

/**
 * The GPUs of a worker for limits and bills, where a share counts as its part of the GPU, rounded up to a hundredth.
 */
export function fractionOfGpus(placement: Pick<Placement, 'gpus' | 'asked'> | null): number {
  if (placement === null || placement.asked !== undefined) return countGpus(placement)
  return placement.gpus.reduce((sum, gpu) => sum + shareOf(gpu, gpu.shareMb), 0)
}

/** The part of a GPU that a share of its memory is, rounded up to a hundredth; 1 for a whole GPU. */
export function shareOf({ memoryGb }: Pick<AssignedGpu, 'memoryGb'>, shareMb: number | undefined): number {
  return shareMb === undefined ? 1 : Math.min(1, Math.ceil((shareMb / (memoryGb * 1024)) * 100) / 100)
}

/** The missing resource of a worker without a place, for programs. */
export type Resource =
  | 'models'
  | 'gpu'
  | 'gpu_type'
  | 'gpu_count'
  | 'cuda'
  | 'cpu'
  | 'memory'
  | 'workers'
  | 'account_workers'
  | 'account_gpus'

/** A needed worker that has no place on the machine yet. It becomes a worker with the same id when it gets one. */
export interface QueuedWorker {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  readonly version: number
  readonly queuedAtMs: number
  /** Beginning and end of the download of its models; null without a download. */
  readonly downloadStartedAtMs: number | null
  readonly downloadEndedAtMs: number | null
  /** The resource for which it waits. */
  readonly resource: Resource
  /** The reason for people, as a clause: "no free GPU of pool ADA_24: 1 of 1 in use by endpoint chat". */
  readonly reason: string
}

/** True if waiting for other workers does not help, because the machine lacks the requested hardware. */
export function isHopeless({ resource }: { readonly resource: Resource }): boolean {
  return resource === 'gpu_type' || resource === 'gpu_count' || resource === 'cuda'
}

/** Limit for an endpoint; more would give no new information. */
export const MAX_QUEUED_WORKERS = 100

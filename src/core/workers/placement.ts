import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'

/** A GPU that a worker has for itself. */
export interface AssignedGpu {
  /** Its index on the machine, as the vendor's tool counts. */
  readonly index: number
  /** The vendor's id of it, which does not change when another card is put in or fails; null where there is none. */
  readonly uuid: string | null
  /** The catalogue's id of its type. */
  readonly type: string
  readonly memoryGb: number
}

/** What a worker is given of a machine. */
export interface Placement {
  /** Whole GPUs that no other worker has meanwhile; empty for a worker without. */
  readonly gpus: readonly AssignedGpu[]
  /** The pool of the catalogue that the GPUs are of; null for a worker without. */
  readonly pool: string | null
  /** The limit of processor time, in vCPUs, to which a container is held; null for none. */
  readonly vcpus: number | null
  /** The limit of memory in MiB, to which a container is held; null for none. */
  readonly memoryMb: number | null
  /** The CPU flavor that the limits come from; absent for none, and in records of older versions. */
  readonly flavor?: string
  /** What a platform with machines of its own was asked for; absent for a worker of this machine. Nothing else is set then. */
  readonly asked?: AskedOfPlatform
}

/** What a worker asks of the platform that places it, as far as quotas and bills need it before the platform reports a place. */
export interface AskedOfPlatform {
  readonly gpus: number
  /** The pool that is preferred; null for a worker without GPUs. */
  readonly pool: string | null
  /** The configuration of vCPUs and memory that is preferred; null for no limit. */
  readonly cpu: { readonly flavor: string; readonly vcpus: number; readonly memoryMb: number } | null
}

/** A worker that may use the machine as it is, without a GPU of its own. */
export const UNPLACED: Placement = { gpus: [], pool: null, vcpus: null, memoryMb: null }

/** Number of GPUs that a worker was given, or asks its platform for. */
export function gpuCountOf(placement: Pick<Placement, 'gpus' | 'asked'> | null): number {
  return placement === null ? 0 : (placement.asked?.gpus ?? placement.gpus.length)
}

/** What a worker lacks that cannot be placed, for programs. */
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

/** A worker that is wanted and has no place on the machine yet. It becomes a worker with the same id when it gets one. */
export interface QueuedWorker {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  readonly version: number
  readonly queuedAtMs: number
  /** When the download of its models began and ended; null where nothing was downloaded. */
  readonly downloadStartedAtMs: number | null
  readonly downloadEndedAtMs: number | null
  /** What it waits for. */
  readonly resource: Resource
  /** The same for people, as a clause: "no free GPU of pool ADA_24: 1 of 1 in use by endpoint chat". */
  readonly reason: string
}

/** Whether waiting for other workers is of no use, because the machine is not what is asked for. */
export function isHopeless({ resource }: { readonly resource: Resource }): boolean {
  return resource === 'gpu_type' || resource === 'gpu_count' || resource === 'cuda'
}

/** Limit for an endpoint; more would say nothing new. */
export const MAX_QUEUED_WORKERS = 100

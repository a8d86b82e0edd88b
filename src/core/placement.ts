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
  /** The limit of processor time, in vCPUs; null for none. */
  readonly vcpus: number | null
  /** The limit of memory in MiB; null for none. */
  readonly memoryMb: number | null
}

/** A worker that may use the machine as it is, without a GPU of its own. */
export const UNPLACED: Placement = { gpus: [], pool: null, vcpus: null, memoryMb: null }

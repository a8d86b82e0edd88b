/** The use of the memory, the disk and the GPUs of a machine. */

/** The memory of the machine, or of the tightest limit that applies to this server, in bytes. */
export interface MachineMemory {
  /** Memory that programs can still get: free memory, and caches of the system. */
  readonly availableBytes: number
  readonly totalBytes: number
}

/** The available share, from 0 to 1. */
export function availableShare({ availableBytes, totalBytes }: MachineMemory): number {
  return Math.min(1, Math.max(0, availableBytes / totalBytes))
}

/** The memory with the smallest available share; null for an empty list. */
export function tightest(memories: readonly MachineMemory[]): MachineMemory | null {
  return memories.reduce<MachineMemory | null>(
    (least, memory) => (least === null || availableShare(memory) < availableShare(least) ? memory : least),
    null,
  )
}

/** The disk with the data of the server, in bytes. */
export interface MachineDisk {
  /** Bytes that this server can still write. */
  readonly availableBytes: number
  readonly totalBytes: number
}

/**
 * Use of a GPU at one time, in whole percent. Null if the vendor's tool does not report it, as for parts of a card.
 */
export interface GpuUse {
  /** Time in which it computed, over the interval of the vendor's tool (at most a second). */
  readonly busy: number | null
  /** Allocated part of its memory. */
  readonly memory: number | null
}

/** The memory of the machine, or of the tightest limit that holds for this server, in bytes. */
export interface MachineMemory {
  /** What programs can still have: what is free, and what the system holds only to be faster. */
  readonly availableBytes: number
  readonly totalBytes: number
}

/** The available share, from 0 to 1. */
export function availableShare({ availableBytes, totalBytes }: MachineMemory): number {
  return Math.min(1, Math.max(0, availableBytes / totalBytes))
}

/** The one of which the smaller share is available; null where there is none. */
export function tightest(memories: readonly MachineMemory[]): MachineMemory | null {
  return memories.reduce<MachineMemory | null>(
    (least, memory) => (least === null || availableShare(memory) < availableShare(least) ? memory : least),
    null,
  )
}

/** The memory of cards, as the driver reports it, and its owners. All sizes are in bytes. */

/** Memory of a process on a card, with its context: some hundred MiB before it allocates anything. */
export interface ProcessOnCard {
  readonly pid: number
  /** Name of its program; null if unknown. */
  readonly name: string | null
  /** Null if the driver does not report it. */
  readonly bytes: number | null
}

/** The memory of one card. */
export interface CardReading {
  readonly uuid: string
  readonly index: number
  readonly totalBytes: number
  /** Memory that all programs and the driver use. */
  readonly usedBytes: number
  readonly freeBytes: number
  readonly processes: readonly ProcessOnCard[]
}

/** The memory of one card, with the part of Runyard's workers. */
export interface CardMemory extends CardReading {
  readonly ownBytes: number
  /** Memory of other programs, and memory that the driver assigns to no program. */
  readonly foreignBytes: number
}

/** The memory of all cards. */
export interface GpuMemory {
  readonly cards: readonly CardMemory[]
  /** Reason why the memory could not be read, as a sentence without a full stop; null if it was read. */
  readonly problem: string | null
}

/**
 * The reading with the owners of the memory.
 * @param own processes of Runyard's workers; a frozen one counts, since its memory stays on the card
 */
export function withOwners(reading: CardReading, own: ReadonlySet<number>): CardMemory {
  const ownBytes = reading.processes.filter(({ pid }) => own.has(pid)).reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
  return { ...reading, ownBytes, foreignBytes: Math.max(0, reading.usedBytes - ownBytes) }
}

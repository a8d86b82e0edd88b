/** The memory of cards, as the driver reports it, and whose it is. All sizes are in bytes. */

/** The memory of a process on a card, its context included: some hundred MiB before it allocates anything. */
export interface ProcessOnCard {
  readonly pid: number
  /** Null where the driver does not report it. */
  readonly bytes: number | null
}

/** The memory of one card. */
export interface CardReading {
  readonly uuid: string
  readonly index: number
  readonly totalBytes: number
  /** What all programs use, and the driver for them. */
  readonly usedBytes: number
  readonly freeBytes: number
  readonly processes: readonly ProcessOnCard[]
}

/** The memory of one card, with what is ours. */
export interface CardMemory extends CardReading {
  readonly ownBytes: number
  /** Of programs that are not ours, and what the driver holds without naming a program. */
  readonly foreignBytes: number
}

/** The memory of all cards. */
export interface GpuMemory {
  readonly cards: readonly CardMemory[]
  /** Why it could not be read, as a sentence without a full stop; null when it was. */
  readonly problem: string | null
}

/** Adds whose memory it is. @param own the processes of our workers; a frozen one counts, its memory stays on the card */
export function withOwners(reading: CardReading, own: ReadonlySet<number>): CardMemory {
  const ownBytes = reading.processes.filter(({ pid }) => own.has(pid)).reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)
  return { ...reading, ownBytes, foreignBytes: Math.max(0, reading.usedBytes - ownBytes) }
}

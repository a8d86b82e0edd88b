/** Outputs that are too large to be held in memory. */

/** Range of the setting for the largest result, in bytes; the smallest is the default. */
export const MAX_RESULT_BYTES = { default: 20_971_520, max: 2_147_483_648 } as const

/** Characters of a part of a large text; the last one has fewer. */
export const LARGE_PART_CHARACTERS = 131_072

/** An output that the store has in parts (ports/store/large-text-store.ts). */
export interface LargeOutput {
  /** The large text. */
  readonly id: string
  /** Its size in UTF-8. */
  readonly bytes: number
}

/** A large output of a result that was just received. */
export interface ReceivedOutput extends LargeOutput {
  readonly parts: number
  /** The address at which clients read the job, for its webhook. */
  readonly url: string
}

/** The id of a part of a large text. @param seq from 0 */
export function largePartId(id: string, seq: number): string {
  return `${id}-${String(seq).padStart(6, '0')}`
}

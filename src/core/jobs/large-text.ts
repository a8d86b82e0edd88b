/** Inputs and outputs that are too large to be held in memory. */

/** Range of the setting for the largest result, in bytes; the smallest is the default. */
export const MAX_RESULT_BYTES = { default: 20_971_520, max: 2_147_483_648 } as const

/** The largest bodies of run and runsync without the setting for them, and the range of the setting, in bytes. */
export const MAX_INPUT_BYTES = { run: 10_485_760, runsync: 20_971_520, min: 20_971_520, max: 2_147_483_648 } as const

/** The largest text that is one row, in bytes; a larger one is stored in parts. */
export const ONE_ROW_BYTES = 20_971_520

/** Characters of a part of a large text; the last one has fewer. */
export const LARGE_PART_CHARACTERS = 131_072

/** A meaning of a large text for its job. */
export type LargeTextKind = 'input' | 'output'

/** A text that the store has in parts (ports/store/large-text-store.ts). */
export interface LargeText {
  /** Its id, which is not that of its job. */
  readonly id: string
  /** Its size in UTF-8, before it is sealed. */
  readonly bytes: number
}

/** A large text that was just received, and has no job yet. */
export interface ReceivedText extends LargeText {
  readonly parts: number
}

/** A large output of a result that was just received. */
export interface ReceivedOutput extends ReceivedText {
  /** The address at which clients read the job, for its webhook. */
  readonly url: string
}

/** The id of a part of a large text. @param seq from 0 */
export function largePartId(id: string, seq: number): string {
  return `${id}-${String(seq).padStart(6, '0')}`
}

import type { OwnerId } from '../../core/ids.ts'
import type { LargeTextKind } from '../../core/jobs/large-text.ts'

/** A part of a large text that is stored. */
export interface LargeTextPart {
  /** The large text. */
  readonly id: string
  readonly kind: LargeTextKind
  readonly owner: OwnerId
  /** From 0. */
  readonly seq: number
  readonly text: string
  readonly nowMs: number
}

/**
 * Texts that are too large to be held in memory, in parts. A text belongs to no job while it is received; the insert
 * of its job takes an input, the end of its job an output (`FinishRequest`). One that no job or record has is removed
 * by and by.
 */
export interface LargeTextStore {
  /**
   * Stores the next part of a text. A failure of the machine may undo it, until the text has a job.
   * @returns false when the text was given up
   */
  append(part: LargeTextPart): Promise<boolean>
  /** One part; null when the text is gone or has fewer. @throws AppError `internal` for a part that was changed */
  part(id: string, seq: number): Promise<string | null>
  /**
   * Gives up a text that neither a job nor a record has, and removes its first parts.
   * @param limit maximum number of parts
   * @returns true when there may be more, which the next call removes
   */
  giveUp(id: string, limit: number): Promise<boolean>
  /**
   * Removes parts of texts without a job that got their last part before `beforeMs`, or were given up.
   * @param limit maximum number of parts
   * @returns true when there may be more
   */
  removeUnused(beforeMs: number, limit: number): Promise<boolean>
}

import type { AuditEntry, AuditFilter, ChainPlace, KeptEntry } from '../../core/audit/entry.ts'

/** The first entry that does not fit into the chain. */
export interface BrokenEntry {
  readonly sequence: number
  /** The problem, as a sentence without a full stop. */
  readonly problem: string
}

/** The ends of the chain. */
export interface ChainEnds {
  /** The last entry that was removed. */
  readonly anchor: ChainPlace
  /** The last entry; the anchor where there is none. */
  readonly head: ChainPlace
}

/** A part of the entries that fit a filter. */
export interface AuditPart {
  readonly entries: readonly KeptEntry[]
  /** The entry before which others may fit; null where none do, or `limit` fit. */
  readonly next: number | null
}

/** The audit log: entries that each have the hash of the one before. Nothing changes one. */
export interface AuditStore {
  /**
   * Adds entries at the end, in their order, and gives their sequence numbers. One that ends an entry which has been
   * ended already is left out, and has the number 0.
   */
  append(entries: readonly AuditEntry[]): Promise<number[]>
  /**
   * Entries that fit a filter and are before `before`, without those that only record a begin, newest
   * first. Looks at `most` entries, whether they fit or not.
   */
  list(filter: AuditFilter, before: number, limit: number, most: number): Promise<AuditPart>
  /** All entries behind `after`, oldest first. */
  read(after: number, limit: number): Promise<KeptEntry[]>
  ends(): Promise<ChainEnds>
  /**
   * Checks the entries behind a place against it, at most `limit`.
   * @returns the place of the last entry that fits, and the broken entry after it
   */
  verify(after: ChainPlace, limit: number): Promise<{ readonly last: ChainPlace; readonly broken: BrokenEntry | null }>
  /** Entries of operations that have begun and not ended, oldest first. */
  begun(limit: number): Promise<KeptEntry[]>
  /**
   * Removes the oldest entries: those before an instant, and those beyond `most`, at most `limit`; the last one of
   * them becomes the anchor.
   * @returns number of removed entries
   */
  removeOld(beforeMs: number, most: number, limit: number): Promise<number>
}

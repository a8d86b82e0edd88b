import type { ChainPlace } from '../core/audit/entry.ts'

/**
 * A note of the last entry of the audit log outside of the database, by which it shows that the
 * end of the log was cut off.
 */
export interface AuditHeadNote {
  /** Null before the first note. @throws if it exists and cannot be read */
  read(): ChainPlace | null
  /** Replaces the noted place, durably. */
  keep(place: ChainPlace): void
}

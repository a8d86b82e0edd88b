/** The chain of the audit log: the bond of an entry to the previous one, and the check that rows are unchanged. */
import { hash } from 'node:crypto'
import { type ChainPlace, readEntry } from '../../../core/audit/entry.ts'
import type { BrokenEntry } from '../../../ports/store/audit-store.ts'
import type { WholeEntryRow } from '../../tables/audit.ts'

/** The hash of an entry behind another one. */
export function chainHash(previous: string, content: string): string {
  return hash('sha256', `${previous}\n${content}`, 'hex')
}

/** Checks rows that follow a place. @returns the last one that fits, and the broken one after it */
export function checkChain(
  after: ChainPlace,
  rows: readonly WholeEntryRow[],
): { readonly last: ChainPlace; readonly broken: BrokenEntry | null } {
  let last = after
  for (const row of rows) {
    const { sequence, hash } = row
    const expected = last.sequence + 1
    if (sequence !== expected) {
      const entries = sequence - expected === 1 ? `entry ${expected} is` : `entries ${expected} to ${sequence - 1} are`
      return { last, broken: { sequence: expected, problem: `${entries} missing` } }
    }
    if (chainHash(last.hash, row.content) !== hash) {
      return {
        last,
        broken: { sequence, problem: `entry ${sequence} is not what was written, or the one before it is not` },
      }
    }
    if (!columnsFit(row)) {
      return {
        last,
        broken: { sequence, problem: `the columns of entry ${sequence} say something else than its content` },
      }
    }
    last = { sequence, hash }
  }
  return { last, broken: null }
}

function columnsFit(row: WholeEntryRow): boolean {
  const entry = readEntry(row.content)
  return (
    entry.sequence === row.sequence &&
    Date.parse(entry.at) === row.at_ms &&
    (entry.account ?? '') === row.account &&
    (entry.keyId ?? '') === row.key_id &&
    entry.surface === row.surface &&
    entry.operation === row.operation &&
    (entry.object?.id ?? '') === row.object &&
    (entry.outcome === 'begun') === (row.is_begun === 1)
  )
}

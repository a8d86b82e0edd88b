import {
  type AuditEntry,
  type AuditFilter,
  CHAIN_BEGIN,
  type ChainPlace,
  entryText,
  type KeptEntry,
  readEntry,
} from '../../../core/audit/entry.ts'
import type { AuditPart, AuditStore, BrokenEntry, ChainEnds } from '../../../ports/store/audit-store.ts'
import type { BoundsRow, ChainPlaceRow, EntryRow, FilterColumn, WholeEntryRow } from '../../tables/audit.ts'
import * as sql from '../../tables/audit.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { chainHash, checkChain } from './audit-chain.ts'

/**
 * The audit log. One server adds to it, one call at a time, so the last entry stays the last while others are added.
 */
export const audit = {
  append: write(function* (entries: readonly AuditEntry[]): Steps<number[]> {
    let { place, atMs } = yield* findHead()
    const numbers: number[] = []
    for (const entry of entries) {
      const { begun } = entry
      if (begun !== null && (yield* query(sql.deleteBegun, [begun])).length === 0) {
        numbers.push(0)
        continue
      }
      // Clocks are set back, and lists look for times.
      atMs = Math.max(atMs, entry.atMs)
      const sequence: number = place.sequence + 1
      const content = entryText({ ...entry, atMs }, sequence)
      const hash: string = chainHash(place.hash, content)
      const { account, keyId, surface, operation, object, outcome } = readEntry(content)
      const isBegun = outcome === 'begun'
      const columns = [account ?? '', keyId ?? '', surface, operation, object?.id ?? '', Number(isBegun)]
      yield* perform(sql.insertEntry, [sequence, atMs, ...columns, content, hash])
      if (isBegun) yield* perform(sql.insertBegun, [sequence])
      place = { sequence, hash }
      numbers.push(sequence)
    }
    return numbers
  }),

  list: read(function* (filter: AuditFilter, before: number, limit: number, most: number): Steps<AuditPart> {
    const filters: [FilterColumn, string | null][] = [
      ['account', filter.account],
      ['key_id', filter.key],
      ['operation', filter.operation],
      ['object', filter.object],
      ['surface', filter.surface],
    ]
    const setFilters = filters.filter((pair): pair is [FilterColumn, string] => pair[1] !== null)
    const instants = [filter.sinceMs ?? 0, filter.untilMs ?? Number.MAX_SAFE_INTEGER]
    const bounds = yield* queryOne<BoundsRow>(sql.findBounds, instants)
    const last = Math.min(before - 1, bounds!.last)
    const after = Math.max(bounds!.after, last - most)
    const statement = sql.listEntries(setFilters.map(([column]) => column))
    const rows = yield* query<EntryRow>(statement, [after, last, limit, ...setFilters.map(([, value]) => value)])
    const isOver = rows.length === limit || after === bounds!.after
    return { entries: rows.map(entryFromRow), next: isOver ? null : after + 1 }
  }),

  read: read(function* (after: number, limit: number): Steps<KeptEntry[]> {
    return (yield* query<EntryRow>(sql.readEntries, [after, limit])).map(entryFromRow)
  }),

  ends: read(function* (): Steps<ChainEnds> {
    const anchor = yield* findAnchor()
    const head = yield* queryOne<ChainPlaceRow>(sql.findHead)
    return { anchor, head: head === null ? anchor : { sequence: head.sequence, hash: head.hash } }
  }),

  verify: read(function* (
    after: ChainPlace,
    limit: number,
  ): Steps<{ readonly last: ChainPlace; readonly broken: BrokenEntry | null }> {
    return checkChain(after, yield* query<WholeEntryRow>(sql.readWhole, [after.sequence, limit]))
  }),

  begun: read(function* (limit: number): Steps<KeptEntry[]> {
    return (yield* query<EntryRow>(sql.listBegun, [limit])).map(entryFromRow)
  }),

  removeOld: write(function* (beforeMs: number, most: number, limit: number): Steps<number> {
    const { place } = yield* findHead()
    const last = yield* queryOne<ChainPlaceRow>(sql.findLastOld, [beforeMs, place.sequence - most, limit])
    if (last === null) return 0
    yield* perform(sql.putAnchor, [last.sequence, last.hash])
    yield* perform(sql.deleteBegunUpTo, [last.sequence])
    return (yield* query(sql.deleteUpTo, [last.sequence])).length
  }),
} satisfies PortOperations<AuditStore>

function* findHead(): Steps<{ place: ChainPlace; atMs: number }> {
  const head = yield* queryOne<EntryRow>(sql.findHead)
  if (head !== null) return { place: { sequence: head.sequence, hash: head.hash }, atMs: head.at_ms }
  return { place: yield* findAnchor(), atMs: 0 }
}

function* findAnchor(): Steps<ChainPlace> {
  const anchor = yield* queryOne<ChainPlaceRow>(sql.findAnchor)
  return anchor === null ? CHAIN_BEGIN : { sequence: anchor.sequence, hash: anchor.hash }
}

function entryFromRow({ sequence, at_ms: atMs, content, hash }: EntryRow): KeptEntry {
  return { sequence, atMs, content, hash }
}

import type { SealChange, SealedText, SealKind, SealStore } from '../../ports/management-store.ts'
import * as sql from '../sql/seals.ts'
import { type OperationsOf, query, read, type Steps, write } from './operation.ts'

/** All that is sealed. */
export const seals = {
  list: read(function* (kind: SealKind, after: string, limit: number): Steps<SealedText[]> {
    const rows = yield* query<{ id: string; bound_to: string; sealed: string }>(sql.listSeals(kind), [after, limit])
    return rows.map(({ id, bound_to: row, sealed }) => ({ id, row, sealed }))
  }),

  replace: write(function* (kind: SealKind, changes: readonly SealChange[]): Steps<number> {
    let count = 0
    for (const { id, before, after } of changes) {
      count += (yield* query(sql.replaceSeal(kind), [id, before, after])).length
    }
    return count
  }),
} satisfies OperationsOf<SealStore>

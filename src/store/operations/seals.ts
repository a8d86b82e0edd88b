import type { PayloadKind } from '../../core/secrets/payload-seal.ts'
import type { SealChange, SealedText, SealKind, SealStore } from '../../ports/store/management-store.ts'
import * as sql from '../sql/seals.ts'
import { type OperationsOf, query, read, type Steps, write } from './operation.ts'

/** All that is sealed. */
export const seals = {
  list: read(function* (kind: SealKind, after: string, limit: number): Steps<SealedText[]> {
    return (yield* query<SealRow>(sql.listSeals(kind), [after, limit])).map(toSealedText)
  }),

  listPayloads: read(function* (kind: PayloadKind, after: string, limit: number): Steps<SealedText[]> {
    return (yield* query<SealRow>(sql.listPayloads(kind), [after, limit])).map(toSealedText)
  }),

  replace: write(function* (kind: SealKind, changes: readonly SealChange[]): Steps<number> {
    let count = 0
    for (const { id, before, after } of changes) {
      count += (yield* query(sql.replaceSeal(kind), [id, before, after])).length
    }
    return count
  }),
} satisfies OperationsOf<SealStore>

interface SealRow {
  readonly id: string
  readonly bound_to: string
  readonly sealed: string
}

function toSealedText({ id, bound_to: row, sealed }: SealRow): SealedText {
  return { id, row, sealed }
}

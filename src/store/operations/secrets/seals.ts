import type { PayloadKind } from '../../../core/secrets/payload-seal.ts'
import { KEY_CANARY } from '../../../core/secrets/seal-place.ts'
import type { SealChange, SealedText, SealKind, SealStore } from '../../../ports/store/management-store.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import * as sql from './seal-statements.ts'

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
      if (kind === 'jobInputs') count += yield* replaceInput({ id, before, after })
      else count += (yield* query(sql.replaceSeal(kind), [id, before, after])).length
    }
    return count
  }),

  keepCanary: write(function* (sealed: string): Steps<string> {
    yield* perform(sql.insertCanary, [KEY_CANARY, sealed])
    const kept = yield* queryOne<{ sealed: string }>(sql.findCanary, [KEY_CANARY])
    return kept?.sealed ?? sealed
  }),
} satisfies OperationsOf<SealStore>

/** Returns how many it was: none where it is another by now. */
function* replaceInput({ id, before, after }: SealChange): Steps<number> {
  if ((yield* query(sql.replaceSmallInput, [id, before, after])).length > 0) return 1
  if ((yield* query(sql.replaceLargeInput, [id, before, after])).length === 0) return 0
  yield* perform(sql.setInputBytes, [id, Buffer.byteLength(after)])
  return 1
}

interface SealRow {
  readonly id: string
  readonly bound_to: string
  readonly sealed: string
}

function toSealedText({ id, bound_to: row, sealed }: SealRow): SealedText {
  return { id, row, sealed }
}

import type { UpkeepStore } from '../../ports/store/store.ts'
import * as sql from '../tables/usage.ts'
import { type PortOperations, perform, query, queryOne, type Steps, write } from './operation.ts'

/** Number of free pages below which a file is left as it is; they are used again. */
const FEW_PAGES = 1_024

/** Care of the database itself. */
export const upkeep = {
  removeOldWindows: write(function* (beforeMs: number, limit: number): Steps<number> {
    return (yield* query(sql.deleteOldWindows, [beforeMs, limit])).length
  }),

  compact: write(function* (): Steps<boolean> {
    const previous = yield* queryOne<Pages>(sql.pages)
    if (previous === null || !isLoose(previous)) return false
    yield* perform(sql.compact)
    const after = yield* queryOne<Pages>(sql.pages)
    return after !== null && after.total < previous.total && isLoose(after)
  }),
} satisfies PortOperations<UpkeepStore>

interface Pages {
  readonly free: number
  readonly total: number
}

/** A quarter of a file may be free: a steady load comes back for it. */
function isLoose({ free, total }: Pages): boolean {
  return free > FEW_PAGES && free * 4 > total
}

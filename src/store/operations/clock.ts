import type { ClockMark } from '../../ports/clock.ts'
import type { ClockStore, KeptClock } from '../../ports/store/clock-store.ts'
import * as sql from '../tables/server-clock.ts'
import { type ClockRow, keptClockFromRow } from '../tables/server-clock.ts'
import { type PortOperations, perform, queryOne, read, type Steps, write } from './operation.ts'

/** Limit of jobs that one statement looks at. */
const PART = 20_000

/** The server's time. */
export const clock = {
  read: read(function* (): Steps<KeptClock | null> {
    const row = yield* queryOne<ClockRow>(sql.findClock)
    return row === null ? null : keptClockFromRow(row)
  }),

  keep: write(function* (mark: ClockMark): Steps<void> {
    yield* keepMark(mark)
  }),

  hold: write(function* (untilMs: number): Steps<void> {
    yield* changeJobs(sql.holdJobs, untilMs)
    for (const statement of sql.holds) yield* perform(statement, [untilMs])
    yield* perform(sql.setHold, [untilMs])
  }),

  endHold: write(function* (): Steps<void> {
    yield* perform(sql.setHold, [null])
  }),

  accept: write(function* (accepted: boolean): Steps<void> {
    yield* perform(sql.setAccepted, [accepted ? 1 : 0])
  }),

  adopt: write(function* (byMs: number, mark: ClockMark): Steps<void> {
    yield* changeJobs(sql.moveJobs, byMs)
    for (const statement of sql.moves) yield* perform(statement, statement.includes('$1') ? [byMs] : [])
    if (byMs < 0) {
      yield* changeJobs(sql.moveFinalJobs, byMs)
      for (const statement of sql.movesBack) yield* perform(statement, [byMs])
    }
    yield* perform(sql.setAccepted, [0])
    yield* perform(sql.setHold, [null])
    yield* keepMark(mark)
  }),
} satisfies PortOperations<ClockStore>

/** Changes all jobs in parts: PostgreSQL ends a statement that takes long. */
function* changeJobs(statement: string, ms: number): Steps<void> {
  for (let previous = ''; ; ) {
    const last = (yield* queryOne<{ id: string | null }>(sql.lastOfPart, [previous, PART]))?.id ?? null
    if (last === null) return
    yield* perform(statement, [ms, previous, last])
    previous = last
  }
}

function* keepMark({ boot, sinceBootMs, nowMs, step }: ClockMark): Steps<void> {
  yield* perform(sql.keepClock, [boot, sinceBootMs, nowMs, step?.sinceMs ?? null])
}

import { AppError } from '../../../core/errors.ts'
import type { JobId } from '../../../core/ids.ts'
import { type LargeTextKind, largePartId, type ReceivedText } from '../../../core/jobs/large-text.ts'
import type { LargeTextPart, LargeTextStore } from '../../../ports/store/large-text-store.ts'
import * as sql from '../../tables/large-texts.ts'
import { changedText, readSummed, summed } from '../../tables/summed-text.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write, writeUnflushed } from '../operation.ts'

/** Texts that are too large for one row. */
export const largeTexts = {
  // The transaction that gives them to a job flushes them.
  append: writeUnflushed(function* ({ id, kind, owner, seq, text, nowMs }: LargeTextPart): Steps<boolean> {
    const rows =
      seq === 0
        ? yield* query(sql.beginLargeText, [id, owner, nowMs, kind])
        : yield* query(sql.continueLargeText, [id, nowMs])
    if (rows.length === 0) return false
    yield* perform(sql.insertPart, [largePartId(id, seq), id, owner, summed(text)])
    return true
  }),

  part: read(function* (id: string, seq: number): Steps<string | null> {
    const row = yield* queryOne<{ text: string }>(sql.findPart, [largePartId(id, seq)])
    if (row === null) return null
    const { text, isWhole } = readSummed(row.text)
    if (!isWhole) throw new AppError('internal', changedText('text'))
    return text
  }),

  giveUp: write(function* (id: string, limit: number): Steps<boolean> {
    if ((yield* query(sql.giveUpLargeText, [id])).length === 0) return false
    return yield* removeParts(id, limit)
  }),

  removeUnused: write(function* (beforeMs: number, limit: number): Steps<boolean> {
    const text = yield* queryOne<{ id: string }>(sql.giveUpUnused, [beforeMs])
    if (text === null) return false
    yield* removeParts(text.id, limit)
    return true
  }),
} satisfies PortOperations<LargeTextStore>

/** Removes the first parts of a text, and the text with its last part. True when there may be more. */
function* removeParts(id: string, limit: number): Steps<boolean> {
  if ((yield* query(sql.deleteParts, [id, limit])).length === limit) return true
  yield* perform(sql.deleteLargeText, [id])
  return false
}

/** Gives a received text to its job. @throws AppError `unavailable` when parts of it are missing */
export function* takeText(jobId: JobId, kind: LargeTextKind, { id, parts }: ReceivedText): Steps<void> {
  if ((yield* query(sql.takeLargeText, [id, jobId, parts])).length > 0) return
  const what = kind === 'input' ? 'input' : 'result'
  throw new AppError('unavailable', `parts of the ${what} were removed before it was whole; it has to be sent again`)
}

import type { JobId, WorkerId } from '../../../core/ids.ts'
import type { BegunJob } from '../../../ports/store/store.ts'
import { type BegunRow, jobFromRow, beginNext as nextBegin } from '../../tables/jobs.ts'
import { queryOne, type Steps } from '../operation.ts'

/**
 * Begins the next job of a worker that runs none, of those that it got in one take; null where none begins.
 * @param shown the job that it ran last
 */
export function* beginNext(workerId: WorkerId, shown: JobId, nowMs: number): Steps<BegunJob | null> {
  const row = yield* queryOne<BegunRow>(nextBegin, [workerId, nowMs, shown])
  return row === null ? null : { job: jobFromRow(row), waitedMs: Math.max(0, row.waited_ms) }
}

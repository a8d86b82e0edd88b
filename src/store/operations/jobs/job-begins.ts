import type { JobId, WorkerId } from '../../../core/ids.ts'
import type { BegunJob } from '../../../ports/store/store.ts'
import { type BegunRow, jobFromRow, beginNext as nextBegin } from '../../tables/jobs.ts'
import { queryAll, type Steps } from '../operation.ts'

/**
 * Begins the next job of a worker that runs none, of those that it got in one take; null where none begins.
 * @param shown the job that it ran last
 */
export function* beginNext(workerId: WorkerId, shown: JobId, nowMs: number): Steps<BegunJob | null> {
  const [begun = null] = yield* beginNextOfEach([{ workerId, shown, nowMs }])
  return begun
}

/** As {@link beginNext} for several calls, in their order. */
export function* beginNextOfEach(
  calls: readonly { readonly workerId: WorkerId; readonly shown: JobId; readonly nowMs: number }[],
): Steps<(BegunJob | null)[]> {
  const rows = yield* queryAll<BegunRow[]>(
    ...calls.map(({ workerId, shown, nowMs }) => ({ sql: nextBegin, params: [workerId, nowMs, shown] })),
  )
  return rows.map(([row]) => {
    return row === undefined ? null : { job: jobFromRow(row), waitedMs: Math.max(0, row.waited_ms) }
  })
}

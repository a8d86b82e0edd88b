import type { JobId, WorkerId } from '../../../core/ids.ts'
import type { JobMove, PendingStop, StopStore } from '../../../ports/store/store.ts'
import * as sql from '../../tables/job-outcomes.ts'
import { lockWorker, workerSettled } from '../../tables/workers.ts'
import { lock, type PortOperations, perform, query, read, type Steps, write } from '../operation.ts'

const MAX_LISTED = 1_000

/** Jobs that workers have yet to let go of. */
export const stops = {
  pending: read(function* (workerId: WorkerId): Steps<JobId[]> {
    const rows = yield* query<{ job_id: JobId }>(sql.findStops, [workerId])
    return rows.map(row => row.job_id)
  }),

  letGo: write(function* (workerId: WorkerId, jobId: JobId | 'all'): Steps<void> {
    if (jobId === 'all') yield* perform(sql.deleteStops, [workerId])
    else yield* perform(sql.deleteStop, [workerId, jobId])
  }),

  list: read(function* (): Steps<PendingStop[]> {
    const rows = yield* query<{ worker_id: WorkerId; job_id: JobId; since_ms: number }>(sql.listStops, [MAX_LISTED])
    return rows.map(row => ({ workerId: row.worker_id, jobId: row.job_id, sinceMs: row.since_ms }))
  }),
} satisfies PortOperations<StopStore>

/** For running jobs that ended without their worker: it is to stop them, and is idle unless it holds others. */
export function* stopWork(moves: readonly Pick<JobMove, 'job' | 'from'>[], nowMs: number): Steps<void> {
  const stopped = new Set<WorkerId>()
  for (const { job, from } of moves) {
    if (from !== 'IN_PROGRESS' || job.workerId === null) continue
    yield* perform(sql.insertStop, [job.workerId, job.id, nowMs])
    stopped.add(job.workerId)
  }
  for (const workerId of [...stopped].sort()) yield* settle(workerId, nowMs)
}

/** The worker is idle since then unless it holds other jobs. */
export function* settle(workerId: WorkerId, sinceMs: number | null): Steps<void> {
  yield* lock(lockWorker, [workerId])
  yield* perform(workerSettled, [workerId, sinceMs])
}

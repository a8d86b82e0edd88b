import type { WorkerId } from '../../../core/ids.ts'
import type { JobMove } from '../../../ports/store/store.ts'
import { insertStop } from '../../tables/job-outcomes.ts'
import { lockWorker, workerSettled } from '../../tables/workers.ts'
import { lock, perform, type Steps } from '../operation.ts'

/** For running jobs that ended without their worker: it is to stop them, and is idle unless it holds others. */
export function* stopWork(moves: readonly Pick<JobMove, 'job' | 'from'>[], nowMs: number): Steps<void> {
  const stopped = new Set<WorkerId>()
  for (const { job, from } of moves) {
    if (from !== 'IN_PROGRESS' || job.workerId === null) continue
    yield* perform(insertStop, [job.workerId, job.id, nowMs])
    stopped.add(job.workerId)
  }
  for (const workerId of [...stopped].sort()) yield* settle(workerId, nowMs)
}

/** The worker is idle since then unless it holds other jobs. */
export function* settle(workerId: WorkerId, sinceMs: number | null): Steps<void> {
  yield* lock(lockWorker, [workerId])
  yield* perform(workerSettled, [workerId, sinceMs])
}

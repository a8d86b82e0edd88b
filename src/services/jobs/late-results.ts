import type { JobId } from '../../core/ids.ts'
import { isFinal } from '../../core/jobs/job.ts'
import type { Worker } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'

/**
 * Whether a worker that was ended may still post the result of a job, which only the last holder may. A refused result of a job
 * that is not final leaves a diagnostic.
 */
export async function mayFinishLate(
  { store, clock, emit }: Pick<Ports, 'store' | 'clock' | 'emit'>,
  worker: Worker,
  jobId: JobId,
): Promise<boolean> {
  const job = await store.jobs.find(worker.endpointId, jobId, clock.now())
  if (job === null || job.workerId === worker.id) return job !== null
  if (!isFinal(job.status)) {
    const reason = "a result came from a worker that was ended, when the job was no longer this worker's"
    await store.jobs.addDiagnostic(jobId, clock.now(), worker.id, reason)
    emit('job.result_ignored', { endpointId: worker.endpointId, jobId, workerId: worker.id, reason })
  }
  return false
}

import type { Caller } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { isEndpointId } from '../../core/ids.ts'
import { explanationView } from '../../core/observing/explanation.ts'
import type { WatchedEndpoint, WorkerReader } from '../../services/observing/worker-reader.ts'
import { common } from '../rest/worker-view.ts'

/**
 * Data of `runyard top`: the caller's endpoints with their queues, workers and running jobs.
 * @param only the id of one endpoint; null for all of them
 * @throws AppError `not_found`
 */
export async function watchView(workers: WorkerReader, caller: Caller, only: string | null, nowMs: number) {
  if (only !== null && !isEndpointId(only)) throw new AppError('not_found', `endpoint ${only} not found`)
  const { endpoints, more } = await workers.watch(caller.owner, only)
  return { atMs: nowMs, endpoints: endpoints.map(one => endpointView(one, nowMs)), more }
}

function endpointView({ endpoint, queue, finished, workers, counts, explanation }: WatchedEndpoint, nowMs: number) {
  const { id, name, type, workersMin, workersMax } = endpoint
  const { queued, queuedLowPriority, inProgress, headQueuedAtMs } = queue
  return {
    id,
    name,
    type,
    workersMin,
    workersMax,
    finished,
    jobs: { inQueue: queued + queuedLowPriority, lowPriority: queuedLowPriority, inProgress, headQueuedAtMs },
    summary: counts,
    explanation: explanation === null ? null : explanationView(explanation, id),
    workers: workers.map(({ jobs, ...worker }) => ({ ...common(worker, nowMs), status: worker.status, jobs })),
  }
}

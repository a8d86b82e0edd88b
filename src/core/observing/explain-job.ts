/** Explains the wait, the run or the end of one job. */
import type { BatchId } from '../ids.ts'
import { errorLine } from '../jobs/error-groups.ts'
import { isSuspect, type Job } from '../jobs/job.ts'
import { isOversizedError } from '../jobs/result.ts'
import type { EndpointSnapshot } from '../scaling/scale.ts'
import type { WorkerLoad } from '../workers/worker.ts'
import type { Action } from './action.ts'
import { type ExplainContext, explainEndpoint, runsAlone } from './explain.ts'
import { endpointNotes } from './explain-notes.ts'
import { leavingText } from './explain-place.ts'
import { type Explanation, plain } from './explanation.ts'
import { pauseText } from './pause-words.ts'

/** The remedy for a result above the limit. */
const RESULT_ADVICE =
  '--max-result-mb of the server raises the limit, up to 2048; or the worker uploads the result and returns its address'

/** Limit of counted requests of a batch that come before a job: a batch may have a million. */
export const MAX_REQUESTS_AHEAD = 1_000

/**
 * The batch whose turn a job waits for, and the number of its requests that come before the job, counted to {@link
 * MAX_REQUESTS_BEFORE}.
 */
export interface BatchWait {
  readonly batchId: BatchId
  readonly requestsAhead: number
}

/** The explanation of the wait, the run or the end of one job. @param batch null for a job that is in no batch */
export function explainJob(
  job: Job,
  snapshot: EndpointSnapshot,
  context: ExplainContext,
  batch: BatchWait | null = null,
): Explanation {
  if (job.status === 'IN_QUEUE') {
    const ofAll = explainEndpoint(snapshot, context)
    if (isSuspect(job)) {
      const alone = 'it runs alone, because its worker was lost twice while it ran'
      const reason = ofAll.cause === 'runs_alone' ? ofAll : runsAlone(ofAll, alone)
      return { ...reason, sinceMs: reason.sinceMs ?? job.queuedAtMs }
    }
    const reason = inBatch(ofAll, batch)
    const again = job.lostAttempts > 0 ? `; it was queued again after ${job.lostAttempts} lost attempt(s)` : ''
    return { ...reason, summary: reason.summary + again, sinceMs: reason.sinceMs ?? job.queuedAtMs }
  }
  if (job.status === 'IN_PROGRESS') {
    const worker = snapshot.workers.find(({ id }) => id === job.workerId)
    const paused = worker === undefined ? null : pauseText(worker, context.urgentNames)
    if (worker !== undefined && paused !== null && job.startedAtMs !== null) return pausedOn(worker, paused, job)
    const what =
      job.startedAtMs === null
        ? `worker ${job.workerId} has the job and runs others before it, which it got at the same time since they are short`
        : `attempt ${job.attempt} runs on worker ${job.workerId}`
    return {
      ...plain('running', `${what}${leavingText(snapshot, job.workerId)}`),
      sinceMs: job.startedAtMs,
      notes: endpointNotes(snapshot, context),
    }
  }
  const why = job.error === null ? '' : `: ${errorLine(job.error)}`
  const advice = job.error !== null && isOversizedError(job.error) ? `; ${RESULT_ADVICE}` : ''
  return { ...plain('finished', `the job is ${job.status}${why}${advice}`), sinceMs: job.finishedAtMs }
}

/** The job of a paused worker. @param paused its pause as a clause */
function pausedOn(worker: WorkerLoad, paused: string, { attempt }: Job): Explanation {
  const waits = worker.wakeWaitsFor === null ? '' : `: ${worker.wakeWaitsFor}`
  return {
    ...plain('preempted', `attempt ${attempt} on worker ${worker.id} is ${paused}${waits}`),
    advice: 'wait; it goes on where it was once there is room, and after --max-pause has room before everybody',
    sinceMs: worker.pause?.sinceMs ?? null,
  }
}

/** If workers work, the job waits for its batch. A problem of the workers is the same for all jobs. */
function inBatch(reason: Explanation, batch: BatchWait | null): Explanation {
  if (batch === null || (reason.cause !== 'max_reached' && reason.cause !== 'running')) return reason
  const count = batch.requestsAhead < MAX_REQUESTS_AHEAD ? batch.requestsAhead : `at least ${MAX_REQUESTS_AHEAD}`
  const order = `${count} of its requests come before this one`
  const summary = `${reason.summary}; batch ${batch.batchId} takes turns with the other jobs, and ${order}`
  const batches: Action = { kind: 'open', title: 'See the batches', page: 'batches', part: null }
  return { ...reason, cause: 'batch_turn', summary, actions: [...reason.actions, batches] }
}

/** The state of a batch for people. */
import type { Batch } from '../../client/api-types.d.ts'

/** Tone of a state; some of the tones of all states. */
type Tone = 'good' | 'busy' | 'wait' | 'bad' | 'off'

type Counts = Pick<Batch, 'status' | 'requestTotal' | 'requestInProgress' | 'requestCompleted' | 'requestFailed'>

/** True if all requests have ended. A batch has no state for that. */
export function isDone({ status, requestTotal, requestCompleted, requestFailed }: Counts): boolean {
  return status !== 'DRAFT' && requestCompleted + requestFailed >= requestTotal
}

/** Number of requests of a batch that wait for a worker. */
export function waitingRequests({ requestTotal, requestInProgress, requestCompleted, requestFailed }: Counts): number {
  return requestTotal - requestInProgress - requestCompleted - requestFailed
}

/** True if all requests that have not ended wait, so that the endpoint may say why. */
export function isStuck(batch: Counts): boolean {
  const { status, requestInProgress } = batch
  return status !== 'DRAFT' && status !== 'CANCELLED' && requestInProgress === 0 && waitingRequests(batch) > 0
}

/** The state of a batch, as a word. */
export function batchState(batch: Counts): { readonly tone: Tone; readonly word: string } {
  const { status, requestFailed, requestInProgress } = batch
  if (status === 'DRAFT') return { tone: 'wait', word: 'draft' }
  if (status === 'CANCELLED') return { tone: 'off', word: isDone(batch) ? 'cancelled' : 'cancelling' }
  if (isDone(batch)) {
    if (requestFailed === 0) return { tone: 'good', word: 'done' }
    return { tone: 'bad', word: requestFailed === batch.requestTotal ? 'all failed' : 'some failed' }
  }
  return requestInProgress > 0 ? { tone: 'busy', word: 'runs' } : { tone: 'wait', word: 'waits' }
}

/** Shares of the requests of a batch by result. */
export function batchShares(batch: Counts): readonly { readonly tone: Tone; readonly share: number }[] {
  const { requestTotal, requestCompleted, requestFailed, requestInProgress } = batch
  if (requestTotal === 0) return []
  return [
    { tone: 'good', share: requestCompleted / requestTotal },
    { tone: 'bad', share: requestFailed / requestTotal },
    { tone: 'busy', share: requestInProgress / requestTotal },
  ]
}

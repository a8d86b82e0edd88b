import type { BatchId } from '../../../core/ids.ts'
import { BATCH, type Batch, type BatchStatus, batchStatus, batchView } from '../../../core/jobs/batch.ts'
import { isFinal, type JobStatus } from '../../../core/jobs/job.ts'
import type { JobMove } from '../../../ports/store/store.ts'
import * as sql from '../../tables/batches.ts'
import { type BatchRow, batchFromRow } from '../../tables/batches.ts'
import { queryOne, type Steps } from '../operation.ts'
import { addDelivery } from './webhooks.ts'

/** The end of a batch in the words for jobs, for receivers. */
const ENDS: Readonly<Record<BatchStatus, JobStatus>> = {
  DRAFT: 'CANCELLED',
  FINALIZED: 'COMPLETED',
  FAILED: 'FAILED',
  CANCELLED: 'CANCELLED',
}

/**
 * For jobs that have just ended or begun again: counts them in their batches. Behind jobs and counters, before
 * workers.
 */
export function* countInBatches(moves: readonly JobMove[], nowMs: number): Steps<void> {
  const changes = new Map<BatchId, { completed: number; failed: number }>()
  for (const { job, from } of moves) {
    if (job.batchId === null) continue
    const change = changes.get(job.batchId) ?? { completed: 0, failed: 0 }
    changes.set(job.batchId, change)
    const by = Number(isFinal(job.status)) - Number(isFinal(from))
    if (job.status === 'COMPLETED') change.completed += by
    else change.failed += by
  }
  for (const [id, { completed, failed }] of [...changes].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (completed === 0 && failed === 0) continue
    const row = yield* queryOne<BatchRow>(sql.countInBatch, [id, completed, failed, nowMs, nowMs + BATCH.keptMs])
    if (row !== null && row.finished_at_ms !== null) yield* deliverEnd(batchFromRow(row), nowMs)
  }
}

/** A delivery for a batch that has just finished, if it names a receiver. */
export function* deliverEnd(batch: Batch, nowMs: number): Steps<void> {
  const { id, owner, endpointId, webhook } = batch
  const about = { owner, endpointId, id, status: ENDS[batchStatus(batch)], webhook }
  yield* addDelivery({ ...about, payload: batchView(batch), traceparent: null }, nowMs)
}

import type { BatchId } from '../ids.ts'

/** A batch in the queue of its endpoint: it has one place there, like one job, for any number of requests. */
export interface BatchTurn {
  readonly id: BatchId
  /** Position in the queue; smaller is earlier. */
  readonly position: number
  /** Number of its waiting requests. */
  readonly waiting: number
}

/** The waiting jobs of an endpoint, of one priority. */
export interface WaitingJobs {
  /** Positions of the first single jobs, in order; at most as many as could be dispatched. */
  readonly heads: readonly number[]
  /** Position of the last single job; null without any. */
  readonly tail: number | null
  readonly batches: readonly BatchTurn[]
}

/** Number of jobs to dispatch from each source, and the new position of each batch that had a turn. */
export interface FairQueueTurns {
  readonly single: number
  readonly batches: readonly { readonly id: BatchId; readonly take: number; readonly position: number }[]
}

/**
 * Decides the next turns. A batch waits in the queue like one job. When it reaches the head, one of its requests
 * is dispatched and the batch moves behind all waiting jobs. So a job waits for at most one request of each batch
 * before it, batches alternate, and each batch reaches the head as surely as a job does
 * (docs/adr/0009-batches.md).
 * @param limit of the jobs of all turns
 */
export function planTurns(line: WaitingJobs, limit: number): FairQueueTurns {
  const batches = line.batches.map(batch => ({ ...batch, take: 0 }))
  let last = Math.max(line.tail ?? 0, ...batches.map(({ position }) => position))
  let single = 0
  for (let turn = 0; turn < limit; turn += 1) {
    const next = earliestTurn(batches.filter(({ take, waiting }) => take < waiting))
    const head = line.heads[single]
    if (head !== undefined && (next === null || head <= next.position)) single += 1
    else if (next === null) break
    else {
      last += 1
      next.position = last
      next.take += 1
    }
  }
  const served = batches.filter(({ take }) => take > 0)
  return { single, batches: served.map(({ id, take, position }) => ({ id, take, position })) }
}

function earliestTurn<Batch extends BatchTurn>(batches: readonly Batch[]): (Batch & { position: number }) | null {
  let first: Batch | null = null
  for (const batch of batches) {
    if (first === null || batch.position < first.position || (batch.position === first.position && batch.id < first.id))
      first = batch
  }
  return first
}

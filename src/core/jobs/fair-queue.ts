import type { BatchId } from '../ids.ts'

/** A batch in the line of its endpoint: it stands there as one job, however many requests it has. */
export interface BatchTurn {
  readonly id: BatchId
  /** Position in the queue; smaller is earlier. */
  readonly position: number
  /** How many of its requests wait. */
  readonly waiting: number
}

/** What waits at an endpoint, of one priority. */
export interface WaitingJobs {
  /** Places of the first jobs that were submitted one by one, in order; as many as could be handed out at most. */
  readonly heads: readonly number[]
  /** The place of the last of them; null when there is none. */
  readonly tail: number | null
  readonly batches: readonly BatchTurn[]
}

/** How many jobs to hand out from where, and where each batch that had a turn stands then. */
export interface FairQueueTurns {
  readonly single: number
  readonly batches: readonly { readonly id: BatchId; readonly take: number; readonly position: number }[]
}

/**
 * Decides whose turn it is. A batch waits in the queue as one job does. When it comes to the head, one of its requests is handed
 * out and the batch goes behind everybody who waits. So a job waits for at most one request of each batch that is before it,
 * batches take turns among themselves, and each batch comes to the head as surely as a job does (docs/adr/0009-batches.md).
 * @param limit at most this many in all
 */
export function planTurns(line: WaitingJobs, limit: number): FairQueueTurns {
  const batches = line.batches.map(batch => ({ ...batch, take: 0 }))
  let last = Math.max(line.tail ?? 0, ...batches.map(({ position }) => position))
  let single = 0
  for (let turn = 0; turn < limit; turn += 1) {
    const next = firstOf(batches.filter(({ take, waiting }) => take < waiting))
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

function firstOf<Batch extends BatchTurn>(batches: readonly Batch[]): (Batch & { position: number }) | null {
  let first: Batch | null = null
  for (const batch of batches) {
    if (first === null || batch.position < first.position || (batch.position === first.position && batch.id < first.id))
      first = batch
  }
  return first
}

import type { BatchId } from '../../../core/ids.ts'
import { planTurns } from '../../../core/jobs/fair-queue.ts'
import type { ClaimRequest } from '../../../ports/store/claims.ts'
import { passTurn, queuedBatches, queueHeads, queueTail } from '../../tables/batches.ts'
import { guard } from '../../tables/guards.ts'
import {
  type ClaimedRow,
  claimJob,
  claimJobBesideSuspects,
  claimJobs,
  claimJobsBesideSuspects,
} from '../../tables/jobs.ts'
import { perform, query, queryOne, type Steps } from '../operation.ts'
import { lengthWithin } from './removed-jobs.ts'

/**
 * $1 endpoint, $2 queue, $3 now, $4 limit. In the order in which they are claimed, and locked for the caller.
 * Their texts are not read.
 */
export const headSizes = `
  SELECT input_bytes AS bytes FROM jobs
  WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = $2 AND expires_at_ms > $3
  ORDER BY low_priority, position, id LIMIT $4 {{skip_locked}}`

/**
 * Approximate bytes of inputs in one response to a worker, at least one job: the server and the worker have it in
 * memory as a whole.
 */
export const CLAIMED_BYTES = 32 * 1024 * 1024

/** Number of jobs of a queue that one claim takes, so that they are not too large together. */
function* fittingLimit(queue: string, { endpointId, nowMs, limit }: ClaimRequest): Steps<number> {
  const rows = yield* query<{ bytes: number }>(headSizes, [endpointId, queue, nowMs, limit])
  const sizes = rows.map(({ bytes }) => bytes)
  const fitting = lengthWithin(sizes, CLAIMED_BYTES)
  return fitting === sizes.length ? limit : fitting
}

/** True once the claim is full, so that no other queue is read. */
function isFull(claimed: readonly { readonly input_bytes: number }[]): boolean {
  return claimed.reduce((sum, { input_bytes }) => sum + input_bytes, 0) >= CLAIMED_BYTES
}

/** Limit of attempts to claim: other workers may take the chosen jobs. */
const MAX_TRIES = 3

/** True where jobs are handed out although the endpoint has suspects: this worker may have others. */
export type BesideSuspects = boolean

/** The first jobs of one queue: that of jobs which were submitted one by one (''), or that of a batch. */
export function* claimFrom(
  queue: BatchId | '',
  request: ClaimRequest,
  beside: BesideSuspects,
): Steps<readonly ClaimedRow[]> {
  const { endpointId, workerId, limit, nowMs } = request
  const claimOne = beside ? claimJobBesideSuspects : claimJob
  if (limit === 1) return yield* query<ClaimedRow>(claimOne, [endpointId, workerId, nowMs, queue])
  const claimSome = beside ? claimJobsBesideSuspects : claimJobs
  const fitting = yield* fittingLimit(queue, request)
  const rows = yield* query<ClaimedRow>(claimSome, [endpointId, workerId, nowMs, queue, fitting])
  return [...rows].sort(byPosition)
}

/**
 * As {@link claimFrom}, where batches take turns: jobs of low priority come after all others, those of batches too.
 */
export function* claimInTurns(request: ClaimRequest, beside: BesideSuspects): Steps<readonly ClaimedRow[]> {
  const claimed: ClaimedRow[] = []
  for (const priority of [0, 1]) {
    for (let tries = 0; tries < MAX_TRIES && claimed.length < request.limit && !isFull(claimed); tries += 1) {
      const rows = yield* claimDecided({ ...request, limit: request.limit - claimed.length }, priority, beside)
      if (rows === null) break
      claimed.push(...rows)
    }
  }
  return claimed
}

/** Null when no job waits. */
function* claimDecided(
  request: ClaimRequest,
  priority: number,
  beside: BesideSuspects,
): Steps<readonly ClaimedRow[] | null> {
  const { endpointId, workerId, nowMs, limit } = request
  const batches = yield* query<{ id: BatchId; position: number; waiting: number }>(queuedBatches, [
    ...[endpointId, priority, nowMs, limit, workerId],
  ])
  const heads = yield* query<{ position: number }>(queueHeads, [endpointId, priority, nowMs, limit, workerId])
  const tail = yield* queryOne<{ position: number | null }>(queueTail, [endpointId, priority])
  const queue = { heads: heads.map(({ position }) => position), tail: tail?.position ?? null, batches }
  const turns = planTurns(queue, limit)
  if (turns.single === 0 && turns.batches.length === 0) return null
  const claimed: ClaimedRow[] = []
  if (turns.single > 0) claimed.push(...(yield* claimFrom('', { ...request, limit: turns.single }, beside)))
  for (const { id, take, position } of turns.batches) {
    if (isFull(claimed)) break
    const rows = yield* claimFrom(id, { ...request, limit: take }, beside)
    if (rows.length > 0) yield* perform(passTurn, [id, position, nowMs])
    claimed.push(...rows)
  }
  return claimed
}

/** The order of a queue. RETURNING keeps no order. */
export function byPosition(a: ClaimedRow, b: ClaimedRow): number {
  return a.low_priority - b.low_priority || a.position - b.position || (a.id < b.id ? -1 : 1)
}

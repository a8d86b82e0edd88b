import type { ClaimRequest } from '../../../ports/store/claims.ts'
import { query, type Steps } from '../operation.ts'
import { headSizes } from './claim-size-statements.ts'
import { lengthWithin } from './removed-jobs.ts'

/** About how many bytes of inputs one answer to a worker has, at least one job: it is in memory as a whole, and so is the worker's. */
export const CLAIMED_BYTES = 32 * 1024 * 1024

/** How many jobs of a queue one claim takes, so that they are not too large together. */
export function* fittingLimit(queue: string, { endpointId, nowMs, limit }: ClaimRequest): Steps<number> {
  const rows = yield* query<{ bytes: number }>(headSizes, [endpointId, queue, nowMs, limit])
  const sizes = rows.map(({ bytes }) => bytes)
  const fitting = lengthWithin(sizes, CLAIMED_BYTES)
  return fitting === sizes.length ? limit : fitting
}

/** Whether the claim is full, so that no other queue is read. */
export function isFull(claimed: readonly { readonly input: string }[]): boolean {
  return claimed.reduce((sum, { input }) => sum + input.length, 0) >= CLAIMED_BYTES
}

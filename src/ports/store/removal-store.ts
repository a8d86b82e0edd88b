import type { EndpointId } from '../../core/ids.ts'
import type { JobMove } from './job-outcome-store.ts'

/** Result of one step of a removal. */
export interface RemovedPart {
  /** Jobs that were not done; they are CANCELLED and gone. */
  readonly canceled: readonly JobMove[]
  /** Number of removed rows. */
  readonly rows: number
  /** True while something of the endpoint is left. */
  readonly more: boolean
}

/** Rests of endpoints that were deleted: jobs, batches and idempotency keys, in bounded steps. */
export interface RemovalStore {
  /**
   * Deleted endpoints of which something is left, in the order of their ids, at most `limit`, after the given one.
   */
  endpoints(after: EndpointId | null, limit: number): Promise<EndpointId[]>
  /**
   * Removes at most `limit` rows of a deleted endpoint, and of large ones only a few. Jobs that were not done become
   * CANCELLED, with all that belongs to it, in the same step; running ones come first. Nothing, for an endpoint that
   * was not deleted.
   */
  removePart(endpointId: EndpointId, nowMs: number, limit: number): Promise<RemovedPart>
}

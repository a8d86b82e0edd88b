import type { HeldJobs, ObjectCounts } from '../../core/accounts/quotas.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Position } from '../../core/pages.ts'

/** What one read of some jobs of an endpoint found. */
export interface HeldPart {
  readonly held: HeldJobs
  /** Where to go on; null after the last job. */
  readonly next: Position | null
}

/** What accounts have, for their limits. */
export interface QuotaStore {
  /** How many objects of each kind an account has, and the sum of workersMin of its endpoints. */
  objects(owner: OwnerId): Promise<ObjectCounts>
  /** What drafts of batches and deliveries of an endpoint hold. */
  beside(endpointId: EndpointId): Promise<HeldJobs>
  /** What jobs of an endpoint hold: at most `limit` of them, oldest first, after the given one. */
  jobs(endpointId: EndpointId, after: Position | null, limit: number): Promise<HeldPart>
}

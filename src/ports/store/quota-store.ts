import type { HeldJobs, ObjectCounts } from '../../core/accounts/quotas.ts'
import type { EndpointId, OwnerId, SecretId } from '../../core/ids.ts'
import type { Position } from '../../core/pages.ts'

/** What one read of some jobs of an endpoint found. */
export interface HeldPart {
  readonly held: HeldJobs
  /** Where to go on; null after the last job. */
  readonly next: Position | null
}

/** Bytes of secrets. */
export interface SecretBytes {
  readonly all: number
  readonly sealed: number
  readonly description: number
}

/** What accounts have, for their limits. */
export interface QuotaStore {
  /** How many objects of each kind an account has, and the sum of workersMin of its endpoints. */
  objects(owner: OwnerId): Promise<ObjectCounts>
  /** Bytes of the secrets of an account as they are stored: of all of them, and of the value and the description of one; 0 where it is not there. */
  secretBytes(owner: OwnerId, id: SecretId | null): Promise<SecretBytes>
  /** What drafts of batches and deliveries of an endpoint hold. */
  beside(endpointId: EndpointId): Promise<HeldJobs>
  /** What jobs of an endpoint hold: at most `limit` of them, oldest first, after the given one. */
  jobs(endpointId: EndpointId, after: Position | null, limit: number): Promise<HeldPart>
}

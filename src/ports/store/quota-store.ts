import type { HeldJobs, ObjectCounts } from '../../core/accounts/quotas.ts'
import type { EndpointId, OwnerId, SecretId } from '../../core/ids.ts'
import type { PagePosition } from '../../core/pages.ts'

/** Sizes of some jobs of an endpoint. */
export interface HeldPart {
  readonly held: HeldJobs
  /** The place at which the next read begins; null after the last job. */
  readonly next: PagePosition | null
}

/** Bytes of secrets. */
export interface SecretBytes {
  readonly all: number
  readonly sealed: number
  readonly description: number
}

/** Objects and bytes of accounts, for their limits. */
export interface QuotaStore {
  /** Numbers of objects of each kind of an account, and the sum of workersMin of its endpoints. */
  objects(owner: OwnerId): Promise<ObjectCounts>
  /**
   * Bytes of the secrets of an account as they are stored: of all of them, and of the value and the description of
   * one; 0 where it is not there.
   */
  secretBytes(owner: OwnerId, id: SecretId | null): Promise<SecretBytes>
  /** Jobs and bytes in drafts of batches and deliveries of an endpoint. */
  beside(endpointId: EndpointId): Promise<HeldJobs>
  /**
   * Approximate bytes of large texts of an account that neither a job nor a record has: those that are being received,
   * and those that will be removed.
   */
  unusedTexts(owner: OwnerId): Promise<number>
  /** Bytes of jobs of an endpoint: at most `limit` of them, oldest first, after the given one. */
  jobs(endpointId: EndpointId, after: PagePosition | null, limit: number): Promise<HeldPart>
}

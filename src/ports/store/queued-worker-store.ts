import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { QueuedWorker } from '../../core/workers/placement.ts'

/** Workers of an endpoint that wait for the same. */
export interface WaitingWorkers extends Pick<QueuedWorker, 'endpointId' | 'resource' | 'reason'> {
  readonly endpointName: string
  readonly account: OwnerId
  readonly workers: number
  /** Since when the first of them waits. */
  readonly sinceMs: number
}

/**
 * Workers that are wanted and have no place on the machine. They end as workers of the same id, when they are wanted
 * no longer, or with their endpoint. A snapshot of an endpoint has those of its version.
 */
export interface QueuedWorkerStore {
  /**
   * From now on these workers of an endpoint wait for a place, and no others of it. Left out are those of another
   * version, those beyond `workersMax` together with the workers that have not ended, and all after the first 100.
   */
  replace(endpointId: EndpointId, workers: readonly QueuedWorker[]): Promise<void>
  /** Those of all endpoints of an owner, those of one endpoint together, the first one first. */
  list(owner: OwnerId): Promise<QueuedWorker[]>
  /**
   * Numbers of workers of each endpoint of all owners that wait for the same, those that wait longest first, at most
   * `limit`.
   */
  waiting(limit: number): Promise<WaitingWorkers[]>
}

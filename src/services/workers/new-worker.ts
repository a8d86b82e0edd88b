import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Placement, QueuedWorker } from '../../core/workers/placement.ts'
import type { Worker } from '../../core/workers/worker.ts'

/** A queued worker that got its place. */
export type WaitedFor = Pick<QueuedWorker, 'id' | 'queuedAtMs' | 'downloadStartedAtMs' | 'downloadEndedAtMs'>

/** What a new worker is made of. */
export interface WorkerOrigin extends Pick<Worker, 'id' | 'driver' | 'baseUrl' | 'serves'> {
  readonly id: WorkerId
  readonly endpoint: Endpoint
  readonly placement: Placement
  /** What it was while it waited for its turn; null where it did not wait. */
  readonly queued: WaitedFor | null
  readonly nowMs: number
}

/** A worker that was just decided on. One that its platform places has no place yet. */
export function newWorker({ endpoint, placement, queued, nowMs, ...origin }: WorkerOrigin): Worker {
  const downloadStartedAtMs = queued?.downloadStartedAtMs ?? null
  return {
    ...origin,
    owner: endpoint.owner,
    endpointId: endpoint.id,
    version: endpoint.version,
    state: 'STARTING',
    handle: null,
    createdAtMs: queued?.queuedAtMs ?? nowMs,
    startedAtMs: null,
    readyAtMs: null,
    idleSinceMs: null,
    frozenAtMs: null,
    thawedAtMs: null,
    asleepAtMs: null,
    wakeWaitsFor: null,
    stopRequestedAtMs: null,
    exitedAtMs: null,
    stopReason: null,
    placement,
    platform: null,
    placedAtMs: placement.asked === undefined ? nowMs : null,
    downloadStartedAtMs,
    downloadEndedAtMs: downloadStartedAtMs === null ? null : (queued?.downloadEndedAtMs ?? nowMs),
    pullStartedAtMs: null,
    pullEndedAtMs: null,
    stoppingAtMs: null,
    problemAtMs: null,
    problem: null,
    exit: null,
    capacity: 1,
    jobsFinished: 0,
    sdk: null,
  }
}

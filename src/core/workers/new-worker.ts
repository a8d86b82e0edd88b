/** The one list of a worker's initial fields, for servers, replays and tests. */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { Placement, QueuedWorker } from './placement.ts'
import type { Worker } from './worker.ts'

/** A queued worker that got its place. */
export type WaitedFor = Pick<QueuedWorker, 'id' | 'queuedAtMs' | 'downloadStartedAtMs' | 'downloadEndedAtMs'>

/** The origin of a new worker. */
export interface WorkerOrigin extends Pick<Worker, 'id' | 'driver' | 'baseUrl' | 'serves'> {
  readonly endpoint: Pick<Endpoint, 'id' | 'owner' | 'version'>
  /** Its place on the machine; null without a machine, as in a replay. */
  readonly placement: Placement | null
  /** Its record while it waited for its turn; null if it did not wait. */
  readonly queued: WaitedFor | null
  readonly nowMs: number
}

/** A worker directly after the decision for it. One on a platform has no place yet. */
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
    suspension: null,
    pause: null,
    pausableAtMs: null,
    wakeWaitsFor: null,
    stopRequestedAtMs: null,
    exitedAtMs: null,
    stopReason: null,
    placement,
    platform: null,
    placedAtMs: placement?.asked === undefined ? nowMs : null,
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

import type { Serving } from '../../core/endpoints/serving.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { Placement } from '../../core/workers/placement.ts'
import type { StopReason, Worker, WorkerExit, WorkerState } from '../../core/workers/worker.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `workers`. */
export interface WorkerRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly version: number
  readonly state: WorkerState
  readonly driver: string
  readonly handle: string | null
  readonly base_url: string
  readonly created_at_ms: number
  readonly started_at_ms: number | null
  readonly ready_at_ms: number | null
  readonly idle_since_ms: number | null
  readonly stop_requested_at_ms: number | null
  readonly stopping_at_ms: number | null
  readonly exited_at_ms: number | null
  readonly stop_reason: StopReason | null
  readonly exit: string | null
  readonly problem: string | null
  readonly problem_at_ms: number | null
  readonly capacity: number
  readonly jobs_finished: number
  readonly sdk: string | null
  readonly serves: string | null
  readonly placement: string | null
  readonly placed_at_ms: number | null
  readonly pull_started_at_ms: number | null
  readonly pull_ended_at_ms: number | null
}

/** A row as a worker. */
export function toWorker(row: WorkerRow): Worker {
  return {
    id: row.id,
    owner: row.owner,
    endpointId: row.endpoint_id,
    version: row.version,
    state: row.state,
    driver: row.driver,
    handle: row.handle,
    serves: row.serves === null ? null : (JSON.parse(row.serves) as Serving),
    baseUrl: row.base_url,
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    readyAtMs: row.ready_at_ms,
    idleSinceMs: row.idle_since_ms,
    stopRequestedAtMs: row.stop_requested_at_ms,
    stoppingAtMs: row.stopping_at_ms,
    exitedAtMs: row.exited_at_ms,
    stopReason: row.stop_reason,
    problem: row.problem,
    problemAtMs: row.problem_at_ms,
    exit: row.exit === null ? null : (JSON.parse(row.exit) as WorkerExit),
    capacity: row.capacity,
    jobsFinished: row.jobs_finished,
    sdk: row.sdk,
    placement: row.placement === null ? null : (JSON.parse(row.placement) as Placement),
    placedAtMs: row.placed_at_ms,
    pullStartedAtMs: row.pull_started_at_ms,
    pullEndedAtMs: row.pull_ended_at_ms,
  }
}

/** The parameters of `insertWorker`. A new worker is STARTING, whatever it says. */
export function ofNewWorker(worker: Worker, tokenHash: string, flavor: string): SqlValue[] {
  return [
    worker.id,
    worker.owner,
    worker.endpointId,
    worker.version,
    'STARTING',
    worker.driver,
    worker.handle,
    worker.baseUrl,
    worker.createdAtMs,
    tokenHash,
    worker.capacity,
    worker.sdk,
    flavor,
    worker.placement === null ? null : JSON.stringify(worker.placement),
    worker.placedAtMs,
    worker.serves === null ? null : JSON.stringify(worker.serves),
  ]
}

import type { Endpoint, EndpointConfig, EndpointCounters } from '../../core/endpoints/endpoint.ts'
import type { EndpointId, OwnerId, TemplateId } from '../../core/ids.ts'
import { earliest } from '../../core/scaling/plan.ts'
import type { QueueLoad, WorkerCondition } from '../../core/scaling/scale.ts'
import type { WorkerState } from '../../core/workers/worker.ts'
import type { SqlValue } from '../operations/operation.ts'

/** A row of `endpoints`: what statements look at has columns, the rest of the configuration is one JSON text. */
export interface EndpointRow {
  readonly id: EndpointId
  readonly owner: OwnerId
  readonly name: string
  readonly template_id: TemplateId
  readonly version: number
  readonly workers_min: number
  readonly workers_max: number
  readonly created_at_ms: number
  readonly config: string
}

type Config = Omit<EndpointConfig, 'name' | 'workersMin' | 'workersMax'>

/** What rows of older versions lack. */
const ADDED = { modelReferences: [], compliance: [], workersPfbTarget: 0, flashEnvironmentId: null }

/** A row as an endpoint. */
export function toEndpoint(row: EndpointRow): Endpoint {
  return {
    ...ADDED,
    ...(JSON.parse(row.config) as Config),
    id: row.id,
    owner: row.owner,
    name: row.name,
    templateId: row.template_id,
    version: row.version,
    workersMin: row.workers_min,
    workersMax: row.workers_max,
    createdAtMs: row.created_at_ms,
  }
}

/** An endpoint's values in the order of its columns. */
export function ofEndpoint(endpoint: Endpoint): SqlValue[] {
  const { id, owner, name, templateId, version, workersMin, workersMax, createdAtMs } = endpoint
  return [id, owner, name, templateId, version, workersMin, workersMax, createdAtMs, configText(endpoint)]
}

/** The parameters of `replaceEndpoint`. */
export function ofChangedEndpoint(endpoint: Endpoint): SqlValue[] {
  const { id, name, templateId, version, workersMin, workersMax } = endpoint
  return [id, name, templateId, version, workersMin, workersMax, configText(endpoint)]
}

function configText(endpoint: Endpoint): string {
  const { type, compute, idleTimeoutS, scaler, locations, networkVolumeIds } = endpoint
  const { executionTimeoutMs, flashboot, env } = endpoint
  const { modelReferences, compliance, workersPfbTarget, flashEnvironmentId } = endpoint
  const config: Config = {
    type,
    compute,
    idleTimeoutS,
    scaler,
    locations,
    networkVolumeIds,
    executionTimeoutMs,
    flashboot,
    env,
    modelReferences,
    compliance,
    workersPfbTarget,
    flashEnvironmentId,
  }
  return JSON.stringify(config)
}

/** A row of `endpoint_counters`. */
export interface CountersRow {
  readonly completed: number
  readonly failed: number
  readonly retried: number
  readonly average_execution_ms: number | null
}

/** A row as counters; of an endpoint that is gone, nothing was counted. */
export function toCounters(row: CountersRow | null): EndpointCounters {
  if (row === null) return { completed: 0, failed: 0, retried: 0, averageExecutionMs: null }
  const { completed, failed, retried } = row
  return { completed, failed, retried, averageExecutionMs: row.average_execution_ms }
}

/** What `queueLoad` returns. */
export interface QueueRow {
  readonly queued: number
  readonly low_priority: number
  readonly of_batches: number
  readonly in_progress: number
  readonly suspects_queued: number
  readonly suspects_in_progress: number
  readonly suspect_queued_at_ms: number | null
  readonly head_queued_at_ms: number | null
  readonly batch_turn_at_ms: number | null
}

/** A row as the load of a queue. */
export function toQueueLoad(row: QueueRow): QueueLoad {
  return {
    queued: row.queued,
    queuedLowPriority: row.low_priority,
    queuedOfBatches: row.of_batches,
    inProgress: row.in_progress,
    suspectsQueued: row.suspects_queued,
    suspectsInProgress: row.suspects_in_progress,
    headQueuedAtMs: earliest([row.head_queued_at_ms, row.batch_turn_at_ms]) ?? row.suspect_queued_at_ms,
  }
}

/** What `workerCounts` returns. */
export interface WorkerCountRow {
  readonly endpoint_id: EndpointId
  readonly state: Exclude<WorkerState, 'EXITED'>
  readonly busy: number
  readonly workers: number
}

/** What the workers of a row are about. */
export function conditionOf({ state, busy }: WorkerCountRow): WorkerCondition {
  if (state === 'READY') return busy === 1 ? 'running' : 'idle'
  return ({ STARTING: 'starting', DRAINING: 'draining', STOPPING: 'stopping' } as const)[state]
}

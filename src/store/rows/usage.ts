import { JOB_FIGURES, type JobUsage, type WorkerMeter, type WorkerUsage } from '../../core/billing/usage.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { SqlValue } from '../operations/operation.ts'
import { JOB_FIGURE_COLUMNS } from '../sql/usage.ts'

/** Sums of `job_hours`. */
export type JobSumRow = Readonly<Record<string, SqlValue>> & { readonly endpoint_id: EndpointId }

/** Sums as usage. */
export function toJobUsage(row: JobSumRow): JobUsage {
  const figures = JOB_FIGURES.map((name, index) => [name, row[JOB_FIGURE_COLUMNS[index]!]])
  return Object.fromEntries(figures) as unknown as JobUsage
}

/** The figures in the order of their columns. */
export function ofJobUsage(usage: JobUsage): SqlValue[] {
  return JOB_FIGURES.map(name => usage[name])
}

/** Sums of `worker_hours`. */
export interface WorkerSumRow {
  readonly endpoint_id: EndpointId
  readonly flavor: string
  readonly starting_ms: number
  readonly running_ms: number
  readonly idle_ms: number
}

/** Sums as usage. */
export function toWorkerUsage(row: WorkerSumRow): WorkerUsage {
  return { startingMs: row.starting_ms, runningMs: row.running_ms, idleMs: row.idle_ms }
}

/** How far a worker is counted, and for whom. */
export interface MeterRow {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpoint_id: EndpointId
  readonly flavor: string
  readonly ready_at_ms: number | null
  readonly idle_ms: number
  readonly idle_since_ms: number | null
  readonly counted_until_ms: number
  readonly counted_idle_ms: number
}

/** A row as a meter. */
export function toMeter(row: MeterRow): WorkerMeter {
  return {
    readyAtMs: row.ready_at_ms,
    idleMs: row.idle_ms,
    idleSinceMs: row.idle_since_ms,
    countedUntilMs: row.counted_until_ms,
    countedIdleMs: row.counted_idle_ms,
  }
}

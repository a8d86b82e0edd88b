import type { JobKind } from './job.ts'

const MINUTE_MS = 60_000

/** Default and bounds of the times that a client may set on a job, in milliseconds. */
export const JOB_TIMES = {
  executionTimeoutMs: { min: 5_000, max: 7 * 24 * 60 * MINUTE_MS },
  ttlMs: { min: 10_000, max: 7 * 24 * 60 * MINUTE_MS, default: 24 * 60 * MINUTE_MS },
  statusTtlMs: { min: 1_000, max: 7 * 24 * 60 * MINUTE_MS },
  waitMs: { min: 1_000, max: 300_000, default: 90_000 },
} as const

/**
 * How long a final result is kept, in milliseconds: 30 minutes after `run`; after `runsync` one minute, or as long as
 * the `wait` that the client asked for when that is longer, at most five minutes.
 * @param askedWaitMs the explicit `wait` of a runsync; undefined when the default was used
 */
export function retentionMs(kind: JobKind, askedWaitMs?: number): number {
  if (kind === 'run') return 30 * MINUTE_MS
  return Math.min(Math.max(MINUTE_MS, askedWaitMs ?? 0), 5 * MINUTE_MS)
}

/** How long workers that have ended stay visible. */
export const EXITED_WORKER_RETENTION_MS = 24 * 60 * MINUTE_MS

/** How long usage is kept by the hour: a year's bill can still be made at its end. */
export const USAGE_RETENTION_MS = 400 * 24 * 60 * MINUTE_MS

/** How long counts of REST windows are kept after the window began; the longest lasts a day. */
export const WINDOW_RETENTION_MS = 36 * 60 * MINUTE_MS

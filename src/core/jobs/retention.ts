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
 * Retention of a final result, in milliseconds: 30 minutes after `run`; after `runsync` one minute, or the
 * requested `wait` if that is longer, at most five minutes.
 * @param askedWaitMs the explicit `wait` of a runsync; undefined for the default
 */
export function retentionMs(kind: JobKind, askedWaitMs?: number): number {
  if (kind === 'run') return 30 * MINUTE_MS
  return Math.min(Math.max(MINUTE_MS, askedWaitMs ?? 0), 5 * MINUTE_MS)
}

/** Retention of workers that have ended. */
export const EXITED_WORKER_RETENTION_MS = 24 * 60 * MINUTE_MS

/** Retention of usage by the hour: at the end of a year its bill is still complete. */
export const USAGE_RETENTION_MS = 400 * 24 * 60 * MINUTE_MS

/** Retention of counts of REST windows after the window began; the longest lasts a day. */
export const WINDOW_RETENTION_MS = 36 * 60 * MINUTE_MS

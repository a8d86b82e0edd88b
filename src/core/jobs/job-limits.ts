/** Operations on an endpoint that can be limited. */
export type LimitedOperation =
  | 'run'
  | 'runsync'
  | 'status'
  | 'stream'
  | 'openai'
  | 'cancel'
  | 'purge-queue'
  | 'requests'

/** Limits of an operation on an endpoint: calls that begin within a window, and concurrent calls. */
export interface JobLimit {
  readonly perWindow: number
  readonly concurrent: number
}

/** Length of the windows in which calls are counted. */
export const JOB_WINDOW_MS = 10_000

/** Limits of endpoints with few workers; 0 means no limit. */
export const JOB_LIMITS: Readonly<Record<LimitedOperation, JobLimit>> = {
  run: { perWindow: 1_000, concurrent: 200 },
  runsync: { perWindow: 2_000, concurrent: 400 },
  status: { perWindow: 2_000, concurrent: 400 },
  stream: { perWindow: 2_000, concurrent: 400 },
  openai: { perWindow: 2_000, concurrent: 400 },
  cancel: { perWindow: 100, concurrent: 20 },
  'purge-queue': { perWindow: 2, concurrent: 0 },
  requests: { perWindow: 10, concurrent: 2 },
}

/** Number of workers above which limits grow with it. */
const WORKERS_IN_BASE = 20

/** The limit of an operation for an endpoint with this many running workers. */
export function jobLimit(operation: LimitedOperation, workers: number): JobLimit {
  const { perWindow, concurrent } = JOB_LIMITS[operation]
  const grown = (base: number) => Math.max(base, Math.floor((base * workers) / WORKERS_IN_BASE))
  return { perWindow: grown(perWindow), concurrent: grown(concurrent) }
}

/** Counts of one operation on one endpoint. */
export interface JobCount {
  readonly startMs: number
  /** Calls that began in the window. */
  readonly used: number
  /** Calls that have not ended. */
  readonly open: number
}

/** Counts before the first call. */
export const NO_CALLS: JobCount = { startMs: 0, used: 0, open: 0 }

/** Result of counting a call: the new count, or the refusal with its reason and its duration. */
export type JobDecision =
  | { readonly count: JobCount }
  | { readonly refused: 'window' | 'concurrent'; readonly retryAfterSeconds: number }

/** Counts a call that begins. Windows begin at multiples of their length. */
export function countCall(count: JobCount, limit: JobLimit, nowMs: number): JobDecision {
  const startMs = nowMs - (nowMs % JOB_WINDOW_MS)
  const used = count.startMs === startMs ? count.used : 0
  if (limit.concurrent > 0 && count.open >= limit.concurrent) return { refused: 'concurrent', retryAfterSeconds: 1 }
  if (limit.perWindow > 0 && used >= limit.perWindow) {
    return { refused: 'window', retryAfterSeconds: Math.ceil((startMs + JOB_WINDOW_MS - nowMs) / 1000) }
  }
  return { count: { startMs, used: used + 1, open: count.open + 1 } }
}

/**
 * Rules that decide from a worker's activity if it has forgotten a job, is stuck, or is gone, and the wait of its
 * takes. docs/internals/worker-protocol.md has the table of the rules. Instants are of a monotonic clock, in
 * milliseconds.
 */

import type { Worker } from './worker.ts'
import { mayShareItsList, type Omission, pingsWhileItWorks } from './worker-sdk.ts'

/** Maximum duration of a worker's long poll. Old SDK versions give up after 30 s. */
export const HOLD_MS = 25_000
/** Interval between pings that workers are configured with. */
export const PING_MS = 10_000
/** Longest time for which a worker may ping and list no job without a take. */
export const WEDGED_MS = HOLD_MS + 90_000
/** Maximum silence of a worker that has pinged: more than three pings. */
export const SILENT_MS = 3 * PING_MS + 5_000
/** Default of the maximum time until a worker's first take; `RUNPOD_INIT_TIMEOUT` overrides it. */
export const INIT_MS = 7 * 60_000

/**
 * Number of pings without another request after which a worker is stuck: silence alone may be the fault of this
 * server.
 */
const WEDGED_PINGS = 6
/** Number of pings in a row without a job after which it is forgotten. */
const OMISSIONS = 2
/** Time after a delivery within which a request may have been sent before it. */
const LATER_MS = 1_000

/** The activity of a worker on a job that it holds. */
export interface JobActivity {
  /** Instant at which the response with it was written; null while it is being written. */
  readonly deliveredAtMs: number | null
  /** True if the worker has asked for more jobs since. */
  readonly askedSince: boolean
  /** Number of counted pings in a row that do not list it. */
  readonly omissions: number
  /** True if the response with it may have been lost unnoticed. */
  readonly doubtful?: boolean
}

/** The activity of a worker since this server began to observe it without a gap. */
export interface WorkerActivity {
  readonly sinceMs: number
  /** Instant of its last take, result or chunk or, for a long poll, of the response to it. */
  readonly workedAtMs: number | null
  /** Number of open takes. */
  readonly openTakes: number
  readonly pingedAtMs: number | null
  /** Instant of its last request of any kind. */
  readonly requestedAtMs: number
  /** Number of pings since {@link workedAtMs}. */
  readonly pingsSinceWork: number
  /** Number of its own jobs in its last ping; other jobs come from another worker's list. */
  readonly listed: number
}

/** One ping with regard to one job that the worker holds. */
export interface PingOnJob {
  readonly lists: boolean
  readonly omission: Omission
  /** Number of jobs that the ping lists, its own and others. */
  readonly listed: number
  /** True if the endpoint has no other worker. */
  readonly alone: boolean
}

/** The activity on a job after a take of its worker. */
export function afterTake(job: JobActivity, nowMs: number): JobActivity {
  const later = job.deliveredAtMs !== null && nowMs - job.deliveredAtMs >= LATER_MS
  return later && !job.askedSince ? { ...job, askedSince: true, omissions: 0 } : job
}

/** The activity on a job after a ping of its worker. */
export function afterPing(job: JobActivity, ping: PingOnJob): JobActivity {
  if (ping.lists) return { ...job, omissions: 0 }
  if (job.deliveredAtMs === null) return job
  const counts =
    ping.omission === 'lost' ||
    (ping.omission === 'lost_when_alone' && ping.alone) ||
    // Before the next take it shows only that the loop is busy with other jobs.
    (ping.omission === 'lost_when_idle' && (ping.listed === 0 || !job.askedSince))
  return { ...job, omissions: counts ? job.omissions + 1 : 0 }
}

/** True if the worker has forgotten the job: after a take, two pings in a row did not list it. */
export function isForgotten(job: JobActivity): boolean {
  return job.askedSince && job.omissions >= OMISSIONS
}

/**
 * True if the worker runs one job at a time although it takes several: two pings in a row did not list a
 * dispatched job, without a take in between. Its handler blocks it, and the job waits inside.
 */
export function showsBlocking(job: JobActivity): boolean {
  return !job.askedSince && job.omissions >= OMISSIONS
}

/**
 * True if the worker's loop is stuck: it pings, lists no job of its own, and has not taken for long. A worker that
 * may list the jobs of another is not suspected while it holds jobs.
 */
export function isWedged(
  activity: WorkerActivity,
  worker: Pick<Worker, 'sdk'>,
  holdsJobs: boolean,
  nowMs: number,
): boolean {
  return (
    !(holdsJobs && mayShareItsList(worker.sdk)) &&
    activity.openTakes === 0 &&
    activity.listed === 0 &&
    activity.pingsSinceWork >= WEDGED_PINGS &&
    nowMs - (activity.pingedAtMs ?? 0) < SILENT_MS &&
    nowMs - (activity.workedAtMs ?? activity.sinceMs) > WEDGED_MS
  )
}

/**
 * True if the worker may be gone although its process exists: it pinged, and then sent nothing for more than three
 * pings. A worker whose handler can prevent its pings is not suspected while it holds jobs.
 */
export function isSilent(
  activity: WorkerActivity,
  worker: Pick<Worker, 'sdk'>,
  holdsJobs: boolean,
  nowMs: number,
): boolean {
  if (activity.pingedAtMs === null || nowMs - Math.max(activity.requestedAtMs, activity.sinceMs) < SILENT_MS)
    return false
  return !holdsJobs || pingsWhileItWorks(worker.sdk)
}

/** Maximum wait of a take whose end may delay the result of a running job, in ms. */
export const SHORT_HOLD_MS = 1_000

/** The state of a worker when its take arrives. */
export interface HoldFacts {
  /** True if the take reports a running job. */
  readonly isBusy: boolean
  /** True until the worker reports the end of a stopped job, which its next take may do. */
  readonly isStopping: boolean
  /** True for a worker that runs several jobs at the same time, or sends results while a take is open. */
  readonly isConcurrent: boolean
}

/**
 * Maximum wait of a take without a job, in ms. A worker with a running job that never ran several may send
 * its result only after the take has ended.
 */
export function takeHoldMs({ isBusy, isStopping, isConcurrent }: HoldFacts): number {
  return isBusy && (isStopping || !isConcurrent) ? SHORT_HOLD_MS : HOLD_MS
}

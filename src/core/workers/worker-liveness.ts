/**
 * When a worker that says nothing wrong has lost a job, is stuck, or is gone. Pure rules over what was seen of it; the table of
 * the rules is in docs/internals/worker-protocol.md. Instants are of a clock that only grows, in milliseconds.
 */

import type { Worker } from './worker.ts'
import { mayShareItsList, type Omission, pingsWhileItWorks } from './worker-sdk.ts'

/** How long a worker's poll is held at most. Old SDK versions give up after 30 s. */
export const HOLD_MS = 25_000
/** How often workers are told to ping. */
export const PING_MS = 10_000
/** How long a worker may ping and list no job without asking for one. */
export const WEDGED_MS = HOLD_MS + 90_000
/** How long a worker that has pinged may be silent: more than three pings. */
export const SILENT_MS = 3 * PING_MS + 5_000
/** How long a worker may take until it asks for its first job, unless `RUNPOD_INIT_TIMEOUT` says something else. */
export const INIT_MS = 7 * 60_000

/** Pings without a request in between that make a worker stuck: silence alone may be our own fault. */
const WEDGED_PINGS = 6
/** Pings in a row that omit a job. */
const OMISSIONS = 2
/** A request within this time of a delivery may have been sent before it. */
const LATER_MS = 1_000

/** What was seen of a job that a worker holds. */
export interface JobActivity {
  /** When the answer that handed it out had been written; null while it is being written. */
  readonly deliveredAtMs: number | null
  /** The worker has asked for more jobs since. */
  readonly askedSince: boolean
  /** Pings in a row that leave it out, of those that count. */
  readonly omissions: number
  /** The answer that handed it out may have been lost behind this server's back. */
  readonly doubtful?: boolean
}

/** What was seen of a worker since this server has looked at it without a gap. */
export interface WorkerActivity {
  readonly sinceMs: number
  /** Its last request for jobs, result or chunk: when it came or, if held, was answered. */
  readonly workedAtMs: number | null
  /** Requests for jobs that are held now. */
  readonly openTakes: number
  readonly pingedAtMs: number | null
  /** Any request. */
  readonly heardAtMs: number
  /** Pings since {@link workedAtMs}. */
  readonly pingsSinceWork: number
  /** How many of its own jobs its last ping listed. What it does not hold is the list of another. */
  readonly listed: number
}

/** One ping, as it bears on one job that the worker holds. */
export interface PingOnJob {
  readonly lists: boolean
  readonly omission: Omission
  /** How many jobs the ping lists, of whomever. */
  readonly listed: number
  /** Whether the endpoint has no other worker. */
  readonly alone: boolean
}

/** What a request for more jobs says about one that was handed out before. */
export function afterTake(job: JobActivity, nowMs: number): JobActivity {
  const later = job.deliveredAtMs !== null && nowMs - job.deliveredAtMs >= LATER_MS
  return later && !job.askedSince ? { ...job, askedSince: true, omissions: 0 } : job
}

/** What a ping says about a job that the worker holds. */
export function afterPing(job: JobActivity, ping: PingOnJob): JobActivity {
  if (ping.lists) return { ...job, omissions: 0 }
  if (job.deliveredAtMs === null) return job
  const counts =
    ping.omission === 'lost' ||
    (ping.omission === 'lost_when_alone' && ping.alone) ||
    // Until the worker asks again it only shows that the loop is busy with others.
    (ping.omission === 'lost_when_idle' && (ping.listed === 0 || !job.askedSince))
  return { ...job, omissions: counts ? job.omissions + 1 : 0 }
}

/** Whether the worker has forgotten the job: it asked for more, and then two pings in a row left the job out. */
export function isForgotten(job: JobActivity): boolean {
  return job.askedSince && job.omissions >= OMISSIONS
}

/**
 * Whether the worker does one thing at a time, whatever batches it asks for: two pings in a row left out a job that it was
 * handed, and it did not ask again. Its handler blocks it, and the job waits inside.
 */
export function showsBlocking(job: JobActivity): boolean {
  return !job.askedSince && job.omissions >= OMISSIONS
}

/**
 * Whether the worker's loop is stuck: it pings, lists no job of its own, and has not asked for one for long. One that may list the jobs of
 * another is not suspected while it holds jobs.
 */
export function isWedged(
  seen: WorkerActivity,
  worker: Pick<Worker, 'sdk'>,
  holdsJobs: boolean,
  nowMs: number,
): boolean {
  return (
    !(holdsJobs && mayShareItsList(worker.sdk)) &&
    seen.openTakes === 0 &&
    seen.listed === 0 &&
    seen.pingsSinceWork >= WEDGED_PINGS &&
    nowMs - (seen.pingedAtMs ?? 0) < SILENT_MS &&
    nowMs - (seen.workedAtMs ?? seen.sinceMs) > WEDGED_MS
  )
}

/**
 * Whether the worker may be gone although its process is there: it has pinged, and nothing was heard of it for more than three
 * pings. One whose handler can keep it from pinging is not suspected while it holds jobs.
 */
export function isSilent(
  seen: WorkerActivity,
  worker: Pick<Worker, 'sdk'>,
  holdsJobs: boolean,
  nowMs: number,
): boolean {
  if (seen.pingedAtMs === null || nowMs - Math.max(seen.heardAtMs, seen.sinceMs) < SILENT_MS) return false
  return !holdsJobs || pingsWhileItWorks(worker.sdk)
}

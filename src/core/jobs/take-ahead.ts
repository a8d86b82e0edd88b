/**
 * Take-ahead: several short jobs for a worker that asks for one. A Python worker that runs one job at a time asks for
 * jobs once a second, however short they are. It runs such jobs one after another.
 */

/** Limits of take-ahead. */
export const TAKE_AHEAD = {
  /** Work of one take, in ms: the pause of the SDK. */
  workMs: 1_000,
  jobs: 100,
  /** A job that its worker has not begun so long after the claim goes back to the queue. */
  beginsWithinMs: 3_000,
  /** Time without take-ahead after such a return: the runs of the endpoint are not short, or not even. */
  pauseMs: 60_000,
} as const

/** Number of runs that are kept, and the number from which on they count. */
const RUNS = { kept: 50, min: 5 } as const

/** Maximum time between the arrival of a job at an idle worker and its begin, in ms. */
const PICK_UP_MS = 100

/** Times of the last runs of jobs of an endpoint, in ms, oldest first. */
export type RunTimes = readonly number[]

/** Instants of one run, in milliseconds of a monotonic clock. */
export interface Run {
  /** Arrival of the job at its worker. */
  readonly deliveredAtMs: number
  /** The previous result of the worker; 0 for none. */
  readonly lastResultAtMs: number
  readonly resultAtMs: number
}

/** The times with one more run. A run begins with the previous result, or when the idle worker picks the job up. */
export function addRun(times: RunTimes, { deliveredAtMs, lastResultAtMs, resultAtMs }: Run): RunTimes {
  const begunAtMs = Math.max(deliveredAtMs + PICK_UP_MS, lastResultAtMs)
  return [...times.slice(1 - RUNS.kept), Math.max(1, resultAtMs - begunAtMs)]
}

/** Facts about a take of one job. */
export interface TakeFacts {
  /** True if the worker takes several jobs and runs them one after another. */
  readonly isAble: boolean
  /** Fair share of the queue for each worker of the endpoint. */
  readonly share: number
  /** Runs of the endpoint. */
  readonly runs: RunTimes
}

/** Maximum number of jobs that the take gets: 1 or, of short jobs, as many as take a second. */
export function countJobsAhead({ isAble, share, runs }: TakeFacts): number {
  if (!isAble || share <= 1 || runs.length < RUNS.min) return 1
  return Math.max(1, Math.min(share, TAKE_AHEAD.jobs, Math.floor(TAKE_AHEAD.workMs / expectRun(runs))))
}

/** The longer one of the mean and the 90th percentile: rare long runs raise the mean. */
function expectRun(runs: RunTimes): number {
  const sorted = runs.toSorted((a, b) => a - b)
  const mean = runs.reduce((sum, ms) => sum + ms, 0) / runs.length
  return Math.max(mean, sorted[Math.ceil(0.9 * sorted.length) - 1]!)
}

/** False if the environment of an endpoint turns take-ahead off. */
export function allowsTakeAhead(env: Readonly<Record<string, string>>): boolean {
  return env.RUNYARD_TAKE_AHEAD !== '0'
}

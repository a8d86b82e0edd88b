/**
 * Take-ahead: several short jobs for a worker that asks for one. A Python worker that runs one job at a time asks for
 * jobs once a second, however short they are (docs/adr/0098-take-ahead.md). It runs several one after another.
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

/** Number of runs that are kept, and of runs of one kind from which on they count. */
const RUNS = { kept: 50, min: 5 } as const

/** Mean time between the claim of a job for an idle worker and its begin, in ms: the SDK looks every 100 ms. */
const PICK_UP_MS = 50

/** A run of a job. */
export interface Run {
  /** Time from the claim, or from the previous result of the worker, to the result. */
  readonly ms: number
  /** True if it began with the previous result of its worker. */
  readonly isBehindOthers: boolean
}

/** The last runs of jobs of an endpoint, oldest first. */
export type Runs = readonly Run[]

/** The runs with one more. */
export function addRun(runs: Runs, run: Run): Runs {
  return [...runs.slice(1 - RUNS.kept), run]
}

/** Facts about a take of one job. */
export interface TakeFacts {
  /** True if the worker takes several jobs and runs them one after another. */
  readonly isAble: boolean
  /** Fair share of the queue for each worker of the endpoint. */
  readonly share: number
  /** Runs of the endpoint. */
  readonly runs: Runs
}

/** Maximum number of jobs that the take gets: 1 or, of short jobs, as many as take a second. */
export function countJobsAhead({ isAble, share, runs }: TakeFacts): number {
  const runMs = isAble && share > 1 ? expectRun(runs) : null
  if (runMs === null) return 1
  return Math.max(1, Math.min(share, TAKE_AHEAD.jobs, Math.floor(TAKE_AHEAD.workMs / Math.max(1, runMs))))
}

/**
 * Expected time of a run, in ms; null for too few runs. The times of runs behind others are exact: the longer one of
 * their mean and their 90th percentile counts, since rare long runs raise the mean. Those of others have the time in
 * which an idle worker picks the job up.
 */
function expectRun(runs: Runs): number | null {
  const exact = runs.filter(({ isBehindOthers }) => isBehindOthers).map(({ ms }) => ms)
  if (exact.length >= RUNS.min) {
    return Math.max(mean(exact), exact.toSorted((a, b) => a - b)[Math.ceil(0.9 * exact.length) - 1]!)
  }
  return runs.length < RUNS.min ? null : mean(runs.map(({ ms }) => ms)) - PICK_UP_MS
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** False if the environment of an endpoint turns take-ahead off. */
export function allowsTakeAhead(env: Readonly<Record<string, string>>): boolean {
  return env.RUNYARD_TAKE_AHEAD !== '0'
}

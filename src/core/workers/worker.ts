/**
 * The life of a worker:
 *
 *     STARTING -> READY <-> FROZEN -> DRAINING -> STOPPING -> EXITED
 *
 * A FROZEN worker with a pause has jobs, and goes on with them later (ADR 112).
 *
 * STARTING lasts until the first take, or until the prestart hooks of its program are over, or, for a serving
 * worker, until its first successful health check. A FROZEN worker keeps its memory, runs nothing and gets
 * nothing; thawed, it is READY again, the only step back. A DRAINING worker gets no more jobs or requests and
 * finishes those that it holds. A STOPPING worker was asked to end, and its polls return at once. Any state may go
 * to a later one directly, EXITED included: processes may end at any time.
 */

import type { Serving } from '../endpoints/serving.ts'
import type { EndpointId, OwnerId, WorkerId } from '../ids.ts'
import type { Placement } from './placement.ts'
import type { PlatformReport } from './platform-report.ts'
import { type ObservedExit, observedExitText, portConflictText, type WorkerExit } from './worker-exit.ts'
import { problemText, type WorkerProblem } from './worker-problem.ts'
import type { WorkerSuspension } from './worker-suspension.ts'

/** The beginning of the tokens with which workers call the server. */
export const WORKER_TOKEN = 'rpw_'

/** Every state of a worker, in the order of its life. */
export const WORKER_STATES = ['STARTING', 'READY', 'FROZEN', 'DRAINING', 'STOPPING', 'EXITED'] as const
/** One of {@link WORKER_STATES}. */
export type WorkerState = (typeof WORKER_STATES)[number]

/** Faults of a worker that Runyard had to end. Each counts as a crash. */
export const FAULT_REASONS = ['unhealthy', 'wedged', 'silent', 'hung_start', 'failed_start', 'never_healthy'] as const
/** One of {@link FAULT_REASONS}. */
export type FaultReason = (typeof FAULT_REASONS)[number]

/** Reason why Runyard asked a worker to end. A worker that ends without one has crashed. */
export type StopReason =
  | 'idle'
  | 'scaled_down'
  | 'outdated'
  | 'refresh'
  | 'evicted'
  | 'frozen_too_long'
  | 'memory_short'
  | 'suspend_failed'
  | 'over_share'
  | 'cancelled_job'
  | 'timed_out_job'
  | 'lost_lease'
  | 'reclaimed'
  | FaultReason
  | 'endpoint_deleted'
  | 'server_stopped'
  | 'address_changed'
  | 'requested'

/** A pause of a worker in the middle of its jobs. */
export interface WorkerPause {
  /** Its start, in epoch milliseconds. */
  readonly sinceMs: number
  /** The endpoint of higher priority that got its room; it may be deleted by now. */
  readonly for: EndpointId
}

/** A stored worker. Instants are epoch milliseconds. */
export interface Worker {
  readonly id: WorkerId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  /** The endpoint's version that it was started for. */
  readonly version: number
  readonly state: WorkerState
  readonly driver: string
  /** Identification for the driver after a restart of the server; null until it was started. */
  readonly handle: string | null
  /** Ports and health check of its program; null for a worker that takes jobs. */
  readonly serves: Serving | null
  /** The address in its environment for its calls; empty for a worker that makes none. */
  readonly baseUrl: string
  readonly createdAtMs: number
  /** Its place on the machine; null for a worker of an older version of the server. */
  readonly placement: Placement | null
  /** Reports of its platform; null before the first report, and for a worker of this machine. */
  readonly platform: PlatformReport | null
  /** Instant of its placement; null while it waits for a place on its platform. */
  readonly placedAtMs: number | null
  /** Beginning and end of the download of its endpoint's models, before it was placed; null without a download. */
  readonly downloadStartedAtMs: number | null
  readonly downloadEndedAtMs: number | null
  /** Beginning and end of the download of its image; null without a download. */
  readonly pullStartedAtMs: number | null
  readonly pullEndedAtMs: number | null
  /** Instant at which its process or container was started. */
  readonly startedAtMs: number | null
  /** Instant at which it became READY. */
  readonly readyAtMs: number | null
  /** Beginning of its time without a job; meaningful while READY. */
  readonly idleSinceMs: number | null
  /** Instants at which it was last frozen, and then thawed; null if it was not. */
  readonly frozenAtMs: number | null
  readonly thawedAtMs: number | null
  /**
   * Instant since which it sleeps, so that its GPUs are free: for everybody if it is suspended, otherwise for other
   * workers of its account. Null for one that has them, or needs no GPUs.
   */
  readonly asleepAtMs: number | null
  /** Its suspension by the driver of its card, from the intent until it runs again; see `suspensionOf`. */
  readonly suspension: WorkerSuspension | null
  /** Its pause, from the decision until it runs again; null for a worker that is not paused. */
  readonly pause: WorkerPause | null
  /** Instant before which it is not paused again; null for a worker that may be paused at any time. */
  readonly pausableAtMs: number | null
  /** Shortage of the GPUs that it needs again to wake, as a clause for people; null while it need not wake. */
  readonly wakeWaitsFor: string | null
  readonly stopRequestedAtMs: number | null
  /** Instant at which it was asked to end; it may have been draining before. */
  readonly stoppingAtMs: number | null
  readonly exitedAtMs: number | null
  readonly stopReason: StopReason | null
  /** Its problem; null without a known one. */
  readonly problem: WorkerProblem | null
  /** Instant at which the problem was found; null also for a problem from an older version of the server. */
  readonly problemAtMs: number | null
  readonly exit: WorkerExit | null
  /** Jobs that it runs at once, from its recent takes; see asked-concurrency.ts. */
  readonly capacity: number
  readonly jobsFinished: number
  /** Name and version of its SDK, from its requests. */
  readonly sdk: string | null
}

/** A worker with the number of jobs that it holds or has yet to release. */
export interface WorkerLoad extends Worker {
  readonly held: number
}

/** True if the worker may get jobs. */
export function takesJobs(worker: Worker): boolean {
  return worker.state === 'STARTING' || worker.state === 'READY'
}

/** True if the worker can free the memory of its GPUs on request; see core/endpoints/sleep-hooks.ts. */
export function hasSleepHooks({ serves }: Pick<Worker, 'serves'>): boolean {
  return serves?.sleepHooks !== undefined
}

/** True if the worker is frozen. */
export function isFrozen({ state }: Pick<Worker, 'state'>): boolean {
  return state === 'FROZEN'
}

/** True if the worker is paused in the middle of its jobs, or about to go on. */
export function isPaused({ pause, state }: Pick<Worker, 'pause' | 'state'>): boolean {
  return pause !== null && (state === 'FROZEN' || state === 'READY')
}

/** True if the worker waits for a place on its platform, or there for its volume. */
export function waitsForPlace({ state, platform, placedAtMs }: Worker): boolean {
  const waits = platform?.waits ?? null
  return state === 'STARTING' && waits !== null && (placedAtMs === null || waits.kind === 'volume_pending')
}

/**
 * True if the worker ended by itself or for a fault, which counts towards the crash back-off. One that its
 * platform removed did not.
 */
export function crashed(worker: Worker): boolean {
  const { state, stopReason, exit } = worker
  if (state !== 'EXITED') return false
  return stopReason === null ? exit?.cause.kind !== 'reclaimed' : isFault(stopReason)
}

/** True if this reason is a fault of the worker. */
export function isFault(reason: StopReason): reason is FaultReason {
  return (FAULT_REASONS as readonly string[]).includes(reason)
}

/**
 * Effect of an end on the jobs of a worker: `lost` counts as an attempt, `released` does not. If a platform
 * removes a worker, its jobs are not responsible, unless the worker was ended for a fault of its own. A worker
 * that is being removed ends with any code. A paused worker ran nothing, whatever ended it.
 * @param worker null if unknown
 */
export function fateOfJobs(
  worker: Pick<Worker, 'stopReason' | 'platform' | 'pause'> | null,
  { cause }: ObservedExit,
): 'lost' | 'released' {
  const stopReason = worker?.stopReason ?? null
  // Its handler has not seen any of them.
  if (stopReason === 'failed_start') return 'released'
  if (worker?.pause != null) return 'released'
  // The driver of its card lost it, whatever it ran.
  if (stopReason === 'suspend_failed') return 'released'
  if (stopReason !== null && isFault(stopReason)) return 'lost'
  const isLeaving = worker?.platform?.leaves != null
  return cause.kind === 'reclaimed' || (isLeaving && cause.kind === 'ended') ? 'released' : 'lost'
}

/**
 * The stored end of a worker: without a suspicion if the worker was of use, or did not fail.
 * @param worker null if unknown
 */
export function storedExit(
  worker: Pick<Worker, 'stopReason' | 'readyAtMs' | 'jobsFinished' | 'serves'> | null,
  { suspicion, ...end }: ObservedExit,
): ObservedExit {
  if (worker === null || suspicion === undefined) return end
  const { stopReason, readyAtMs, jobsFinished, serves } = worker
  const worked = readyAtMs !== null && (serves !== null || jobsFinished > 0)
  const failed = stopReason === null || isFault(stopReason)
  return worked || !failed ? end : { ...end, suspicion }
}

/** The end of a worker, with its problem before, as a sentence without its subject. */
export function exitText({ problem, stopReason }: Pick<Worker, 'problem' | 'stopReason'>, exit: ObservedExit): string {
  const plain = observedExitText(exit)
  const how = problem === null ? plain : `${stopReason === null ? plain : 'was ended'} because ${problemText(problem)}`
  return exit.suspicion === undefined ? how : `${how}; ${portConflictText(exit.suspicion)}`
}

const BACKOFF_FIRST_MS = 1_000
const BACKOFF_MAX_MS = 300_000
/**
 * Longest delay while jobs of the endpoint's version are completed: jobs that end their workers must not stop all
 * starts for long.
 */
const BACKOFF_WORKING_MS = 8_000

/**
 * Time for which a worker that serves requests must be ready to count as one that has worked: its requests are not
 * counted.
 */
const WORKED_MS = 60_000

/**
 * True if the handler of a worker has finished jobs: a worker that did not start may have posted the reason as the
 * result of one.
 */
function hasFinishedJobs({ jobsFinished, stopReason }: Worker): boolean {
  return jobsFinished > 0 && stopReason !== 'failed_start'
}

/** True if an ended worker was of use: it finished jobs, or served requests for a minute. */
function hasWorked(worker: Worker): boolean {
  const { serves, readyAtMs, exitedAtMs } = worker
  if (serves === null) return hasFinishedJobs(worker)
  return readyAtMs !== null && (exitedAtMs ?? 0) - readyAtMs >= WORKED_MS
}

/** Number of workers that crashed in a row, and the instant until which this delays new ones. */
export interface CrashBackoff {
  readonly crashes: number
  readonly untilMs: number
  readonly last: Worker | null
}

/**
 * The back-off after crashes of workers that had not worked: 1 s, doubled by each further one in a row, at most 5
 * min, and at most 8 s if others of the version have finished jobs. A worker that had worked, one that ended
 * because it was asked to, or a new version, ends the row.
 * @param exits workers of the endpoint that have ended, newest first
 * @param alive those that have not ended
 */
export function crashBackoff(exits: readonly Worker[], version: number, alive: readonly Worker[] = []): CrashBackoff {
  let crashes = 0
  let fruitless = 0
  for (const worker of exits) {
    if (worker.version !== version || !crashed(worker)) break
    crashes += 1
    if (hasWorked(worker)) break
    fruitless += 1
  }
  const last = crashes === 0 ? null : (exits[0] ?? null)
  if (last === null || fruitless === 0) return { crashes, untilMs: 0, last }
  const works = [...alive, ...exits].some(worker => worker.version === version && hasFinishedJobs(worker))
  const delay = Math.min(BACKOFF_FIRST_MS * 2 ** (fruitless - 1), works ? BACKOFF_WORKING_MS : BACKOFF_MAX_MS)
  return { crashes, untilMs: (last.exitedAtMs ?? 0) + delay, last }
}

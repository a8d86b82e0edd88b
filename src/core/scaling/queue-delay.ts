/** The number of workers with which no job of a queue waits longer than its QUEUE_DELAY. */
import { crashed, takesJobs, type Worker, type WorkerLoad } from '../workers/worker.ts'
import { measuredStartMs, remainingStartMs } from './start-time.ts'
import { concurrencyOf, typicalConcurrency } from './worker-concurrency.ts'

/** The input of the rule: the queue of an endpoint at one instant, and its workers. */
export interface DelayedQueue {
  /** Jobs in the queue, without those of low priority; at least one. */
  readonly queued: number
  readonly inProgress: number
  /** Since when the head of the queue waits; null if unknown. */
  readonly headQueuedAtMs: number | null
  /** Null while no job was measured. */
  readonly averageExecutionMs: number | null
  /** Workers that have not ended. */
  readonly workers: readonly WorkerLoad[]
  /** Workers of its version that have ended, a bounded number. */
  readonly exits: readonly Worker[]
  /** Whether the delay counts from when a further worker could be ready. */
  readonly startAware: boolean
}

/** Workers that are needed, and when that grows if nothing happens; null when it does not. */
export interface DelayDecision {
  readonly desired: number
  readonly wakeAtMs: number | null
}

/** What is the same for all parts of one decision. */
interface Situation {
  readonly queue: DelayedQueue
  readonly delayMs: number
  readonly nowMs: number
  /** How long a further worker starts: 0 where the rule leaves that out. */
  readonly startMs: number
  /** How many jobs a further worker runs at once. */
  readonly typical: number
}

/**
 * The larger of two numbers, never more than there are jobs to run.
 *
 * The forecast: with measured execution times the fewest workers with which the last job in the queue waits for the delay at most
 * ({@link forecast}). Without: one more each time the head has waited another delay.
 *
 * What is seen: when the head has waited for a delay although workers are up, one more than were busy when its wait began, and one
 * more for each further delay. Workers that come up later are those that were wanted for it, so they count as such.
 *
 * With `startAware` a delay is longer by the measured time of a start: no worker is started for jobs that the present ones have begun
 * by the time it could be up and the delay is over.
 */
export function workersForDelay(queue: DelayedQueue, delayMs: number, nowMs: number): DelayDecision {
  const startMs = queue.startAware ? (measuredStartMs(queue.workers, queue.exits) ?? 0) : 0
  const situation = { queue, delayMs, nowMs, startMs, typical: typicalConcurrency(queue.workers, queue.exits) }
  const stepMs = delayMs + startMs
  const numbers = [forecast(situation), ...overdue(situation)]
  const desired = Math.max(...numbers.map(number => grown(number, stepMs, nowMs)))
  const wakes = numbers.filter(({ most }) => most > desired).map(number => whenAbove(desired, number, stepMs))
  return { desired, wakeAtMs: wakes.length === 0 ? null : Math.min(...wakes) }
}

/** A number that grows by one with each delay that has passed since an instant, up to the most. */
interface Growing {
  readonly from: number
  readonly most: number
  readonly sinceMs: number
}

function grown({ from, most, sinceMs }: Growing, delayMs: number, nowMs: number): number {
  const passed = Math.max(0, Math.floor((nowMs - sinceMs) / delayMs))
  return Math.min(from + passed, most)
}

function whenAbove(desired: number, { from, sinceMs }: Growing, delayMs: number): number {
  return sinceMs + (desired + 1 - from) * delayMs
}

/**
 * A place at a worker gets free every average time, so within the delay it begins `1 + delay / average` jobs, the one that it has now
 * included. Jobs of exactly the delay need half as many places as there are jobs, jobs without a length none, and endless ones a place each;
 * between these the number changes evenly.
 */
function forecast({ queue, delayMs, nowMs, startMs, typical }: Situation): Growing {
  const jobs = queue.queued + queue.inProgress
  const sinceMs = queue.headQueuedAtMs ?? nowMs
  const { averageExecutionMs } = queue
  if (averageExecutionMs === null) {
    const most = workersFor({ places: jobs, present: placesOf(queue.workers, typical), further: typical })
    return { from: 1, most, sinceMs }
  }
  const averageMs = Math.max(1, averageExecutionMs)
  // Places are counted as those of a worker that could be up only after a start: a present one begins more jobs until then.
  const share = (worker: WorkerLoad) =>
    (delayMs + startMs + averageMs - remainingStartMs(worker, startMs, nowMs)) / (delayMs + averageMs)
  const present = queue.workers.filter(takesJobs).map(worker => concurrencyOf(worker, typical) * share(worker))
  const places = (jobs * averageMs) / (delayMs + averageMs)
  const enough = workersFor({ places, present, further: typical })
  return { from: enough, most: enough, sinceMs }
}

/** Rounding of sums of fractions makes no further worker. */
const TOLERANCE = 1e-9

/** The fewest workers that have these places, at least one: of the present ones those with the most, then further ones. */
function workersFor(need: { places: number; present: readonly number[]; further: number }): number {
  let left = need.places - TOLERANCE
  let workers = 0
  for (const places of [...need.present].sort((a, b) => b - a)) {
    if (left <= 0) break
    left -= places
    workers += 1
  }
  return Math.max(1, workers + Math.max(0, Math.ceil(left / need.further)))
}

function placesOf(workers: readonly WorkerLoad[], typical: number): number[] {
  return workers.filter(takesJobs).map(worker => concurrencyOf(worker, typical))
}

/** A worker that is idle or starts is about to take a job, so only busy ones are counted besides the jobs that wait. */
function overdue({ queue, typical }: Situation): Growing[] {
  const sinceMs = waitsInSpiteOfWorkersSinceMs(queue)
  if (sinceMs === null) return []
  const busy = queue.workers.filter(worker => isUp(worker) && worker.held > 0)
  const from = busy.filter(({ readyAtMs }) => readyAtMs! <= sinceMs).length
  return [{ from, most: busy.length + Math.ceil(queue.queued / typical), sinceMs }]
}

/**
 * Since when the head waits and a worker was up: nobody is to blame for the time in which the first one starts. One that was
 * asked to end meanwhile, such as after each job, counts too; one that crashed has not helped. Null while none is up.
 */
function waitsInSpiteOfWorkersSinceMs({ headQueuedAtMs: head, workers, exits }: DelayedQueue): number | null {
  if (head === null || !workers.some(isUp)) return null
  const ended = exits.filter(worker => !crashed(worker) && (worker.stopRequestedAtMs ?? 0) > head)
  const upSince = [...workers.filter(isUp), ...ended].flatMap(({ readyAtMs }) =>
    readyAtMs === null ? [] : [readyAtMs],
  )
  return Math.max(head, Math.min(...upSince))
}

function isUp({ state, readyAtMs }: Worker): boolean {
  return state === 'READY' && readyAtMs !== null
}

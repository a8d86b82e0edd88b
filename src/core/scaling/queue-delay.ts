/** Number of workers with which no job of a queue waits longer than its QUEUE_DELAY. */
import { crashed, takesJobs, type Worker, type WorkerLoad } from '../workers/worker.ts'
import { measuredStartMs, remainingStartMs } from './start-time.ts'
import { expectedConcurrency, typicalConcurrency } from './worker-concurrency.ts'

/** Input of the rule: the queue of an endpoint at one instant, and its workers. */
export interface DelayedQueue {
  /** Jobs in the queue, without those of low priority; at least one. */
  readonly queued: number
  readonly inProgress: number
  /** Instant since which the head of the queue waits; null if unknown. */
  readonly headQueuedAtMs: number | null
  /** Null while no job was measured. */
  readonly averageExecutionMs: number | null
  /** Workers that have not ended. */
  readonly workers: readonly WorkerLoad[]
  /** Workers of its version that have ended, a bounded number. */
  readonly exits: readonly Worker[]
  /** True if the delay counts from the instant at which a further worker could be ready. */
  readonly startAware: boolean
}

/** Number of workers needed, and the instant at which it grows without an event; null if it does not. */
export interface DelayDecision {
  readonly desired: number
  readonly wakeAtMs: number | null
}

/** Facts that are the same for all parts of one decision. */
interface Situation {
  readonly queue: DelayedQueue
  readonly delayMs: number
  readonly nowMs: number
  /** Duration of the start of a further worker; 0 if the rule ignores it. */
  readonly startMs: number
  /** Jobs that a further worker runs at once. */
  readonly typical: number
}

/**
 * The larger of two numbers, never more than there are jobs to run.
 *
 * The forecast: with measured execution times the fewest workers with which the last job in the queue waits for
 * the delay at most ({@link forecast}). Without them: one more each time the head has waited another delay.
 *
 * The observation: if the head has waited for a delay although workers are up, one more than were busy when its
 * wait began, and one more for each further delay. Workers that become ready later were started for that wait, so
 * they count as such.
 *
 * With `startAware` a delay is longer by the measured time of a start: no worker is started for jobs that the
 * present ones begin before it could be up and the delay is over.
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

/** A number that grows by one with each delay after an instant, up to a maximum. */
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
 * A slot of a worker becomes free every average time, so within the delay it begins `1 + delay / average` jobs,
 * including its present one. Jobs as long as the delay need half as many slots as there are jobs, jobs without a
 * length none, and endless ones a slot each; between these the number changes evenly.
 */
function forecast({ queue, delayMs, nowMs, startMs, typical }: Situation): Growing {
  const jobs = queue.queued + queue.inProgress
  const sinceMs = queue.headQueuedAtMs ?? nowMs
  const { averageExecutionMs } = queue
  if (averageExecutionMs === null) {
    const most = workersFor({ slots: jobs, present: slotsPerWorker(queue.workers, typical), further: typical })
    return { from: 1, most, sinceMs }
  }
  const averageMs = Math.max(1, averageExecutionMs)
  // A slot counts as that of a worker that is up only after a start: a present one begins more jobs until then.
  const share = (worker: WorkerLoad) =>
    (delayMs + startMs + averageMs - remainingStartMs(worker, startMs, nowMs)) / (delayMs + averageMs)
  const present = queue.workers.filter(takesJobs).map(worker => expectedConcurrency(worker, typical) * share(worker))
  const slots = (jobs * averageMs) / (delayMs + averageMs)
  const enough = workersFor({ slots, present, further: typical })
  return { from: enough, most: enough, sinceMs }
}

/** Rounding errors of sums of fractions must not add a worker. */
const TOLERANCE = 1e-9

/**
 * The fewest workers that have these slots, at least one: the present ones with the most slots, then further ones.
 */
function workersFor(need: { slots: number; present: readonly number[]; further: number }): number {
  let left = need.slots - TOLERANCE
  let workers = 0
  for (const slots of [...need.present].sort((a, b) => b - a)) {
    if (left <= 0) break
    left -= slots
    workers += 1
  }
  return Math.max(1, workers + Math.max(0, Math.ceil(left / need.further)))
}

function slotsPerWorker(workers: readonly WorkerLoad[], typical: number): number[] {
  return workers.filter(takesJobs).map(worker => expectedConcurrency(worker, typical))
}

/** A worker that is idle or starts will soon take a job, so only busy ones are counted besides the jobs that wait. */
function overdue({ queue, typical }: Situation): Growing[] {
  const sinceMs = overdueSinceMs(queue)
  if (sinceMs === null) return []
  const busy = queue.workers.filter(worker => isUp(worker) && worker.held > 0)
  const from = busy.filter(({ readyAtMs }) => readyAtMs! <= sinceMs).length
  return [{ from, most: busy.length + Math.ceil(queue.queued / typical), sinceMs }]
}

/**
 * Instant since which the head waits although a worker was up: the start time of the first one does not count. A
 * worker that was asked to end in the meantime, such as after each job, counts too; a crashed one was no help.
 * Null while no worker is up.
 */
function overdueSinceMs({ headQueuedAtMs: head, workers, exits }: DelayedQueue): number | null {
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

/** The number of workers with which no job of a queue waits longer than its QUEUE_DELAY. */
import { crashed, takesJobs, type Worker, type WorkerLoad } from '../workers/worker.ts'

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
}

/** Workers that are needed, and when that grows if nothing happens; null when it does not. */
export interface DelayDecision {
  readonly desired: number
  readonly wakeAtMs: number | null
}

/**
 * The larger of two numbers, never more than there are jobs to run.
 *
 * The forecast: with measured execution times the fewest workers with which the last job in the queue waits less than the delay, when
 * each round of `slots` jobs takes the average time. Without: one more each time the head has waited another delay.
 *
 * What is seen: when the head has waited for a delay although workers are up, one more than were busy when its wait began, and one
 * more for each further delay. Workers that come up later are those that were wanted for it, so they count as such.
 */
export function workersForDelay(line: DelayedQueue, delayMs: number, nowMs: number): DelayDecision {
  const slots = Math.max(1, ...line.workers.filter(takesJobs).map(worker => worker.capacity))
  const numbers = [forecast(line, slots, delayMs, nowMs), ...overdue(line, slots)]
  const desired = Math.max(...numbers.map(number => grown(number, delayMs, nowMs)))
  const wakes = numbers.filter(({ most }) => most > desired).map(number => whenAbove(desired, number, delayMs))
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

function forecast(line: DelayedQueue, slots: number, delayMs: number, nowMs: number): Growing {
  const work = line.queued + line.inProgress
  const sinceMs = line.headQueuedAtMs ?? nowMs
  if (line.averageExecutionMs === null) return { from: 1, most: Math.ceil(work / slots), sinceMs }
  const rounds = Math.floor(delayMs / Math.max(1, line.averageExecutionMs)) + 1
  const enough = Math.floor((work - 1) / (slots * rounds)) + 1
  return { from: enough, most: enough, sinceMs }
}

/** A worker that is idle or starts is about to take a job, so only busy ones are counted besides the jobs that wait. */
function overdue(line: DelayedQueue, slots: number): Growing[] {
  const sinceMs = waitsInSpiteOfWorkersSinceMs(line)
  if (sinceMs === null) return []
  const busy = line.workers.filter(worker => isUp(worker) && worker.held > 0)
  const from = busy.filter(({ readyAtMs }) => readyAtMs! <= sinceMs).length
  return [{ from, most: busy.length + Math.ceil(line.queued / slots), sinceMs }]
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

/**
 * Simulates the planning of workers for recorded jobs in virtual time: the cost of other settings, and the waits
 * of the jobs.
 */

import { type Endpoint, MEASURED_JOBS } from '../endpoints/endpoint.ts'
import { ROLLED_OUT } from '../endpoints/rollout-facts.ts'
import type { WorkerId } from '../ids.ts'
import { newWorker } from '../workers/new-worker.ts'
import type { StopReason, Worker, WorkerLoad, WorkerState } from '../workers/worker.ts'
import type { KeepRule } from './frozen-plan.ts'
import { planWorkers } from './plan.ts'
import type { EndpointSnapshot, QueueLoad } from './scale.ts'

/** Arrival and duration of a recorded job, in milliseconds. */
export interface ReplayedJob {
  readonly queuedAtMs: number
  readonly executionMs: number
}

/** Settings of a simulation. */
export interface ReplaySettings {
  readonly endpoint: Endpoint
  /** Time of a worker from its placement to its first take. */
  readonly startMs: number
  /** Time of a frozen worker from its thaw to its next take. */
  readonly thawMs: number
  /** Rule for frozen workers; memory never gets short in a replay. */
  readonly freezing: KeepRule
  /** Jobs that a worker runs at once. */
  readonly concurrency: number
  readonly startAware: boolean
  /**
   * The billed time: workers that are kept cost all of it. The replay continues after its end while jobs are left.
   */
  readonly fromMs: number
  readonly untilMs: number
}

/** Result of a replay. Waits are in the order of the jobs; times of workers are sums in milliseconds. */
export interface ReplayResult {
  readonly waitsMs: Float64Array
  readonly coldStarts: number
  readonly thaws: number
  readonly startingMs: number
  readonly idleMs: number
  readonly runningMs: number
  /** Frozen time until the end of the billed time: workers may stay frozen for long after their last job. */
  readonly frozenMs: number
  readonly mostWorkers: number
  /** Instant at which the last worker ended. */
  readonly endMs: number
}

/** Number of ended workers that the plan sees, the same as in the store. */
const EXITS = 20

/** A worker of the replay. It is mutable, since many events change each one. */
interface ReplayedWorker extends WorkerLoad {
  state: WorkerState
  held: number
  readyAtMs: number | null
  idleSinceMs: number | null
  frozenAtMs: number | null
  thawedAtMs: number | null
  exitedAtMs: number | null
  stopRequestedAtMs: number | null
  stopReason: StopReason | null
  jobsFinished: number
  completedAtMs: number
  /** Instant from which it takes jobs after its last thaw. */
  takesFromMs: number
}

interface DueChange {
  readonly atMs: number
  readonly worker: ReplayedWorker
  readonly what: 'started' | 'thawed' | 'job_ended'
}

/**
 * A replay in steps, so that its caller can do other work in between.
 *
 * All workers start in the same time and have room on the machine; none crashes. Jobs are taken in the order of
 * their arrival, each by the worker that completed a job last, as in the poll queue. It begins without workers,
 * and ends when all jobs are done and all workers above the minimum have ended.
 */
export class Replay {
  readonly #jobs: readonly ReplayedJob[]
  readonly #settings: ReplaySettings
  readonly #waits: Float64Array
  readonly #due = new DueTimes()
  #workers: ReplayedWorker[] = []
  readonly #exits: Worker[] = []
  /** Number of jobs that arrived, and of those that began. */
  #arrived = 0
  #begun = 0
  #inProgress = 0
  #average: { readonly ms: number; readonly of: number } | null = null
  #wakeAtMs: number | null
  #nowMs: number
  #started = 0
  #thaws = 0
  #mostWorkers = 0
  readonly #spent = { starting: 0, idle: 0, running: 0, frozen: 0 }

  /** @param jobs in the order of their arrival */
  constructor(jobs: readonly ReplayedJob[], settings: ReplaySettings) {
    this.#jobs = jobs
    this.#settings = settings
    this.#waits = new Float64Array(jobs.length)
    this.#nowMs = settings.fromMs
    this.#wakeAtMs = this.#nowMs
  }

  /** Advances by this many instants at most. @returns true at the end of the replay */
  advance(instants: number): boolean {
    for (let n = 0; n < instants; n += 1) {
      const atMs = this.#nextMs()
      if (atMs === null) {
        this.#pass(this.#settings.untilMs)
        return true
      }
      this.#pass(atMs)
      this.#handOut()
      this.#plan()
      this.#mostWorkers = Math.max(this.#mostWorkers, this.#workers.length)
    }
    return false
  }

  /** The result, once the replay is over. */
  result(): ReplayResult {
    const { starting, idle, running, frozen } = this.#spent
    return {
      waitsMs: this.#waits,
      coldStarts: this.#started,
      thaws: this.#thaws,
      startingMs: starting,
      idleMs: idle,
      runningMs: running,
      frozenMs: frozen,
      mostWorkers: this.#mostWorkers,
      endMs: this.#nowMs,
    }
  }

  /** Present number of workers, and time of the replay. */
  get now(): { readonly workers: number; readonly atMs: number } {
    return { workers: this.#workers.length, atMs: this.#nowMs }
  }

  #nextMs(): number | null {
    const arrival = this.#jobs[this.#arrived]?.queuedAtMs
    const due = this.#due.firstMs()
    // Workers that are kept never end.
    if (arrival === undefined && due === null && this.#begun === this.#jobs.length && this.#wakeAtMs === null)
      return null
    return Math.min(
      arrival ?? Number.POSITIVE_INFINITY,
      due ?? Number.POSITIVE_INFINITY,
      this.#wakeAtMs ?? Number.POSITIVE_INFINITY,
    )
  }

  /** Advances the time to an instant and processes everything that is due then. */
  #pass(atMs: number): void {
    const passedMs = Math.max(0, atMs - this.#nowMs)
    if (passedMs > 0) {
      const countedMs = Math.max(0, Math.min(atMs, this.#settings.untilMs) - this.#nowMs)
      for (const { state, held } of this.#workers) {
        if (state === 'STARTING') this.#spent.starting += passedMs
        else if (state === 'FROZEN') this.#spent.frozen += countedMs
        else if (held > 0) this.#spent.running += passedMs
        else this.#spent.idle += passedMs
      }
      this.#nowMs = atMs
    }
    while (this.#arrived < this.#jobs.length && this.#jobs[this.#arrived]!.queuedAtMs <= this.#nowMs) this.#arrived += 1
    for (let due = this.#due.take(this.#nowMs); due !== null; due = this.#due.take(this.#nowMs)) {
      if (due.what === 'job_ended') this.#jobEnds(due.worker)
      else if (due.what === 'started' && due.worker.state === 'STARTING') {
        due.worker.state = 'READY'
        due.worker.readyAtMs = this.#nowMs
        due.worker.idleSinceMs = this.#nowMs
      }
    }
  }

  #jobEnds(worker: ReplayedWorker): void {
    this.#inProgress -= 1
    worker.held -= 1
    worker.jobsFinished += 1
    worker.completedAtMs = this.#nowMs
    if (worker.held > 0) return
    worker.idleSinceMs = this.#nowMs
    if (worker.state === 'DRAINING') this.#end(worker)
  }

  /** Ready workers with room take one job each in turn, the one that completed a job last first. */
  #handOut(): void {
    const { concurrency } = this.#settings
    while (this.#begun < this.#arrived) {
      const free = this.#workers.filter(
        ({ state, held, takesFromMs }) => state === 'READY' && held < concurrency && takesFromMs <= this.#nowMs,
      )
      if (free.length === 0) return
      free.sort((a, b) => b.completedAtMs - a.completedAtMs)
      for (const worker of free) if (this.#begun < this.#arrived) this.#begin(worker)
    }
  }

  #begin(worker: ReplayedWorker): void {
    const { queuedAtMs, executionMs } = this.#jobs[this.#begun]!
    this.#waits[this.#begun] = this.#nowMs - queuedAtMs
    this.#begun += 1
    this.#inProgress += 1
    worker.held += 1
    worker.idleSinceMs = null
    this.#due.add({ atMs: this.#nowMs + executionMs, worker, what: 'job_ended' })
    // The store measures a job at its end; a replay does not need that precision.
    this.#measure(executionMs)
  }

  #measure(executionMs: number): void {
    const { ms, of } = this.#average ?? { ms: 0, of: 0 }
    const count = Math.min(MEASURED_JOBS, of + 1)
    this.#average = { ms: ms + (executionMs - ms) / count, of: count }
  }

  #plan(): void {
    const plan = planWorkers(this.#snapshot(), this.#nowMs, this.#settings.freezing)
    for (const worker of plan.thaw) this.#thaw(worker as ReplayedWorker)
    for (const { worker, reason } of plan.drain) this.#drain(worker as ReplayedWorker, reason)
    for (const worker of plan.freeze) this.#freeze(worker as ReplayedWorker)
    for (let n = 0; n < plan.start; n += 1) this.#start()
    // Only the next plan knows the ends of the workers that are frozen now.
    this.#wakeAtMs = plan.freeze.length > 0 ? this.#nowMs : plan.wakeAtMs
  }

  #snapshot(): EndpointSnapshot {
    const { endpoint, startAware } = this.#settings
    const queued = this.#arrived - this.#begun
    const queue: QueueLoad = {
      queued,
      queuedLowPriority: 0,
      queuedInBatches: 0,
      inProgress: this.#inProgress,
      suspectsQueued: 0,
      suspectsInProgress: 0,
      headQueuedAtMs: queued === 0 ? null : this.#jobs[this.#begun]!.queuedAtMs,
    }
    const counters = { completed: 0, failed: 0, retried: 0, averageExecutionMs: this.#average?.ms ?? null }
    return {
      endpoint,
      counters,
      queue,
      workers: this.#workers,
      queuedWorkers: [],
      exits: this.#exits,
      rollout: ROLLED_OUT,
      startAware,
    }
  }

  #start(): void {
    const { endpoint, startMs, concurrency } = this.#settings
    this.#started += 1
    const worker: ReplayedWorker = {
      ...newWorker({
        id: `w${this.#started}` as WorkerId,
        endpoint,
        nowMs: this.#nowMs,
        driver: 'replay',
        baseUrl: '',
        serves: null,
        placement: null,
        queued: null,
      }),
      startedAtMs: this.#nowMs,
      capacity: concurrency,
      held: 0,
      completedAtMs: Number.MIN_SAFE_INTEGER,
      takesFromMs: 0,
    }
    this.#workers.push(worker)
    this.#due.add({ atMs: this.#nowMs + startMs, worker, what: 'started' })
  }

  #freeze(worker: ReplayedWorker): void {
    worker.state = 'FROZEN'
    worker.frozenAtMs = this.#nowMs
    worker.idleSinceMs = null
  }

  #thaw(worker: ReplayedWorker): void {
    this.#thaws += 1
    worker.state = 'READY'
    worker.thawedAtMs = this.#nowMs
    worker.idleSinceMs = this.#nowMs
    worker.takesFromMs = this.#nowMs + this.#settings.thawMs
    this.#due.add({ atMs: worker.takesFromMs, worker, what: 'thawed' })
  }

  #drain(worker: ReplayedWorker, reason: StopReason): void {
    worker.stopReason = reason
    worker.stopRequestedAtMs = this.#nowMs
    worker.state = 'DRAINING'
    if (worker.held === 0) this.#end(worker)
  }

  #end(worker: ReplayedWorker): void {
    worker.state = 'EXITED'
    worker.exitedAtMs = this.#nowMs
    this.#workers = this.#workers.filter(other => other !== worker)
    this.#exits.unshift(worker)
    if (this.#exits.length > EXITS) this.#exits.pop()
  }
}

/** Due events, the earliest first: a binary heap. */
class DueTimes {
  readonly #heap: DueChange[] = []

  firstMs(): number | null {
    return this.#heap[0]?.atMs ?? null
  }

  add(due: DueChange): void {
    const heap = this.#heap
    let at = heap.push(due) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.atMs <= due.atMs) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = due
  }

  /** Removes and returns the earliest event that is due at an instant; null without one. */
  take(atMs: number): DueChange | null {
    const heap = this.#heap
    const first = heap[0]
    if (first === undefined || first.atMs > atMs) return null
    const last = heap.pop()!
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child += 1
      if (heap[child]!.atMs >= last.atMs) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}

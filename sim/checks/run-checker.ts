import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'
import { transitionOf } from './job-checker.ts'

/** What came of one chunk. */
export interface ChunkFate {
  /** `kept` when the server said so. */
  state: 'sent' | 'kept' | 'unsure'
  /** It was sent again, and the server could not know that it was the same. */
  twice: boolean
}

/** One time that a worker has worked on a job. */
export interface JobRun {
  /** Known from its outputs and chunks. */
  readonly nonce: string
  readonly job: JobId
  readonly worker: WorkerId
  /** By number, from 1. */
  readonly chunks: ChunkFate[]
  /** A result of it has reached the server. */
  posted: boolean
  /** The job was taken from it before its end. */
  interrupted: boolean
}

/** What the checker of runs asks about workers. */
export interface WorkerSight {
  /** Whether the worker lives and works on a job that it rightly believes to be its own. */
  readonly holds: (worker: WorkerId, job: JobId) => boolean
}

/** Knows every run of a job by a worker. Reports two at once that no rule allows, and outputs that no run has made. */
export class RunChecker {
  readonly #report: (problem: string) => void
  readonly #sight: WorkerSight
  readonly #runs = new Map<string, JobRun>()
  readonly #ofJob = new Map<JobId, JobRun[]>()
  /** Who claimed a job last, since its last submission or retry. */
  readonly #holders = new Map<JobId, WorkerId>()
  /** Who holds a job now. */
  readonly #holds = new Map<JobId, WorkerId>()

  constructor(report: (problem: string) => void, sight: WorkerSight) {
    this.#report = report
    this.#sight = sight
  }

  /** A worker begins to work on a job. */
  began(job: JobId, worker: WorkerId, nonce: string): JobRun {
    // One that the server has taken back before it began.
    const interrupted = this.#holds.get(job) !== worker
    const run = { nonce, job, worker, chunks: [], posted: false, interrupted }
    this.#runs.set(nonce, run)
    this.#ofJob.set(job, [...(this.#ofJob.get(job) ?? []), run])
    return run
  }

  /** The run with this mark. */
  find(nonce: unknown): JobRun | undefined {
    return typeof nonce === 'string' ? this.#runs.get(nonce) : undefined
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      const transition = transitionOf(change)
      if (transition === 'claim') this.#checkClaim(change)
      else if (transition === 'retry') this.#holders.delete(change.job)
      if (transition === null) continue
      if (transition === 'claim') this.#holds.set(change.job, change.worker!)
      else this.#holds.delete(change.job)
      if (transition !== 'claim' && transition !== 'finish') this.#interrupt(change.job)
      if (change.now === 'COMPLETED') this.#checkOutput(change)
    }
  }

  #checkClaim({ job, worker }: Change): void {
    const before = this.#holders.get(job)
    if (before !== undefined && before !== worker && this.#sight.holds(before, job)) {
      this.#report(`job ${job} was given to worker ${worker} while worker ${before} works on it`)
    }
    this.#holders.set(job, worker!)
  }

  #interrupt(job: JobId): void {
    for (const run of this.#ofJob.get(job) ?? []) run.interrupted = true
  }

  #checkOutput({ job, worker, output }: Change): void {
    const nonce = nonceOf(output)
    const run = this.find(nonce)
    if (run === undefined || run.job !== job || run.worker !== worker || !run.posted) {
      this.#report(`job ${job} by worker ${worker} has an output that no run of it has sent: ${output}`)
    }
  }
}

/** The mark of the run in the text of an output, at whatever depth. */
export function nonceOf(output: string | null): string | null {
  return /"nonce":"([^"]+)"/.exec(output ?? '')?.[1] ?? null
}

import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { Change, Commit } from '../ledger.ts'
import { transitionFromChange } from './job-checker.ts'

/** The delivery of one chunk to the server. */
export interface ChunkFate {
  /** `kept` when the server confirmed it. */
  state: 'sent' | 'kept' | 'unsure'
  /** True for a chunk that was sent twice and that the server could not recognize. */
  twice: boolean
}

/** One run of a job by a worker. */
export interface JobRun {
  /** Identifies the run in its outputs and chunks. */
  readonly nonce: string
  readonly job: JobId
  readonly worker: WorkerId
  /** In order; the first one has number 1. */
  readonly chunks: ChunkFate[]
  /** True if its result reached the server. */
  posted: boolean
  /** True if the worker lost the job before the end of the run. */
  interrupted: boolean
}

/** State of workers that the checker reads. */
export interface WorkerView {
  /** True if the worker is alive and runs a job that the server must attribute to it. */
  readonly holds: (worker: WorkerId, job: JobId) => boolean
}

/**
 * Records every run of a job by a worker. Reports two runs at once that are not allowed,
 * and outputs that no run sent.
 */
export class RunChecker {
  readonly #report: (problem: string) => void
  readonly #view: WorkerView
  readonly #runs = new Map<string, JobRun>()
  readonly #runsByJob = new Map<JobId, JobRun[]>()
  /** The worker that claimed each job last, since its submission or last retry. */
  readonly #holders = new Map<JobId, WorkerId>()
  /** Jobs that the server took back from the worker that has them, because it had not begun them in time. */
  readonly #takenBack = new Set<JobId>()
  /** The current holder of each job. */
  readonly #holds = new Map<JobId, WorkerId>()

  constructor(report: (problem: string) => void, view: WorkerView) {
    this.#report = report
    this.#view = view
  }

  /** A worker starts to run a job. */
  began(job: JobId, worker: WorkerId, nonce: string): JobRun {
    // The server may have requeued the job before the run started.
    const interrupted = this.#holds.get(job) !== worker
    const run = { nonce, job, worker, chunks: [], posted: false, interrupted }
    this.#runs.set(nonce, run)
    this.#runsByJob.set(job, [...(this.#runsByJob.get(job) ?? []), run])
    return run
  }

  /** The run with this nonce. */
  find(nonce: unknown): JobRun | undefined {
    return typeof nonce === 'string' ? this.#runs.get(nonce) : undefined
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const change of changes) {
      const transition = transitionFromChange(change)
      if (transition === 'claim') this.#checkClaim(change)
      else if (transition === 'retry') this.#holders.delete(change.job)
      // A job that never reached its worker has no last holder.
      else if (transition === 'release' && change.worker !== null) this.#takenBack.add(change.job)
      if (transition === null) continue
      if (transition === 'claim') this.#holds.set(change.job, change.worker!)
      else this.#holds.delete(change.job)
      if (transition !== 'claim' && transition !== 'finish') this.#interrupt(change.job)
      if (change.now === 'COMPLETED') this.#checkOutput(change)
    }
  }

  #checkClaim({ job, worker }: Change): void {
    const previous = this.#holders.get(job)
    const isTakenBack = this.#takenBack.delete(job)
    if (previous !== undefined && previous !== worker && !isTakenBack && this.#view.holds(previous, job)) {
      this.#report(`job ${job} was dispatched to worker ${worker} while worker ${previous} runs it`)
    }
    this.#holders.set(job, worker!)
  }

  #interrupt(job: JobId): void {
    for (const run of this.#runsByJob.get(job) ?? []) run.interrupted = true
  }

  #checkOutput({ job, worker, output }: Change): void {
    const nonce = readNonce(output)
    const run = this.find(nonce)
    if (run === undefined || run.job !== job || run.worker !== worker || !run.posted) {
      this.#report(`job ${job} by worker ${worker} has an output that no run of it has sent: ${output}`)
    }
  }
}

/** The nonce of the run in the text of an output, at any depth. */
export function readNonce(output: string | null): string | null {
  return /"nonce":"([^"]+)"/.exec(output ?? '')?.[1] ?? null
}

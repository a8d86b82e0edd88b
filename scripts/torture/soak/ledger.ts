/** Promises to the soak and its observations: acknowledged jobs, their ends, refused calls, violated guarantees. */
import type { Seen } from '../clients.ts'

/** Kind of a job or request: the call that submits it, and its fate. */
export type LoadKind =
  | 'run'
  | 'runsync'
  | 'low priority'
  | 'long'
  | 'stream'
  | 'cancel'
  | 'timeout'
  | 'failure'
  | 'batch'
  | 'balanced'

/** Expected end of a job: `any` where a cancel came too late. */
export type ExpectedEnd = 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TIMED_OUT' | 'any'

/** A job that the server acknowledged. */
export interface SoakJob {
  readonly id: string
  /** Its number, which is in its input and its output. */
  readonly n: number
  readonly kind: LoadKind
  readonly endpoint: string
  readonly hasWebhook: boolean
  /** Expected end; set again when a cancel is answered. */
  expected: ExpectedEnd
  /** Time of the last answer about it, by the monotonic clock; before that, the time at which it was first sent. */
  answeredAtMs: number
}

/** A batch that was finalized. */
export interface SoakBatch {
  readonly id: string
  readonly requests: number
}

/**
 * Guarantee that a fault violates: a job is not found or has no end, ran or ended twice, or
 * is not as it was promised.
 */
export type FaultKind = 'lost' | 'twice' | 'wrong' | 'server'

/** A violated guarantee. */
export interface SoakFault {
  readonly kind: FaultKind
  /** The job, or `-`. */
  readonly id: string
  readonly what: string
  /** Seconds since the soak began. */
  readonly atS: number
}

/** Records jobs, their ends, refusals and faults. */
export class Ledger {
  readonly #beganAtMs = performance.now()
  readonly jobs = new Map<string, SoakJob>()
  readonly batches = new Map<string, SoakBatch>()
  /** The final states, by job. */
  readonly finals = new Map<string, Seen>()
  readonly faults: SoakFault[] = []
  /** Number of calls that were not answered as asked, by kind of call and reason. */
  readonly refusals = new Map<string, number>()
  /** Number of other things, by name. */
  readonly counts = new Map<string, number>()

  /** Seconds since the soak began. */
  get seconds(): number {
    return (performance.now() - this.#beganAtMs) / 1_000
  }

  /** Notes a job that was acknowledged. The id of another job is a fault. */
  acknowledge(job: SoakJob): void {
    const earlierJob = this.jobs.get(job.id)
    if (earlierJob !== undefined) this.fault('wrong', job.id, `is the id of job ${earlierJob.n} and of job ${job.n}`)
    this.jobs.set(job.id, job)
  }

  /** Notes a final state. Another one than before is a fault. */
  ended(job: SoakJob, state: Seen): void {
    const previous = this.finals.get(job.id)
    if (previous === undefined) this.finals.set(job.id, state)
    else if (previous.status !== state.status || JSON.stringify(previous.output) !== JSON.stringify(state.output))
      this.fault('wrong', job.id, `was ${previous.status} and is ${state.status} with another outcome`)
  }

  /** Notes a violated guarantee. */
  fault(kind: FaultKind, id: string, what: string): void {
    this.faults.push({ kind, id, what, atS: Math.round(this.seconds) })
  }

  /** Counts a call that was refused or not answered. */
  refused(call: string, reason: string): void {
    add(this.refusals, `${call}: ${reason}`)
  }

  /** Counts anything else. */
  count(name: string): void {
    add(this.counts, name)
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

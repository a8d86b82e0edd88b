import type { JobId } from '../src/core/ids.ts'
import { isFinal, type JobStatus } from '../src/core/job.ts'

/** What a client sees of a job. */
export interface SeenJob {
  readonly id: JobId
  readonly status: JobStatus
  readonly output?: unknown
  readonly error?: unknown
  readonly workerId?: string
}

interface Followed {
  readonly keptUntilMs: number
  final: { readonly status: JobStatus; readonly result: string } | null
}

/** Holds the server to what it has told its clients: a final status and an output stay, and no job vanishes early. */
export class ClientChecker {
  readonly #report: (problem: string) => void
  readonly #jobs = new Map<JobId, Followed>()

  /** @param report is given one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** Jobs that the server has acknowledged. */
  get acknowledged(): number {
    return this.#jobs.size
  }

  /** The ids of jobs that the server has acknowledged. */
  ids(): Iterable<JobId> {
    return this.#jobs.keys()
  }

  /** The server has acknowledged a job, which may not vanish before `keptUntilMs`. */
  follow(id: JobId, keptUntilMs: number): void {
    if (!this.#jobs.has(id)) this.#jobs.set(id, { keptUntilMs, final: null })
  }

  /** A client was shown a job. */
  saw(job: SeenJob): void {
    const followed = this.#jobs.get(job.id)
    if (followed === undefined) return
    const result = JSON.stringify([job.output, job.error])
    const { final } = followed
    if (final !== null && (final.status !== job.status || final.result !== result)) {
      this.#report(`job ${job.id} was ${final.status} with ${final.result} and is ${job.status} with ${result} now`)
    }
    if (!isFinal(job.status)) return
    followed.final ??= { status: job.status, result }
    this.#checkAuthor(job)
  }

  /** A client was told that there is no such job. */
  missed(id: JobId, nowMs: number): void {
    const followed = this.#jobs.get(id)
    if (followed !== undefined && nowMs < followed.keptUntilMs)
      this.#report(`job ${id} was acknowledged and has vanished`)
  }

  /** A cancel was answered with success. */
  cancelled(id: JobId): void {
    const final = this.#jobs.get(id)?.final ?? null
    if (final !== null && final.status !== 'CANCELLED') this.#report(`job ${id} was ${final.status} before its cancel`)
  }

  /** Outputs name the worker that made them. */
  #checkAuthor(job: SeenJob): void {
    const { output } = job
    if (job.status !== 'COMPLETED' || typeof output !== 'object' || output === null) return
    const { worker, job: of } = output as { worker?: unknown; job?: unknown }
    if (worker !== job.workerId || of !== job.id) {
      this.#report(`job ${job.id} by worker ${job.workerId} has the output of worker ${worker} for job ${of}`)
    }
  }
}

import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Commit } from '../ledger.ts'

/** What a client sees of a job. */
export interface SeenJob {
  readonly id: JobId
  readonly status: JobStatus
  readonly output?: unknown
  readonly error?: unknown
  readonly workerId?: string
}

interface Followed {
  readonly endpoint: EndpointId
  keptUntilMs: number
  /** The end of the shortest ttl that was ever asked for: its request may come late, after a retry. */
  askedUntilMs: number
  final: { readonly status: JobStatus; readonly result: string } | null
  /** A retry was asked for, and may happen or have happened. */
  retrying: boolean
  /** Answers older than this were given before what is known now. */
  since: number
  cancelledSince: number
}

interface Submission {
  readonly key: string | null
  sent: number
  stored: number
  first: JobId | null
}

/**
 * Holds the server to what it has told its clients: a final status and an output stay, no job vanishes early, one key is
 * one job, and what was asked for and granted is so afterwards.
 */
export class ClientChecker {
  readonly #report: (problem: string) => void
  readonly #jobs = new Map<JobId, Followed>()
  readonly #submissions = new Map<string, Submission>()
  /** Endpoints whose deletion was asked for. */
  readonly deleted = new Set<EndpointId>()

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

  /** A client sends a submission, perhaps again. @param tag stands in its input */
  submits(endpoint: EndpointId, tag: string, key: string | null): void {
    const known = this.#submissions.get(`${endpoint} ${tag}`)
    if (known === undefined) this.#submissions.set(`${endpoint} ${tag}`, { key, sent: 1, stored: 0, first: null })
    else known.sent += 1
  }

  /** The store has committed something. */
  committed({ changes }: Commit): void {
    for (const { kind, job, endpoint, input } of changes) {
      const tag = /"tag":"([^"]+)"/.exec(input)?.[1]
      const submission = this.#submissions.get(`${endpoint} ${tag}`)
      if (kind !== 'insert' || submission === undefined) continue
      submission.stored += 1
      submission.first ??= job
      const most = submission.key === null ? submission.sent : 1
      if (submission.stored > most)
        this.#report(`${tag} was sent ${submission.sent} times and has ${submission.stored} jobs`)
    }
  }

  /** The server has acknowledged a job, which may not vanish before `keptUntilMs` on the wall. */
  follow(id: JobId, endpoint: EndpointId, keptUntilMs: number, tag: string): void {
    const submission = this.#submissions.get(`${endpoint} ${tag}`)
    if (submission?.key != null && submission.first !== id) {
      this.#report(`${tag} was answered with job ${id}, and its key belongs to job ${submission.first}`)
    }
    if (this.#jobs.has(id)) return
    const cancelledSince = Number.POSITIVE_INFINITY
    const askedUntilMs = Number.POSITIVE_INFINITY
    this.#jobs.set(id, { endpoint, keptUntilMs, askedUntilMs, final: null, retrying: false, since: 0, cancelledSince })
  }

  /** A client has asked for another ttl, and got it or not. */
  keeps(id: JobId, untilMs: number, granted: boolean): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    if (!granted) followed.askedUntilMs = Math.min(untilMs, followed.askedUntilMs)
    followed.keptUntilMs = granted ? untilMs : Math.min(untilMs, followed.keptUntilMs)
  }

  /** A client was shown a job. @param order grows with each answer of the server; answers may overtake one another */
  saw(job: SeenJob, order: number): void {
    const followed = this.#jobs.get(job.id)
    if (followed === undefined || order < followed.since) return
    const result = JSON.stringify([job.output, job.error])
    const { final } = followed
    if (final !== null && (final.status !== job.status || final.result !== result)) {
      const mayReturn = followed.retrying && (final.status === 'FAILED' || final.status === 'TIMED_OUT')
      if (!mayReturn)
        this.#report(`job ${job.id} was ${final.status} with ${final.result} and is ${job.status} with ${result} now`)
      followed.final = null
    }
    if (job.status === 'IN_QUEUE' && (job.output !== undefined || job.error !== undefined))
      this.#report(`job ${job.id} is IN_QUEUE and shows the result ${result}`)
    if (order > followed.cancelledSince && job.status !== 'CANCELLED')
      this.#report(`job ${job.id} is ${job.status} after its cancel`)
    if (job.status === 'COMPLETED' && !result.includes(job.id)) this.#report(`job ${job.id} has the output ${result}`)
    if (!isFinal(job.status)) return
    followed.since = order
    followed.final ??= { status: job.status, result }
  }

  /** A client was told that there is no such job. */
  missed(id: JobId, wall: { latest(): number; readonly setBackMs: number }): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined || this.deleted.has(followed.endpoint)) return
    if (wall.latest() + wall.setBackMs < followed.keptUntilMs)
      this.#report(`job ${id} was acknowledged and has vanished`)
  }

  /** A cancel was answered with success. */
  cancelled(id: JobId, order: number): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    followed.cancelledSince = Math.min(followed.cancelledSince, order)
    const { final } = followed
    if (order > followed.since && final !== null && final.status !== 'CANCELLED' && !followed.retrying)
      this.#report(`job ${id} was ${final.status} before its cancel`)
  }

  /** A client asks for a retry. */
  retries(id: JobId): void {
    const followed = this.#jobs.get(id)
    if (followed !== undefined) followed.retrying = true
  }

  /** A retry was answered with success. */
  retried(id: JobId, keptUntilMs: number, order: number): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    if (followed.final?.status === 'COMPLETED' || followed.final?.status === 'CANCELLED')
      this.#report(`job ${id} was ${followed.final.status} and could be retried`)
    if (order < followed.since) return
    followed.final = null
    followed.since = order
    followed.keptUntilMs = Math.min(keptUntilMs, followed.askedUntilMs)
  }
}

import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Commit } from '../ledger.ts'

/** View that a client has of a job. */
export interface SeenJob {
  readonly id: JobId
  readonly status: JobStatus
  readonly output?: unknown
  readonly error?: unknown
  readonly workerId?: string
}

interface Followed {
  readonly endpoint: EndpointId
  retainedUntilMs: number
  /** End of the shortest ttl that was requested at any time: its request may arrive late, after a retry. */
  askedUntilMs: number
  final: { readonly status: JobStatus; readonly result: string } | null
  /** A retry was requested, and may have happened. */
  retrying: boolean
  /** Responses with a lower number are older than this state. */
  since: number
  canceledSince: number
}

interface Submission {
  readonly key: string | null
  sent: number
  stored: number
  first: JobId | null
}

/**
 * Checks the responses of the server to its clients: a final status and its output stay, no job is removed early,
 * each key belongs to one job, and a confirmed operation has taken effect.
 */
export class ClientChecker {
  readonly #report: (problem: string) => void
  readonly #jobs = new Map<JobId, Followed>()
  readonly #submissions = new Map<string, Submission>()
  /** Endpoints whose deletion was requested. */
  readonly deleted = new Set<EndpointId>()

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void) {
    this.#report = report
  }

  /** Number of jobs that the server acknowledged. */
  get acknowledged(): number {
    return this.#jobs.size
  }

  /** The ids of the jobs that the server acknowledged. */
  ids(): Iterable<JobId> {
    return this.#jobs.keys()
  }

  /** A client sends a submission, maybe a retry. @param tag identifies the submission; part of its input */
  submits(endpoint: EndpointId, tag: string, key: string | null): void {
    const submission = this.#submissions.get(`${endpoint} ${tag}`)
    const isOther = submission?.key !== key
    if (submission === undefined || isOther)
      this.#submissions.set(`${endpoint} ${tag}`, { key, sent: 1, stored: 0, first: null })
    else submission.sent += 1
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    for (const { kind, job, endpoint, input } of changes) {
      const tag = /"tag":"([^"]+)"/.exec(input)?.[1]
      const submission = this.#submissions.get(`${endpoint} ${tag}`)
      if (kind !== 'insert' || submission === undefined) continue
      submission.stored += 1
      submission.first ??= job
      const maximum = submission.key === null ? submission.sent : 1
      if (submission.stored > maximum)
        this.#report(`${tag} was sent ${submission.sent} times and has ${submission.stored} jobs`)
    }
  }

  /** The server acknowledged a job. It must not be removed before the wall clock shows `retainedUntilMs`. */
  follow(id: JobId, endpoint: EndpointId, retainedUntilMs: number, tag: string): void {
    const submission = this.#submissions.get(`${endpoint} ${tag}`)
    if (submission?.key != null && submission.first !== id) {
      this.#report(`the response to ${tag} names job ${id}, and its key belongs to job ${submission.first}`)
    }
    if (this.#jobs.has(id)) return
    const cancelledSince = Number.POSITIVE_INFINITY
    const askedUntilMs = Number.POSITIVE_INFINITY
    this.#jobs.set(id, {
      endpoint,
      retainedUntilMs,
      askedUntilMs,
      final: null,
      retrying: false,
      since: 0,
      canceledSince: cancelledSince,
    })
  }

  /** A client requested another ttl. @param granted true if the server confirmed it */
  keeps(id: JobId, untilMs: number, granted: boolean): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    if (!granted) followed.askedUntilMs = Math.min(untilMs, followed.askedUntilMs)
    followed.retainedUntilMs = granted ? untilMs : Math.min(untilMs, followed.retainedUntilMs)
  }

  /** A client saw a job. @param order number of the response; responses may arrive in another order */
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
    if (order > followed.canceledSince && job.status !== 'CANCELLED')
      this.#report(`job ${job.id} is ${job.status} after its cancel`)
    if (job.status === 'COMPLETED' && !result.includes(job.id)) this.#report(`job ${job.id} has the output ${result}`)
    if (result.includes('prestart_failed')) this.#report(`job ${job.id} has the failed start of a worker as its result`)
    if (!isFinal(job.status)) return
    followed.since = order
    followed.final ??= { status: job.status, result }
  }

  /** A client got 404 for a job. */
  missed(id: JobId, wall: { latest(): number; readonly slackMs: number }): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined || this.deleted.has(followed.endpoint)) return
    if (wall.latest() + wall.slackMs < followed.retainedUntilMs)
      this.#report(`job ${id} was acknowledged and was removed too early`)
  }

  /** The server confirmed a cancel. */
  canceled(id: JobId, order: number): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    followed.canceledSince = Math.min(followed.canceledSince, order)
    const { final } = followed
    if (order > followed.since && final !== null && final.status !== 'CANCELLED' && !followed.retrying)
      this.#report(`job ${id} was ${final.status} before its cancel`)
  }

  /** A client requests a retry of the job. */
  retries(id: JobId): void {
    const followed = this.#jobs.get(id)
    if (followed !== undefined) followed.retrying = true
  }

  /** The server confirmed a retry. */
  retried(id: JobId, retainedUntilMs: number, order: number): void {
    const followed = this.#jobs.get(id)
    if (followed === undefined) return
    if (followed.final?.status === 'COMPLETED' || followed.final?.status === 'CANCELLED')
      this.#report(`job ${id} was ${followed.final.status} and could be retried`)
    if (order < followed.since) return
    followed.final = null
    followed.since = order
    followed.retainedUntilMs = Math.min(retainedUntilMs, followed.askedUntilMs)
  }
}

import type { BatchId, EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import { isSuspect } from '../../src/core/jobs/job.ts'
import type { Change, Commit } from '../ledger.ts'

interface QueuedJob {
  readonly job: JobId
  readonly low: 0 | 1
  readonly queue: BatchId | ''
  /** True after two losses: the job runs alone, and workers that have jobs skip it. */
  suspect: boolean
  /** Grows with each submission and retry. A requeued job keeps it. */
  readonly place: number
  readonly queuedAtMs: number
  /** Batches whose requests were claimed while it waited. */
  readonly passedBy: Set<BatchId>
  expiresAtMs: number
}

/**
 * Reports claims out of order: first in, first out, jobs of low priority after all others. Each batch has its own
 * queue; a job of the endpoint's queue is passed by one request of each batch at most.
 */
export class OrderChecker {
  readonly #report: (problem: string) => void
  readonly #wall: { latest(): number; readonly slackMs: number }
  readonly #mayNotHave: (worker: WorkerId, job: JobId) => boolean
  readonly #queues = new Map<EndpointId, Map<JobId, QueuedJob>>()
  readonly #places = new Map<JobId, QueuedJob>()

  /**
   * @param wall the wall clock
   * @param mayNotHave true if a worker has not stopped its last attempt of a job yet, or the batch of the job is
   *   cancelled
   */
  constructor(
    report: (problem: string) => void,
    wall: { latest(): number; readonly slackMs: number },
    mayNotHave: (worker: WorkerId, job: JobId) => boolean,
  ) {
    this.#report = report
    this.#wall = wall
    this.#mayNotHave = mayNotHave
  }

  /** The store committed changes. */
  committed({ changes }: Commit): void {
    const claimed = changes.filter(isClaim)
    const claimedJobs = new Set(claimed.map(({ job }) => job))
    for (const change of changes) {
      if (isClaim(change)) this.#checkClaim(change, claimedJobs)
      this.#note(change)
    }
  }

  /** The queued jobs of an endpoint, in the order in which claims should get them. */
  queuedJobs(endpoint: EndpointId): JobId[] {
    const waiting = [...(this.#queues.get(endpoint)?.values() ?? [])]
    return waiting.sort((a, b) => a.low - b.low || a.place - b.place).map(({ job }) => job)
  }

  /** Ignores the other jobs of this commit: the rows of one statement have no order. */
  #checkClaim({ job, endpoint, n, worker }: Change, claimedJobs: ReadonlySet<JobId>): void {
    const claimed = this.#places.get(job)
    if (claimed === undefined) return
    for (const other of this.#queues.get(endpoint)?.values() ?? []) {
      if (
        other.suspect ||
        claimedJobs.has(other.job) ||
        other.expiresAtMs <= this.#wall.latest() ||
        other.low > claimed.low
      )
        continue
      // Servers that follow small differences of their clocks may disagree by so much.
      const isOrderKnown = other.queuedAtMs + this.#wall.slackMs <= claimed.queuedAtMs
      const isBefore =
        other.low < claimed.low ||
        (!claimed.suspect && other.queue === claimed.queue && other.place < claimed.place && isOrderKnown)
      const isPassed = !claimed.suspect && other.queue === '' && claimed.queue !== '' && other.low === claimed.low
      if ((!isBefore && !isPassed) || this.#mayNotHave(worker!, other.job)) continue
      if (isBefore)
        this.#report(`job ${job} was claimed (change ${n}) before job ${other.job}, which was first in the queue`)
      else this.#pass(other, claimed.queue as BatchId, n)
    }
  }

  #pass({ job, passedBy }: QueuedJob, batch: BatchId, n: number): void {
    if (passedBy.has(batch)) this.#report(`job ${job} was passed (change ${n}) by a second request of batch ${batch}`)
    passedBy.add(batch)
  }

  #note(change: Change): void {
    const { kind, job, endpoint, was, now, n, queued_at_ms: queuedAtMs, expires_at_ms: expiresAtMs } = change
    const queue = this.#queues.get(endpoint) ?? new Map<JobId, QueuedJob>()
    this.#queues.set(endpoint, queue)
    const isNew = kind === 'insert' || was === 'FAILED' || was === 'TIMED_OUT'
    if (isNew && now === 'IN_QUEUE') {
      const passedBy = new Set<BatchId>()
      this.#places.set(job, {
        job,
        low: change.low,
        queue: change.queue,
        place: n,
        queuedAtMs,
        passedBy,
        expiresAtMs,
        suspect: false,
      })
    }
    const place = this.#places.get(job)
    if (kind === 'delete') this.#places.delete(job)
    if (now !== 'IN_QUEUE') queue.delete(job)
    else if (place !== undefined) {
      if (was !== 'IN_QUEUE') place.passedBy.clear()
      place.suspect = isSuspect({ lostAttempts: change.lost })
      place.expiresAtMs = expiresAtMs
      queue.set(job, place)
    }
  }
}

function isClaim({ was, now }: Change): boolean {
  return was === 'IN_QUEUE' && now === 'IN_PROGRESS'
}

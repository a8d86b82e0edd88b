import { notFound } from '../../core/errors.ts'
import type { EndpointId, JobId } from '../../core/ids.ts'
import { isFinal, type Job, type JobStatus } from '../../core/jobs/job.ts'
import type { Ports } from '../../ports/ports.ts'
import type { StreamPart } from '../../ports/store/store.ts'
import type { LongPoll } from '../long-poll.ts'
import type { Jobs } from './jobs.ts'

/** Maximum bytes of chunks in one response; the rest waits for the next one. */
const PART_BYTES = 4_194_304
/**
 * Time for which a client is held that asks again after the end of a job, in ms: one that never stops costs little.
 */
const REPEAT_HOLD_MS = 4_000
/** Limit of jobs whose end was reported and is remembered. */
const MAX_REMEMBERED = 10_000

/** The content of one response of a stream. */
export interface StreamAnswer {
  readonly job: Job
  /** The status for the client: a final one only with or after the last chunk, FAILED only after it. */
  readonly status: JobStatus
  readonly chunks: readonly string[]
  readonly attempt: number
  /** Call it once, with true if the client got the response. Chunks that it did not get are delivered again. */
  readonly settle: (delivered: boolean) => void
}

/**
 * Delivers the chunks of jobs: each once, in order, to the client that asks first. A client that goes away loses no
 * chunk, and does not cancel the job.
 */
export class Streams {
  readonly #ports
  readonly #jobs
  readonly #longPoll
  /** Jobs with a response that is not settled; the next part is delivered after that. */
  readonly #unsettled = new Set<JobId>()
  readonly #reportedEnds = new Set<JobId>()

  constructor(ports: Ports, jobs: Jobs, longPoll: LongPoll) {
    this.#ports = ports
    this.#jobs = jobs
    this.#longPoll = longPoll
  }

  /**
   * The next chunks, or the end, or neither when nothing came in time.
   * @param known the job as the same client got it last; if the job was removed since, the response is its end
   * @throws AppError `not_found` when the job does not exist or has expired
   */
  async next(
    endpointId: EndpointId,
    jobId: JobId,
    holdMs: number,
    signals: readonly AbortSignal[],
    known: Job | null = null,
  ): Promise<StreamAnswer> {
    const first = await this.#find(endpointId, jobId)
    if (first === null && known === null) throw notFound('job', jobId)
    if (first === null) return this.#end(known!)
    if (first.status === 'CANCELLED' && this.#reportedEnds.has(jobId)) {
      const forMs = Math.min(holdMs, REPEAT_HOLD_MS)
      await this.#longPoll.until({ topics: [`job:${jobId}`], forMs, signals }, async () => null)
    }
    let job = first
    const read = async () => {
      const stored = await this.#find(endpointId, jobId)
      if (stored === null) return this.#end(job)
      job = stored
      return this.#readPart(job)
    }
    const topics = [`job:${jobId}`, `deleted:${endpointId}`] as const
    const answer = await this.#longPoll.until({ topics, forMs: holdMs, signals }, read)
    return answer ?? { job, status: openStatus(job), chunks: [], attempt: job.attempt, settle: () => {} }
  }

  /** The end of a job that was removed while a client waited for it. */
  async #end(job: Job): Promise<StreamAnswer> {
    const ended = await this.#jobs.endRemoved(job)
    return { job: ended, status: ended.status, chunks: [], attempt: ended.attempt, settle: () => {} }
  }

  async #readPart(job: Job): Promise<StreamAnswer | null> {
    if (this.#unsettled.has(job.id)) return null
    this.#unsettled.add(job.id)
    let hasChunks = false
    try {
      const part = await this.#ports.store.streams.read(job.id, 0, PART_BYTES)
      if (part === null || part.attempt !== job.attempt || part.workerId !== job.workerId) return null
      hasChunks = part.chunks.length > 0
      if (hasChunks) return await this.#deliver(job, part)
      if (!isFinal(job.status)) return null
      this.#remember(job.id)
      return { job, status: job.status, chunks: [], attempt: job.attempt, settle: () => {} }
    } finally {
      if (!hasChunks) this.#unsettled.delete(job.id)
    }
  }

  async #deliver(job: Job, part: StreamPart): Promise<StreamAnswer> {
    const upTo = part.chunks.at(-1)!.seq
    const isLast = isFinal(job.status) && job.status !== 'FAILED' && (await this.#isEmptyAfter(job.id, upTo))
    if (isLast) this.#remember(job.id)
    return {
      job,
      status: isLast ? job.status : openStatus(job),
      chunks: part.chunks.map(({ chunk }) => chunk),
      attempt: job.attempt,
      settle: delivered => void this.#settle(job.id, part, upTo, delivered),
    }
  }

  async #isEmptyAfter(jobId: JobId, seq: number): Promise<boolean> {
    const nextPart = await this.#ports.store.streams.read(jobId, seq, 1)
    return nextPart === null || nextPart.chunks.length === 0
  }

  /** If it cannot be stored that the chunks were delivered, they are delivered again: better twice than never. */
  async #settle(jobId: JobId, part: StreamPart, upTo: number, delivered: boolean): Promise<void> {
    if (delivered) await this.#ports.store.streams.streamed(jobId, part, upTo).catch(() => {})
    this.#unsettled.delete(jobId)
    this.#ports.notifier.publish(`job:${jobId}`)
  }

  #remember(jobId: JobId): void {
    if (this.#reportedEnds.size >= MAX_REMEMBERED) this.#reportedEnds.clear()
    this.#reportedEnds.add(jobId)
  }

  #find(endpointId: EndpointId, jobId: JobId): Promise<Job | null> {
    return this.#ports.store.jobs.find(endpointId, jobId, this.#ports.clock.now())
  }
}

/** A final job is shown as running while chunks are left. */
function openStatus(job: Job): JobStatus {
  return isFinal(job.status) ? 'IN_PROGRESS' : job.status
}

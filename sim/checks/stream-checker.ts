import type { JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { JobRun } from './run-checker.ts'

/** What chunks of simulated workers say. */
export interface Chunk {
  readonly job: JobId
  readonly nonce: string
  /** From 1 within a run. */
  readonly chunk: number
}

/** How an answer of a stream came about. */
export interface Circumstances {
  /** Chunks that the server believes to have been delivered may have been lost since the last answer. */
  readonly missed: boolean
  /** The server could not know, or not keep, that the chunks of the last answer were delivered. */
  readonly repeated: boolean
}

/**
 * Follows what one reader gets of a job's stream. Reports chunks that come twice, are missing, come in another order or
 * after the end, and an end that comes before the last chunk.
 */
export class StreamChecker {
  readonly #report: (problem: string) => void
  readonly #find: (nonce: unknown) => JobRun | undefined
  readonly #job: JobId
  readonly #over = new Set<string>()
  #run: JobRun | null = null
  #last = 0
  #ended: JobStatus | null = null
  #missed = false
  #repeats = false

  /** @param find the run with a mark */
  constructor(job: JobId, report: (problem: string) => void, find: (nonce: unknown) => JobRun | undefined) {
    this.#job = job
    this.#report = report
    this.#find = find
  }

  /** How many chunks of the latest run have come. */
  get last(): number {
    return this.#last
  }

  /** The job was queued again by its client: everything begins anew. */
  retried(): void {
    this.#ended = null
  }

  /** Something about the next chunks is not the server's fault. */
  excuse({ missed, repeated }: Circumstances): void {
    this.#missed ||= missed
    this.#repeats ||= repeated
  }

  /** Chunks and the status that came with them; null where the form of the answer has none. */
  got(chunks: readonly Chunk[], status: JobStatus | null): void {
    if (chunks.length > 0 && this.#ended !== null && !this.#repeats) {
      this.#report(`the stream of job ${this.#job} goes on after it was ${this.#ended}`)
    }
    if (chunks.length > 0 && status === 'FAILED')
      this.#report(`the stream of job ${this.#job} has FAILED beside chunks`)
    for (const chunk of chunks) this.#take(chunk)
    this.#repeats = false
    if (status !== null && isFinal(status)) this.#ended = status
  }

  /** The job was completed by this run, and its stream was read to the end. */
  completed(nonce: string | null): void {
    const run = this.#find(nonce)
    if (run === undefined || run.interrupted || this.#missed) return
    const last = this.#run === run ? this.#last : 0
    this.#checkGap(run, last, run.chunks.length + 1)
  }

  #take({ job, nonce, chunk }: Chunk): void {
    const run = this.#find(nonce)
    if (run === undefined || job !== this.#job || run.job !== job) {
      this.#report(`the stream of job ${this.#job} has a chunk of job ${job} that no run has sent`)
      return
    }
    if (run !== this.#run) {
      if (this.#over.has(nonce)) this.#report(`the stream of job ${job} goes back to a run before`)
      if (this.#run !== null) this.#over.add(this.#run.nonce)
      this.#run = run
      this.#last = 0
    }
    if (chunk <= this.#last) {
      const twice = run.chunks[chunk - 1]?.twice === true
      if (!this.#repeats && !twice) this.#report(`chunk ${chunk} of job ${job} came after chunk ${this.#last}`)
      if (twice) return
    } else if (!this.#missed && !run.interrupted) this.#checkGap(run, this.#last, chunk)
    this.#last = chunk
    // What comes from here on was not lost on the way that was excused.
    this.#missed = false
  }

  #checkGap(run: JobRun, after: number, before: number): void {
    for (let chunk = after + 1; chunk < before; chunk += 1) {
      if (run.chunks[chunk - 1]?.state === 'kept') this.#report(`chunk ${chunk} of job ${this.#job} has never come`)
    }
  }
}

import type { JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { JobRun } from './run-checker.ts'

/** A chunk of a simulated worker. */
export interface Chunk {
  readonly job: JobId
  readonly nonce: string
  /** From 1 within a run. */
  readonly chunk: number
}

/** Faults that chunks may have met on their way to the reader. */
export interface Circumstances {
  /** Chunks may be lost that the server counts as delivered since the last response. */
  readonly missed: boolean
  /** The server may not have noticed or stored the delivery of the last response's chunks. */
  readonly repeated: boolean
}

/**
 * Follows what one reader of a job's stream gets. Reports chunks that are repeated, missing, out of order or
 * after the end, and an end before the last chunk.
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

  /** @param find finds a run by its nonce */
  constructor(job: JobId, report: (problem: string) => void, find: (nonce: unknown) => JobRun | undefined) {
    this.#job = job
    this.#report = report
    this.#find = find
  }

  /** Number of the last chunk of the latest run. */
  get last(): number {
    return this.#last
  }

  /** The client retried the job: its stream starts again. */
  retried(): void {
    this.#ended = null
  }

  /** The server is not responsible for lost or repeated chunks in what comes next. */
  excuse({ missed, repeated }: Circumstances): void {
    this.#missed ||= missed
    this.#repeats ||= repeated
  }

  /** The reader got chunks. @param status the status that came with them; null for a form without one */
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

  /** This run completed the job, and the stream was read to its end. */
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
      if (this.#over.has(nonce)) this.#report(`the stream of job ${job} goes back to an earlier run`)
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
    // The excuse covers only chunks before this one.
    this.#missed = false
  }

  #checkGap(run: JobRun, after: number, next: number): void {
    for (let chunk = after + 1; chunk < next; chunk += 1) {
      if (run.chunks[chunk - 1]?.state === 'kept') this.#report(`chunk ${chunk} of job ${this.#job} never arrived`)
    }
  }
}

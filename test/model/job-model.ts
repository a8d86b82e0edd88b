/**
 * A model of jobs by docs/internals/job-lifecycle.md and docs/reference/jobs.md, without a database, a server or
 * concurrency. The responses of the real control plane are compared with it.
 */

/** Options of a job; times in milliseconds. */
export interface Wish {
  readonly kind: 'run' | 'runsync'
  readonly ttlMs: number
  readonly timeoutMs: number
  readonly lowPriority: boolean
}

/** The visible state of one job. */
export interface ModelJob extends Wish {
  readonly id: string
  status: 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TIMED_OUT'
  place: number
  /** Its holder, or its last holder. */
  worker: string | null
  lost: number
  queuedAt: number
  startedAt: number | null
  endedAt: number | null
  expiresAt: number
  output: unknown
  error: string | RegExp | null
  progress: unknown
  chunks: unknown[]
  /** Number of chunks that a client has read. */
  streamed: number
}

const RETENTION_MS = { run: 1_800_000, runsync: 60_000 }
const MOST_LOST = 3
/** Interval of the checks of execution timeouts, in milliseconds. */
export const TIMEOUT_SLACK_MS = 1_000

/** All jobs of one endpoint. */
export class JobModel {
  nowMs = 0
  readonly jobs = new Map<string, ModelJob>()
  /** Removed jobs: all operations get 404. */
  readonly removed = new Set<string>()
  readonly counters = { completed: 0, failed: 0, retried: 0 }
  #places = 0

  submit(id: string, wish: Wish): void {
    this.jobs.set(id, {
      ...wish,
      id,
      status: 'IN_QUEUE',
      place: this.#places++,
      worker: null,
      lost: 0,
      queuedAt: this.nowMs,
      startedAt: null,
      endedAt: null,
      expiresAt: this.nowMs + wish.ttlMs,
      output: undefined,
      error: null,
      progress: undefined,
      chunks: [],
      streamed: 0,
    })
  }

  /** The queue in order. */
  line(): ModelJob[] {
    const waiting = [...this.jobs.values()].filter(({ status }) => status === 'IN_QUEUE')
    return waiting.sort((a, b) => Number(a.lowPriority) - Number(b.lowPriority) || a.place - b.place)
  }

  heldBy(worker: string): ModelJob[] {
    return [...this.jobs.values()].filter(job => job.status === 'IN_PROGRESS' && job.worker === worker)
  }

  claim(job: ModelJob, worker: string): void {
    Object.assign(job, { status: 'IN_PROGRESS', worker, startedAt: this.nowMs, progress: undefined })
    Object.assign(job, { chunks: [], streamed: 0 })
  }

  /** The response with the job did not arrive: the job is back in the queue. */
  release(job: ModelJob): void {
    this.#backToLine(job)
    Object.assign(job, { worker: null, chunks: [], streamed: 0 })
  }

  /** A result counts from the holder, or from the last one while no worker has claimed the job since. */
  finish(job: ModelJob, worker: string, result: { output: unknown } | { error: string }): void {
    if (job.worker !== worker || (job.status !== 'IN_PROGRESS' && job.status !== 'IN_QUEUE')) return
    if ('error' in result) {
      job.error = result.error
      this.counters.failed += 1
    } else {
      job.output = result.output
      this.counters.completed += 1
    }
    this.#end(job, 'error' in result ? 'FAILED' : 'COMPLETED', this.nowMs)
  }

  report(job: ModelJob, worker: string, progress: unknown): void {
    if (job.status === 'IN_PROGRESS' && job.worker === worker) job.progress = progress
  }

  chunk(job: ModelJob, worker: string, chunk: unknown): void {
    if (job.status === 'IN_PROGRESS' && job.worker === worker) job.chunks.push(chunk)
  }

  /** The HTTP status of a cancel. */
  cancel(job: ModelJob): 200 | 409 {
    if (job.status === 'CANCELLED') return 200
    if (isFinal(job)) return 409
    this.#end(job, 'CANCELLED', this.nowMs)
    return 200
  }

  /** The HTTP status of a retry. */
  retry(job: ModelJob): 200 | 409 {
    if (job.status !== 'FAILED' && job.status !== 'TIMED_OUT') return 409
    this.#backToLine(job)
    Object.assign(job, { place: this.#places++, worker: null, lost: 0, output: undefined, error: null, chunks: [] })
    Object.assign(job, { streamed: 0, queuedAt: this.nowMs, endedAt: null, expiresAt: this.nowMs + job.ttlMs })
    this.counters.retried += 1
    return 200
  }

  /** Purges the queue. Returns the number of removed jobs. */
  purge(): number {
    const waiting = this.line()
    for (const job of waiting) this.#end(job, 'CANCELLED', this.nowMs)
    return waiting.length
  }

  /** The worker ended, or reports that it holds no job: its attempts are lost. */
  lose(worker: string): void {
    for (const job of this.heldBy(worker)) {
      job.lost += 1
      if (job.lost < MOST_LOST) {
        this.counters.retried += 1
        this.#backToLine(job)
      } else {
        this.counters.failed += 1
        job.error = /^the worker was lost 3 times while it ran this job, the last time because /
        this.#end(job, 'FAILED', this.nowMs)
      }
    }
  }

  setTtl(job: ModelJob, ttlMs: number): void {
    job.expiresAt = this.nowMs + ttlMs
  }

  /** Jobs whose execution timeout has just passed, so that they may have ended or not. */
  unsettled(): ModelJob[] {
    return this.#overdue().filter(job => this.nowMs <= jobDeadline(job) + TIMEOUT_SLACK_MS)
  }

  /**
   * Ends jobs that are past their times. Only the server has the exact time of a timeout.
   * @param executionMs the execution time of a job by the server; null when the job was removed
   */
  settle(executionMs: (job: ModelJob) => number | null): void {
    for (const job of this.#overdue()) {
      const ran = executionMs(job)
      if (ran === null && job.expiresAt > this.nowMs) throw new Error(`job ${job.id} was removed too early`)
      this.counters.failed += 1
      job.error = `the job ran longer than its execution timeout of ${job.timeoutMs} ms`
      if (ran !== null) this.#end(job, 'TIMED_OUT', job.startedAt! + ran)
    }
    for (const job of this.jobs.values()) {
      if (job.expiresAt > this.nowMs) continue
      this.jobs.delete(job.id)
      this.removed.add(job.id)
    }
  }

  /** The expected response of `status`. */
  view(job: ModelJob): Record<string, unknown> {
    const end = job.endedAt ?? this.nowMs
    const started = job.startedAt !== null
    const shown = job.status === 'IN_PROGRESS' ? job.progress : job.output
    return {
      id: job.id,
      status: job.status,
      delayTime: (job.startedAt ?? end) - job.queuedAt,
      ...(started || isFinal(job) ? { executionTime: started ? end - job.startedAt! : 0 } : {}),
      ...(job.status === 'IN_QUEUE' ? {} : { workerId: job.worker ?? '' }),
      ...(shown === undefined ? {} : { output: shown }),
      ...(job.error === null ? {} : { error: job.error }),
      ...(job.lost === 0 ? {} : { retries: job.lost }),
    }
  }

  /** The expected response of the next read of the stream. */
  stream(job: ModelJob, delivered: boolean): Record<string, unknown> {
    const chunks = job.chunks.slice(job.streamed)
    const shownStatus = job.status === 'FAILED' && chunks.length > 0 ? 'IN_PROGRESS' : job.status
    if (delivered) job.streamed = job.chunks.length
    return { id: job.id, status: shownStatus, stream: chunks.map(output => ({ output })) }
  }

  #overdue(): ModelJob[] {
    const running = [...this.jobs.values()].filter(({ status }) => status === 'IN_PROGRESS')
    return running.filter(job => jobDeadline(job) <= this.nowMs && jobDeadline(job) < job.expiresAt)
  }

  #backToLine(job: ModelJob): void {
    Object.assign(job, { status: 'IN_QUEUE', startedAt: null, progress: undefined })
  }

  #end(job: ModelJob, status: ModelJob['status'], atMs: number): void {
    Object.assign(job, { status, endedAt: atMs, progress: undefined })
    job.expiresAt = Math.min(job.expiresAt, atMs + RETENTION_MS[job.kind])
  }
}

/** True if the job has its final outcome. */
export function isFinal({ status }: ModelJob): boolean {
  return status !== 'IN_QUEUE' && status !== 'IN_PROGRESS'
}

function jobDeadline(job: ModelJob): number {
  return job.startedAt! + job.timeoutMs
}

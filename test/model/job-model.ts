/**
 * The life of jobs as docs/internals/job-lifecycle.md and docs/reference/jobs.md tell it, without a database, a server or
 * anything that happens at the same time. What the real one answers is compared with it.
 */

/** What a client may choose about a job; times in milliseconds. */
export interface Wish {
  readonly kind: 'run' | 'runsync'
  readonly ttlMs: number
  readonly timeoutMs: number
  readonly lowPriority: boolean
}

/** One job, as far as anybody can see it. */
export interface ModelJob extends Wish {
  readonly id: string
  status: 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'TIMED_OUT'
  place: number
  /** Who holds it, or held it last. */
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
  /** How many of the chunks a client has got. */
  streamed: number
}

const RETENTION_MS = { run: 1_800_000, runsync: 60_000 }
const MOST_LOST = 3
/** The execution timeout is looked after once a second. */
export const TIMEOUT_SLACK_MS = 1_000

/** All jobs of one endpoint. */
export class JobModel {
  nowMs = 0
  readonly jobs = new Map<string, ModelJob>()
  /** Jobs that are gone: 404 for everybody. */
  readonly gone = new Set<string>()
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

  /** The line, its head first. */
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

  /** The answer with the job did not arrive: as if nobody had taken it. */
  release(job: ModelJob): void {
    this.#backToLine(job)
    Object.assign(job, { worker: null, chunks: [], streamed: 0 })
  }

  /** Counts from the holder, or from the last one while nobody has claimed the job since. */
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

  /** How many jobs it removes. */
  purge(): number {
    const waiting = this.line()
    for (const job of waiting) this.#end(job, 'CANCELLED', this.nowMs)
    return waiting.length
  }

  /** The worker has ended, or says that it holds nothing: its attempts are lost. */
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

  /** Jobs whose execution timeout has passed so lately that they may have ended, or not. */
  unsettled(): ModelJob[] {
    return this.#overdue().filter(job => this.nowMs <= deadlineOf(job) + TIMEOUT_SLACK_MS)
  }

  /**
   * Ends what is past its times. When exactly a job timed out is only known to the server.
   * @param executionMs how long it says the job ran; null when the job is gone
   */
  settle(executionMs: (job: ModelJob) => number | null): void {
    for (const job of this.#overdue()) {
      const ran = executionMs(job)
      if (ran === null && job.expiresAt > this.nowMs) throw new Error(`job ${job.id} is gone before its time`)
      this.counters.failed += 1
      job.error = `the job ran longer than its execution timeout of ${job.timeoutMs} ms`
      if (ran !== null) this.#end(job, 'TIMED_OUT', job.startedAt! + ran)
    }
    for (const job of this.jobs.values()) {
      if (job.expiresAt > this.nowMs) continue
      this.jobs.delete(job.id)
      this.gone.add(job.id)
    }
  }

  /** What status answers. */
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

  /** What the next read of the stream answers. */
  stream(job: ModelJob, delivered: boolean): Record<string, unknown> {
    const chunks = job.chunks.slice(job.streamed)
    const told = job.status === 'FAILED' && chunks.length > 0 ? 'IN_PROGRESS' : job.status
    if (delivered) job.streamed = job.chunks.length
    return { id: job.id, status: told, stream: chunks.map(output => ({ output })) }
  }

  #overdue(): ModelJob[] {
    const running = [...this.jobs.values()].filter(({ status }) => status === 'IN_PROGRESS')
    return running.filter(job => deadlineOf(job) <= this.nowMs && deadlineOf(job) < job.expiresAt)
  }

  #backToLine(job: ModelJob): void {
    Object.assign(job, { status: 'IN_QUEUE', startedAt: null, progress: undefined })
  }

  #end(job: ModelJob, status: ModelJob['status'], atMs: number): void {
    Object.assign(job, { status, endedAt: atMs, progress: undefined })
    job.expiresAt = Math.min(job.expiresAt, atMs + RETENTION_MS[job.kind])
  }
}

/** Whether the job has its one outcome. */
export function isFinal({ status }: ModelJob): boolean {
  return status !== 'IN_QUEUE' && status !== 'IN_PROGRESS'
}

function deadlineOf(job: ModelJob): number {
  return job.startedAt! + job.timeoutMs
}

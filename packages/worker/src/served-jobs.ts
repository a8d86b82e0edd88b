import type { Config } from './config.ts'
import type { Client } from './http.ts'
import { JobRun } from './job.ts'
import { log } from './log.ts'
import type { StartOptions } from './types.ts'

type Status = 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED' | 'CANCELLED'

/** The answer of a job operation. */
export type View = {
  id: string
  status: Status
  output?: unknown
  error?: string
  delayTime?: number
  executionTime?: number
}

/** The body of a submitted job. */
export type Submission = {
  input: unknown
  /** An http or https address that receives the end of the job. */
  webhook?: string | null
}

type Served = {
  run: JobRun
  view: View
  webhook: string | null
  submittedAt: number
  startedAt: number
  /** Chunks of a streaming handler, as JSON; `read` of them were handed out. */
  chunks: string[]
  chunkBytes: number
  read: number
  changed: Signal
}

type Signal = { promise: Promise<void>; resolve: () => void }

/** Maximum number of jobs in memory. The oldest ones that have ended make room for new ones. */
const mostJobs = 1000
const mostChunkBytes = 64 * 1024 * 1024

const config: Config = {
  workerId: 'local',
  reported: { workerId: 'local', hostname: 'local' },
  token: undefined,
  takeUrl: '',
  batchUrl: undefined,
  stopUrl: undefined,
  pingUrl: undefined,
  pingMs: 10_000,
  outputUrl: 'local:output',
  resultsUrl: undefined,
  streamUrl: 'local:stream',
}

/**
 * Runs jobs in this process as a worker would, and keeps their results in memory. It receives the posts of the
 * worker in place of a platform.
 */
export class ServedJobs {
  readonly #options: StartOptions
  readonly #jobs = new Map<string, Served>()
  readonly #waiting: Served[] = []
  readonly #webhooks = new Webhooks()
  readonly #client: Client = { send: async ({ url, body = '', jobId = '' }) => this.#receive(url, body, jobId) }
  #running = 0
  #limit: number
  #starting = false

  /** @param options with the handler, and the number of its jobs that run at once */
  constructor(options: StartOptions) {
    this.#options = options
    this.#limit = typeof options.concurrency === 'number' ? options.concurrency : 1
  }

  /**
   * Queues a job with this body under a new id, or under `id` in place of an earlier job that has ended; undefined if
   * that job has not ended, or if too many others have not.
   */
  submit(body: Submission, id = `test-${globalThis.crypto.randomUUID()}`): View | undefined {
    const before = this.#jobs.get(id)
    if (before && !isOver(before)) return undefined
    this.#jobs.delete(id)
    if (!this.#makeRoom()) return undefined
    const around = { options: this.#options, config, client: this.#client, results: this.#client }
    const run = new JobRun({ ...body, id }, around)
    const served: Served = {
      run,
      view: { id, status: 'IN_QUEUE' },
      webhook: body.webhook ?? null,
      submittedAt: performance.now(),
      startedAt: 0,
      chunks: [],
      chunkBytes: 0,
      read: 0,
      changed: createSignal(),
    }
    this.#jobs.set(id, served)
    this.#waiting.push(served)
    void this.#startNext()
    return { ...served.view }
  }

  /** The present state of the job; undefined if it does not exist. */
  view(id: string): View | undefined {
    const served = this.#jobs.get(id)
    return served && { ...served.view }
  }

  /** The state of the job once it has ended, or after `ms` milliseconds. */
  async whenOver(id: string, ms: number): Promise<View | undefined> {
    await this.#wait(id, ms, served => isOver(served))
    return this.view(id)
  }

  /** The unread chunks, as soon as one exists, the job has ended or `ms` milliseconds have passed. */
  async chunks(id: string, ms: number): Promise<{ status: Status; stream: { output: unknown }[] } | undefined> {
    await this.#wait(id, ms, served => isOver(served) || served.read < served.chunks.length)
    const served = this.#jobs.get(id)
    if (!served) return undefined
    const stream = served.chunks.slice(served.read).map(text => JSON.parse(text))
    served.read = served.chunks.length
    return { status: served.view.status, stream }
  }

  /** Ends a queued or running job. A job that has ended does not change. */
  cancel(id: string): View | undefined {
    const served = this.#jobs.get(id)
    if (served && !isOver(served)) {
      served.run.cancel()
      const place = this.#waiting.indexOf(served)
      if (place >= 0) this.#waiting.splice(place, 1)
      this.#change(served, { status: 'CANCELLED' })
    }
    return this.view(id)
  }

  /** Cancels all queued jobs. Returns their number. */
  purge(): number {
    const waiting = [...this.#waiting]
    for (const served of waiting) this.cancel(served.view.id)
    return waiting.length
  }

  /** Number of jobs in each state. */
  health(): object {
    const count = (...wanted: Status[]) =>
      Array.from(this.#jobs.values()).filter(({ view }) => wanted.includes(view.status)).length
    const jobs = {
      completed: count('COMPLETED'),
      failed: count('FAILED'),
      inProgress: count('IN_PROGRESS'),
      inQueue: count('IN_QUEUE'),
      retried: 0,
    }
    const busy = this.#running > 0 ? 1 : 0
    return { jobs, workers: { idle: 1 - busy, running: busy, initializing: 0, ready: 1, throttled: 0, unhealthy: 0 } }
  }

  #makeRoom(): boolean {
    if (this.#jobs.size < mostJobs) return true
    for (const [id, served] of this.#jobs) {
      if (!isOver(served)) continue
      this.#jobs.delete(id)
      return true
    }
    return false
  }

  async #startNext(): Promise<void> {
    if (this.#starting) return
    this.#starting = true
    while (this.#waiting.length > 0) {
      await this.#adoptLimit()
      if (this.#running >= this.#limit) break
      const served = this.#waiting.shift()
      if (served) void this.#run(served)
    }
    this.#starting = false
  }

  async #adoptLimit(): Promise<void> {
    const { concurrency } = this.#options
    if (typeof concurrency !== 'function') return
    const next = await Promise.resolve(this.#limit)
      .then(concurrency)
      .catch(() => 0)
    if (Number.isInteger(next) && next >= 1) this.#limit = next
    else log(`concurrency stays at ${this.#limit}: it must be a whole number from 1`, { job: null, level: 'ERROR' })
  }

  async #run(served: Served): Promise<void> {
    this.#running += 1
    served.startedAt = performance.now()
    const delayTime = Math.round(served.startedAt - served.submittedAt)
    this.#change(served, { status: 'IN_PROGRESS', delayTime })
    await served.run.run()
    this.#running -= 1
    void this.#startNext()
  }

  #receive(url: string, body: string, jobId: string): { status: number; retryAfter: undefined; body: string } {
    const served = this.#jobs.get(jobId)
    const answer = (status: number) => ({ status, retryAfter: undefined, body: '' })
    if (!served || isOver(served)) return answer(200)
    if (url.startsWith('local:stream')) {
      served.chunkBytes += body.length
      if (served.chunkBytes > mostChunkBytes) return answer(413)
      served.chunks.push(body)
      this.#change(served, {})
      return answer(200)
    }
    const { status, output, error } = JSON.parse(body)
    if (status === 'IN_PROGRESS') this.#change(served, { output })
    else this.#finish(served, output, error)
    return answer(200)
  }

  #finish(served: Served, output: unknown, error: unknown): void {
    const { chunks, startedAt } = served
    const executionTime = Math.round(performance.now() - startedAt)
    delete served.view.output
    if (error !== undefined) {
      const text = typeof error === 'string' ? error : JSON.stringify(error)
      this.#change(served, {
        status: 'FAILED',
        error: text,
        executionTime,
        ...(output === undefined ? {} : { output }),
      })
      return
    }
    const streamed = chunks.length > 0 ? chunks.map(text => JSON.parse(text).output) : output
    this.#change(served, {
      status: 'COMPLETED',
      executionTime,
      ...(streamed === undefined ? {} : { output: streamed }),
    })
  }

  #change(served: Served, change: Partial<View>): void {
    Object.assign(served.view, change)
    served.changed.resolve()
    served.changed = createSignal()
    if (served.webhook !== null && isOver(served)) this.#webhooks.send(served.webhook, served.view)
  }

  async #wait(id: string, ms: number, until: (served: Served) => boolean): Promise<void> {
    const served = this.#jobs.get(id)
    if (!served) return
    let late = false
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>(resolve => {
      timer = setTimeout(() => {
        late = true
        resolve()
      }, ms)
    })
    while (!late && !until(served)) await Promise.race([served.changed.promise, timeout])
    clearTimeout(timer)
  }
}

function isOver({ view }: Served): boolean {
  return ['COMPLETED', 'FAILED', 'CANCELLED'].includes(view.status)
}

function createSignal(): Signal {
  let resolve: () => void = () => {}
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve }
}

const answerMs = 10_000
/** Maximum number of requests at once, since a receiver may not answer. */
const mostAtOnce = 100

/** Sends the ends of jobs to the addresses that the jobs name: one POST each, without a second attempt. */
class Webhooks {
  #onTheirWay = 0

  /** Sends the state of a job as JSON, in the background. A failure is logged. */
  send(url: string, view: { id: string }): void {
    if (this.#onTheirWay >= mostAtOnce) {
      complain(view.id, `${mostAtOnce} are on their way already`)
      return
    }
    this.#onTheirWay += 1
    this.#post(url, JSON.stringify(view))
      .catch(error => complain(view.id, explain(error)))
      .finally(() => {
        this.#onTheirWay -= 1
      })
  }

  async #post(url: string, body: string): Promise<void> {
    const headers = { 'Content-Type': 'application/json' }
    const signal = AbortSignal.timeout(answerMs)
    // A redirect is a failure, as on a platform.
    const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the receiver answered ${response.status}`)
  }
}

/** Logs a failure without the address, whose query may have a secret. */
function complain(jobId: string, reason: string): void {
  log(`the webhook was not delivered: ${reason}`, { job: jobId, level: 'WARN' })
}

function explain(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message
}

import type { Config } from './config.ts'
import { jobUrl } from './config.ts'
import { deliver, type Post } from './deliver.ts'
import type { Client } from './http.ts'
import { toJson } from './json.ts'
import { asJob, log } from './log.ts'
import { encodeFailure, encodeResult, errorIn, type Final, failureText, isStream } from './result.ts'
import type { Context, Job, StartOptions } from './types.ts'
import { checkInput } from './validate.ts'

/** The worker's options and its connection to the platform, which each job needs. */
export type Surroundings = {
  options: StartOptions
  config: Config
  client: Client
  /** Sends final results. */
  results: Client
}

/** One job on this worker, from take to delivered result. */
export class JobRun {
  readonly job: Job
  readonly #around: Surroundings
  readonly #cancelled = new AbortController()
  /** Made for the first progress update: an abort makes an exception, and most jobs send no update. */
  #hurry: AbortController | undefined
  #settled = false
  #updates: Promise<unknown> = Promise.resolve()
  #streaming = false
  #warned = false

  /** Prepares the job; `run` starts it. */
  constructor(job: Job, around: Surroundings) {
    this.job = job
    this.#around = around
  }

  /** True if the platform withdrew the job. */
  get cancelled(): boolean {
    return this.#cancelled.signal.aborted
  }

  /** Aborts the signal of the handler and posts nothing more, since the platform finalized the job itself. */
  cancel(): void {
    this.#cancelled.abort()
    this.#settle()
  }

  /** Runs the handler and delivers the result. Never rejects; resolves when all is done. */
  async run(): Promise<void> {
    const final = await asJob(this.job.id, () => this.#handle())
    // From here on updates get no second attempt, and the result waits for the one in flight.
    this.#settle()
    await this.#updates
    if (this.cancelled) return
    const { config, options } = this.#around
    const url = jobUrl(config.outputUrl, this.job.id, this.#streaming)
    const post = { url, body: final.text, jobId: this.job.id, what: 'the result' }
    const limits = { retryMs: options.resultRetryMs ?? 600_000, pauseMs: 5000 }
    await deliver(this.#around.results, post, { ...limits, cancel: this.#cancelled.signal })
  }

  async #handle(): Promise<Final> {
    const { config, options } = this.#around
    const stopPod = options.refreshWorker === true
    const context: Context = { signal: this.#cancelled.signal, progress: value => this.#progress(value) }
    try {
      const value = await options.handler(await checkInput(this.job, options.inputSchema), context)
      if (!isStream(value)) return encodeResult(value, stopPod)
      this.#streaming = true
      return await this.#stream(value, stopPod)
    } catch (error) {
      // An error that a handler throws because its job was withdrawn helps nobody.
      if (!this.cancelled) log.error(failureText(error), this.job)
      return encodeFailure(error, stopPod, config.reported)
    }
  }

  async #stream(values: AsyncIterable<unknown> | Iterable<unknown>, stopPod: boolean): Promise<Final> {
    const keep = this.#around.options.returnAggregateStream === true
    const kept: unknown[] = []
    // Leaving the loop early, also by a throw, closes the generator.
    for await (const value of values) {
      if (this.cancelled) break
      const error = errorIn(value)
      if (error) return encodeResult({ error }, stopPod)
      if (keep) kept.push(value)
      const sent = await this.#chunk(value)
      if (this.cancelled) break
      // A stream with a gap would pass for complete. If the whole list follows, nothing is missing.
      if (!sent && !keep) throw new Error('a stream chunk could not be delivered')
    }
    return encodeResult(kept, stopPod)
  }

  #chunk(value: unknown): Promise<boolean> {
    const { streamUrl } = this.#around.config
    const body = toJson({ output: value ?? null })
    if (streamUrl) {
      const url = jobUrl(streamUrl, this.job.id, false)
      return this.#post(url, body, 'a stream chunk', { retryMs: 60_000, pauseMs: 2000 })
    }
    if (!this.#warned) log('RUNPOD_WEBHOOK_POST_STREAM is not set: chunks are not streamed', { level: 'WARN' })
    this.#warned = true
    return Promise.resolve(true)
  }

  #progress(value: unknown): Promise<void> {
    if (this.#settled) return Promise.resolve()
    let body: string
    try {
      // Encoded now: the handler may change the object before its turn comes.
      body = toJson({ status: 'IN_PROGRESS', output: value ?? null })
    } catch (error) {
      log(`a progress update was not sent: ${error}`, { job: this.job, level: 'ERROR' })
      return Promise.resolve()
    }
    const url = jobUrl(this.#around.config.outputUrl, this.job.id, false)
    this.#hurry ??= new AbortController()
    const hurry = this.#hurry.signal
    const sent = this.#updates.then(() =>
      this.#post(url, body, 'a progress update', { retryMs: 10_000, pauseMs: 1000, hurry }),
    )
    this.#updates = sent
    return sent.then(() => undefined)
  }

  #settle(): void {
    this.#settled = true
    this.#hurry?.abort()
  }

  #post(
    url: string,
    body: string,
    what: Post['what'],
    limits: { retryMs: number; pauseMs: number; hurry?: AbortSignal },
  ): Promise<boolean> {
    const post = { url, body, jobId: this.job.id, what }
    return deliver(this.#around.client, post, { ...limits, cancel: this.#cancelled.signal })
  }
}

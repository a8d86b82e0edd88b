import { type Config, withQuery } from './config.ts'
import { type Client, createClient } from './http.ts'
import { JobRun } from './job.ts'
import { JoinedResults } from './joined-results.ts'
import { log } from './log.ts'
import { listenForStops, startPinging, Taker } from './polls.ts'
import type { Job, StartOptions } from './types.ts'
import { version } from './version.ts'

const graceMs = 2000

/** Takes jobs, runs them and delivers their results until it drains. */
export class Worker {
  readonly #config: Config
  readonly #options: StartOptions
  readonly #held = new Set<JobRun>()
  readonly #backlog: JobRun[] = []
  readonly #draining = new AbortController()
  readonly #giveUp = new AbortController()
  readonly #over = new AbortController()
  #limit: number
  #wake: () => void = () => {}

  /** Prepares a worker of one platform; `run` starts it. */
  constructor(config: Config, options: StartOptions) {
    this.#config = config
    this.#options = options
    this.#limit = typeof options.concurrency === 'number' ? options.concurrency : 1
  }

  /** True if the worker no longer takes jobs. */
  get draining(): boolean {
    return this.#draining.signal.aborted
  }

  /**
   * Stops taking jobs. An open take is withdrawn after a moment, because its answer may already be on its way; a job
   * in such an answer still runs.
   */
  drain(): void {
    if (this.draining) return
    this.#draining.abort()
    setTimeout(() => this.#giveUp.abort(), graceMs).unref()
    this.#wake()
  }

  /** Takes and runs jobs. Resolves once the worker is drained and every result is delivered. */
  async run(): Promise<void> {
    const client = await createClient(this.#config)
    const { pingUrl, pingMs, stopUrl } = this.#config
    const ids = () => Array.from(this.#held, run => run.job.id)
    const taking = this.#takeLoop(client)
    // The first take goes out before all else, because a job may wait for it.
    await new Promise(resolve => setImmediate(resolve))
    if (pingUrl) startPinging(client, pingUrl, pingMs, version, ids)
    if (stopUrl) void listenForStops(client, stopUrl, this.#over.signal, id => this.#stop(id))
    await taking
    while (this.#held.size > 0) await this.#change()
    this.#over.abort()
  }

  async #takeLoop(client: Client): Promise<void> {
    const taker = new Taker(client)
    const results = new JoinedResults(client, this.#config.resultsUrl, () => this.#held.size === 1)
    while (!this.draining) {
      await this.#adoptLimit()
      const free = this.#limit - this.#held.size
      if (free <= 0) {
        await this.#change()
        // Results whose answers came together make room for one take of several jobs.
        await new Promise(resolve => setImmediate(resolve))
      }
      if (free <= 0 || this.draining) continue
      const jobs = await taker.take(this.#takeUrl(free), this.#draining.signal, this.#giveUp.signal)
      for (const job of jobs) this.#accept(job, client, results)
      // The results of quick handlers go before the next take: callers wait for them, and the platform would work on
      // the take first. They are sent at the end of the next turn.
      for (let turn = 0; jobs.length > 0 && turn < 2; turn += 1) await new Promise(resolve => setImmediate(resolve))
    }
  }

  #takeUrl(free: number): string {
    const { batchUrl, takeUrl } = this.#config
    const busy = { job_in_progress: this.#held.size > 0 ? '1' : '0' }
    if (this.#limit === 1 || !batchUrl) return withQuery(takeUrl, busy)
    return withQuery(batchUrl, { batch_size: String(free), ...busy })
  }

  async #adoptLimit(): Promise<void> {
    const { concurrency } = this.#options
    if (typeof concurrency !== 'function') return
    try {
      const next = await concurrency(this.#limit)
      if (!Number.isInteger(next) || next < 1) throw new TypeError(`it returned ${next}, not a whole number from 1`)
      this.#limit = next
    } catch (error) {
      log(`concurrency stays at ${this.#limit}: ${error}`, { job: null, level: 'ERROR' })
    }
  }

  #accept(job: Job, client: Client, results: Client): void {
    if (this.#find(job.id)) {
      log('the platform sent this job again before its end; it runs once', { job, level: 'WARN' })
      return
    }
    const run = new JobRun(job, { options: this.#options, config: this.#config, client, results })
    this.#held.add(run)
    this.#backlog.push(run)
    this.#runNext()
  }

  // Jobs beyond the requested number wait here: the platform assigned them to this worker.
  #runNext(): void {
    while (this.#held.size - this.#backlog.length < this.#limit) {
      const run = this.#backlog.shift()
      if (!run) return
      void run.run().then(() => this.#release(run))
    }
  }

  #release(run: JobRun): void {
    this.#held.delete(run)
    if (this.#options.refreshWorker && !run.cancelled) this.drain()
    this.#runNext()
    this.#wake()
  }

  #stop(jobId: string): boolean {
    const run = this.#find(jobId)
    if (!run) return false
    log('the job was cancelled', { job: jobId })
    run.cancel()
    const place = this.#backlog.indexOf(run)
    if (place >= 0) {
      this.#backlog.splice(place, 1)
      this.#release(run)
    }
    return true
  }

  // The caller may retry a cancelled job, so that it returns before its first handler ends.
  #find(jobId: string): JobRun | undefined {
    return Array.from(this.#held).find(run => run.job.id === jobId && !run.cancelled)
  }

  #change(): Promise<void> {
    return new Promise(resolve => {
      this.#wake = resolve
    })
  }
}

import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { JobRun, RunChecker } from '../checks/run-checker.ts'
import type { Life } from '../life.ts'
import type { Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { Behavior } from './behavior.ts'
import type { Protocol } from './protocol.ts'

/** The input of a simulated job. */
export interface JobInput {
  readonly ms: number
  readonly fail?: boolean
  readonly chunks?: number
  /** True if it ends the process of the worker that runs it. */
  readonly poison?: boolean
}

/** A job that a worker runs. */
export interface HeldJob {
  readonly id: JobId
  readonly input: JobInput
  /** True when its handler has begun. The Python SDK ignores a stop for a job before that. */
  begun: boolean
  /** True if the server requested its stop. */
  stopped: boolean
  /** True if the server may assume that the worker does not have it. */
  maybeUnknown: boolean
}

/** Parts that the handler of a worker uses. */
export interface HandlerParts {
  readonly worker: WorkerId
  readonly behavior: Behavior
  readonly protocol: Protocol
  readonly life: Life
  readonly random: SeededRandom
  readonly runs: RunChecker
  /** Number of the current run of the server. */
  readonly serverRun: () => number
  /** True if the faults are over: slow workers then run at normal speed. */
  readonly calm: () => boolean
  readonly print: (line: string, job: JobId) => void
  /** Counts an event for the statistics. */
  readonly count: (event: string) => void
  readonly exit: (code: number) => void
}

/** Runs jobs and posts their results like one of the SDKs. */
export class Handler {
  readonly #parts: HandlerParts
  #runs = 0

  constructor(parts: HandlerParts) {
    this.#parts = parts
  }

  /** Runs one job to its end. */
  async run(job: HeldJob): Promise<void> {
    const { behavior, life, random, runs, worker } = this.#parts
    const { crash, slowness, posts } = behavior
    this.#runs += 1
    const run = runs.began(job.id, worker, `${worker}-${this.#runs}`)
    await life.sleep(random.int(0, 100))
    job.begun = true
    const durationMs = Math.round(job.input.ms * (this.#parts.calm() ? 1 : slowness))
    if (crash === 'with a job' || crash === 'in a job') {
      await life.sleep(crash === 'in a job' ? Math.round(durationMs * random.fraction()) : 0)
      return this.#parts.exit(134)
    }
    if (job.input.poison === true && !this.#parts.calm()) {
      this.#parts.count('jobs that end their workers')
      await life.sleep(Math.round(durationMs * random.fraction()))
      return this.#parts.exit(9)
    }
    await this.#stream(job, run)
    await life.sleep(durationMs)
    if (job.stopped && behavior.obeysStops) return
    if (posts > 0) await this.#report(job, run)
  }

  /** Sends the chunks of a generator handler, which continues only after its value was sent. */
  async #stream(job: HeldJob, run: JobRun): Promise<void> {
    const { life, random, behavior } = this.#parts
    for (let chunk = 1; chunk <= (job.input.chunks ?? 0); chunk += 1) {
      if (job.stopped && behavior.obeysStops) return
      run.chunks.push({ state: 'sent', twice: false })
      await this.#chunk(job, run, chunk)
      if (chunk === 1) await this.#progress(job.id)
      await life.sleep(random.chance(0.7) ? random.int(0, 30) : random.int(100, 3_000))
    }
  }

  async #chunk(heldJob: HeldJob, run: JobRun, chunk: number): Promise<void> {
    const { job, nonce } = run
    const fate = run.chunks[chunk - 1]!
    const body = JSON.stringify({ output: { job, nonce, chunk } })
    let sentTo = 0
    const onAttempt = (reply: Reply | null) => {
      // A server that did not respond, or has restarted since, cannot recognize the same chunk.
      if (reply !== null && (!reply.ok || this.#parts.serverRun() !== sentTo)) fate.twice = true
      sentTo = this.#parts.serverRun()
    }
    const isStored = await this.#postWithRetries('STREAM', heldJob, body, onAttempt)
    fate.state = isStored ? 'kept' : 'unsure'
  }

  async #progress(job: JobId): Promise<void> {
    const { worker } = this.#parts
    await this.#parts.protocol.post(
      'OUTPUT',
      job,
      JSON.stringify({ status: 'IN_PROGRESS', output: `${worker} is at ${job}` }),
    )
  }

  async #report(job: HeldJob, run: JobRun): Promise<void> {
    const { behavior, random, worker, protocol } = this.#parts
    const { refreshes, posts, crash, lateProgress } = behavior
    const { nonce } = run
    const output = { job: job.id, worker, nonce }
    const items = run.chunks.map((_, index) => ({ ...output, chunk: index + 1 }))
    const stopPod = refreshes && this.#runs % 3 === 0 ? { stopPod: true } : {}
    const error = `the handler has failed in ${JSON.stringify(output)}`
    const result = job.input.fail ? { error } : { output: items.length > 0 ? items : output }
    const body = JSON.stringify({ ...result, ...stopPod })
    this.#parts.print(`finished ${job.id}`, job.id)
    if (crash === 'after a post') {
      void protocol.post('OUTPUT', job.id, body, random.int(0, 15_000))
      return this.#parts.exit(139)
    }
    for (let post = 0; post < posts; post += 1) await this.#postWithRetries('OUTPUT', job, body, () => {})
    if (lateProgress) void this.#progress(job.id)
  }

  /**
   * Posts with the retries of the SDK.
   * @param onAttempt called before each attempt with the last reply; null before the first
   */
  async #postWithRetries(
    kind: 'OUTPUT' | 'STREAM',
    job: HeldJob,
    body: string,
    onAttempt: (previous: Reply | null) => void,
  ): Promise<boolean> {
    const { behavior, protocol, life, random } = this.#parts
    const retriesLong = behavior.sdk === 'runyard'
    let previous: Reply | null = null
    for (let attempt = 1; attempt <= (retriesLong ? 60 : 3); attempt += 1) {
      onAttempt(previous)
      const reply = await protocol.post(kind, job.id, body)
      if (reply.ok && reply.status < 500) return reply.status === 200
      if (!reply.ok && !retriesLong) return false
      previous = reply
      await life.sleep(Math.min(5_000, 1_000 * attempt + random.int(0, 500)))
      // A stopped handler sends nothing more.
      if (job.stopped && behavior.obeysStops) return false
    }
    return false
  }
}

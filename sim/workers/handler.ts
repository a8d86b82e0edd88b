import type { JobId, WorkerId } from '../../src/core/ids.ts'
import type { JobRun, RunChecker } from '../checks/run-checker.ts'
import type { Life } from '../life.ts'
import type { Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { Behaviour } from './behaviour.ts'
import type { Protocol } from './protocol.ts'

/** What a job of the simulation asks for. */
export interface JobInput {
  readonly ms: number
  readonly fail?: boolean
  readonly chunks?: number
  /** Ends the process of whichever worker runs it. */
  readonly poison?: boolean
}

/** A job that a worker has. */
export interface HeldJob {
  readonly id: JobId
  readonly input: JobInput
  /** It was told to stop it. */
  dropped: boolean
  /** The server may rightly believe that the worker has not got it, or has let go of it. */
  excused: boolean
}

/** What the handler of a worker needs. */
export interface Workplace {
  readonly worker: WorkerId
  readonly behaviour: Behaviour
  readonly protocol: Protocol
  readonly life: Life
  readonly random: SeededRandom
  readonly runs: RunChecker
  /** Which start of the server runs now. */
  readonly serverRun: () => number
  /** Whether nothing goes wrong any more: then even the slow get something done. */
  readonly calm: () => boolean
  readonly print: (line: string, job: JobId) => void
  /** Counts something worth knowing. */
  readonly count: (what: string) => void
  readonly exit: (code: number) => void
}

/** Works on jobs and posts what comes of them, in the manner of one of the SDKs. */
export class Handler {
  readonly #at: Workplace
  #runs = 0

  constructor(workplace: Workplace) {
    this.#at = workplace
  }

  /** Works on one job. Returns when nothing of it is left to be done. */
  async run(job: HeldJob): Promise<void> {
    const { behaviour, life, random, runs, worker } = this.#at
    const { crash, slowness, posts } = behaviour
    this.#runs += 1
    const run = runs.began(job.id, worker, `${worker}-${this.#runs}`)
    await life.sleep(random.int(0, 100))
    const durationMs = Math.round(job.input.ms * (this.#at.calm() ? 1 : slowness))
    if (crash === 'with a job' || crash === 'in a job') {
      await life.sleep(crash === 'in a job' ? Math.round(durationMs * random.fraction()) : 0)
      return this.#at.exit(134)
    }
    if (job.input.poison === true && !this.#at.calm()) {
      this.#at.count('jobs that end their workers')
      await life.sleep(Math.round(durationMs * random.fraction()))
      return this.#at.exit(9)
    }
    await this.#stream(job, run)
    await life.sleep(durationMs)
    if (job.dropped && behaviour.obeysStops) return
    if (posts > 0) await this.#report(job, run)
  }

  /** A generator goes on only when its value was sent. */
  async #stream(job: HeldJob, run: JobRun): Promise<void> {
    const { life, random, behaviour } = this.#at
    for (let chunk = 1; chunk <= (job.input.chunks ?? 0); chunk += 1) {
      if (job.dropped && behaviour.obeysStops) return
      run.chunks.push({ state: 'sent', twice: false })
      await this.#chunk(job, run, chunk)
      if (chunk === 1) await this.#progress(job.id)
      await life.sleep(random.chance(0.7) ? random.int(0, 30) : random.int(100, 3_000))
    }
  }

  async #chunk(held: HeldJob, run: JobRun, chunk: number): Promise<void> {
    const { job, nonce } = run
    const fate = run.chunks[chunk - 1]!
    const body = JSON.stringify({ output: { job, nonce, chunk } })
    let sentTo = 0
    const again = (reply: Reply | null) => {
      // A server that has not answered, or is another one now, cannot know that it is the same chunk.
      if (reply !== null && (!reply.ok || this.#at.serverRun() !== sentTo)) fate.twice = true
      sentTo = this.#at.serverRun()
    }
    const isKept = await this.#insist('STREAM', held, body, again)
    fate.state = isKept ? 'kept' : 'unsure'
  }

  async #progress(job: JobId): Promise<void> {
    const { worker } = this.#at
    await this.#at.protocol.post(
      'OUTPUT',
      job,
      JSON.stringify({ status: 'IN_PROGRESS', output: `${worker} is at ${job}` }),
    )
  }

  async #report(job: HeldJob, run: JobRun): Promise<void> {
    const { behaviour, random, worker, protocol } = this.#at
    const { refreshes, posts, crash, lateProgress } = behaviour
    const { nonce } = run
    const output = { job: job.id, worker, nonce }
    const items = run.chunks.map((_, index) => ({ ...output, chunk: index + 1 }))
    const stopPod = refreshes && this.#runs % 3 === 0 ? { stopPod: true } : {}
    const error = `the handler has failed in ${JSON.stringify(output)}`
    const result = job.input.fail ? { error } : { output: items.length > 0 ? items : output }
    const body = JSON.stringify({ ...result, ...stopPod })
    this.#at.print(`finished ${job.id}`, job.id)
    if (crash === 'after a post') {
      void protocol.post('OUTPUT', job.id, body, random.int(0, 15_000))
      return this.#at.exit(139)
    }
    for (let time = 0; time < posts; time += 1) await this.#insist('OUTPUT', job, body, () => {})
    if (lateProgress) void this.#progress(job.id)
  }

  /** Tries as often as the SDK does. @param sending is told of the answer before, null at the first time */
  async #insist(
    kind: 'OUTPUT' | 'STREAM',
    job: HeldJob,
    body: string,
    sending: (before: Reply | null) => void,
  ): Promise<boolean> {
    const { behaviour, protocol, life, random } = this.#at
    const insists = behaviour.sdk === 'runyard'
    let before: Reply | null = null
    for (let attempt = 1; attempt <= (insists ? 60 : 3); attempt += 1) {
      sending(before)
      const reply = await protocol.post(kind, job.id, body)
      if (reply.ok && reply.status < 500) return reply.status === 200
      if (!reply.ok && !insists) return false
      before = reply
      await life.sleep(Math.min(5_000, 1_000 * attempt + random.int(0, 500)))
      // A handler that is stopped sends nothing more.
      if (job.dropped && behaviour.obeysStops) return false
    }
    return false
  }
}

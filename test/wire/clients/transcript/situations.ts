/** Brings jobs into the situations of the rows, by speaking for a worker, and cleans up behind them. */
import { ask, makeEndpoint, submit, whenStatus } from '../../support/client.ts'
import { type RawWorker, silentEndpoint } from '../../support/raw-worker.ts'
import { fixture, type Server } from '../../support/server.ts'
import { sleep, until } from '../../support/until.ts'
import type { Meanwhile, Situation } from './row.ts'

/** Those that time makes are made beforehand, as many as rows want at most. */
const MADE_BEFORE = 12
/** Delay of such an action, so that the request is held by then. */
const PAUSE_MS = 200

const CHUNKS = [{ output: 'one' }, { output: { n: 2 }, metrics: { tokens: 3 } }]

/** A server with the endpoints of the rows. */
export class Stage {
  readonly server: Server
  /** Its one worker takes what a row wants it to take and nothing else. */
  queue = ''
  balancer = ''
  /** Another queue, without workers. */
  other = ''
  #worker!: RawWorker
  #nextWorker!: () => Promise<RawWorker>
  readonly #held = new Set<string>()
  readonly #timedOut: string[] = []
  readonly #expired: string[] = []

  constructor(server: Server) {
    this.server = server
  }

  async build(): Promise<void> {
    const { id, worker } = await silentEndpoint(this.server)
    this.queue = id
    this.#nextWorker = worker
    this.#worker = await worker()
    const folder = fixture('silent-worker')
    this.other = await makeEndpoint(this.server, { folder, settings: { workersMax: 0 } })
    this.balancer = await makeEndpoint(this.server, { folder, settings: { type: 'LB', workersMax: 0 } })
    for (let count = 0; count < MADE_BEFORE; count += 1) {
      this.#timedOut.push(await submit(this.server, id, {}, { policy: { executionTimeout: 5_000 } }))
      await this.#worker.take(true)
      const job = await submit(this.server, this.other, {})
      await ask(this.server, `/v2/${this.other}/status/${job}?ttl=1000`)
      this.#expired.push(job)
    }
    for (const job of this.#timedOut) {
      await whenStatus(this.server, id, job, ['TIMED_OUT'])
      await this.#worker.done(job, {})
    }
  }

  /** A job in this situation; of {@link queue}, or of another endpoint where that is the situation. */
  async job(situation: Situation): Promise<string> {
    if (situation === 'timed out') return this.#timedOut.pop()!
    if (situation === 'expired') return this.#expired.pop()!
    if (situation === 'foreign') return submit(this.server, this.other, {})
    const job = await submit(this.server, this.queue, {})
    if (situation !== 'queued' && situation !== 'cancelled') await this.#take()
    await this.#bring(job, situation)
    return job
  }

  async #bring(job: string, situation: Situation): Promise<void> {
    if (situation === 'progress') await this.#worker.done(job, { status: 'IN_PROGRESS', output: { percent: 50 } })
    if (situation === 'completed') await this.#done(job, { output: { a: 1 } })
    if (situation === 'no output') await this.#done(job, {})
    if (situation === 'nan') await this.#done(job, '{"output": [NaN, 1]}')
    if (situation === 'failed') await this.#done(job, { error: 'boom' })
    if (situation.startsWith('cancelled')) await this.#cancel(job)
    if (situation === 'lost once') {
      // A worker that has lost a job is replaced, and another one gets the job.
      await this.#worker.takeAnswer(false)
      this.#worker = await this.#nextWorker()
      const again = await this.#worker.take(true)
      await this.#done(again.id, { output: 2 })
    }
    if (situation.startsWith('chunk')) for (const chunk of CHUNKS) await this.#worker.chunk(job, chunk)
    if (situation === 'chunk, completed' || situation === 'generator done') await this.#done(job, { output: [] })
    if (situation === 'chunk, failed') await this.#done(job, { error: 'boom' })
  }

  /** Does it after a moment, with this job or, where a request makes the job, with the next one. */
  async meanwhile(what: Meanwhile, job: string): Promise<void> {
    await sleep(PAUSE_MS)
    const id = job === '' ? await this.#take() : job
    if (what === 'finishes it') await this.#done(id, { output: { a: 1 } })
    if (what === 'fails it') await this.#done(id, { error: 'boom' })
    if (what === 'takes it, then it is cancelled') await this.#cancel(id)
    if (what === 'yields a chunk') await this.#worker.chunk(id, { output: 'late' })
  }

  /** Leaves no job in the queue or with the worker. */
  async clear(): Promise<void> {
    for (const job of this.#held) await this.#done(job, { output: null })
    await ask(this.server, `/v2/${this.queue}/purge-queue`, { method: 'POST' })
    const idle = async () => (await ask(this.server, `/v2/${this.queue}/health`)).json.workers.idle === 1
    await until('the worker to be idle', idle, 5_000, 5)
  }

  async #take(): Promise<string> {
    const { id } = await this.#worker.take(true)
    this.#held.add(id)
    return id
  }

  async #done(job: string, result: unknown): Promise<void> {
    await this.#worker.done(job, result)
    this.#held.delete(job)
  }

  async #cancel(job: string): Promise<void> {
    await ask(this.server, `/v2/${this.queue}/cancel/${job}`, { method: 'POST' })
  }
}

/**
 * Whatever happens to jobs and workers, what the store has counted is what a small model counts that keeps a list of
 * attempts and waits and knows nothing of how the store does it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HOUR_MS, hourStart, type JobUsage, NO_JOB_USAGE } from '../../src/core/billing/usage.ts'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { type Job, MAX_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import {
  BROKEN,
  DONE,
  E1,
  E2,
  EXIT,
  makeEndpoint,
  makeJob,
  makeTemplate,
  makeWorker,
  OWNER,
  T0,
  TPL,
} from '../contract/store-world.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'

const ENDPOINTS: readonly EndpointId[] = [E1, E2]
const JOBS = ['a', 'short'] as const
const WORKERS = ['v', 'w'] as const
const TIMEOUT_MS = makeJob('x').executionTimeoutMs
const BOUNDS = [hourStart(T0), hourStart(T0) + 100 * HOUR_MS]

/** A step: what happens, to which of the jobs, workers and endpoints, and how long after the step before. */
const step = fc.record({
  what: fc.constantFrom(
    ...([
      'submit',
      'submit',
      'submit',
      'claim',
      'claim',
      'claim',
      'chunk',
      'finish',
      'finish',
      'break',
      'lose',
      'release',
    ] as const),
    ...(['cancel', 'retry', 'purge', 'sweep', 'expire', 'replace', 'count'] as const),
  ),
  job: fc.constantFrom(...JOBS),
  worker: fc.constantFrom(...WORKERS),
  endpoint: fc.constantFrom(0, 1),
  afterMs: fc.oneof(
    { weight: 9, arbitrary: fc.nat(800) },
    { weight: 1, arbitrary: fc.nat(12_000) },
    { weight: 1, arbitrary: fc.constant(HOUR_MS) },
  ),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** State of a job in the model. */
interface ModelJob {
  state: 'waiting' | 'running' | 'ended'
  sinceMs: number
  startedMs: number
  chunks: number
  lost: number
}

/** Plays the same on a store and on the model. */
class Play {
  readonly #store: Store
  readonly #jobs = new Map<string, ModelJob>()
  readonly #bytes = Buffer.byteLength(makeJob('x').input)
  readonly counted: Record<string, Record<keyof JobUsage, number>> = {
    [E1]: { ...NO_JOB_USAGE },
    [E2]: { ...NO_JOB_USAGE },
  }
  /** Time of workers in all. */
  readonly bornMs = new Map<string, number>()
  workerMs = 0
  nowMs = T0
  #made = 0
  readonly #workerIds = new Map<string, WorkerId>()

  constructor(store: Store) {
    this.#store = store
  }

  async begin(): Promise<void> {
    await this.#store.templates.insert(makeTemplate(TPL))
    for (const id of ENDPOINTS) {
      await this.#store.endpoints.insert(makeEndpoint(id, { workersMax: 10 }))
      for (const name of WORKERS) await this.#start(id, name)
    }
  }

  async #start(endpointId: EndpointId, name: string): Promise<void> {
    this.#made += 1
    const id = `${endpointId}-${name}-${this.#made}` as WorkerId
    this.#workerIds.set(`${endpointId}-${name}`, id)
    this.bornMs.set(id, this.nowMs)
    await this.#store.workers.insert(makeWorker(id, { endpointId, createdAtMs: this.nowMs }), id)
  }

  async step({ what, job: name, worker: workerName, endpoint, afterMs }: Step): Promise<void> {
    this.nowMs += afterMs
    const endpointId = ENDPOINTS[endpoint]!
    const jobId = `${endpointId}-${name}` as Job['id']
    const workerId = this.#workerIds.get(`${endpointId}-${workerName}`)!
    const { jobs, jobOutcomes, streams, workers, usage } = this.#store
    const { nowMs } = this
    if (what === 'submit') {
      if (this.#jobs.has(jobId)) return
      const times = {
        position: nowMs,
        queuedAtMs: nowMs,
        expiresAtMs: nowMs + (name === 'short' ? 15_000 : 30 * HOUR_MS),
      }
      await jobs.insert(makeJob(jobId, { endpointId, ...times }))
      this.#jobs.set(jobId, { state: 'waiting', sinceMs: nowMs, startedMs: 0, chunks: 0, lost: 0 })
    } else if (what === 'claim') {
      for (const { id } of (await jobs.claim({ endpointId, workerId, limit: 1, nowMs })).jobs) {
        Object.assign(this.#jobs.get(id)!, { state: 'running', startedMs: nowMs, chunks: 0 })
      }
    } else if (what === 'chunk') {
      if (await streams.append(jobId, workerId, ['"chunk"'], 1_000, 0)) this.#jobs.get(jobId)!.chunks += 7
    } else if (what === 'finish' || what === 'break') {
      const outcome = what === 'finish' ? DONE : BROKEN
      if ((await jobOutcomes.finish({ jobId, workerId, outcome, nowMs })) === null) return
      this.#ends(jobId, what === 'finish' ? 'completed' : 'failed')
      if (what === 'finish') this.counted[endpointId]!.outputBytes += Buffer.byteLength(DONE.output!)
    } else if (what === 'lose' || what === 'replace') {
      for (const { job } of await jobOutcomes.requeueLost(workerId, 'it was lost', nowMs)) this.#loses(job.id)
      if (what === 'lose') return
      await workers.exited(workerId, EXIT, nowMs)
      this.workerMs += nowMs - this.bornMs.get(workerId)!
      this.bornMs.delete(workerId)
      await this.#start(endpointId, workerName)
    } else if (what === 'release') {
      for (const { job } of await jobOutcomes.release(workerId, 'all')) this.#jobs.get(job.id)!.state = 'waiting'
    } else if (what === 'cancel') {
      if ((await jobOutcomes.cancel(endpointId, jobId, nowMs)) !== null) this.#ends(jobId, 'cancelled')
    } else if (what === 'retry') {
      if ((await jobOutcomes.retry(endpointId, jobId, nowMs, nowMs)) === null) return
      this.counted[endpointId]!.retried += 1
      Object.assign(this.#jobs.get(jobId)!, { state: 'waiting', sinceMs: nowMs, lost: 0 })
    } else if (what === 'purge') {
      const { moves } = await jobOutcomes.purge(endpointId, nowMs, 2, await jobOutcomes.waiting(endpointId))
      for (const { job } of moves) this.#ends(job.id, 'cancelled')
    } else if (what === 'sweep') {
      for (const { job } of await jobOutcomes.timeOutOverdue(nowMs, 2)) {
        assert.ok(nowMs - this.#jobs.get(job.id)!.startedMs >= TIMEOUT_MS)
        this.#ends(job.id, 'timedOut')
      }
    } else if (what === 'expire') {
      for (const { job } of (await jobOutcomes.removeExpired(nowMs, 2)).jobs) {
        if (this.#jobs.get(job.id)!.state !== 'ended') this.#ends(job.id, 'expired')
        this.#jobs.delete(job.id)
      }
    } else await usage.countWorkers(nowMs, nowMs - 1_000, 1)
  }

  #attempt(id: string): Record<keyof JobUsage, number> {
    const job = this.#jobs.get(id)!
    const sums = this.counted[id.split('-')[0]!]!
    sums.attempts += 1
    sums.queuedMs += job.startedMs - job.sinceMs
    sums.inputBytes += this.#bytes
    sums.streamBytes += job.chunks
    return sums
  }

  #ends(id: string, how: keyof JobUsage): void {
    const job = this.#jobs.get(id)!
    if (job.state === 'running') this.#attempt(id).executionMs += this.nowMs - job.startedMs
    else this.counted[id.split('-')[0]!]!.queuedMs += this.nowMs - job.sinceMs
    this.counted[id.split('-')[0]!]![how] += 1
    job.state = 'ended'
  }

  #loses(id: string): void {
    const job = this.#jobs.get(id)!
    const sums = this.#attempt(id)
    sums.lostMs += this.nowMs - job.startedMs
    sums.lostAttempts += 1
    job.lost += 1
    const over = job.lost >= MAX_LOST_ATTEMPTS
    if (over) sums.failed += 1
    Object.assign(job, { state: over ? 'ended' : 'waiting', sinceMs: this.nowMs })
  }
}

async function compare(store: Store, steps: readonly Step[]): Promise<void> {
  const play = new Play(store)
  await play.begin()
  for (const one of steps) await play.step(one)
  const asked = { owner: OWNER, endpointId: null, bounds: BOUNDS }
  const { sums } = await store.usage.jobs(asked)
  const found = Object.fromEntries(sums.map(({ endpointId, usage }) => [endpointId, usage]))
  assert.deepEqual({ [E1]: { ...NO_JOB_USAGE }, [E2]: { ...NO_JOB_USAGE }, ...found }, play.counted)
  const time = (await store.usage.workers(asked, play.nowMs)).sums
  const countedMs = time.reduce(
    (sum, { usage }) => sum + usage.startingMs + usage.runningMs + usage.idleMs + usage.frozenMs,
    0,
  )
  const alive = [...play.bornMs.values()].reduce((sum, bornMs) => sum + play.nowMs - bornMs, 0)
  assert.equal(countedMs, play.workerMs + alive)
}

const steps = fc.array(step, { maxLength: 120, size: 'max' })

test('SQLite: what is counted is what has happened, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async taken => {
      const store = await openSqliteStore({ file: ':memory:', host: 'inline' })
      try {
        await compare(store, taken)
      } finally {
        await store.close()
      }
    }),
    { numRuns: 300 },
  )
})

test('PostgreSQL: what is counted is what has happened, whatever happens', { skip: noPostgres }, async () => {
  await fc.assert(
    fc.asyncProperty(steps, async taken => {
      const schema = await testSchema()
      const store = await openPostgresStore({ url: schema.url })
      try {
        await compare(store, taken)
      } finally {
        await store.close()
        await schema.drop()
      }
    }),
    { numRuns: 10 },
  )
})

/** Applies a list of steps to the real control plane and to the model, and compares them after each step. */
import assert from 'node:assert/strict'
import type { EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { Answer, Rig, RigWorker } from '../support/rig.ts'
import { JobModel, type ModelJob, TIMEOUT_SLACK_MS, type Wish } from './job-model.ts'

/** One step of a client, a worker or a fault. Numbers choose among the existing jobs and workers. */
export type Step =
  | { readonly do: 'run'; readonly wish: Wish }
  | { readonly do: 'runsync'; readonly wish: Wish }
  | { readonly do: 'cancel' | 'retry' | 'expire'; readonly job: number }
  | { readonly do: 'purge' }
  | { readonly do: 'read'; readonly job: number; readonly delivered: boolean }
  | { readonly do: 'take'; readonly worker: number; readonly batch: number | null; readonly delivered: boolean }
  | { readonly do: 'forget'; readonly worker: number }
  | { readonly do: 'done'; readonly job: number; readonly by: By; readonly ok: boolean }
  | { readonly do: 'chunk' | 'progress'; readonly job: number; readonly by: By; readonly value: number }
  | { readonly do: 'lose'; readonly worker: number }
  | { readonly do: 'watch'; readonly job: number }
  | { readonly do: 'pass'; readonly ms: number }

/** The worker that posts: the holder or last holder of the job, or another one. */
export type By = 'holder' | 'stranger'

const WORKERS = 3
const MOST_JOBS = 5
const LOSS_MS = 50
const SDK = { 'user-agent': 'RunPod-Python-SDK/1.12.0 (test)' }

interface Watcher {
  readonly id: string
  readonly endsAt: number
  answer: Answer | null
}

/** One run on a new endpoint. */
export class Runner {
  readonly #rig: Rig
  readonly #model = new JobModel()
  readonly #watchers: Watcher[] = []
  readonly #rigWorkers = new Map<WorkerId, RigWorker>()
  #endpoint!: EndpointId

  constructor(rig: Rig) {
    this.#rig = rig
  }

  /** @throws AssertionError at the first step after which the two differ */
  async run(steps: readonly Step[]): Promise<void> {
    const { clock } = this.#rig
    this.#endpoint = await this.#rig.endpoint({ workersMin: WORKERS, workersMax: WORKERS })
    await clock.advance(100)
    for (const step of steps) {
      this.#model.nowMs = clock.now()
      await this.#step(step)
      await clock.settle()
      await this.#compare()
    }
    for (const { id } of this.#model.jobs.values()) await this.#read(id, true)
    await this.#pass(60_000)
    await this.#compare()
    await this.#rig.change(this.#endpoint, { workersMin: 0, workersMax: 0 })
    await this.#rig.graphql('mutation ($id: String!) { deleteEndpoint(id: $id) }', { id: this.#endpoint })
    await clock.advance(1_000)
    assert.ok(
      this.#watchers.every(({ answer }) => answer !== null),
      'who waited was not answered at the end of the endpoint',
    )
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'run':
      case 'runsync':
        return this.#model.jobs.size < MOST_JOBS ? this.#submit(step.wish) : undefined
      case 'purge': {
        const { json } = await this.#client('POST', 'purge-queue')
        return assert.deepEqual(json, { removed: this.#model.purge(), status: 'completed' })
      }
      case 'take':
        return this.#take(step)
      case 'forget':
        return this.#forget(step.worker)
      case 'lose':
        return this.#lose(step.worker)
      case 'pass':
        return this.#pass(step.ms)
      default:
        return this.#withJob(step)
    }
  }

  async #withJob(step: Extract<Step, { job: number }>): Promise<void> {
    const job = this.#pick(step)
    if (job === undefined) return
    switch (step.do) {
      case 'cancel':
      case 'retry': {
        const { status } = await this.#client('POST', `${step.do}/${job.id}`)
        return assert.equal(status, this.#model[step.do](job), `${step.do} of a job that was ${job.status}`)
      }
      case 'expire':
        await this.#client('GET', `status/${job.id}?ttl=3000`)
        return this.#model.setTtl(job, 3_000)
      case 'read':
        return this.#read(job.id, step.delivered)
      case 'watch':
        return this.#watch(job)
      default:
        return this.#post(step, job)
    }
  }

  async #read(id: string, delivered: boolean): Promise<void> {
    const { json } = await this.#client('GET', `stream/${id}?wait=0`, delivered)
    assert.deepEqual(json, this.#model.stream(this.#model.jobs.get(id)!, delivered))
  }

  /** Picks a job, mostly one that the step can change. */
  #pick(step: Extract<Step, { job: number }>): ModelJob | undefined {
    const all = [...this.#model.jobs.values()]
    const fitting = all.filter(job => {
      if (step.do === 'read') return job.chunks.length > job.streamed
      if (step.do === 'retry') return job.status === 'FAILED' || job.status === 'TIMED_OUT'
      return job.status === 'IN_PROGRESS' || (step.do === 'done' && job.worker !== null)
    })
    const jobs = step.job % 4 === 0 || fitting.length === 0 ? all : fitting
    return jobs[step.job % jobs.length]
  }

  async #submit(wish: Wish): Promise<void> {
    const policy = { ttl: wish.ttlMs, executionTimeout: wish.timeoutMs, lowPriority: wish.lowPriority }
    const path = wish.kind === 'run' ? 'run' : 'runsync?wait=1000'
    const asked = this.#client('POST', path, true, { input: {}, policy })
    await this.#rig.clock.settle()
    const accepted = this.#rig.happened('job.accepted').at(-1)!
    this.#model.submit(accepted.jobId, wish)
    if (wish.kind === 'runsync') await this.#pass(1_000)
    const { status, json } = await asked
    assert.deepEqual([status, json.id, json.status], [200, accepted.jobId, 'IN_QUEUE'])
  }

  async #take({ worker: index, batch, delivered }: Extract<Step, { do: 'take' }>): Promise<void> {
    const worker = await this.#worker(index)
    if (worker === null) return
    const busy = this.#model.heldBy(worker.id).length > 0
    // A job that was retried while this worker still ran it goes to other workers until it stops, as a take
    // without jobs says that it has.
    const stops = new Set(busy ? await this.#rig.store.stops.pending(worker.id) : [])
    const gone = new AbortController()
    const how = batch === null ? {} : { batch }
    const asked = worker.take({ ...how, busy, delivered, signal: gone.signal, headers: SDK })
    await this.#rig.clock.settle()
    gone.abort()
    const { status, json } = await asked
    await this.#rig.clock.settle()
    const line = this.#model.line().filter(({ id }) => !stops.has(id as JobId))
    const taken: { id: string }[] = status === 204 ? [] : batch === null ? [json] : json
    const isSuspect = ({ lost }: { lost: number }) => lost >= 2
    const held = this.#model.heldBy(worker.id)
    const first = line.find(isSuspect)
    // A suspect runs alone. A worker may wait for it, or may have to stop a job that is not in the model.
    const isAlone = first !== undefined && taken.length === 1 && taken[0]?.id === first.id
    if (isAlone) assert.deepEqual(held, [], 'a suspect is dispatched to a worker without jobs')
    if (held.some(isSuspect)) assert.deepEqual(taken, [], 'no job is dispatched beside a suspect')
    const least = first === undefined && !held.some(isSuspect) ? Math.min(1, line.length) : 0
    assert.ok(taken.length <= (batch ?? 1) && taken.length >= least, `${taken.length} were taken`)
    const heads = isAlone ? [first] : line.filter(job => !isSuspect(job)).slice(0, taken.length)
    assert.deepEqual(
      taken.map(({ id }) => id),
      heads.map(({ id }) => id),
      'the head of the line is handed out first',
    )
    for (const job of heads) {
      this.#model.claim(job, worker.id)
      if (!delivered) this.#model.release(job)
    }
  }

  /** A worker with jobs takes and reports no job: its jobs are lost, and the worker is replaced. */
  async #forget(index: number): Promise<void> {
    const worker = await this.#worker(index, true)
    if (worker === null) return
    const gone = new AbortController()
    const asked = worker.take({ busy: false, signal: gone.signal, headers: SDK })
    await this.#rig.clock.settle()
    this.#model.lose(worker.id)
    gone.abort()
    assert.equal((await asked).status, 204, 'it gets no more jobs')
    await this.#rig.clock.settle()
  }

  async #lose(index: number): Promise<void> {
    const worker = (await this.#worker(index, true)) ?? (await this.#worker(index))
    if (worker === null) return
    this.#rig.fleet.exit(worker.id, { code: 1 })
    await this.#rig.clock.advance(LOSS_MS)
    // Nothing else happened since the end of the worker.
    const endedAt = this.#model.nowMs
    this.#model.lose(worker.id)
    for (const job of this.#model.jobs.values()) {
      if (job.endedAt !== endedAt || !(job.error instanceof RegExp)) continue
      const { executionTime, delayTime } = (await this.#rig.status(this.#endpoint, job.id as JobId)).json
      const end = job.queuedAt + delayTime + executionTime
      assert.ok(end >= endedAt && end <= endedAt + LOSS_MS)
      job.expiresAt += end - endedAt
      job.endedAt = end
    }
    await this.#pass(0)
  }

  async #post(step: Extract<Step, { by: By }>, job: ModelJob): Promise<void> {
    const poster = await this.#poster(step.by, job)
    if (poster === null) return
    const id = job.id as JobId
    // A result of an ended worker counts only for a job that no other worker has got since.
    const isEnded = (await poster.record()).state === 'EXITED'
    const late = !isEnded || job.worker === poster.id ? 200 : 401
    if (step.do === 'done') {
      const result = step.ok ? { output: { of: poster.id } } : { error: 'boom' }
      assert.equal((await poster.done(id, result)).status, late)
      this.#model.finish(job, poster.id, result)
    } else if (step.do === 'chunk') {
      assert.equal((await poster.chunk(id, { output: step.value })).status, isEnded ? 401 : 200)
      if (!isEnded) this.#model.chunk(job, poster.id, step.value)
    } else {
      assert.equal((await poster.done(id, { status: 'IN_PROGRESS', output: step.value })).status, late)
      this.#model.report(job, poster.id, step.value)
    }
  }

  async #poster(by: By, job: ModelJob): Promise<RigWorker | null> {
    if (by === 'holder') return this.#rigWorkers.get(job.worker as WorkerId) ?? null
    await this.#worker(0)
    return [...this.#rigWorkers.values()].find(({ id }) => id !== job.worker) ?? null
  }

  #watch(job: ModelJob): void {
    if (this.#watchers.length >= 4) return
    const waitMs = 120_000
    const watcher: Watcher = { id: job.id, endsAt: this.#model.nowMs + waitMs, answer: null }
    this.#watchers.push(watcher)
    void this.#client('GET', `status-sync/${job.id}?wait=${waitMs}`).then(answer => (watcher.answer = answer))
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.#rig
    await clock.advance(ms)
    this.#model.nowMs = clock.now()
    while (this.#model.unsettled().length > 0) {
      await clock.advance(TIMEOUT_SLACK_MS)
      this.#model.nowMs = clock.now()
    }
    const times = new Map<string, number | null>()
    for (const { id } of this.#model.jobs.values()) {
      const { json } = await this.#rig.status(this.#endpoint, id as JobId)
      times.set(id, json.executionTime ?? null)
    }
    this.#model.settle(job => times.get(job.id) ?? null)
  }

  async #worker(index: number, holding = false): Promise<RigWorker | null> {
    const running = new Set(this.#rig.fleet.running())
    const alive = (await this.#rig.alive(this.#endpoint)).filter(({ id }) => running.has(id))
    for (const { id } of alive) {
      if (this.#rigWorkers.has(id)) continue
      this.#rigWorkers.set(id, this.#rig.worker(this.#rig.fleet.started.findIndex(({ workerId }) => workerId === id)))
    }
    const takers = alive.filter(({ id, state }) => {
      return (state === 'STARTING' || state === 'READY') && (!holding || this.#model.heldBy(id).length > 0)
    })
    return this.#rigWorkers.get(takers[index % takers.length]?.id as WorkerId) ?? null
  }

  async #compare(): Promise<void> {
    const model = this.#model
    for (const job of model.jobs.values()) {
      const { status, json } = await this.#rig.status(this.#endpoint, job.id as JobId)
      const { error, ...rest } = json
      const { error: wanted, ...view } = model.view(job)
      assert.deepEqual([status, rest], [200, view])
      if (wanted instanceof RegExp) assert.match(error, wanted)
      else assert.equal(error, wanted)
    }
    for (const id of model.removed) assert.equal((await this.#rig.status(this.#endpoint, id as JobId)).status, 404)
    const jobs = [...model.jobs.values()]
    const inProgress = jobs.filter(({ status }) => status === 'IN_PROGRESS').length
    const counters = { ...model.counters, inProgress, inQueue: model.line().length }
    assert.deepEqual((await this.#rig.health(this.#endpoint)).jobs, counters)
    this.#compareWatchers()
  }

  /** A long poll for a job ends when the job is final or removed, or when its time is over, and not before. */
  #compareWatchers(): void {
    for (const { id, answer, endsAt } of this.#watchers) {
      if (answer === null) {
        const status = this.#model.jobs.get(id)?.status
        assert.ok(status === 'IN_QUEUE' || status === 'IN_PROGRESS', `who waits for a ${status} job is not answered`)
        assert.ok(this.#model.nowMs < endsAt + TIMEOUT_SLACK_MS)
      } else if (answer.json.status === 'IN_QUEUE' || answer.json.status === 'IN_PROGRESS') {
        assert.ok(this.#model.nowMs >= endsAt, 'the response came too early')
      }
    }
  }

  #client(method: string, path: string, delivered = true, body?: object): Promise<Answer> {
    const with_ = body === undefined ? {} : { body }
    return this.#rig.ask(method, `/v2/${this.#endpoint}/${path}`, { delivered, ...with_ })
  }
}

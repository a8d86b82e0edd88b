/**
 * A platform that gives places, withholds them and takes workers away at any moment, and crashes of
 * the control plane beside it.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { EndpointId, JobId, WorkerId } from '../../../src/core/ids.ts'
import type { ReportedPlace, WaitForPlace } from '../../../src/core/workers/platform-report.ts'
import { randomSeed } from '../../support/random-seed.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const FIELDS = { instanceIds: undefined, gpuIds: 'ADA_24', scalerType: 'REQUEST_COUNT', scalerValue: 1, workersMax: 4 }
const NODE: ReportedPlace = { node: 'n1', gpuType: 'NVIDIA GeForce RTX 4090', gpuCount: 1 }
const WAITS: readonly WaitForPlace[] = (['no_room', 'no_such_node', 'platform_quota', 'platform_away'] as const).map(
  kind => ({ kind, said: '' }),
)
const LOST = { kind: 'node_lost', node: 'n1', said: '' } as const
const DRAINED = { kind: 'node_drained', node: 'n1', said: '' } as const

const STEP = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ do: 'submit' } as const) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(50, 1_100, 7_000, 40_000) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('work' as const, 'finish' as const), which: fc.nat(3) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('place' as const, 'wait' as const, 'leave' as const, 'reclaim' as const),
      which: fc.nat(7),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'crash' } as const) },
)
type Step = typeof STEP extends fc.Arbitrary<infer Of> ? Of : never

/** One run: the actions of the platform and the programs, and the invariants during them. */
class Run {
  readonly #rig: Rig
  readonly #id: EndpointId
  readonly jobs: JobId[] = []
  /** Job that each program runs: a program does not depend on the view of the server. */
  readonly #running = new Map<JobId, RigWorker>()

  constructor(rig: Rig, id: EndpointId) {
    this.#rig = rig
    this.#id = id
  }

  async step(step: Step): Promise<void> {
    const { fleet } = this.#rig
    await this.#rig.clock.advance(1_100)
    if (step.do === 'submit') this.jobs.push(await this.#rig.submit(this.#id))
    else if (step.do === 'pass') await this.#rig.clock.advance(step.ms)
    else if (step.do === 'work') await this.#work(step.which)
    else if (step.do === 'finish') await this.#finish(step.which)
    else if (step.do === 'crash') {
      await this.#rig.crash()
      await this.#rig.start()
    } else {
      const worker = fleet.running()[step.which]
      if (worker === undefined) return
      if (step.do === 'place') fleet.place(worker, NODE)
      if (step.do === 'wait') fleet.wait(worker, WAITS[step.which % WAITS.length]!)
      if (step.do === 'leave') fleet.leave(worker, DRAINED)
      if (step.do === 'reclaim') this.#reclaim(worker)
    }
    await this.check()
  }

  /** A program that has a place takes a job, if it holds no job. */
  async #work(which: number): Promise<void> {
    const worker = await this.#programs(which)
    if (worker === null || [...this.#running.values()].some(({ id }) => id === worker.id)) return
    // Without a job it would wait for one for long.
    if ((await this.#rig.health(this.#id)).jobs.inQueue === 0) return
    let isOver = false
    const answering = worker.take().finally(() => {
      isOver = true
    })
    for (let waitedMs = 0; !isOver && waitedMs < 26_000; waitedMs += 1_000) await this.#rig.clock.advance(1_000)
    const { status, json } = await answering
    if (status !== 200) return
    assert.equal(this.#running.get(json.id)?.id, undefined, `job ${json.id} runs twice`)
    this.#running.set(json.id, worker)
  }

  async #finish(which: number): Promise<void> {
    const [job, worker] = [...this.#running][which] ?? []
    if (job === undefined || worker === undefined) return
    this.#running.delete(job)
    await worker.done(job)
  }

  #reclaim(worker: WorkerId): void {
    for (const [job, { id }] of this.#running) if (id === worker) this.#running.delete(job)
    this.#rig.fleet.reclaim(worker, LOST)
  }

  /** The program of a worker that has a place. */
  async #programs(which: number): Promise<RigWorker | null> {
    const ids = this.#rig.fleet.running().filter(id => this.#rig.fleet.isPlaced(id))
    const id = ids[which % Math.max(1, ids.length)]
    const index = this.#rig.fleet.started.findIndex(({ workerId }) => workerId === id)
    return index < 0 ? null : this.#rig.worker(index)
  }

  async check(): Promise<void> {
    const alive = await this.#rig.alive(this.#id)
    assert.ok(alive.length <= FIELDS.workersMax, `${alive.length} workers`)
    for (const id of this.jobs) {
      const job = await this.#rig.store.jobs.find(this.#id, id, this.#rig.clock.now())
      if (job !== null) assert.equal(job.lostAttempts, 0, 'the platform is to blame, and not the job')
    }
    for (const { stopReason, problem } of alive) {
      assert.ok(problem === null && stopReason !== 'hung_start', `${stopReason}`)
    }
  }

  /** The platform has room for all, and programs work: each job is done in the end. */
  async calmDown(): Promise<void> {
    for (let round = 0; round < 60; round += 1) {
      for (const worker of this.#rig.fleet.running()) this.#rig.fleet.place(worker, NODE)
      await this.#rig.clock.advance(1_500)
      for (let which = 0; which < FIELDS.workersMax; which += 1) await this.#work(which)
      while (this.#running.size > 0) await this.#finish(0)
      const left = await Promise.all(this.jobs.map(job => this.#rig.status(this.#id, job)))
      if (left.every(({ json }) => json.status === 'COMPLETED')) return
    }
    assert.fail('jobs are left')
  }
}

async function runOf(t: TestContext): Promise<Run> {
  const rig = await openRig(t, { arrival: ({ workerId }) => (workerId.charCodeAt(0) % 2 === 0 ? NODE : WAITS[0]!) })
  return new Run(rig, await rig.endpoint(FIELDS))
}

test('whatever a platform does with workers, no job runs twice or loses an attempt, and each is done in the end', async t => {
  const property = fc.asyncProperty(fc.array(STEP, { minLength: 20, maxLength: 40, size: 'max' }), async steps => {
    const run = await runOf(t)
    for (let job = 0; job < 3; job += 1) await run.step({ do: 'submit' })
    for (const step of steps) await run.step(step)
    await run.calmDown()
  })
  await fc.assert(property, { numRuns: 15, seed: randomSeed })
})

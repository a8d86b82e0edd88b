import assert from 'node:assert/strict'
import {
  HOUR_MS,
  hourStart,
  type JobUsage,
  NO_JOB_USAGE,
  USAGE_READ,
  type WorkerUsage,
} from '../../src/core/billing/usage.ts'
import type { EndpointId, KeyId } from '../../src/core/ids.ts'
import { DAY_MS, dayStart, type TokenDay } from '../../src/core/openai/token-sums.ts'
import {
  BROKEN,
  type Cases,
  DONE,
  E1,
  E2,
  EXIT,
  jobId,
  makeEndpoint,
  makeJob,
  makeWorker,
  OWNER,
  STRANGER,
  T0,
  W1,
  W2,
  type World,
} from './store-world.ts'

const FIRST = hourStart(T0)
const ALL = { owner: OWNER, endpointId: null, bounds: [FIRST - 1_000 * HOUR_MS, FIRST + 10_000 * HOUR_MS] } as const
const INPUT = Buffer.byteLength(makeJob('x').input)
const OUTPUT = Buffer.byteLength(DONE.output!)

/** Counts of the jobs of {@link E1}, without the figures that are 0. */
async function used(world: World): Promise<Partial<JobUsage>> {
  const { sums } = await world.store.usage.jobs({ ...ALL, endpointId: E1 })
  assert.ok(sums.length <= 1)
  return Object.fromEntries(Object.entries(sums[0]?.usage ?? NO_JOB_USAGE).filter(([, figure]) => figure !== 0))
}

/** Counted time of the workers of {@link E1} in milliseconds: starting, running and idle, and frozen if some were. */
async function time(world: World, nowMs: number): Promise<number[]> {
  const { sums } = await world.store.usage.workers({ ...ALL, endpointId: E1 }, nowMs)
  const of = (name: keyof WorkerUsage) => sums.reduce((sum, { usage }) => sum + usage[name], 0)
  const frozen = of('frozenMs')
  return [of('startingMs'), of('runningMs'), of('idleMs'), ...(frozen === 0 ? [] : [frozen])]
}

const jobUsageCases: Cases = {
  'a job that is done counts its wait, its run and its bytes, once': async world => {
    await world.worker()
    await world.job('a')
    await world.claim(W1, 1, T0 + 300)
    assert.deepEqual(await used(world), {}, 'nothing before its attempt ends')
    const move = await world.finish('a', W1, DONE, T0 + 1_000)
    const wanted = {
      queuedMs: 300,
      executionMs: 700,
      inputBytes: INPUT,
      outputBytes: OUTPUT,
      attempts: 1,
      completed: 1,
    }
    assert.deepEqual(await used(world), wanted)
    assert.deepEqual(move?.usage, { ...NO_JOB_USAGE, ...wanted }, 'and the move says what it counted')
    await world.finish('a', W1, BROKEN, T0 + 2_000)
    assert.deepEqual(await used(world), wanted)
  },

  'a lost attempt counts apart, and the late result of its holder counts no attempt again': async world => {
    await world.holder(W1, 'a')
    await world.store.jobOutcomes.requeueLost(W1, 'it was lost', T0 + 400)
    const lost = { lostMs: 400, lostAttempts: 1, attempts: 1, inputBytes: INPUT }
    assert.deepEqual(await used(world), lost)
    await world.finish('a', W1, DONE, T0 + 900)
    assert.deepEqual(await used(world), { ...lost, queuedMs: 500, outputBytes: OUTPUT, completed: 1 })
  },

  'each attempt counts its own wait, from when the job came back into the line': async world => {
    await world.holder(W1, 'a')
    await world.worker(W2)
    await world.store.jobOutcomes.requeueLost(W1, 'it was lost', T0 + 400)
    await world.claim(W2, 1, T0 + 600)
    await world.finish('a', W2, BROKEN, T0 + 1_000)
    const wanted = { queuedMs: 200, executionMs: 400, lostMs: 400, lostAttempts: 1, attempts: 2, failed: 1 }
    assert.deepEqual(await used(world), { ...wanted, inputBytes: 2 * INPUT })
  },

  'an attempt that is given back counts nothing, and the job has waited all the time': async world => {
    await world.holder(W1, 'a')
    await world.store.jobOutcomes.release(W1, 'all')
    assert.deepEqual(await used(world), {})
    await world.claim(W1, 1, T0 + 700)
    await world.finish('a', W1, DONE, T0 + 800)
    assert.equal((await used(world)).queuedMs, 700)
    assert.equal((await used(world)).attempts, 1)
  },

  'jobs that end without a result count what they waited and ran': async world => {
    const { jobOutcomes } = world.store
    await world.holder(W1, 'running', 'slow')
    await world.jobs('waiting', 'purged')
    await jobOutcomes.cancel(E1, jobId('running'), T0 + 100)
    await jobOutcomes.cancel(E1, jobId('waiting'), T0 + 10)
    await world.purge(T0 + 20)
    await jobOutcomes.timeOutOverdue(T0 + 10_000, 9)
    const attempts = { attempts: 2, inputBytes: 2 * INPUT, executionMs: 10_100 }
    assert.deepEqual(await used(world), { ...attempts, queuedMs: 30, cancelled: 3, timedOut: 1 })
    await jobOutcomes.retry(E1, jobId('slow'), T0, T0 + 11_000)
    assert.equal((await used(world)).retried, 1)
  },

  'a job past its ttl counts as expired, one that had ended does not': async world => {
    await world.worker()
    await world.job('running', { expiresAtMs: T0 + 50 })
    await world.claim(W1, 1, T0 + 10)
    await world.store.streams.append(jobId('running'), W1, ['"abc"'], 1_000, 0)
    await world.job('waiting', { expiresAtMs: T0 + 60 })
    await world.job('ended', { expiresAtMs: T0 + 60 })
    await world.store.jobOutcomes.cancel(E1, jobId('ended'), T0)
    const { jobs } = await world.store.jobOutcomes.removeExpired(T0 + 60, 9)
    assert.deepEqual(jobs.map(({ job, usage }) => [job.id, usage.expired]).sort(), [
      ['ended', 0],
      ['running', 1],
      ['waiting', 1],
    ])
    const wanted = { queuedMs: 70, executionMs: 50, inputBytes: INPUT, streamBytes: 5, attempts: 1 }
    assert.deepEqual(await used(world), { ...wanted, cancelled: 1, expired: 2 })
  },

  'chunks count with the attempt that sent them': async world => {
    const { streams, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    await streams.append(jobId('a'), W1, ['"é"', '"b"'], 1_000, 0)
    await jobOutcomes.requeueLost(W1, 'it was lost', T0 + 1)
    assert.equal((await used(world)).streamBytes, 7)
    await world.claim(W1, 1, T0 + 1)
    await streams.append(jobId('a'), W1, ['"b"'], 1_000, 0)
    await world.finish('a', W1, DONE, T0 + 2)
    assert.equal((await used(world)).streamBytes, 10)
  },

  'a worker with one GPU gets a share of it, and its time counts as that of the share from then on': async world => {
    const { store } = world
    const gpu = { index: 0, uuid: 'GPU-0', type: 'NVIDIA GeForce RTX 4090', memoryGb: 24 }
    const placement = { gpus: [gpu], pool: 'ADA_24', vcpus: null, memoryMb: null }
    await world.worker(W1, { placement })
    await store.workers.seen(W1, 1, null, T0)
    assert.equal(await store.workers.setShare(W1, 6_144, T0 + 1_000), true)
    assert.deepEqual((await store.workers.find(W1))?.placement, { ...placement, gpus: [{ ...gpu, shareMb: 6_144 }] })
    await store.workers.exited(W1, EXIT, T0 + 3_000)
    const { sums } = await store.usage.workers({ ...ALL, endpointId: E1 }, T0 + 4_000)
    assert.deepEqual(sums.map(({ flavor, usage: { idleMs } }) => [flavor, idleMs]).sort(), [
      ['gpu:ADA_24:0.25', 2_000],
      ['gpu:ADA_24:1', 1_000],
    ])
    assert.equal(await store.workers.setShare(W1, 1_024, T0 + 5_000), false, 'it has ended')
  },

  'the usage of an endpoint is there after it was deleted, its last jobs included': async world => {
    await world.holder(W1, 'a')
    await world.jobs('b')
    await world.store.endpoints.remove(E1, T0 + 500)
    await world.removeAll(E1, T0 + 500)
    const wanted = { queuedMs: 500, executionMs: 500, inputBytes: INPUT, attempts: 1, cancelled: 2 }
    assert.deepEqual(await used(world), wanted)
  },

  'results that come at once are all counted': async world => {
    const names = Array.from({ length: 40 }, (_, n) => `job-${n}`)
    await world.holder(W1, ...names)
    await Promise.all(names.map(name => world.finish(name, W1, DONE, T0 + 100)))
    const wanted = { completed: 40, attempts: 40, executionMs: 4_000 }
    const { completed, attempts, executionMs } = await used(world)
    assert.deepEqual({ completed, attempts, executionMs }, wanted)
  },

  'usage is read by spans of hours, for one endpoint or for all of an owner': async world => {
    const { endpoints, usage } = world.store
    await endpoints.insert(makeEndpoint(E2))
    await world.worker()
    for (const [index, hour] of [0, 1, 3].entries()) {
      await world.job(`job-${index}`)
      await world.claim(W1, 1, FIRST + hour * HOUR_MS)
      await world.finish(`job-${index}`, W1, DONE, FIRST + hour * HOUR_MS + 5)
    }
    await world.store.jobs.insert(makeJob('other', { endpointId: E2 }))
    await world.store.jobOutcomes.cancel(E2, jobId('other'), T0)
    const bounds = [0, 1, 2, 4].map(hour => FIRST + hour * HOUR_MS)
    const read = async (owner: typeof OWNER, endpointId: EndpointId | null) => {
      const { sums, nextMs } = await usage.jobs({ owner, endpointId, bounds })
      assert.equal(nextMs, null)
      return sums.map(sum => [sum.endpointId, (sum.startMs - FIRST) / HOUR_MS, sum.usage.completed])
    }
    const ofE1 = [
      [E1, 0, 1],
      [E1, 1, 1],
      [E1, 2, 1],
    ]
    assert.deepEqual(await read(OWNER, E1), ofE1)
    assert.deepEqual(await read(OWNER, null), [ofE1[0], [E2, 0, 0], ...ofE1.slice(1)])
    assert.deepEqual(await read(STRANGER, E1), [])
    assert.deepEqual(await read(STRANGER, null), [])
    assert.deepEqual((await usage.jobs({ owner: OWNER, endpointId: E1, bounds: [] })).sums, [])
  },

  'at most 100 spans are read at once, and the answer says where to go on': async ({ store: { usage } }) => {
    const bounds = Array.from({ length: USAGE_READ.spans + 2 }, (_, n) => FIRST + n * HOUR_MS)
    const { nextMs } = await usage.jobs({ owner: OWNER, endpointId: E1, bounds })
    assert.equal(nextMs, FIRST + USAGE_READ.spans * HOUR_MS)
    assert.equal((await usage.workers({ owner: OWNER, endpointId: null, bounds }, T0)).nextMs, nextMs)
  },

  'a long time is read in parts that end at an hour, and the parts add up': async ({ store: { usage, workers } }) => {
    const hours = USAGE_READ.hours + 500
    await workers.insert(makeWorker(W1, { createdAtMs: FIRST }), 'token')
    for (let counted = 500; counted <= hours; counted += 500) {
      await usage.countWorkers(FIRST + counted * HOUR_MS, FIRST + counted * HOUR_MS, 9)
    }
    await workers.exited(W1, EXIT, FIRST + hours * HOUR_MS)
    const endMs = FIRST + (hours + 1_000) * HOUR_MS
    for (const endpointId of [null, E1]) {
      const read = (startMs: number) => usage.workers({ owner: OWNER, endpointId, bounds: [startMs, endMs] }, endMs)
      const first = await read(FIRST)
      assert.equal(first.nextMs, FIRST + USAGE_READ.hours * HOUR_MS)
      const second = await read(first.nextMs)
      assert.equal(second.nextMs, null)
      const ms = [first, second].map(({ sums }) => sums.map(sum => sum.usage.startingMs))
      assert.deepEqual(ms, [[USAGE_READ.hours * HOUR_MS], [500 * HOUR_MS]])
    }
  },

  'old hours are removed a few at a time, and only those': async world => {
    const { usage } = world.store
    await world.worker()
    for (let hour = 0; hour < 5; hour += 1) {
      await world.job(`job-${hour}`)
      await world.claim(W1, 1, FIRST + hour * HOUR_MS)
      await world.finish(`job-${hour}`, W1, DONE, FIRST + hour * HOUR_MS)
      await usage.countWorkers(FIRST + (hour + 1) * HOUR_MS, FIRST + (hour + 1) * HOUR_MS, 9)
    }
    assert.equal(await usage.removeOld(FIRST + 3 * HOUR_MS + 1, 2), 2)
    assert.equal(await usage.removeOld(FIRST + 3 * HOUR_MS + 1, 2), 1)
    assert.equal(await usage.removeOld(FIRST + 3 * HOUR_MS + 1, 2), 0)
    assert.equal((await used(world)).completed, 2)
  },
}

const workerUsageCases: Cases = {
  'a worker counts its start, its jobs and its idle time, up to its end and once': async world => {
    const { workers } = world.store
    await workers.insert(makeWorker(W1), 'token')
    await workers.seen(W1, 1, null, T0 + 1_000)
    await world.job('a')
    await world.claim(W1, 1, T0 + 1_500)
    await world.finish('a', W1, DONE, T0 + 3_500)
    assert.deepEqual(await time(world, T0 + 3_600), [1_000, 2_000, 600], 'a running worker is seen as it is')
    await workers.exited(W1, EXIT, T0 + 4_000)
    assert.deepEqual(await time(world, T0 + 9_000), [1_000, 2_000, 1_000])
    await workers.exited(W1, EXIT, T0 + 5_000)
    assert.deepEqual(await time(world, T0 + 9_000), [1_000, 2_000, 1_000])
  },

  'a worker that never asked for a job counts as starting': async world => {
    await world.store.workers.insert(makeWorker(W1), 'token')
    await world.store.workers.exited(W1, EXIT, T0 + 700)
    assert.deepEqual(await time(world, T0 + 700), [700, 0, 0])
  },

  'counting in between changes no sum, however often it is done': async world => {
    const { workers, usage } = world.store
    await workers.insert(makeWorker(W1), 'token')
    await usage.countWorkers(T0 + 500, T0 + 500, 9)
    await workers.seen(W1, 1, null, T0 + 1_000)
    await usage.countWorkers(T0 + 1_200, T0 + 1_200, 9)
    await world.job('a')
    await world.claim(W1, 1, T0 + 1_500)
    await usage.countWorkers(T0 + 2_000, T0 + 2_000, 9)
    await usage.countWorkers(T0 + 2_000, T0 + 2_000, 9)
    await world.finish('a', W1, DONE, T0 + 3_500)
    assert.equal(await usage.countWorkers(T0 + 1_000, T0 + 1_000, 9), 0, 'a clock that was set back counts nothing')
    await usage.countWorkers(T0 + 3_700, T0 + 3_700, 9)
    await workers.exited(W1, EXIT, T0 + 4_000)
    assert.deepEqual(await time(world, T0 + 4_000), [1_000, 2_000, 1_000])
  },

  'the time in which a worker was frozen is counted by itself, and goes on until it is thawed or ends': async world => {
    const { workers, usage } = world.store
    await workers.insert(makeWorker(W1), 'token')
    await workers.seen(W1, 1, null, T0 + 1_000)
    await workers.freeze(W1, T0 + 3_000)
    assert.deepEqual(await time(world, T0 + 4_000), [1_000, 0, 2_000, 1_000])
    await usage.countWorkers(T0 + 5_000, T0 + 5_000, 9)
    await workers.served([{ id: W1, idleMs: 700, isBusy: true }], T0 + 5_500)
    await workers.thaw(W1, T0 + 6_000, null)
    assert.deepEqual(await time(world, T0 + 7_000), [1_000, 0, 3_000, 3_000])
    const phases = async () => (await usage.running(OWNER)).map(({ phase, workers: count }) => [phase, count])
    assert.deepEqual(await phases(), [['idle', 1]])
    await workers.freeze(W1, T0 + 8_000)
    assert.deepEqual(await phases(), [['frozen', 1]])
    await workers.retire(W1, 'STOPPING', 'frozen_too_long', T0 + 9_000)
    await workers.exited(W1, EXIT, T0 + 10_000)
    assert.deepEqual(await time(world, T0 + 20_000), [1_000, 0, 5_000, 4_000])
  },

  'a worker that serves requests counts as idle and running as it is noted, and nothing of one that has ended':
    async world => {
      const { workers, usage } = world.store
      await workers.insert(makeWorker(W1), 'token')
      await workers.served([{ id: W1, idleMs: 7, isBusy: true }], T0 + 5)
      await workers.seen(W1, 1, null, T0 + 1_000)
      await workers.served([{ id: W1, idleMs: 2_000, isBusy: true }], T0 + 4_000)
      await usage.countWorkers(T0 + 6_000, T0 + 6_000, 9)
      assert.deepEqual(await time(world, T0 + 6_000), [1_000, 3_000, 2_000])
      await workers.served([{ id: W1, idleMs: 500, isBusy: false }], T0 + 8_000)
      await workers.exited(W1, EXIT, T0 + 10_000)
      await workers.served([{ id: W1, idleMs: 900, isBusy: true }], T0 + 11_000)
      assert.deepEqual(await time(world, T0 + 12_000), [1_000, 4_500, 4_500])
    },

  'a late result of an idle worker loses no idle time': async world => {
    await world.holder(W1, 'a')
    await world.store.jobOutcomes.requeueLost(W1, 'it was lost', T0 + 100)
    await world.finish('a', W1, DONE, T0 + 900)
    await world.store.workers.exited(W1, EXIT, T0 + 1_000)
    assert.deepEqual(await time(world, T0 + 1_000), [0, 100, 900])
  },

  'a deleted endpoint keeps its name for its owner, the last one first, until its usage is old': async world => {
    const { endpoints, usage } = world.store
    const { name, owner } = (await endpoints.find(E1))!
    assert.deepEqual(await usage.formerNames(owner, 0, 9), [])
    const other = makeEndpoint(E2, { name: 'the other' })
    await endpoints.insert(other)
    await endpoints.remove(E1, FIRST + 1)
    await endpoints.remove(E2, FIRST + 2)
    const both = [
      { endpointId: E2, name: 'the other' },
      { endpointId: E1, name },
    ]
    assert.deepEqual(await usage.formerNames(owner, FIRST, 9), both)
    assert.deepEqual(await usage.formerNames(owner, FIRST + 2, 9), both.slice(0, 1))
    assert.deepEqual(await usage.formerNames(owner, FIRST, 1), both.slice(0, 1))
    assert.deepEqual(await usage.formerNames(STRANGER, 0, 9), [])
    assert.equal(await usage.removeOld(FIRST + HOUR_MS, 1), 1)
    assert.deepEqual(await usage.formerNames(owner, 0, 9), both.slice(0, 1))
    assert.equal(await usage.removeOld(FIRST + HOUR_MS, 9), 1)
    assert.deepEqual(await usage.formerNames(owner, 0, 9), [])
  },

  'time is counted in the hours in which it passed': async world => {
    const { workers, usage } = world.store
    await workers.insert(makeWorker(W1, { createdAtMs: FIRST + 1_000 }), 'token')
    await workers.seen(W1, 1, null, FIRST + HOUR_MS + 2_000)
    await workers.exited(W1, EXIT, FIRST + 3 * HOUR_MS + 4_000)
    const bounds = [0, 1, 2, 3, 4].map(hour => FIRST + hour * HOUR_MS)
    const { sums } = await usage.workers({ owner: OWNER, endpointId: null, bounds }, FIRST + 9 * HOUR_MS)
    assert.deepEqual(
      sums.map(sum => [sum.usage.startingMs, sum.usage.runningMs, sum.usage.idleMs]),
      [
        [HOUR_MS - 1_000, 0, 0],
        [2_000, 0, HOUR_MS - 2_000],
        [0, 0, HOUR_MS],
        [0, 0, 4_000],
      ],
    )
  },

  'a worker that ended while nobody looked counts up to the last count': async world => {
    const { workers, usage } = world.store
    await world.worker()
    await usage.countWorkers(T0 + 60_000, T0, 9)
    await workers.exited(W1, EXIT, T0 + 48 * HOUR_MS, false)
    assert.deepEqual(await time(world, T0 + 50 * HOUR_MS), [0, 0, 60_000])
  },

  'the workers that were counted longest ago are counted first, a few at a time': async world => {
    const { usage } = world.store
    await world.worker('a')
    await world.worker('b')
    await world.worker('c')
    assert.equal(await usage.countWorkers(T0 + 100, T0, 2), 2)
    assert.equal(await usage.countWorkers(T0 + 100, T0, 2), 1)
    assert.equal(await usage.countWorkers(T0 + 100, T0, 2), 0)
    assert.deepEqual(await time(world, T0 + 100), [0, 0, 300])
  },

  'workers count under the hardware of their endpoint, and under that of its owner alone': async world => {
    const { endpoints, workers, usage } = world.store
    const gpu = { kind: 'gpu', pools: ['ADA_24', 'AMPERE_16'], excludedTypes: [], count: 2 } as const
    const compute = { ...gpu, allowedCudaVersions: [], minCudaVersion: null }
    await endpoints.insert(makeEndpoint(E2, { compute }))
    await world.worker(W1)
    await world.worker(W2, { endpointId: E2 })
    await workers.exited(W2, EXIT, T0 + 10)
    const read = async (owner: typeof OWNER) => (await usage.workers({ ...ALL, owner }, T0 + 10)).sums
    assert.deepEqual(
      (await read(OWNER)).map(({ endpointId, flavor, usage: { idleMs } }) => [endpointId, flavor, idleMs]),
      [
        [E1, 'cpu:cpu3c:2', 10],
        [E2, 'gpu:ADA_24:2', 10],
      ],
    )
    assert.deepEqual(await read(STRANGER), [])
  },

  'a worker of a platform counts as waiting until it has a place, and then under the hardware that is reported':
    async world => {
      const { workers, usage } = world.store
      const asked = { gpus: 2, pool: 'ADA_24', cpu: null }
      const placement = { gpus: [], pool: null, vcpus: null, memoryMb: null, asked }
      await workers.insert(makeWorker(W1, { placement }), 'token')
      const sums = async (atMs: number) =>
        (await usage.workers(ALL, atMs)).sums.map(({ flavor, usage: { startingMs } }) => [flavor, startingMs])
      assert.deepEqual(await sums(T0 + 500), [['waiting', 500]])
      const waits = { place: null, waits: { kind: 'no_room', said: '' }, leaves: null } as const
      await workers.reported(W1, waits, T0 + 600)
      await usage.countWorkers(T0 + 700, T0 + 700, 9)
      const place = { node: 'n1', gpuType: 'NVIDIA L4', gpuCount: 2 }
      await workers.reported(W1, { ...waits, waits: null }, T0 + 1_000)
      await workers.reported(W1, { place, waits: null, leaves: null }, T0 + 1_100)
      const placed = [
        ['gpu:ADA_24:2', 100],
        ['gpu:AMPERE_24:2', 900],
        ['waiting', 1_000],
      ]
      assert.deepEqual(await sums(T0 + 2_000), placed)
      await workers.exited(W1, EXIT, T0 + 2_000)
      assert.deepEqual(await sums(T0 + 9_000), placed)
      await workers.insert(makeWorker(W2, { placement }), 'another')
      await workers.exited(W2, EXIT, T0 + 300)
      assert.deepEqual((await sums(T0 + 9_000)).at(-1), ['waiting', 1_300], 'one that never had a place')
    },

  'what the workers of an owner are doing now is known by their hardware': async world => {
    const { endpoints, workers, usage } = world.store
    const gpu = { kind: 'gpu', pools: ['ADA_24'], excludedTypes: [], count: 2 } as const
    await endpoints.insert(makeEndpoint(E2, { compute: { ...gpu, allowedCudaVersions: [], minCudaVersion: null } }))
    assert.deepEqual(await usage.running(OWNER), [])
    await world.worker('idle')
    await world.holder('busy' as typeof W1, 'a')
    await workers.insert(makeWorker('new', { endpointId: E2 }), 'new')
    await workers.exited(await world.worker('gone'), EXIT, T0)
    assert.deepEqual(
      (await usage.running(OWNER)).map(({ flavor, phase, workers }) => [flavor, phase, workers]),
      [
        ['cpu:cpu3c:2', 'idle', 1],
        ['cpu:cpu3c:2', 'running', 1],
        ['gpu:ADA_24:2', 'starting', 1],
      ],
    )
    assert.deepEqual(await usage.running(STRANGER), [])
  },

  'the last workers that ended are known': async world => {
    const { workers } = world.store
    for (const [index, id] of ['a', 'b', 'c'].entries()) {
      await workers.exited(await world.worker(id), EXIT, T0 + index)
    }
    await world.worker('alive')
    assert.deepEqual(await workers.lastExited(2), ['c', 'b'])
  },

  'counts of windows that are long over are removed, a few at a time': async ({ store: { keys, upkeep } }) => {
    await keys.saveWindowCounts(OWNER, [
      { startMs: T0, used: 1 },
      { startMs: T0 + 50, used: 2 },
    ])
    await keys.saveWindowCounts(STRANGER, [
      { startMs: T0, used: 3 },
      { startMs: T0 + 1, used: 4 },
    ])
    assert.equal(await upkeep.removeOldWindows(T0 + 50, 2), 2)
    assert.equal(await upkeep.removeOldWindows(T0 + 50, 2), 1)
    assert.equal(await upkeep.removeOldWindows(T0 + 50, 2), 0)
    assert.deepEqual(await keys.windowCounts(STRANGER), [])
    assert.equal((await keys.windowCounts(OWNER)).length, 1)
  },
}

const K1 = 'key-1' as KeyId
const DAY = dayStart(T0)
const figuresOf = (requests: number) => ({
  requests,
  measured: requests - 1,
  promptTokens: requests * 10,
  completionTokens: requests * 3,
  cachedTokens: requests,
})

/** Figures of a request to {@link E1}. */
function tokenDay(requests: number, changes: Partial<TokenDay> = {}): TokenDay {
  const place = { owner: OWNER, endpointId: E1, keyId: K1, model: 'm', dayMs: DAY }
  return { ...place, figures: figuresOf(requests), ...changes }
}

const tokenCases: Cases = {
  'tokens of one place and day add up, and are read by spans, for one endpoint or key or for all': async world => {
    const { usage } = world.store
    const bounds = [DAY, DAY + DAY_MS, DAY + 2 * DAY_MS]
    await usage.addTokens([tokenDay(1), tokenDay(5, { model: null, keyId: null, endpointId: E2 })])
    await usage.addTokens([tokenDay(2), tokenDay(4, { dayMs: DAY + DAY_MS }), tokenDay(7, { owner: STRANGER })])
    const both = { requests: 3, measured: 1, promptTokens: 30, completionTokens: 9, cachedTokens: 3 }
    const first = { startMs: DAY, endpointId: E1, keyId: K1, model: 'm', figures: both }
    const bare = { startMs: DAY, endpointId: E2, keyId: null, model: null, figures: figuresOf(5) }
    const later = { ...first, startMs: DAY + DAY_MS, figures: figuresOf(4) }
    assert.deepEqual(await usage.tokens({ owner: OWNER, bounds }), { sums: [first, bare, later], nextMs: null })
    assert.deepEqual((await usage.tokens({ owner: OWNER, bounds, endpointId: E2 })).sums, [bare])
    assert.deepEqual((await usage.tokens({ owner: OWNER, bounds, keyId: K1 })).sums, [first, later])
    assert.deepEqual((await usage.tokens({ owner: OWNER, bounds, endpointId: E2, keyId: K1 })).sums, [])
    assert.deepEqual((await usage.tokens({ owner: STRANGER, bounds: [DAY + DAY_MS, DAY + 2 * DAY_MS] })).sums, [])
    assert.deepEqual((await usage.tokens({ owner: OWNER, bounds: [] })).sums, [])
    await usage.addTokens([tokenDay(1, { model: 'other' })])
    const { sums } = await usage.tokens({ owner: OWNER, bounds: [DAY, DAY + DAY_MS], byEndpoint: true })
    const all = { requests: 4, measured: 1, promptTokens: 40, completionTokens: 12, cachedTokens: 4 }
    assert.deepEqual(sums, [{ ...first, keyId: null, model: null, figures: all }, bare])
  },

  'tokens are read in bounded parts: a span with too many sums is the next one': async ({ store: { usage } }) => {
    const days = Array.from({ length: 6_000 }, (_, n) => tokenDay(1, { endpointId: `e${n}` as EndpointId }))
    await usage.addTokens(days)
    await usage.addTokens(days.map(day => ({ ...day, dayMs: DAY + DAY_MS })))
    const bounds = [DAY, DAY + DAY_MS, DAY + 2 * DAY_MS]
    const { sums, nextMs } = await usage.tokens({ owner: OWNER, bounds })
    assert.deepEqual([sums.length, nextMs], [6_000, DAY + DAY_MS])
    await usage.addTokens(days.map(day => ({ ...day, model: 'other' })))
    assert.deepEqual(await usage.tokens({ owner: OWNER, bounds }), { sums: [], nextMs: DAY })
  },

  'the names of models of a day are known, and old days are removed a few at a time': async ({ store: { usage } }) => {
    await usage.addTokens(['b', 'a', null].map(model => tokenDay(1, { model })))
    await usage.addTokens([tokenDay(1, { keyId: null }), tokenDay(1, { dayMs: DAY + DAY_MS, model: 'z' })])
    assert.deepEqual(await usage.modelsOfDay(OWNER, DAY, 9), ['a', 'b', 'm'])
    assert.deepEqual(await usage.modelsOfDay(OWNER, DAY, 2), ['a', 'b'])
    assert.deepEqual(await usage.modelsOfDay(STRANGER, DAY, 9), [])
    assert.equal(await usage.removeOld(DAY + DAY_MS, 3), 3)
    assert.equal(await usage.removeOld(DAY + DAY_MS, 3), 1)
    assert.equal(await usage.removeOld(DAY + DAY_MS, 3), 0)
    assert.deepEqual(await usage.modelsOfDay(OWNER, DAY + DAY_MS, 9), ['z'])
  },
}

/** Counts of usage, and their removal. */
export const usageCases: Cases = { ...jobUsageCases, ...workerUsageCases, ...tokenCases }

/** Several endpoints share a machine. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { MachineGpu } from '../../../src/core/hardware/inventory.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig, type Rig, type RigOptions, type RigWorker } from '../../support/rig.ts'

const GPU = { instanceIds: undefined, gpuIds: 'ADA_24', scalerType: 'REQUEST_COUNT', scalerValue: 1 }

/** A rig on a machine with these GPUs. */
async function rigWith(context: TestContext, gpus: readonly MachineGpu[], options: RigOptions = {}): Promise<Rig> {
  const rig = await openRig(context, options)
  rig.machine = aMachine(gpus)
  return rig
}

/** The worker of an endpoint, of which there must be one. */
async function workerOf(rig: Rig, id: EndpointId): Promise<RigWorker> {
  const workers = await rig.alive(id)
  assert.equal(workers.length, 1)
  return rig.worker(rig.fleet.started.findIndex(({ workerId }) => workerId === workers[0]!.id))
}

/** Lets the one worker of an endpoint do the job that waits, and become idle. */
async function work(rig: Rig, id: EndpointId): Promise<RigWorker> {
  const worker = await workerOf(rig, id)
  await worker.done(await worker.takeJob())
  return worker
}

const gpusOf = (worker: RigWorker) => worker.spec.placement.gpus.map(({ index }) => index)

test('a second endpoint waits for the GPU of the first, shows the reason everywhere, and gets the GPU when it is free', async t => {
  const rig = await rigWith(t, [aGpu(0)])
  const first = await rig.endpoint({ ...GPU, name: 'chat' })
  const second = await rig.endpoint({ ...GPU, name: 'images', workersMax: 1 })
  await rig.submit(first)
  await rig.clock.advance(40)
  const holder = await workerOf(rig, first)
  const job = await holder.takeJob()
  const waiting = await rig.submit(second)
  const queuedMs = rig.clock.now()
  await rig.clock.advance(40)

  const reason = 'no free GPU of pool ADA_24: 1 of 1 in use by endpoint chat'
  const { json } = await rig.ask('GET', `/v2/${second}/explain/${waiting}`)
  assert.deepEqual([json.cause, json.summary], ['no_capacity', `there is no room for a worker: ${reason}`])
  assert.match(json.action, /^wait, lower workersMin or workersMax/)
  assert.deepEqual((await rig.health(second)).workers.throttled, 1)
  const { workers, summary } = (await rig.ask('GET', `/v2/serverless/${second}/workers`)).json
  assert.deepEqual([workers[0].status, workers[0].startedAt, summary.throttled], ['THROTTLED', null, 1])
  const pods = (await rig.graphql(`query { myself { endpoint(id: "${second}") { pods { id desiredStatus } } } }`))
    .myself
  assert.deepEqual(pods.endpoint.pods, [{ id: workers[0].id, desiredStatus: 'RUNNING' }])
  assert.deepEqual(
    rig.happened('worker.unplaced').map(({ endpointId, count }) => [endpointId, count]),
    [[second, 1]],
  )

  await holder.done(job)
  rig.fleet.exit(holder.id)
  await rig.clock.advance(60)
  const got = await workerOf(rig, second)
  assert.equal(got.id, workers[0].id)
  const record = await got.record()
  assert.ok(record.createdAtMs - queuedMs <= 20 && record.placedAtMs! > record.createdAtMs)
  assert.deepEqual(gpusOf(got), [0])
  assert.equal(got.spec.protocolEnv.RUNPOD_GPU_COUNT, '1')
  assert.deepEqual((await rig.health(second)).workers.throttled, 0)
  assert.equal(rig.happened('worker.unplaced').at(-1)?.count, 0)
})

test('an idle worker makes room for another endpoint once it has been ready for the dwell, and a busy one does not', async t => {
  const rig = await rigWith(t, [aGpu(0)])
  const first = await rig.endpoint({ ...GPU, idleTimeout: 3_600, scalerType: 'QUEUE_DELAY', scalerValue: 4 })
  const second = await rig.endpoint({ ...GPU, idleTimeout: 3_600, scalerType: 'QUEUE_DELAY', scalerValue: 4 })
  await rig.submit(first)
  await rig.clock.advance(40)
  const readyMs = rig.clock.now()
  const job = await (await workerOf(rig, first)).takeJob()
  await rig.submit(second)
  await rig.clock.advance(60_000)
  assert.equal((await rig.alive(second)).length, 0, 'the worker of the first one works')
  const holder = await workerOf(rig, first)
  await holder.done(job)
  await rig.clock.advance(200)
  assert.equal((await holder.record()).stopReason, 'evicted')
  assert.ok(rig.clock.now() - readyMs < 61_000)
  await work(rig, second)
  const [event] = rig.happened('worker.evicted')
  assert.deepEqual([event?.workerId, event?.for, event?.afterJob], [holder.id, second, false])

  await rig.submit(first)
  await rig.clock.advance(20_000)
  assert.equal((await rig.alive(first)).length, 0, 'the dwell of the second one is not over')
})

test('a worker that its endpoint keeps by workersMin makes no room', async t => {
  const rig = await rigWith(t, [aGpu(0)])
  const first = await rig.endpoint({ ...GPU, workersMin: 1, name: 'warm' })
  await rig.clock.advance(40)
  const poll = (await workerOf(rig, first)).take()
  const second = await rig.endpoint(GPU)
  await rig.submit(second)
  await rig.clock.leap(900_000)
  assert.equal((await rig.alive(second)).length, 0)
  assert.match((await rig.why(second)).summary, /1 of 1 in use by endpoint warm$/)
  await poll
})

test('workersMin comes before jobs that wait', async t => {
  const rig = await rigWith(t, [])
  rig.machine = aMachine([], { hadGpus: true })
  const busy = await rig.endpoint(GPU)
  await rig.submit(busy)
  await rig.clock.advance(5_000)
  const warm = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(100)
  rig.machine = aMachine([aGpu(0)])
  rig.notifier.publish('machine')
  await rig.clock.advance(40)
  assert.deepEqual([(await rig.alive(warm)).length, (await rig.alive(busy)).length], [1, 0])
})

test('an endpoint under steady load gives its only GPU to one that has waited ten dwells, after a job', async t => {
  const rig = await rigWith(t, [aGpu(0)], { placing: { dwellMs: 1_000 } })
  const first = await rig.endpoint({ ...GPU, workersMax: 1 })
  const second = await rig.endpoint(GPU)
  for (let n = 0; n < 20; n += 1) await rig.submit(first)
  await rig.clock.advance(40)
  const holder = await workerOf(rig, first)
  await rig.submit(second)
  let done = 0
  for (; (await rig.alive(second)).length === 0 && done < 20; done += 1) {
    const { status, json } = await holder.take()
    if (status !== 200) break
    await rig.clock.advance(1_000)
    await holder.done(json.id)
    await rig.clock.advance(100)
  }
  assert.ok(done >= 9 && done <= 12, `${done} jobs were done before`)
  assert.equal((await rig.alive(second)).length, 1)
  assert.equal((await rig.health(first)).jobs.completed, done)
})

test('the second pool stands in for the first, and excluded types are left out', async t => {
  const rig = await rigWith(t, [aGpu(0, 'NVIDIA L4'), aGpu(1), aGpu(2, 'NVIDIA RTX A5000')])
  const endpoint = await rig.endpoint({ ...GPU, gpuIds: 'ADA_24,AMPERE_24,-NVIDIA L4', workersMin: 3 })
  await rig.clock.advance(100)
  assert.deepEqual(
    rig.fleet.started.map(({ placement }) => [placement.pool, placement.gpus[0]?.type]),
    [
      ['ADA_24', 'NVIDIA GeForce RTX 4090'],
      ['AMPERE_24', 'NVIDIA RTX A5000'],
    ],
  )
  const { workers } = (await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)).json
  assert.deepEqual(
    workers.map(({ status, gpuCount, gpuTypeId }: Record<string, unknown>) => [status, gpuCount, gpuTypeId]).sort(),
    [
      ['INITIALIZING', 1, 'NVIDIA GeForce RTX 4090'],
      ['INITIALIZING', 1, 'NVIDIA RTX A5000'],
      ['THROTTLED', 0, null],
    ],
  )
})

test('workers wait for a CUDA version that the driver does not have, and start when it has it', async t => {
  const rig = await rigWith(t, [aGpu(0, undefined, { cuda: '12.2' })])
  const endpoint = await rig.endpoint({ ...GPU, minCudaVersion: '12.4' })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  const { cause, summary } = await rig.why(endpoint)
  assert.equal(cause, 'no_capacity')
  assert.match(summary, /the GPUs of type NVIDIA GeForce RTX 4090 have CUDA 12\.2, at least 12\.4 is wanted$/)
  rig.machine = aMachine([aGpu(0, undefined, { cuda: '12.6' })])
  rig.notifier.publish('machine')
  await rig.clock.advance(40)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('without any GPU workers of GPU endpoints run on the CPU and know it; or they wait where that is wanted', async t => {
  const rig = await rigWith(t, [])
  const endpoint = await rig.endpoint({ ...GPU, gpuCount: 2 })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  const { protocolEnv } = rig.worker(0).spec
  assert.deepEqual([protocolEnv.RUNPOD_GPU_COUNT, protocolEnv.RUNPOD_SKIP_GPU_CHECK], ['0', 'true'])
  const { notes } = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.match(notes.join(), /^this machine has no GPU, so workers of \w+ run on the CPU$/)

  const strict = await rigWith(t, [], { placing: { requireGpu: true } })
  const waits = await strict.endpoint(GPU)
  await strict.submit(waits)
  await strict.clock.advance(40)
  assert.equal(strict.fleet.started.length, 0)
  assert.match((await strict.why(waits)).summary, /there is no GPU of pool ADA_24: this machine has no GPU$/)
})

test('a flavor above the whole machine is clamped to it, with a warning once', async t => {
  const rig = await rigWith(t, [])
  const endpoint = await rig.endpoint({ instanceIds: ['cpu3g-16-64'], workersMin: 2 })
  await rig.clock.advance(100)
  const placements = rig.fleet.started.map(({ placement: { vcpus, memoryMb } }) => [vcpus, memoryMb])
  assert.deepEqual(placements, [
    [8, 32 * 1024],
    [8, 32 * 1024],
  ])
  const [warning, ...more] = rig.happened('worker.clamped')
  assert.deepEqual([warning?.endpointId, more], [endpoint, []])
  assert.match(warning?.problem ?? '', /16 vCPUs and 64 GB are asked for \(cpu3g\).*the worker gets 8 vCPUs and 32 GB/)
})

test('a host full of promises says whether vCPUs or memory are short', async t => {
  const rig = await rigWith(t, [], { placing: { cpuOvercommit: 1, memoryOvercommit: 1 } })
  const first = await rig.endpoint({ instanceIds: ['cpu3c-8-16'], workersMin: 1, name: 'large' })
  await rig.clock.advance(40)
  const second = await rig.endpoint({ instanceIds: ['cpu3c-2-4'], workersMin: 1 })
  await rig.submit(second)
  await rig.clock.advance(40)
  assert.match(
    (await rig.why(second)).summary,
    /2 vCPUs are wanted, and 8 of the 8 that may be promised are taken by endpoint large$/,
  )
  assert.equal((await rig.why(second)).cause, 'no_capacity')
  assert.equal((await rig.alive(first)).length, 1)
})

test('a host full of promised memory says so, and the job runs when there is some', async t => {
  const rig = await rigWith(t, [], { placing: { cpuOvercommit: 100, memoryOvercommit: 1 } })
  const first = await rig.endpoint({ instanceIds: ['cpu3c-32-64'], workersMin: 1, name: 'large' })
  await rig.clock.advance(40)
  const second = await rig.endpoint({ instanceIds: ['cpu3c-2-4'], workersMax: 1 })
  await rig.submit(second)
  await rig.clock.advance(40)
  const why = (await rig.ask('GET', `/v2/${second}/explain`)).json
  assert.equal(why.cause, 'no_capacity')
  assert.match(
    why.summary,
    /4 GB of memory are wanted, and 32 GB of the 32 GB that may be promised are taken by endpoint large$/,
  )
  assert.match(String(why.action), /--memory-overcommit/)
  await rig.change(first, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(10_000)
  assert.equal((await rig.alive(second)).length, 1)
})

test('processes start beside each other however small the machine is', async t => {
  const rig = await rigWith(t, [], { placing: { cpuOvercommit: 1, memoryOvercommit: 1 } })
  rig.machine = aMachine([], { vcpus: 1, memoryGb: 2 })
  const template = { imageName: 'dir:sample' }
  for (let n = 0; n < 3; n += 1) await rig.endpoint({ workersMin: 2, template })
  await rig.clock.advance(200)
  assert.equal(rig.fleet.running().length, 6)
})

test('workers keep their GPUs over a restart of the server, and no other worker gets these', async t => {
  const rig = await rigWith(t, [aGpu(0), aGpu(1)])
  const first = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  const poll = (await workerOf(rig, first)).take({ signal: AbortSignal.abort() })
  await rig.crash()
  await rig.start()
  const second = await rig.endpoint({ ...GPU, workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  assert.deepEqual(
    (await rig.alive(second)).map(({ placement }) => placement?.gpus[0]?.index),
    [1],
  )
  assert.equal((await rig.health(second)).workers.throttled, 1)
  await poll
})

test('a worker of an older version is replaced before anybody else gets a GPU', async t => {
  const rig = await rigWith(t, [aGpu(0), aGpu(1)])
  const first = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  const old = await workerOf(rig, first)
  await old.take({ signal: AbortSignal.abort() })
  const { workers } = rig.ports.store
  const unknown = <W extends { id: string }>(worker: W) =>
    worker.id === old.id ? { ...worker, placement: null } : worker
  workers.loads = (
    loads => async () =>
      (await loads()).map(unknown)
  )(workers.loads)
  const second = await rig.endpoint(GPU)
  await rig.submit(second)
  await rig.clock.advance(2_000)
  assert.equal((await old.record()).stopReason, 'outdated')
  assert.equal((await rig.alive(second)).length, 1)
  assert.equal((await rig.alive(first)).length, 1)
})

test('queued workers are removed at once when they are no longer needed', async t => {
  const rig = await rigWith(t, [aGpu(0)])
  const first = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  const second = await rig.endpoint({ ...GPU, workersMax: 3 })
  const jobs = [await rig.submit(second), await rig.submit(second)]
  await rig.clock.advance(40)
  const throttled = async () => (await rig.health(second)).workers.throttled
  assert.equal(await throttled(), 2)
  await rig.change(second, { env: [{ key: 'V', value: '2' }] })
  await rig.clock.advance(40)
  assert.equal(await throttled(), 2)
  await rig.change(second, { workersMax: 1 })
  await rig.clock.advance(40)
  assert.equal(await throttled(), 1)
  for (const job of jobs) await rig.ask('POST', `/v2/${second}/cancel/${job}`)
  await rig.clock.advance(40)
  assert.equal(await throttled(), 0)
  await rig.submit(second)
  await rig.clock.advance(40)
  await rig.change(second, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(40)
  assert.equal(await throttled(), 0)
  assert.equal((await rig.alive(first)).length, 1)
})

test('a failing card is reported, given to no new worker, and left to the worker that has it', async t => {
  const rig = await rigWith(t, [aGpu(0), aGpu(1)])
  const first = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  rig.machine = aMachine([aGpu(0), aGpu(1, undefined, { problem: 'it does not answer' })])
  rig.notifier.publish('machine')
  const second = await rig.endpoint(GPU)
  await rig.submit(second)
  await rig.clock.advance(100)
  assert.deepEqual([(await rig.alive(first)).length, (await rig.alive(second)).length], [1, 0])
  assert.match((await rig.why(second)).summary, /1 of 1 in use/)
})

test('what the catalogue says to be available is what is free here, and cards that it does not know are in it', async t => {
  const rig = await rigWith(t, [aGpu(0), aGpu(1), aGpu(2, 'NVIDIA A10', { memoryGb: 22 })])
  const stock = async (id: string) => {
    const path = `/v2/catalog/gpus/${encodeURIComponent(id)}?include=AVAILABILITY&product=SERVERLESS`
    const { availability, maxCount, pool, dataCenters } = (await rig.ask('GET', path)).json
    const places = dataCenters.map((place: { availability: string }) => place.availability)
    assert.ok(places.length > 10 && new Set(places).size === 1, 'all data centers are this machine')
    return [availability, maxCount?.secure, pool, places[0]]
  }
  const rtx = 'NVIDIA GeForce RTX 4090'
  assert.deepEqual(await stock(rtx), ['MEDIUM', 2, 'ADA_24', 'MEDIUM'])
  assert.deepEqual(await stock('NVIDIA A10'), ['LOW', 1, 'AMPERE_24', 'LOW'])
  await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  assert.deepEqual(await stock(rtx), ['LOW', 2, 'ADA_24', 'LOW'])
  await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(40)
  assert.deepEqual(await stock(rtx), ['NONE', 2, 'ADA_24', 'LOW'], 'an endpoint can wait for them')
  const fields = { ...GPU, gpuIds: 'AMPERE_24,-NVIDIA A10' }
  assert.ok(await rig.endpoint(fields), 'a type that is here can be excluded')
})

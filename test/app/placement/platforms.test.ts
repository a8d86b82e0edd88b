/** Workers whose platform places them, such as pods of a cluster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CATALOG_PRICES } from '../../../src/core/billing/prices.ts'
import { GPU_POOLS } from '../../../src/core/hardware/catalog-data.ts'
import type { ReportedPlace, WaitForPlace } from '../../../src/core/workers/platform-report.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { MemoryModels } from '../../support/memory-models.ts'
import { type EndpointFields, openRig, type Rig } from '../../support/rig.ts'

const GPU = { instanceIds: undefined, gpuIds: 'ADA_24', gpuCount: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
const NO_ROOM: WaitForPlace = { kind: 'no_room', said: '0/3 nodes are available: 3 Insufficient nvidia.com/gpu' }
const NODE: ReportedPlace = { node: 'gpu-1', gpuType: 'NVIDIA GeForce RTX 4090', gpuCount: 2 }
const EVICTED = { kind: 'evicted', node: 'gpu-1', said: 'The node was low on memory' } as const

const workersOf = async (rig: Rig, id: string) => (await rig.ask('GET', `/v2/serverless/${id}/workers`)).json.workers

test('a worker with GPUs starts on a server without any, waits for room on its platform, and says where it is then', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  const id = await rig.endpoint(GPU)
  const job = await rig.submit(id)
  await rig.clock.advance(2_000)
  const worker = rig.worker(-1)
  assert.deepEqual(worker.spec.wish.gpuTypes.includes(NODE.gpuType!), true)
  assert.deepEqual([worker.spec.wish.gpuCount, worker.spec.protocolEnv.RUNPOD_GPU_COUNT], [2, '2'])
  assert.deepEqual(worker.spec.placement.gpus, [])
  const [waiting] = await workersOf(rig, id)
  assert.deepEqual(
    [waiting.status, waiting.phase, waiting.gpuCount, waiting.gpuTypeId],
    ['THROTTLED', 'placing', 2, null],
  )
  const why = await rig.why(id)
  assert.equal(why.cause, 'no_capacity')
  assert.match(why.summary, /no node of the cluster has room: 0\/3 nodes are available/)

  rig.fleet.place(worker.id, NODE)
  await rig.clock.advance(2_000)
  assert.equal(await worker.takeJob(), job)
  const [placed] = await workersOf(rig, id)
  assert.deepEqual([placed.phase, placed.node, placed.gpuTypeId, placed.gpuCount], ['ready', 'gpu-1', NODE.gpuType, 2])
  const record = await worker.record()
  assert.ok(record.placedAtMs! - record.createdAtMs >= 2_000)
  assert.deepEqual(
    rig.happened('worker.reported').map(({ what }) => what),
    ['waits', 'placed'],
  )
})

/** A worker of an endpoint that has a place and does a job. */
async function atWork(rig: Rig, fields: EndpointFields = {}) {
  const id = await rig.endpoint({ ...GPU, ...fields })
  const job = await rig.submit(id)
  await rig.clock.advance(2_000)
  const worker = rig.worker(-1)
  assert.equal(await worker.takeJob(), job)
  return { id, job, worker }
}

test('a worker that is taken away gets no more jobs, is replaced, and its job goes back without an attempt when it ends', async t => {
  const rig = await openRig(t, { arrival: () => NODE })
  const { id, job, worker } = await atWork(rig)
  rig.fleet.leave(worker.id, EVICTED)
  await rig.clock.advance(2_000)
  assert.deepEqual([(await worker.record()).state, (await worker.record()).stopReason], ['DRAINING', 'reclaimed'])
  assert.equal((await rig.job(id, job)).status, 'IN_PROGRESS', 'it may still finish, and must not run twice')
  const next = rig.worker(-1)
  assert.notEqual(next.id, worker.id)
  const { json } = await rig.ask('GET', `/v2/${id}/explain/${job}`)
  assert.match(json.summary, /was evicted from node gpu-1: The node was low on memory; unless it is done/)

  rig.fleet.exit(worker.id, { code: 143 })
  await rig.clock.advance(2_000)
  assert.equal(await next.takeJob(), job)
  assert.deepEqual([(await rig.job(id, job)).attempt, (await rig.job(id, job)).lostAttempts], [1, 0])
  await next.done(job)
  assert.equal((await rig.job(id, job)).status, 'COMPLETED')
})

test('a worker that is gone without a word from its platform has not crashed: no attempt, no back-off, a new one at once', async t => {
  const rig = await openRig(t, { arrival: () => NODE })
  const { id, job, worker } = await atWork(rig)
  for (let round = 0; round < 4; round += 1) {
    const last = rig.worker(-1)
    if (round > 0) assert.equal(await last.takeJob(), job)
    rig.fleet.reclaim(last.id, { kind: 'node_lost', node: 'gpu-1', said: '' })
    await rig.clock.advance(500)
  }
  assert.equal(rig.fleet.started.length, 5)
  assert.equal((await rig.job(id, job)).lostAttempts, 0)
  assert.deepEqual(
    rig.happened('worker.exited').map(({ asked, cause }) => [asked, cause]),
    Array.from({ length: 4 }, () => [true, 'ran on node gpu-1, which is lost']),
  )
  const ended = (await rig.ask('GET', `/v2/serverless/${id}/workers/${worker.id}`)).json
  assert.equal(ended.exit.cause, 'ran on node gpu-1, which is lost')
  assert.equal((await rig.health(id)).workers.unhealthy, 0)
})

test('a worker that is evicted while it starts is replaced, and its start does not count as a failure', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  const id = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(1_000)
  rig.fleet.reclaim(rig.worker(-1).id, { kind: 'deleted', said: '' })
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 2)
  assert.equal((await rig.alive(id)).length, 1)
  assert.deepEqual(rig.happened('worker.start_failed'), [])
})

test('an endpoint asks for as many workers as it wants, whatever waits already; quotas and the limit of workers hold it back', async t => {
  const rig = await openRig(t, {
    arrival: () => NO_ROOM,
    capacity: running => ({ freeWorkers: 5 - running, bound: 'the limit of 5 workers' }),
  })
  const id = await rig.endpoint({ ...GPU, workersMax: 9 })
  for (let job = 0; job < 3; job += 1) await rig.submit(id)
  await rig.clock.advance(2_000)
  assert.equal(rig.fleet.running().length, 3)
  for (let job = 0; job < 4; job += 1) await rig.submit(id)
  await rig.clock.advance(2_000)
  assert.equal(rig.fleet.running().length, 5)
  const { workers } = await rig.health(id)
  assert.deepEqual([workers.initializing, workers.throttled], [0, 7])
})

test('nothing on this machine ends for a worker of a platform', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  rig.machine = aMachine([aGpu(0)])
  const first = await rig.endpoint({ ...GPU, gpuCount: 1, workersMin: 1, idleTimeout: 3_600 })
  const second = await rig.endpoint({ ...GPU, gpuCount: 1 })
  await rig.submit(second)
  await rig.clock.advance(120_000)
  assert.deepEqual([(await rig.alive(first)).length, (await rig.alive(second)).length], [1, 1])
  assert.deepEqual(rig.happened('worker.evicted'), [])
})

test('a worker that is no longer needed stops waiting for a place', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  const id = await rig.endpoint({ ...GPU, workersMax: 9 })
  const jobs = [await rig.submit(id), await rig.submit(id), await rig.submit(id)]
  await rig.clock.advance(2_000)
  assert.equal(rig.fleet.running().length, 3)
  for (const job of jobs) await rig.ask('POST', `/v2/${id}/cancel/${job}`)
  await rig.clock.advance(5_000)
  assert.deepEqual(rig.fleet.running(), [])
  assert.deepEqual((await rig.alive(id)).length, 0)
  assert.deepEqual(
    rig.happened('worker.exited').map(({ asked }) => asked),
    [true, true, true],
  )
})

test('the wait for a place has no limit, also after another server has taken over', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  const id = await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(2_000)
  const worker = rig.worker(-1)
  await rig.clock.advance(20 * 60_000)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(20 * 60_000)
  assert.deepEqual(rig.fleet.running(), [worker.id])
  assert.equal((await worker.record()).startedAtMs, null)
  assert.match((await workersOf(rig, id))[0].reason, /no node of the cluster has room/)

  rig.fleet.place(worker.id, NODE)
  await rig.clock.advance(1_500)
  const record = await worker.record()
  assert.ok(record.startedAtMs !== null && rig.clock.now() - record.startedAtMs <= 1_500)
  assert.equal(record.platform?.place?.node, 'gpu-1')
  await rig.clock.advance(8 * 60_000)
  assert.equal((await worker.record()).stopReason, 'hung_start', 'once it runs it has to ask for jobs')
})

test('time without a place costs nothing, and after that the reported type counts', async t => {
  const prices = { ...CATALOG_PRICES, phases: new Set(['starting', 'running', 'idle'] as const) }
  const rig = await openRig(t, { arrival: () => NO_ROOM, prices })
  await rig.endpoint({ ...GPU, gpuIds: 'ADA_24,AMPERE_80', workersMin: 1 })
  await rig.clock.advance(10 * 60_000)
  const spent = async () => (await rig.ask('GET', '/v2/billing/serverless')).json.records[0]
  const waited = await spent()
  assert.deepEqual([waited.gpuAmount, waited.usage.billedMs], [0, 0])
  rig.fleet.place(rig.worker(-1).id, { node: 'big', gpuType: 'NVIDIA A100 80GB PCIe', gpuCount: 2 })
  await rig.clock.advance(5 * 60_000)
  const { gpuAmount, usage } = await spent()
  const hourly = 2 * GPU_POOLS.find(pool => pool.id === 'AMPERE_80')!.pricePerHour!
  assert.ok(Math.abs(gpuAmount - hourly / 12) < 0.001, `${gpuAmount}`)
  assert.ok(usage.billedMs > 298_000 && usage.billedMs <= 300_000)
})

test('what the platform says is written when it changes, and its bare text only now and then', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  await rig.endpoint({ ...GPU, workersMin: 1 })
  await rig.clock.advance(20_000)
  const { id } = rig.worker(-1)
  assert.equal(rig.calls('workers.reported'), 1)
  for (let nodes = 0; nodes < 30; nodes += 1) {
    rig.fleet.wait(id, { kind: 'no_room', said: `0/${nodes} nodes are available` })
    await rig.clock.advance(1_000)
  }
  assert.ok(rig.calls('workers.reported') <= 5, `${rig.calls('workers.reported')} writes`)
  rig.fleet.wait(id, { kind: 'platform_quota', said: 'exceeded quota: gpus' })
  await rig.clock.advance(1_000)
  assert.equal((await rig.worker(-1).record()).platform?.waits?.kind, 'platform_quota')
})

test('the catalogue does not say that there is nothing, since the platform may have anything', async t => {
  const rig = await openRig(t, { arrival: () => NO_ROOM })
  rig.machine = aMachine([], { vcpus: 1, memoryGb: 1 })
  const query = 'include=AVAILABILITY&product=SERVERLESS'
  const { gpus } = (await rig.ask('GET', `/v2/catalog/gpus?${query}&count=8`)).json
  const { cpus } = (await rig.ask('GET', `/v2/catalog/cpus?${query}&vcpuCount=32`)).json
  for (const { availability } of [...gpus, ...cpus]) assert.equal(availability, 'MEDIUM')
  const asked =
    'query { gpuTypes { id lowestPrice(input: { gpuCount: 2, minVcpuCount: 64 }) { stockStatus minVcpu } } }'
  const { gpuTypes } = await rig.graphql(asked)
  assert.ok(gpuTypes.length > 10)
  for (const { lowestPrice } of gpuTypes) assert.deepEqual(lowestPrice, { stockStatus: 'Medium', minVcpu: null })
})

test('workers of a GPU endpoint are not said to run on the CPU, and GraphQL names their node', async t => {
  const rig = await openRig(t, { arrival: () => NODE })
  const { id } = await atWork(rig)
  await rig.submit(id)
  const { json } = await rig.ask('GET', `/v2/${id}/explain`)
  assert.deepEqual(json.notes, [])
  const pods = `query { myself { endpoint(id: "${id}") { pods { gpuCount machineId machineType } } } }`
  const { myself } = await rig.graphql(pods)
  assert.deepEqual(myself.endpoint.pods[0], { gpuCount: 2, machineId: 'gpu-1', machineType: NODE.gpuType })
})

test('a platform freezes nothing: with FlashBoot idle workers end as without, and it is said', async t => {
  const rig = await openRig(t, { arrival: () => NODE })
  for (const flashBootType of ['FLASHBOOT', 'PRIORITY_FLASHBOOT']) {
    const { id, job, worker } = await atWork(rig, { flashBootType, idleTimeout: 5 })
    assert.match((await rig.ask('GET', `/v2/${id}/explain`)).json.notes[0], /FlashBoot has no effect on a cluster/)
    await worker.done(job)
    const started = rig.fleet.started.length
    await rig.clock.advance(60_000)
    assert.equal((await worker.record()).stopReason, 'idle')
    assert.deepEqual([(await rig.alive(id)).length, rig.fleet.started.length], [0, started])
  }
})

test('a serving worker leaves the rotation as soon as its platform announces its removal', async t => {
  const rig = await openRig(t, { arrival: () => NODE })
  const id = await rig.endpoint({ ...GPU, type: 'LB', workersMin: 1 })
  await rig.clock.advance(2_000)
  const worker = rig.worker(-1)
  rig.probes.answer(worker.id, { status: 200 })
  await rig.clock.advance(10_000)
  assert.equal((await worker.record()).state, 'READY')
  rig.fleet.leave(worker.id, { kind: 'node_drained', node: 'gpu-1', said: '' })
  await rig.clock.advance(1_000)
  assert.notEqual((await worker.record()).state, 'READY')
  assert.equal((await worker.record()).stopReason, 'reclaimed')
  const others = (await rig.alive(id)).filter(({ id: other }) => other !== worker.id)
  assert.deepEqual(
    others.map(({ state }) => state),
    ['READY'],
  )
})

test('models stay on the machine of the server, so workers of a platform do not wait for them', async t => {
  const models = new MemoryModels()
  const rig = await openRig(t, { arrival: () => NODE, models })
  const { id, worker } = await atWork(rig, { modelReferences: ['org/tiny'] })
  assert.deepEqual(worker.spec.models, [])
  assert.match(
    (await rig.ask('GET', `/v2/${id}/explain`)).json.notes[0],
    /each worker on the cluster downloads its own/,
  )
})

test('many workers that start or wait at once cost few reads and no writes', async t => {
  let arrival: WaitForPlace | ReportedPlace = NO_ROOM
  const rig = await openRig(t, { arrival: () => arrival })
  const id = await rig.endpoint({ ...GPU, workersMax: 60, workersMin: 60 })
  await rig.clock.advance(3_000)
  assert.equal(rig.fleet.running().length, 60)
  const counted = async () => {
    const methods = ['endpoints.find', 'templates.find', 'workers.find', 'workers.reported', 'workers.started'] as const
    const before = methods.map(method => rig.calls(method))
    await rig.clock.advance(10_000)
    return methods.reduce((sum, method, index) => sum + rig.calls(method) - before[index]!, 0)
  }
  assert.ok((await counted()) < 60)
  arrival = NODE
  for (const worker of rig.fleet.running()) rig.fleet.place(worker, NODE)
  await rig.clock.advance(3_000)
  assert.deepEqual(new Set((await rig.alive(id)).map(({ platform }) => platform?.place?.node)), new Set(['gpu-1']))
  assert.ok((await counted()) < 60)
})

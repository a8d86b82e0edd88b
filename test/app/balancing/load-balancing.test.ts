/**
 * Load-balancing endpoints: their workers start with requests and end without, and reach the
 * gateway when they are healthy.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DEFAULT_OWNER, type WorkerId } from '../../../src/core/ids.ts'
import { RequestQueues } from '../../../src/gateway/queue/request-queues.ts'
import type { Ports } from '../../../src/ports/ports.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { REFUSED } from '../../support/mock-probes.ts'
import { portsWith } from '../../support/ports.ts'
import { openRig } from '../../support/rig.ts'

test('the first request in the queue starts a worker at once, which is ready when its health check succeeds', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig, { template: { env: [{ key: 'PORT', value: '8000' }] } })
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 0)
  gateway.wait(id, 1)
  await rig.clock.advance(60)
  const worker = rig.worker(0)
  assert.deepEqual(worker.spec.serves, { port: 8000, healthPort: 8000, healthPath: '/ping', initTimeoutMs: 480_000 })
  assert.equal(gateway.stateOf(id, worker.id), 'starting')
  await rig.clock.advance(5_000)
  assert.equal((await worker.record()).state, 'STARTING')
  rig.probes.usual = { status: 200 }
  assert.ok(await rig.clock.until(() => gateway.ready(id).includes(worker.id), 1_000))
  assert.equal((await worker.record()).state, 'READY')
  const [target] = gateway.targets.get(id)!
  assert.deepEqual(target!.servedAt?.traffic, { host: '127.0.0.1', port: 20_000 })
  const [ready] = rig.happened('worker.moved').filter(({ to }) => to === 'READY')
  assert.ok(ready!.coldStartMs! >= 5_000)
  assert.equal(rig.fleet.started.length, 1)
})

test('a load-balancing worker gets its id, and neither job addresses nor a key', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(60)
  const { spec, id: workerId } = rig.worker(0)
  const { RUNPOD_POD_ID, RUNPOD_ENDPOINT_ID, RUNPOD_POD_HOSTNAME, RUNPOD_GPU_COUNT, ...others } = spec.protocolEnv
  assert.deepEqual([RUNPOD_POD_ID, RUNPOD_ENDPOINT_ID, RUNPOD_GPU_COUNT], [workerId, id, '0'])
  assert.match(RUNPOD_POD_HOSTNAME!, new RegExp(`^${workerId}-[0-9a-f]{8}$`))
  assert.deepEqual(
    Object.keys(others).filter(name => /WEBHOOK|KEY|PROXY/.test(name)),
    [],
  )
})

test('there are as many workers as requests in flight and in the queue need, within max', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMax: 3 })
  gateway.wait(id, 3)
  await rig.clock.advance(300)
  assert.equal(rig.fleet.running().length, 2)
  gateway.wait(id, 0)
  gateway.serve(id, rig.worker(0).id, 2)
  gateway.serve(id, rig.worker(1).id, 3)
  await rig.clock.advance(300)
  assert.equal(rig.fleet.running().length, 3)
  gateway.serve(id, rig.worker(2).id, 50)
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.running().length, 3)
})

test('a hard limit below the target makes more workers needed, and the gateway knows it', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const env = [{ key: 'RUNYARD_MAX_CONCURRENCY', value: '1' }]
  const id = await balancedEndpoint(rig, { scalerValue: 10, template: { env } })
  gateway.wait(id, 2)
  await rig.clock.advance(300)
  assert.equal(rig.fleet.running().length, 2)
  assert.equal(gateway.endpoints.get(id)!.maxConcurrency, 1)
  assert.equal(gateway.endpoints.get(id)!.requestCount, 10)
})

test('a worker ends when its last request is over for the idle time, and never below min', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, idleTimeout: 10 })
  await rig.clock.advance(300)
  gateway.wait(id, 3)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const [a, b] = [rig.worker(0).id, rig.worker(1).id]
  gateway.serve(id, a, 1)
  gateway.serve(id, b, 1)
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.running().length, 2)
  gateway.serve(id, b, 0)
  await rig.clock.advance(9_900)
  assert.equal(rig.fleet.running().length, 2)
  await rig.clock.advance(200)
  assert.deepEqual(rig.fleet.running(), [a])
  gateway.serve(id, a, 0)
  await rig.clock.advance(60_000)
  assert.deepEqual(rig.fleet.running(), [a])
})

test('when fewer workers were enough for a minute, the one with least to do finishes that and ends', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { scalerValue: 10 })
  gateway.wait(id, 30)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const ids = [0, 1, 2].map(index => rig.worker(index).id)
  for (const [index, worker] of ids.entries()) gateway.serve(id, worker, 10 - index)
  await rig.clock.advance(120_000)
  assert.equal(rig.fleet.running().length, 3)
  for (const [index, worker] of ids.entries()) gateway.serve(id, worker, 3 - index)
  await rig.clock.advance(55_000)
  assert.equal(gateway.ready(id).length, 3)
  await rig.clock.advance(20_000)
  assert.deepEqual(gateway.ready(id), [ids[0]])
  assert.deepEqual(
    ids.slice(1).map(worker => gateway.stateOf(id, worker)),
    ['draining', 'draining'],
  )
  assert.equal(rig.fleet.running().length, 3)
  gateway.serve(id, ids[2]!, 0)
  await rig.clock.advance(100)
  assert.deepEqual(rig.fleet.running(), ids.slice(0, 2))
})

test('a worker that drains gets nothing new and is stopped when its last request is over', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(300)
  const { id: worker } = rig.worker(0)
  gateway.serve(id, worker, 2)
  await rig.ask('DELETE', `/v2/serverless/${id}/workers/${worker}`)
  await rig.clock.advance(100)
  assert.equal(gateway.stateOf(id, worker), 'draining')
  await rig.clock.advance(60_000)
  assert.ok(!rig.fleet.terminated.has(worker))
  gateway.serve(id, worker, 0)
  await rig.clock.advance(100)
  assert.ok(rig.fleet.terminated.has(worker))
})

test('a worker drains for five and a half minutes at most', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(300)
  const { id: worker } = rig.worker(0)
  gateway.serve(id, worker, 1)
  await rig.ask('DELETE', `/v2/serverless/${id}/workers/${worker}`)
  await rig.clock.advance(329_000)
  assert.ok(!rig.fleet.terminated.has(worker))
  await rig.clock.advance(2_000)
  assert.ok(rig.fleet.terminated.has(worker))
})

test('an endpoint whose max is 0 is paused: its workers finish and end, and the gateway is notified', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const { id: worker } = rig.worker(0)
  gateway.serve(id, worker, 1)
  await rig.change(id, { workersMax: 0, workersMin: 0 })
  await rig.clock.advance(100)
  assert.equal(gateway.endpoints.get(id)!.paused, true)
  assert.equal(gateway.stateOf(id, worker), 'draining')
  assert.deepEqual(rig.fleet.running(), [worker])
  const { cause, summary } = await rig.why(id)
  assert.equal(cause, 'paused')
  assert.match(summary, /workersMax is 0, so requests are refused$/)
  gateway.serve(id, worker, 0)
  await rig.clock.advance(10_000)
  assert.deepEqual(rig.fleet.running(), [])
  assert.equal((await rig.why(id)).cause, 'paused')
})

test('the workers of an endpoint that is deleted may finish their requests for 30 s', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2 })
  await rig.clock.advance(300)
  const [busy, idle] = [rig.worker(0).id, rig.worker(1).id]
  gateway.serve(id, busy, 1)
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}`)).status, 204)
  await rig.clock.advance(100)
  assert.ok(gateway.forgotten.has(id))
  assert.deepEqual(rig.fleet.running(), [busy])
  assert.ok(!rig.fleet.running().includes(idle))
  await rig.clock.advance(29_000)
  assert.deepEqual(rig.fleet.running(), [busy])
  assert.ok(!rig.fleet.terminated.has(busy))
  await rig.clock.advance(2_100)
  assert.deepEqual(rig.fleet.running(), [])
  assert.ok(rig.fleet.terminated.has(busy), 'it is told to end, so that it can close its sockets properly')
})

/** One request in flight at the only worker of an endpoint, with the real lines. */
async function openWithRequest(t: TestContext) {
  let lines: RequestQueues | null = null
  const requests = (ports: Pick<Ports, 'clock' | 'notifier'>) =>
    (lines ??= new RequestQueues(portsWith({ ...ports, emit: () => {} })))
  const rig = await openRig(t, { requests })
  const endpointId = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(300)
  const { signal } = new AbortController()
  const reservation = await lines!.reserve({ endpointId, affinity: null, avoid: [], signal })
  return { rig, endpointId, reservation }
}

test('the request that a deleted endpoint has in flight is finished before its worker is stopped', async t => {
  const { rig, endpointId, reservation } = await openWithRequest(t)
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${endpointId}`)).status, 204)
  await rig.clock.advance(20_000)
  assert.deepEqual(rig.fleet.running(), [reservation.workerId])
  assert.ok(!rig.fleet.terminated.has(reservation.workerId))
  reservation.release('answered')
  await rig.clock.advance(2_000)
  assert.deepEqual(rig.fleet.running(), [])
})

test('a request in flight while its endpoint becomes a queue endpoint is finished too', async t => {
  const { rig, endpointId, reservation } = await openWithRequest(t)
  await rig.change(endpointId, { type: 'QB', scalerType: 'QUEUE_DELAY', workersMin: 0 })
  await rig.clock.advance(20_000)
  assert.deepEqual(rig.fleet.running(), [reservation.workerId])
  assert.ok(!rig.fleet.terminated.has(reservation.workerId))
  reservation.release('answered')
  await rig.clock.advance(10_000)
  assert.deepEqual(rig.fleet.running(), [])
})

test('a server that stops lets workers finish their requests, for as long as it may take', async t => {
  const { rig, gateway } = await openBalancedRig(t, { drainTimeoutMs: 30_000 })
  const id = await balancedEndpoint(rig, { workersMin: 2 })
  await rig.clock.advance(300)
  const [busy, idle] = [rig.worker(0).id, rig.worker(1).id]
  gateway.serve(id, busy, 1)
  const stopped = rig.stop()
  await rig.clock.advance(1_000)
  assert.equal(gateway.stateOf(id, busy), 'draining')
  assert.deepEqual([rig.fleet.terminated.has(busy), rig.fleet.terminated.has(idle)], [false, true])
  gateway.serve(id, busy, 0)
  await rig.clock.advance(1_000)
  assert.ok(rig.fleet.terminated.has(busy))
  await stopped
})

test('workers that a restarted server adopts get requests after a health check, and no new one is started', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await balancedEndpoint(rig, { workersMin: 2 })
  await rig.clock.advance(300)
  const ids = [rig.worker(0).id, rig.worker(1).id]
  await rig.crash()
  rig.probes.answer(ids[1]!, REFUSED)
  await rig.start('http://127.0.0.1:9999')
  await rig.clock.advance(1_000)
  assert.deepEqual(opened.gateway.ready(id), [ids[0]])
  assert.equal(opened.gateway.stateOf(id, ids[1]!), 'starting')
  rig.probes.answer(ids[1]!, { status: 200 })
  await rig.clock.advance(1_100)
  assert.deepEqual(opened.gateway.ready(id).sort(), [...ids].sort())
  assert.deepEqual(rig.fleet.running(), ids)
})

test('a worker that has ended is started again under its id for a request with strict affinity to it', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMax: 2 })
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const { id: worker } = rig.worker(0)
  await rig.clock.advance(20_000)
  assert.deepEqual(rig.fleet.running(), [])
  gateway.resume(id, worker, 'unheard-of' as WorkerId)
  await rig.clock.advance(300)
  assert.deepEqual(rig.fleet.running(), [worker])
  gateway.resume(id)
  const again = await rig.worker(-1).record()
  assert.deepEqual([again.state, again.exit, again.stopReason], ['READY', null, null])
  assert.deepEqual(gateway.ready(id), [worker])
})

test('a worker is not started again for one request where max is reached', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMax: 1, idleTimeout: 1 })
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const { id: worker } = rig.worker(0)
  await rig.clock.advance(5_000)
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const { id: other } = rig.worker(-1)
  gateway.serve(id, other, 1)
  gateway.resume(id, worker)
  await rig.clock.advance(10_000)
  assert.deepEqual(rig.fleet.running(), [other])
  gateway.serve(id, other, 0)
  await rig.clock.advance(5_000)
  assert.deepEqual(rig.fleet.running(), [worker])
})

test('the time of a worker counts as running while it has requests, and as idle otherwise', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { idleTimeout: 30 })
  const usage = async () => {
    const [fromMs] = [rig.clock.startMs - (rig.clock.startMs % 3_600_000)]
    const asked = { owner: DEFAULT_OWNER, endpointId: id, bounds: [fromMs, fromMs + 3 * 3_600_000] }
    const { sums } = await rig.store.usage.workers(asked, rig.clock.now())
    const sum = (name: 'runningMs' | 'idleMs' | 'startingMs') => sums.reduce((all, { usage: of }) => all + of[name], 0)
    return { running: Math.round(sum('runningMs') / 1_000), idle: Math.round(sum('idleMs') / 1_000) }
  }
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  gateway.wait(id, 0)
  const { id: worker } = rig.worker(0)
  gateway.serve(id, worker, 1)
  await rig.clock.advance(95_000)
  assert.deepEqual(
    (await rig.store.usage.running(DEFAULT_OWNER)).map(({ phase }) => phase),
    ['running'],
  )
  assert.ok((await usage()).running >= 90)
  gateway.serve(id, worker, 0)
  await rig.clock.advance(20_000)
  assert.deepEqual(
    (await rig.store.usage.running(DEFAULT_OWNER)).map(({ phase }) => phase),
    ['idle'],
  )
  for (let time = 0; time < 10; time += 1) {
    gateway.serve(id, worker, 1)
    await rig.clock.advance(1_000)
    gateway.serve(id, worker, 0)
    await rig.clock.advance(1_000)
  }
  await rig.clock.advance(31_000)
  assert.deepEqual(rig.fleet.running(), [])
  assert.deepEqual(await usage(), { running: 105, idle: 59 })
})

/**
 * Unhealthy workers of load-balancing endpoints: out of rotation and back, or ended, with the explanation.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { exitText } from '../../../src/core/workers/worker.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { aMachine } from '../../support/machines.ts'
import { REFUSED } from '../../support/mock-probes.ts'
import type { Rig } from '../../support/rig.ts'

const OK = { status: 200 }
const MINUTE = 60_000

async function statusOf(rig: Rig, id: EndpointId, worker: WorkerId) {
  const { workers } = (await rig.ask('GET', `/v2/serverless/${id}/workers`)).json
  return workers.find((one: { id: string }) => one.id === worker)
}

const why = async (rig: Rig, id: EndpointId) => (await rig.ask('GET', `/v2/${id}/explain`)).json

test('an unhealthy worker gets no requests, shows the reason, and gets requests again after one success', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 2 })
  await rig.clock.advance(500)
  const [ill, well] = [rig.worker(0).id, rig.worker(1).id]
  rig.probes.answer(ill, { status: 503 })
  await rig.clock.advance(8_000)
  assert.deepEqual(gateway.ready(id), [well])
  assert.equal(gateway.stateOf(id, ill), 'starting')
  const shown = await statusOf(rig, id, ill)
  assert.deepEqual([shown.status, shown.reason], ['UNHEALTHY', 'it answers 503 at /ping'])
  assert.deepEqual((await rig.health(id)).workers, {
    idle: 1,
    initializing: 0,
    ready: 1,
    running: 0,
    throttled: 0,
    unhealthy: 1,
  })
  rig.probes.answer(ill, OK)
  await rig.clock.advance(1_100)
  assert.deepEqual(gateway.ready(id).sort(), [ill, well].sort())
  assert.deepEqual([(await statusOf(rig, id, ill)).status, (await rig.worker(0).record()).problem], ['IDLE', null])
  assert.deepEqual(
    rig.happened('worker.health').map(({ workerId, healthy, problem }) => [workerId, healthy, problem]),
    [
      [ill, false, 'it answers 503 at /ping'],
      [ill, true, null],
    ],
  )
})

test('a single failed health check changes nothing', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 1 })
  await rig.clock.advance(500)
  const { id: worker } = rig.worker(0)
  let count = 0
  rig.probes.answer(worker, async () => {
    count += 1
    return count % 3 === 0 ? OK : { status: 500 }
  })
  gateway.fewestReady.set(id, 1)
  await rig.clock.advance(5 * MINUTE)
  assert.ok(count > 30)
  assert.equal(gateway.fewestReady.get(id), 1)
})

test('an unhealthy worker is replaced at once, and ended after a minute', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 3 })
  await rig.clock.advance(500)
  const ill = rig.worker(0)
  rig.probes.answer(ill.id, { status: 500 })
  await rig.clock.advance(10_000)
  const other = rig.worker(1).id
  assert.deepEqual(gateway.ready(id), [other])
  assert.ok(rig.fleet.running().includes(ill.id))
  await rig.clock.advance(MINUTE)
  assert.deepEqual(rig.fleet.running(), [other])
  const record = await ill.record()
  assert.equal(record.stopReason, 'unhealthy')
  assert.match(
    exitText(record, record.exit!),
    /^was ended because it was not healthy for 6\d s: it answers 500 at \/ping$/,
  )
})

test('an unhealthy worker with requests in flight is ended later, since it may handle one request at a time', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 1 })
  await rig.clock.advance(500)
  const { id: worker } = rig.worker(0)
  gateway.serve(id, worker, 1)
  rig.probes.answer(worker, { problem: 'no answer within 5 s', refused: false })
  await rig.clock.advance(5 * MINUTE)
  assert.deepEqual(rig.fleet.running(), [worker])
  assert.deepEqual(gateway.ready(id), [])
  await rig.clock.advance(80_000)
  assert.ok(rig.fleet.killed.has(worker))
})

test('a worker on whose port nobody listens is ended after 8 minutes, and explain names the port and the variable', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig, { workersMax: 1, template: { env: [{ key: 'PORT', value: '8000' }] } })
  gateway.wait(id, 1)
  await rig.clock.advance(5_000)
  const worker = rig.worker(0)
  const early = await why(rig, id)
  assert.equal(early.cause, 'worker_starting')
  assert.match(early.summary, /runs and has not reported that it is healthy yet, for 5 s: nothing listens on port 8000/)
  assert.match(early.action, /^wait/)
  assert.equal((await statusOf(rig, id, worker.id)).status, 'INITIALIZING')
  await rig.clock.advance(MINUTE)
  // Its client has given up by now.
  gateway.wait(id, 0)
  assert.equal((await why(rig, id)).cause, 'worker_starting')
  gateway.wait(id, 1)
  assert.match(
    (await why(rig, id)).action,
    /^let the program listen on the port in its variable PORT\. In a container .* at all addresses \(0\.0\.0\.0\)/,
  )
  await rig.clock.advance(6 * MINUTE)
  assert.deepEqual(rig.fleet.running(), [worker.id])
  await rig.clock.advance(MINUTE)
  assert.ok(rig.fleet.killed.has(worker.id))
  assert.equal((await worker.record()).stopReason, 'never_healthy')
  gateway.wait(id, 0)
  await rig.clock.advance(100)
  const late = await why(rig, id)
  assert.equal(late.cause, 'never_healthy')
  assert.match(
    late.summary,
    /was ended because it was not healthy within 480 s of its start: nothing listens on port 8000/,
  )
  assert.match(late.action, /PORT may be set to the port on which it listens/)
})

test('the port of a folder is the one that the driver chose', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig, { template: { imageName: 'dir:/somewhere' } })
  gateway.wait(id, 1)
  await rig.clock.advance(5_000)
  assert.match((await why(rig, id)).summary, /nothing listens on port 20000 \(its variable PORT\)/)
})

test('a program without the path of the health check is unhealthy, and explain names the variable for it', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = { status: 404 }
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(5_000)
  const { cause, summary, action } = await why(rig, id)
  assert.equal(cause, 'unhealthy')
  assert.match(summary, /is not healthy and gets no requests: it answers 404 at \/ping$/)
  assert.match(action, /^set HEALTH_CHECK_PATH to a path/)
  assert.equal((await statusOf(rig, id, rig.worker(0).id)).status, 'UNHEALTHY')
})

test('a path of the health check that redirects is not followed, and explain says what to name instead', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = { status: 307 }
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(5_000)
  const { cause, action } = await why(rig, id)
  assert.equal(cause, 'unhealthy')
  assert.match(action, /^set HEALTH_CHECK_PATH to the path that answers 200 itself/)
})

test('a model that takes longer to load has the time that RUNPOD_INIT_TIMEOUT says', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = { status: 204 }
  const env = [{ key: 'RUNPOD_INIT_TIMEOUT', value: '1200' }]
  const id = await balancedEndpoint(rig, { template: { env } })
  gateway.wait(id, 1)
  await rig.clock.advance(19 * MINUTE)
  const { id: worker } = rig.worker(0)
  assert.deepEqual(rig.fleet.running(), [worker])
  assert.match((await why(rig, id)).summary, /it answers 204 at \/ping, so it initializes$/)
  await rig.clock.advance(2 * MINUTE)
  assert.ok(rig.fleet.killed.has(worker))
})

test('the download time of an image does not count as start time', async t => {
  let begin = () => {}
  const { rig, gateway } = await openBalancedRig(t, { onStart: () => new Promise<void>(resolve => (begin = resolve)) })
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(20 * MINUTE)
  const { id: worker } = rig.worker(0)
  assert.deepEqual(rig.fleet.running(), [worker])
  begin()
  await rig.clock.advance(7 * MINUTE)
  assert.deepEqual(rig.fleet.running(), [worker])
  await rig.clock.advance(2 * MINUTE)
  assert.ok(rig.fleet.killed.has(worker))
})

test('a worker whose start was lost with a killed server has no more time to become healthy than others', async t => {
  const { rig, gateway } = await openBalancedRig(t, { onStart: () => new Promise<void>(() => {}) })
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(1_000)
  const { id: worker } = rig.worker(0)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(7 * MINUTE)
  assert.deepEqual(rig.fleet.running(), [worker])
  await rig.clock.advance(2 * MINUTE)
  assert.ok(rig.fleet.killed.has(worker))
})

test('workers that crash are started again after a back-off, and explain says why requests were refused', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.probes.usual = REFUSED
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(300)
  rig.print(rig.worker(0).id, "ModuleNotFoundError: No module named 'fastapi'")
  rig.fleet.exit(rig.worker(0).id, { code: 1 })
  await rig.clock.advance(100)
  const { cause, summary, action } = await why(rig, id)
  assert.equal(cause, 'crash_loop')
  assert.match(summary, /exited with code 1; the next one starts in 1 s/)
  assert.match(action, /install the Python module 'fastapi'/)
  gateway.wait(id, 0)
  await rig.clock.advance(100)
  assert.equal((await why(rig, id)).cause, 'crash_loop')
})

test('a store that fails for a moment delays the first request and loses no worker', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.failNext('workers.seen', 'before', 2)
  const id = await balancedEndpoint(rig)
  gateway.wait(id, 1)
  await rig.clock.advance(500)
  assert.deepEqual(gateway.ready(id), [])
  await rig.clock.advance(3_000)
  assert.equal(gateway.ready(id).length, 1)
  assert.equal((await rig.worker(0).record()).state, 'READY')
})

test('health checks of hundreds of workers that hang do not hold up the others', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  rig.machine = aMachine([], { vcpus: 640, memoryGb: 5_120 })
  rig.probes.usual = REFUSED
  const hanging = await balancedEndpoint(rig, { workersMin: 200, workersMax: 200 })
  await rig.clock.advance(500)
  for (const { workerId } of rig.fleet.started) {
    rig.probes.answer(workerId, () => new Promise(resolve => rig.clock.after(5_000, () => resolve(REFUSED))))
  }
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.running().length, 200)
  assert.deepEqual(gateway.ready(hanging), [])
  const id = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(500)
  rig.probes.answer(rig.worker(-1).id, OK)
  await rig.clock.advance(12_000)
  assert.deepEqual(gateway.ready(id), [rig.worker(-1).id])
})

test('all views of workers and counts agree about requests', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 2, scalerValue: 1 })
  await rig.clock.advance(500)
  const [busy] = [rig.worker(0).id]
  gateway.serve(id, busy, 3)
  gateway.wait(id, 2)
  await rig.clock.advance(100)
  const health = await rig.health(id)
  assert.deepEqual([health.jobs.inProgress, health.jobs.inQueue], [3, 2])
  assert.deepEqual([health.workers.running, health.workers.idle, health.workers.ready], [1, 1, 2])
  const shown = await statusOf(rig, id, busy)
  assert.deepEqual([shown.status, shown.phase, shown.jobsHeld], ['RUNNING', 'ready', 3])
  const { cause, summary } = await why(rig, id)
  assert.equal(cause, 'max_reached')
  assert.match(summary, /^workersMax is 2, and there are 2 workers with 3 requests in flight$/)
  const top = (await rig.ask('GET', '/ops/top')).json.endpoints[0]
  assert.equal(top.summary.running, 1)
})

test('reading the health of an endpoint starts no worker', async t => {
  const { rig } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  await rig.health(id)
  await rig.clock.advance(MINUTE)
  assert.equal(rig.fleet.started.length, 0)
  assert.equal((await why(rig, id)).summary, 'no request is waiting')
})

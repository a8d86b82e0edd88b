/** New versions of load-balancing endpoints, and places that endpoints take from each other, under load. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { REFUSED } from '../../support/mock-probes.ts'

const change = { env: [{ key: 'RELEASE', value: '2' }] }

test('a release under load never leaves fewer workers ready, and every old one finishes its requests', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 4, scalerValue: 2 })
  await rig.clock.advance(500)
  const old = [rig.worker(0).id, rig.worker(1).id]
  for (const worker of old) gateway.serve(id, worker, 2)
  await rig.clock.advance(100)
  gateway.fewestReady.set(id, 2)
  rig.probes.usual = REFUSED
  for (const worker of old) rig.probes.answer(worker, { status: 200 })
  await rig.change(id, change)
  await rig.clock.advance(30_000)
  assert.deepEqual(gateway.ready(id).sort(), [...old].sort())
  const fresh = [rig.worker(2).id, rig.worker(3).id]
  rig.probes.answer(fresh[0]!, { status: 200 })
  await rig.clock.advance(2_000)
  assert.equal(gateway.ready(id).length, 2)
  rig.probes.answer(fresh[1]!, { status: 200 })
  await rig.clock.advance(2_000)
  assert.deepEqual(gateway.ready(id).sort(), [...fresh].sort())
  assert.equal(gateway.fewestReady.get(id), 2)
  await rig.clock.advance(60_000)
  assert.deepEqual(
    old.filter(worker => rig.fleet.terminated.has(worker)),
    [],
  )
  for (const worker of old) gateway.serve(id, worker, 0)
  await rig.clock.advance(200)
  assert.deepEqual(rig.fleet.running().sort(), [...fresh].sort())
  assert.equal(rig.fleet.started.length, 4)
})

test('where max leaves no room for both, workers are replaced one at a time and one is ready all the time', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 2 })
  await rig.clock.advance(500)
  const old = [rig.worker(0).id, rig.worker(1).id]
  for (const worker of old) gateway.serve(id, worker, 1)
  gateway.fewestReady.set(id, 2)
  await rig.change(id, change)
  for (let time = 0; time < 20; time += 1) {
    await rig.clock.advance(1_000)
    for (const worker of old) if (gateway.stateOf(id, worker) === 'draining') gateway.serve(id, worker, 0)
  }
  assert.equal(gateway.fewestReady.get(id), 1)
  assert.equal(gateway.ready(id).length, 2)
  assert.deepEqual(
    gateway.ready(id).filter(worker => old.includes(worker)),
    [],
  )
})

test('at a maximum of one, the old worker ends first, and requests wait until the new one is ready', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 1 })
  await rig.clock.advance(500)
  const old = rig.worker(0).id
  gateway.serve(id, old, 1)
  await rig.change(id, change)
  await rig.clock.advance(100)
  assert.equal(gateway.stateOf(id, old), 'draining')
  gateway.wait(id, 1)
  assert.equal((await rig.why(id)).cause, 'worker_restarting')
  gateway.serve(id, old, 0)
  await rig.clock.advance(3_000)
  assert.deepEqual(gateway.ready(id), [rig.worker(1).id])
})

test('a version whose workers crash leaves the old ones in rotation', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 2 })
  await rig.clock.advance(500)
  const old = rig.worker(0).id
  gateway.serve(id, old, 1)
  rig.probes.usual = REFUSED
  rig.probes.answer(old, { status: 200 })
  await rig.change(id, change)
  gateway.fewestReady.set(id, 1)
  for (let time = 0; time < 300; time += 1) {
    await rig.clock.advance(200)
    for (const worker of rig.fleet.running()) if (worker !== old) rig.fleet.exit(worker, { code: 1 })
  }
  assert.ok(rig.fleet.started.length > 3)
  assert.deepEqual(gateway.ready(id), [old])
  assert.equal(gateway.fewestReady.get(id), 1)
})

test('an old worker makes room if the machine cannot hold both', async t => {
  const capacity = (running: number) => ({ freeWorkers: 1 - running, bound: 'the limit of the test' })
  const { rig, gateway } = await openBalancedRig(t, { capacity })
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 3 })
  await rig.clock.advance(500)
  const old = rig.worker(0).id
  await rig.change(id, change)
  await rig.clock.advance(9_000)
  assert.deepEqual(gateway.ready(id), [old])
  await rig.clock.advance(5_000)
  assert.deepEqual(gateway.ready(id), [rig.worker(1).id])
})

test('an idle worker makes room for another endpoint, one with a request in flight does not', async t => {
  const capacity = (running: number) => ({ freeWorkers: 1 - running, bound: 'the limit of the test' })
  const { rig, gateway } = await openBalancedRig(t, { capacity, placing: { dwellMs: 1_000 } })
  const first = await balancedEndpoint(rig, { idleTimeout: 3_600 })
  gateway.wait(first, 1)
  await rig.clock.advance(500)
  const { id: worker } = rig.worker(0)
  gateway.wait(first, 0)
  gateway.serve(first, worker, 1)
  const second = await balancedEndpoint(rig)
  gateway.wait(second, 1)
  await rig.clock.advance(8_000)
  assert.deepEqual(rig.fleet.running(), [worker])
  assert.match((await rig.why(second)).summary, /the limit of the test/)
  gateway.serve(first, worker, 0)
  await rig.clock.advance(6_000)
  assert.equal((await rig.worker(0).record()).stopReason, 'evicted')
  assert.equal(gateway.ready(second).length, 1)
})

test('an edit in a dev session takes the worker of the source before away at once, and starts another one', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const edited = (generation: string) => [
    { key: 'RUNPOD_DEV_APP', value: 'shop' },
    { key: 'RUNPOD_DEV_GENERATION', value: generation },
  ]
  const id = await balancedEndpoint(rig, { workersMin: 0, workersMax: 3, env: edited('1') })
  gateway.wait(id, 1)
  await rig.clock.advance(500)
  const old = rig.worker(0).id
  gateway.wait(id, 0)
  gateway.serve(id, old, 1)
  await rig.clock.advance(100)
  rig.probes.usual = REFUSED
  await rig.change(id, { env: edited('2') })
  await rig.clock.advance(100)
  assert.deepEqual([gateway.stateOf(id, old), gateway.ready(id)], ['draining', []])
  const fresh = rig.worker(1).id
  rig.probes.answer(fresh, { status: 200 })
  await rig.clock.advance(2_000)
  assert.deepEqual(gateway.ready(id), [fresh])
  assert.equal(rig.fleet.terminated.has(old), false, 'it finishes its request')
})

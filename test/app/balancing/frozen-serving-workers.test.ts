/**
 * Workers of load-balancing endpoints with FlashBoot: frozen when idle, and sent no request before they
 * have passed a health check.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BalancedRig, balancedEndpoint, openBalancedRig, serveOnce } from '../../support/balanced.ts'

const OK = { status: 200 }

/** A load-balancing endpoint whose only worker has had a request, was idle for its second and is frozen. */
async function withFrozen({ rig, gateway }: BalancedRig) {
  const id = await balancedEndpoint(rig, { flashBootType: 'FLASHBOOT', idleTimeout: 1 })
  const worker = await serveOnce({ rig, gateway }, id)
  await rig.clock.advance(1_200)
  assert.equal((await worker.record()).state, 'FROZEN')
  return { id, worker }
}

test('an idle serving worker is frozen, gets nothing, and is not asked for its health', async t => {
  const balanced = await openBalancedRig(t)
  const { id, worker } = await withFrozen(balanced)
  const { rig, gateway } = balanced
  assert.ok(rig.fleet.frozen.has(worker.id))
  assert.deepEqual(gateway.ready(id), [])
  let asked = 0
  rig.probes.answer(worker.id, async () => {
    asked += 1
    return OK
  })
  await rig.clock.advance(120_000)
  assert.deepEqual([asked, (await worker.record()).state], [0, 'FROZEN'])
})

test('a waiting request thaws the worker, which is sent nothing before one healthy response', async t => {
  const balanced = await openBalancedRig(t)
  const { id, worker } = await withFrozen(balanced)
  const { rig, gateway } = balanced
  const { promise, resolve } = Promise.withResolvers<typeof OK>()
  rig.probes.answer(worker.id, () => promise)
  gateway.wait(id, 1)
  await rig.clock.advance(200)
  assert.equal((await worker.record()).state, 'READY')
  assert.ok(!rig.fleet.frozen.has(worker.id))
  assert.deepEqual(gateway.ready(id), [], 'it has not answered yet')
  resolve(OK)
  await rig.clock.advance(50)
  assert.deepEqual(gateway.ready(id), [worker.id])
  assert.equal(rig.fleet.started.length, 1)
})

test('a thawed worker that is well gets its request at once, not at the next step of the loops', async t => {
  const balanced = await openBalancedRig(t)
  const { id, worker } = await withFrozen(balanced)
  const { rig, gateway } = balanced
  rig.probes.answer(worker.id, async () => OK)
  gateway.wait(id, 1)
  await rig.clock.advance(5)
  assert.deepEqual(gateway.ready(id), [worker.id])
})

test('a worker that was sent a request while it was being frozen is not frozen', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { flashBootType: 'FLASHBOOT', idleTimeout: 1 })
  gateway.wait(id, 1)
  await rig.clock.advance(1_000)
  const worker = rig.worker(0)
  gateway.wait(id, 0)
  gateway.serve(id, worker.id, 0)
  // The gateway sends it a request after the plan, and before it receives the freeze.
  gateway.beforeKeep = targets => {
    if (targets.find(({ workerId }) => workerId === worker.id)?.state === 'starting') gateway.serve(id, worker.id, 1)
  }
  await rig.clock.advance(1_500)
  gateway.beforeKeep = () => {}
  assert.deepEqual([(await worker.record()).state, rig.fleet.frozen.has(worker.id)], ['READY', false])
})

test('a thawed worker that is not well is treated as any other', async t => {
  const balanced = await openBalancedRig(t)
  const { id, worker } = await withFrozen(balanced)
  const { rig, gateway } = balanced
  rig.probes.answer(worker.id, { status: 500 })
  gateway.wait(id, 1)
  await rig.clock.advance(75_000)
  assert.equal((await worker.record()).stopReason, 'unhealthy')
})

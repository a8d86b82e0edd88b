/**
 * Workers with sleep hooks: they sleep before they are frozen, wake after they were thawed, and
 * are sent nothing in between.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HealthAnswer } from '../../../src/core/balancing/health-check.ts'
import { type BalancedRig, balancedEndpoint, openBalancedRig, serveOnce } from '../../support/balanced.ts'

const OK = { status: 200 }
const ENV = [
  { key: 'RUNYARD_SLEEP_URL', value: '/sleep?level=1' },
  { key: 'RUNYARD_WAKE_URL', value: '/wake_up' },
]

/** A load-balancing endpoint with sleep hooks, whose only worker has had a request and is idle for its second. */
async function idle({ rig, gateway }: BalancedRig) {
  const id = await balancedEndpoint(rig, { flashBootType: 'FLASHBOOT', idleTimeout: 1, env: ENV })
  const worker = await serveOnce({ rig, gateway }, id)
  await rig.clock.advance(1_200)
  return { id, worker, posts: () => rig.probes.posts.map(({ path }) => path) }
}

test('a worker sleeps before it is frozen, and wakes before it is asked for its health', async t => {
  const balanced = await openBalancedRig(t)
  const { rig, gateway } = balanced
  const asleep = Promise.withResolvers<HealthAnswer>()
  rig.probes.posted = () => asleep.promise
  const { id, worker, posts } = await idle(balanced)
  assert.deepEqual(posts(), ['/sleep?level=1'])
  assert.deepEqual([(await worker.record()).state, rig.fleet.frozen.has(worker.id)], ['FROZEN', false])
  asleep.resolve(OK)
  await rig.clock.advance(10)
  assert.ok(rig.fleet.frozen.has(worker.id))

  const awake = Promise.withResolvers<HealthAnswer>()
  rig.probes.posted = () => awake.promise
  const checks = rig.probes.counts.get(worker.id)
  gateway.wait(id, 1)
  await rig.clock.advance(90_000)
  assert.deepEqual(posts(), ['/sleep?level=1', '/wake_up'])
  assert.deepEqual([rig.fleet.frozen.has(worker.id), rig.probes.counts.get(worker.id)], [false, checks])
  assert.deepEqual(gateway.ready(id), [], 'it is not awake')
  awake.resolve(OK)
  await rig.clock.advance(100)
  assert.deepEqual(gateway.ready(id), [worker.id])
  assert.equal((await worker.record()).state, 'READY')
})

test('a worker that does not sleep is frozen all the same', async t => {
  const balanced = await openBalancedRig(t)
  balanced.rig.probes.posted = () => ({ status: 500 })
  const { worker, posts } = await idle(balanced)
  assert.ok(balanced.rig.fleet.frozen.has(worker.id))
  await balanced.rig.clock.advance(5_000)
  assert.deepEqual(posts(), ['/sleep?level=1'], 'it is asked once')
})

test('a worker that does not wake is ended, and people see why', async t => {
  const balanced = await openBalancedRig(t)
  const { rig, gateway } = balanced
  const { id, worker } = await idle(balanced)
  rig.probes.posted = () => ({ status: 307 })
  gateway.wait(id, 1)
  await rig.clock.advance(500)
  const { stopReason, problem } = await worker.record()
  assert.equal(stopReason, 'unhealthy')
  assert.deepEqual(problem, { kind: 'wake_failed', path: '/wake_up', said: 'it answers 307' })
})

test('a worker that is wanted again while it is put to sleep wakes', async t => {
  const balanced = await openBalancedRig(t)
  const { rig, gateway } = balanced
  const asleep = Promise.withResolvers<HealthAnswer>()
  rig.probes.posted = path => (path === '/wake_up' ? OK : asleep.promise)
  const { id, worker, posts } = await idle(balanced)
  gateway.wait(id, 1)
  await rig.clock.advance(500)
  assert.deepEqual(gateway.ready(id), [])
  asleep.resolve(OK)
  await rig.clock.advance(100)
  assert.deepEqual(posts(), ['/sleep?level=1', '/wake_up'])
  assert.deepEqual(gateway.ready(id), [worker.id])
})

test('a server that starts wakes a worker that runs, before it asks for its health, and never a frozen one', async t => {
  const balanced = await openBalancedRig(t)
  const { rig } = balanced
  const { worker, posts } = await idle(balanced)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(500)
  assert.deepEqual([posts(), rig.fleet.frozen.has(worker.id)], [['/sleep?level=1'], true])

  await rig.crash()
  await rig.store.workers.thaw(worker.id, rig.clock.now(), null)
  const awake = Promise.withResolvers<HealthAnswer>()
  rig.probes.posted = () => awake.promise
  const checks = rig.probes.counts.get(worker.id)
  await rig.start()
  await rig.clock.advance(500)
  assert.deepEqual(posts(), ['/sleep?level=1', '/wake_up'])
  assert.equal(rig.probes.counts.get(worker.id), checks)
  awake.resolve(OK)
  await rig.clock.advance(100)
  assert.equal(rig.probes.counts.get(worker.id), checks! + 1)
})

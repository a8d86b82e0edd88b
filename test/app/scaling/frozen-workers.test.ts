import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const HOUR = 3_600_000

/** An endpoint with a worker that did a job just now, and is frozen when it was idle for a second. */
async function withIdle(rig: Rig, fields = {}): Promise<{ endpoint: EndpointId; worker: RigWorker }> {
  const endpoint = await rig.endpoint({ flashBootType: 'FLASHBOOT', idleTimeout: 1, ...fields })
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  const worker = rig.worker(-1)
  await worker.done(await worker.takeJob())
  return { endpoint, worker }
}

/** As {@link withIdle}, and it is frozen. */
async function withFrozen(rig: Rig, fields = {}): Promise<{ endpoint: EndpointId; worker: RigWorker }> {
  const { endpoint, worker } = await withIdle(rig, fields)
  await rig.clock.advance(1_100)
  assert.equal((await worker.record()).state, 'FROZEN')
  return { endpoint, worker }
}

test('an idle worker is frozen, is thawed for the next job, and gets it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  assert.ok(rig.fleet.frozen.has(worker.id))
  const job = await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.equal((await worker.record()).state, 'READY')
  assert.ok(!rig.fleet.frozen.has(worker.id))
  assert.equal(await worker.takeJob(), job)
  assert.equal(rig.fleet.started.length, 1, 'no other worker was started')
})

test('a poll that was open before the freeze ends without a job, and only the next one gets it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  const before = worker.take()
  await rig.clock.advance(1_000)
  const job = await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.equal((await before).status, 204)
  assert.equal(await worker.takeJob(), job)
})

test('a poll that was open when the worker was frozen is held, ends after its time, and gets nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withIdle(rig)
  const open = worker.take()
  await rig.clock.advance(1_100)
  assert.equal((await worker.record()).state, 'FROZEN')
  const job = await rig.submit(endpoint)
  await rig.clock.advance(5)
  assert.equal((await open).status, 204, 'the client may have given up while it was frozen')
  assert.equal(await worker.takeJob(), job)
})

test('a job that comes while its worker is being frozen goes to the first poll after the thaw', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withIdle(rig)
  const goOn = rig.fleet.holdNextFreeze()
  const open = worker.take()
  const ended: number[] = []
  void open.then(({ status }) => ended.push(status))
  await rig.clock.advance(1_100)
  const job = await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.deepEqual([(await worker.record()).state, ended], ['READY', []], 'another poll would be ended, too')
  goOn()
  await rig.clock.advance(20)
  assert.deepEqual([ended, rig.fleet.frozen.has(worker.id)], [[204], false])
  assert.equal(await worker.takeJob(), job)
})

test('surfaces show a frozen worker as idle, not ready, and by its phase', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  const { workers } = await rig.health(endpoint)
  assert.deepEqual([workers.idle, workers.ready, workers.running], [1, 0, 0])
  const { json } = await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)
  const [shown] = json.workers
  assert.deepEqual([shown.id, shown.status, shown.phase], [worker.id, 'IDLE', 'frozen'])
  const why = await rig.ask('GET', `/v2/${endpoint}/explain`)
  assert.equal(why.json.cause, 'nothing_waits')
  const { text } = await rig.ask('GET', '/metrics')
  assert.match(text, /runyard_workers\{endpoint="[^"]*",state="frozen"\} 1/)
  const { myself } = await rig.graphql('{ myself { endpoints { pods { id desiredStatus } } } }')
  assert.deepEqual(myself.endpoints[0].pods, [{ id: worker.id, desiredStatus: 'RUNNING' }])
})

test('a frozen worker ends after an hour, and gets its stop signal before it is thawed', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  await rig.clock.leap(HOUR - 10_000)
  assert.equal((await worker.record()).state, 'FROZEN')
  await rig.clock.leap(20_000)
  await rig.clock.advance(100)
  assert.deepEqual(await rig.alive(endpoint), [])
  assert.equal((await worker.record()).stopReason, 'frozen_too_long')
  assert.ok(rig.fleet.terminated.has(worker.id) && !rig.fleet.killed.has(worker.id))
})

test('nothing is concluded from the silence of a frozen worker, nor from that before it after its thaw', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  await rig.clock.leap(HOUR / 2)
  assert.equal((await worker.record()).state, 'FROZEN')
  await rig.submit(endpoint)
  await rig.clock.advance(5_000)
  assert.equal((await worker.record()).state, 'READY', 'it is neither silent nor stuck')
})

test('a worker that pinged before it was frozen is not taken for silent', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withIdle(rig)
  await worker.ping()
  await rig.clock.advance(1_100)
  await rig.clock.advance(120_000)
  assert.equal((await worker.record()).state, 'FROZEN')
  await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  assert.equal((await worker.record()).state, 'READY')
})

test('a new version ends frozen workers of the old one, and starts its own', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  await rig.change(endpoint, { env: [{ key: 'A', value: 'new' }], templateId: null })
  await rig.clock.advance(2_000)
  assert.equal((await worker.record()).state, 'EXITED')
  await rig.submit(endpoint)
  await rig.clock.advance(100)
  assert.equal(rig.fleet.started.length, 2)
})

test('priority starts a worker without a job, which is frozen and stays', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ flashBootType: 'PRIORITY_FLASHBOOT', idleTimeout: 1 })
  await rig.clock.advance(100)
  const worker = rig.worker(0)
  const poll = worker.take()
  await rig.clock.advance(1_200)
  assert.equal((await worker.record()).state, 'FROZEN')
  await rig.clock.leap(3 * HOUR)
  await poll
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ state }) => state),
    ['FROZEN'],
  )
  assert.equal(rig.fleet.started.length, 1)
})

test('a server that is killed between the store and the driver freezes the worker at its start', async t => {
  const rig = await openRig(t)
  const { worker } = await withIdle(rig, { idleTimeout: 60 })
  await rig.crash()
  await rig.store.workers.freeze(worker.id, rig.clock.now())
  assert.ok(!rig.fleet.frozen.has(worker.id))
  await rig.start()
  await rig.clock.advance(20)
  assert.ok(rig.fleet.frozen.has(worker.id))
})

test('a server that is killed between the store and the driver thaws the worker at its start', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  await rig.crash()
  await rig.store.workers.thaw(worker.id, rig.clock.now(), null)
  await rig.start()
  await rig.clock.advance(20)
  assert.ok(!rig.fleet.frozen.has(worker.id), 'it runs again')
  const job = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), job)
})

test('a worker whose freezing fails is frozen a moment later', async t => {
  const rig = await openRig(t)
  const { worker } = await withIdle(rig)
  rig.fleet.failNextFreeze()
  await rig.clock.advance(1_100)
  assert.deepEqual([(await worker.record()).state, rig.fleet.frozen.has(worker.id)], ['FROZEN', false])
  await rig.clock.advance(2_000)
  assert.ok(rig.fleet.frozen.has(worker.id))
})

test('a worker whose thaw fails is thawed a moment later, and does the job', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await withFrozen(rig)
  rig.fleet.failNextThaw()
  const job = await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.deepEqual([(await worker.record()).state, rig.fleet.frozen.has(worker.id)], ['READY', true])
  await rig.clock.advance(2_000)
  assert.ok(!rig.fleet.frozen.has(worker.id))
  assert.equal(await worker.takeJob(), job)
})

test('usage has the frozen time by itself, which costs nothing', async t => {
  const rig = await openRig(t, {
    prices: {
      gpu: new Map(),
      gpuDefault: 0,
      cpu: new Map(),
      cpuDefault: 3_600_000,
      phases: new Set(['running', 'idle'] as const),
    },
  })
  await withFrozen(rig)
  await rig.clock.leap(600_000)
  const { json } = await rig.ask('GET', '/v2/billing/serverless?bucketSize=day&grouping=serverlessId')
  const { usage } = json.records[0]
  assert.ok(usage.frozenMs >= 600_000, JSON.stringify(usage))
  assert.equal(usage.billedMs, usage.runningMs + usage.idleMs)
})

test('while memory is short, frozen workers end one after the other, the one frozen longest first and those with priority last', async t => {
  const rig = await openRig(t)
  const { worker: kept } = await withFrozen(rig, { flashBootType: 'PRIORITY_FLASHBOOT' })
  const { worker: first } = await withFrozen(rig)
  const { worker: second } = await withFrozen(rig)
  rig.memory = { availableBytes: 9, totalBytes: 100 }
  await rig.clock.advance(1_100)
  const states = async () => Promise.all([first, second, kept].map(async worker => (await worker.record()).state))
  assert.deepEqual(await states(), ['EXITED', 'FROZEN', 'FROZEN'])
  assert.equal((await first.record()).stopReason, 'memory_short')
  await rig.clock.advance(1_100)
  assert.deepEqual(await states(), ['EXITED', 'EXITED', 'FROZEN'])
  rig.memory = { availableBytes: 10, totalBytes: 100 }
  await rig.clock.advance(10_000)
  assert.deepEqual(await states(), ['EXITED', 'EXITED', 'FROZEN'])
})

test('a frozen worker makes room at once for another endpoint that has no place', async t => {
  const rig = await openRig(t, { capacity: running => ({ freeWorkers: 1 - running, bound: 'the limit of 1 worker' }) })
  const { worker } = await withFrozen(rig)
  const other = await rig.endpoint()
  await rig.submit(other)
  await rig.clock.advance(2_000)
  const record = await worker.record()
  assert.deepEqual([record.state, record.stopReason], ['EXITED', 'evicted'])
  assert.equal((await rig.alive(other)).length, 1)
})

test('two endpoints with priority and one place do not take it from each other without work', async t => {
  const rig = await openRig(t, { capacity: running => ({ freeWorkers: 1 - running, bound: 'the limit of 1 worker' }) })
  const first = await rig.endpoint({ flashBootType: 'PRIORITY_FLASHBOOT', idleTimeout: 1 })
  await rig.clock.advance(100)
  const other = await rig.endpoint({ flashBootType: 'PRIORITY_FLASHBOOT', idleTimeout: 1 })
  void rig.worker(0).take()
  await rig.clock.advance(120_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.deepEqual([(await rig.alive(first)).length, (await rig.alive(other)).length], [1, 0])
  await rig.submit(other)
  await rig.clock.advance(2_000)
  assert.equal((await rig.alive(other)).length, 1, 'work gets the place')
})

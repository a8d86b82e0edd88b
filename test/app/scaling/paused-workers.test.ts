/** A worker is paused in the middle of its job for an endpoint of higher priority, and goes on where it was. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { aMachine } from '../../support/machines.ts'
import { openRig, type Rig, type RigOptions, type RigWorker } from '../../support/rig.ts'

const ONE = { instanceIds: ['cpu3c-2-4'], workersMax: 1, scalerType: 'REQUEST_COUNT', scalerValue: 1 }

/** A machine on which one worker runs at a time, and the memory is enough for several. */
async function openMachine(t: TestContext, options: RigOptions = {}) {
  const rig = await openRig(t, { placing: { cpuOvercommit: 1, memoryOvercommit: 4 }, ...options })
  rig.machine = aMachine([], { vcpus: 2, memoryGb: 8 })
  const batch = await rig.endpoint({ ...ONE, name: 'batch', priority: 'low', preemptible: true })
  const chat = await rig.endpoint({ ...ONE, name: 'chat', priority: 'high' })
  return { rig, batch, chat }
}

/** Submits a job that a new worker takes. */
async function begin(rig: Rig, endpoint: EndpointId, body: Record<string, unknown> = { input: {} }) {
  const job = await rig.submit(endpoint, body)
  await rig.clock.advance(50)
  const worker = rig.worker(-1)
  assert.equal(await worker.takeJob(), job)
  return { job, worker }
}

/** The state of a worker in the store, and whether its processes stand still. */
async function stateOf(rig: Rig, worker: RigWorker) {
  const { state, pause } = await worker.record()
  return [state, pause !== null, rig.fleet.frozen.has(worker.id)]
}

const statusOf = async (rig: Rig, endpoint: EndpointId, job: JobId) => (await rig.status(endpoint, job)).json.status

test('a job of high priority runs while one of low priority is paused, which goes on with one attempt', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  await rig.clock.advance(60_000)
  const asked = rig.clock.now()
  const high = await begin(rig, chat)
  assert.ok(rig.clock.now() - asked < 5_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
  assert.equal(await statusOf(rig, batch, low.job), 'IN_PROGRESS')
  await rig.clock.advance(20_000)
  await high.worker.done(high.job)
  await rig.clock.advance(8_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false])
  await rig.clock.advance(30_000)
  await low.worker.done(low.job, { output: { rows: 7 } })
  const { json } = await rig.status(batch, low.job)
  assert.deepEqual([json.status, json.output, json.retries ?? 0], ['COMPLETED', { rows: 7 }, 0])
  const stored = await rig.job(batch, low.job)
  assert.deepEqual([stored.attempt, stored.lostAttempts], [1, 0])
  assert.equal(rig.fleet.started.length, 2)
  // Its execution is that without the pause, which counts as a wait.
  const [pause] = rig.happened('worker.pause_ended')
  assert.ok(pause!.pausedMs >= 20_000 && pause!.jobs === 1)
  assert.ok(json.executionTime >= 90_000 && json.executionTime < 95_000, `${json.executionTime}`)
  assert.ok(json.delayTime >= pause!.pausedMs, `${json.delayTime}`)
})

test('the execution timeout does not count a pause, and counts again after it', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch, { input: {}, policy: { executionTimeout: 60_000 } })
  await rig.clock.advance(40_000)
  const high = await begin(rig, chat)
  await rig.clock.advance(100_000)
  assert.equal(await statusOf(rig, batch, low.job), 'IN_PROGRESS')
  await high.worker.done(high.job)
  await rig.clock.advance(15_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false])
  assert.equal(await statusOf(rig, batch, low.job), 'IN_PROGRESS')
  await rig.clock.advance(20_000)
  assert.equal(await statusOf(rig, batch, low.job), 'TIMED_OUT')
})

test('the time of a job from its submission goes on in a pause, as the client asked', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch, { input: {}, policy: { ttl: 60_000 } })
  await begin(rig, chat)
  await rig.clock.advance(70_000)
  assert.equal((await rig.status(batch, low.job)).status, 404)
})

test('a pause is told in every view: the caller, the worker, why, the story and the health', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  const high = await begin(rig, chat)
  await rig.clock.advance(42_000)
  const why = (await rig.ask('GET', `/v2/${batch}/explain/${low.job}`)).json
  assert.equal(why.cause, 'preempted')
  assert.match(why.summary, /^attempt 1 on worker \w+ is paused for endpoint chat of higher priority/)
  assert.match((await rig.why(batch)).summary, /^1 job running, 1 of them paused for an endpoint of higher priority/)
  const view = (await rig.ask('GET', `/v2/serverless/${batch}/workers`)).json
  const [shown] = view.workers
  assert.deepEqual([shown.status, view.summary.throttled, shown.jobsHeld], ['THROTTLED', 1, 1])
  assert.match(shown.reason, /^paused for endpoint chat of higher priority$/)
  assert.equal((await rig.health(batch)).workers.throttled, 1)
  assert.equal((await rig.health(batch)).jobs.inProgress, 1)
  const story = async () => (await rig.ask('GET', `/v2/${batch}/requests/${low.job}/story`)).json.events
  assert.match(JSON.stringify(await story()), /paused for endpoint chat of higher priority/)
  await high.worker.done(high.job)
  await rig.clock.advance(8_000)
  await low.worker.done(low.job)
  assert.match(
    JSON.stringify(await story()),
    /went on after a pause of \d+ s, in which endpoint chat of higher priority/,
  )
})

test('after the longest pause it gets room before everybody, once the job that has it is over', async t => {
  const { rig, batch, chat } = await openMachine(t, { pausing: { maxPauseMs: 60_000 } })
  const low = await begin(rig, batch)
  const first = await begin(rig, chat)
  const second = await rig.submit(chat)
  await rig.clock.advance(61_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
  await first.worker.done(first.job)
  void first.worker.take()
  await rig.clock.advance(2_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false])
  assert.equal(await statusOf(rig, chat, second), 'IN_QUEUE')
  await rig.clock.advance(25_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false], 'it is not paused again at once')
  await rig.clock.advance(10_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
})

test('a worker that had its longest pause is left alone for its time, also after a kill of the server', async t => {
  for (const killed of ['after', 'while'] as const) {
    const { rig, batch, chat } = await openMachine(t, { pausing: { maxPauseMs: 60_000 } })
    const low = await begin(rig, batch)
    const first = await begin(rig, chat)
    await rig.submit(chat)
    await rig.clock.advance(61_000)
    await first.worker.done(first.job)
    void first.worker.take()
    await rig.clock.advance(killed === 'after' ? 2_000 : 20)
    await rig.crash()
    await rig.start()
    await rig.clock.advance(2_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false], `killed ${killed} its way back`)
    await rig.clock.advance(23_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false], 'it is not paused again at once')
    await rig.clock.advance(12_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
  }
})

test('a worker of another account is not paused, and one without a permission is not, either', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const foreign = await rig.endpoint({ ...ONE, priority: 'high' }, { key: other.key })
  const low = await begin(rig, batch)
  await rig.submit(foreign, { input: {} }, { key: other.key })
  await rig.clock.advance(10_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false])
  await rig.change(batch, { preemptible: false })
  await rig.submit(chat)
  await rig.clock.advance(10_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false])
})

test('the operator may let accounts have workers of others paused, and names nobody to them', async t => {
  const { rig, batch } = await openMachine(t, { pausing: { acrossAccounts: true } })
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const foreign = await rig.endpoint({ ...ONE, name: 'secret', priority: 'high' }, { key: other.key })
  const low = await begin(rig, batch)
  await rig.submit(foreign, { input: {} }, { key: other.key })
  await rig.clock.advance(3_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
  const texts = [
    (await rig.ask('GET', `/v2/${batch}/explain/${low.job}`)).text,
    (await rig.ask('GET', `/v2/serverless/${batch}/workers`)).text,
  ]
  for (const text of texts) assert.ok(!text.includes('secret') && !text.includes(foreign), text)
})

test('a worker with jobs of low priority alone is paused for another endpoint of the same priority', async t => {
  const { rig } = await openMachine(t)
  const one = await rig.endpoint({ ...ONE, preemptible: true, workersMin: 1 })
  const two = await rig.endpoint(ONE)
  await rig.clock.advance(50)
  const worker = rig.worker(-1)
  const job = await rig.submit(one, { input: {}, policy: { lowPriority: true } })
  assert.equal(await worker.takeJob(), job)
  const high = await begin(rig, two)
  assert.deepEqual(await stateOf(rig, worker), ['FROZEN', true, true])
  await high.worker.done(high.job)
  await rig.clock.advance(40_000)
  assert.deepEqual(await stateOf(rig, worker), ['READY', false, false])
})

test('a canceled job of a paused worker is over at once, and the worker ends', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  await begin(rig, chat)
  await rig.ask('POST', `/v2/${batch}/cancel/${low.job}`)
  assert.equal(await statusOf(rig, batch, low.job), 'CANCELLED')
  await rig.clock.advance(20_000)
  assert.equal((await low.worker.record()).state, 'EXITED')
  const next = await rig.submit(batch)
  assert.equal(await statusOf(rig, batch, next), 'IN_QUEUE')
})

test('a result that was on its way into a pause counts, and the worker without a job ends', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  await begin(rig, chat)
  await low.worker.done(low.job, { output: 1 })
  assert.equal(await statusOf(rig, batch, low.job), 'COMPLETED')
  await rig.clock.advance(20_000)
  assert.equal((await low.worker.record()).state, 'EXITED')
})

for (const [what, change] of [
  ['a new release', async (rig: Rig, id: EndpointId) => rig.change(id, { env: [{ key: 'A', value: 'b' }] })],
  ['a smaller workersMax', async (rig: Rig, id: EndpointId) => rig.change(id, { workersMax: 0 })],
  [
    'an end of the worker on request',
    async (rig: Rig, id: EndpointId) => {
      const [worker] = await rig.alive(id)
      await rig.ask('DELETE', `/v2/serverless/${id}/workers/${worker!.id}`)
    },
  ],
] as const) {
  test(`${what} lets a paused worker finish its job later, and ends it then`, async t => {
    const { rig, batch, chat } = await openMachine(t)
    const low = await begin(rig, batch)
    const high = await begin(rig, chat)
    await change(rig, batch)
    await rig.clock.advance(20_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
    await high.worker.done(high.job)
    await rig.clock.advance(40_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['DRAINING', false, false])
    await low.worker.done(low.job)
    assert.equal(await statusOf(rig, batch, low.job), 'COMPLETED')
    await rig.clock.advance(15_000)
    assert.equal((await low.worker.record()).state, 'EXITED')
  })
}

test('a deleted endpoint ends its paused worker', async t => {
  const { rig, batch, chat } = await openMachine(t, { deleteRunningEndpoints: true })
  const low = await begin(rig, batch)
  await begin(rig, chat)
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${batch}`)).status, 204)
  await rig.clock.advance(5_000)
  assert.deepEqual(rig.fleet.running().includes(low.worker.id), false)
})

test('a paused worker that is lost gives its job back without an attempt', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  await begin(rig, chat)
  rig.fleet.exit(low.worker.id, { code: 137 })
  await rig.clock.advance(3_000)
  const job = await rig.job(batch, low.job)
  assert.deepEqual([job.status, job.attempt, job.lostAttempts], ['IN_QUEUE', 0, 0])
})

test('a paused worker that is lost while no server runs gives its job back without an attempt', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  await begin(rig, chat)
  await rig.crash()
  rig.fleet.exit(low.worker.id, { code: 137 })
  await rig.start()
  await rig.clock.advance(3_000)
  const job = await rig.job(batch, low.job)
  assert.deepEqual([job.status, job.attempt, job.lostAttempts], ['IN_QUEUE', 0, 0])
})

test('a server that stops gives the job of a paused worker back without an attempt', async t => {
  const { rig, batch, chat } = await openMachine(t, { drainTimeoutMs: 1_000 })
  const low = await begin(rig, batch)
  await begin(rig, chat)
  const stopped = rig.stop()
  await rig.clock.advance(20_000)
  await stopped
  const job = await rig.job(batch, low.job)
  assert.deepEqual([job.status, job.attempt, job.lostAttempts], ['IN_QUEUE', 0, 0])
})

test('a freeze that fails in the driver is tried again', async t => {
  const { rig, batch, chat } = await openMachine(t)
  const low = await begin(rig, batch)
  rig.fleet.failNextFreeze()
  await begin(rig, chat)
  await rig.clock.advance(5_000)
  assert.deepEqual(await stateOf(rig, low.worker), ['FROZEN', true, true])
})

test('a kill of the server at any moment of a pause loses neither the worker nor its job', async t => {
  for (const [whileGoingOn, afterMs] of [false, true].flatMap(is =>
    [0, 1, 5, 20, 60, 200].map(ms => [is, ms] as const),
  )) {
    const { rig, batch, chat } = await openMachine(t)
    const low = await begin(rig, batch)
    const highJob = await rig.submit(chat)
    const context = `killed ${afterMs} ms after ${whileGoingOn ? 'the end of the other job' : 'its submission'}`
    await rig.clock.advance(whileGoingOn ? 50 : afterMs)
    if (whileGoingOn) {
      assert.equal(await rig.worker(-1).takeJob(), highJob)
      await rig.worker(-1).done(highJob)
      await rig.clock.advance(5_000 + afterMs)
    }
    await rig.crash()
    await rig.clock.advance(50)
    await rig.start()
    await rig.clock.advance(3_000)
    if (!whileGoingOn) {
      assert.equal(await rig.worker(-1).takeJob(), highJob, context)
      await rig.worker(-1).done(highJob)
    }
    await rig.clock.advance(40_000)
    assert.deepEqual(await stateOf(rig, low.worker), ['READY', false, false], context)
    await low.worker.done(low.job)
    const { status, attempt } = await rig.job(batch, low.job)
    assert.deepEqual([status, attempt, rig.fleet.started.length], ['COMPLETED', 1, 2], context)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { balancedEndpoint } from '../../support/balanced.ts'
import { openRig } from '../../support/rig.ts'

test('a stopping server takes no new work and lets running jobs finish', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const waiting = await rig.submit(endpoint)
  const stopped = rig.stop()
  await rig.clock.advance(1_000)
  for (const path of ['run', 'runsync']) {
    const refused = await rig.ask('POST', `/v2/${endpoint}/${path}`, { body: { input: {} } })
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '5'])
    assert.deepEqual(refused.json, { error: 'the server is stopping' })
  }
  assert.equal((await rig.ask('GET', '/readyz')).status, 503)
  assert.equal((await rig.ask('GET', '/healthz')).status, 200)
  assert.deepEqual(rig.fleet.running(), [worker.id])
  await worker.done(id, { output: 'in time' })
  await rig.clock.advance(1_000)
  await stopped
  assert.equal((await rig.job(endpoint, id)).output, '"in time"')
  assert.deepEqual(rig.fleet.running(), [])
  assert.ok(!rig.fleet.killed.has(worker.id))
  assert.equal((await rig.job(endpoint, waiting)).status, 'IN_QUEUE')
  assert.equal(rig.fleet.started.length, 1)
})

test('a stopping server hands out no more jobs and ends idle workers at once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const [busy, idle] = [rig.worker(0), rig.worker(1)]
  const id = await rig.submit(endpoint)
  await busy.takeJob()
  const poll = idle.take()
  await rig.clock.settle()
  const stopped = rig.stop()
  const late = busy.take({ busy: true })
  await rig.clock.advance(200)
  assert.equal((await poll).status, 204)
  assert.deepEqual(rig.fleet.running(), [busy.id])
  await busy.done(id)
  await rig.clock.advance(500)
  await stopped
  assert.equal((await late).status, 204)
})

test('jobs that are not done when the drain time is over go back uncounted, and the next server runs them', async t => {
  const rig = await openRig(t, { drainTimeoutMs: 5_000 })
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  let done = false
  const stopped = rig.stop().then(() => (done = true))
  await rig.clock.advance(4_900)
  assert.equal(done, false)
  await rig.clock.advance(300)
  await stopped
  assert.ok(rig.fleet.killed.has(worker.id))
  const job = await rig.job(endpoint, id)
  assert.deepEqual([job.status, job.attempt, job.lostAttempts], ['IN_QUEUE', 0, 0])
  assert.equal((await worker.record()).stopReason, 'server_stopped')
  await rig.start()
  await rig.clock.advance(50)
  assert.equal(await rig.worker(-1).takeJob(), id)
})

test('a server that hands over takes no new work, ends no worker, and the next one has their jobs', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const waiting = await rig.submit(endpoint)
  const handedOver = rig.handOver(5_000)
  await rig.clock.advance(10)
  const refused = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} } })
  assert.equal(refused.status, 503)
  await rig.clock.advance(3_000)
  await handedOver
  assert.deepEqual([rig.fleet.running(), rig.fleet.terminated.size], [[worker.id], 0])
  await rig.start()
  await worker.done(id, { output: 'kept' })
  assert.equal((await rig.job(endpoint, id)).output, '"kept"')
  assert.equal(await worker.takeJob(), waiting)
  assert.equal(rig.fleet.started.length, 1)
})

test('a worker that serves and takes its time to end is asked once, and killed when its time is over', async t => {
  const asked: WorkerId[] = []
  const rig = await openRig(t, { drainTimeoutMs: 1_000, onTerminate: id => void asked.push(id) })
  await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(1_000)
  const [worker] = rig.fleet.running()
  const stopped = rig.stop()
  await rig.clock.advance(5_500)
  assert.deepEqual([asked, [...rig.fleet.killed]], [[worker], []])
  await rig.clock.advance(1_000)
  await stopped
  assert.deepEqual([asked, [...rig.fleet.killed]], [[worker], [worker]])
})

test('a worker that is stopped while it starts gets one signal', async t => {
  const asked: WorkerId[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const rig = await openRig(t, { onStart: () => promise, onTerminate: id => void asked.push(id) })
  const id = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(1_000)
  await rig.change(id, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(1_000)
  resolve()
  await rig.clock.advance(1_000)
  assert.deepEqual(asked, rig.fleet.running())
  await rig.clock.advance(12_000)
  assert.deepEqual([asked.length, rig.fleet.killed.size, rig.fleet.running()], [1, 1, []])
})

test('one that an earlier server has asked to end is not asked again', async t => {
  const asked: WorkerId[] = []
  const rig = await openRig(t, { drainTimeoutMs: 1_000, onTerminate: id => void asked.push(id) })
  const id = await balancedEndpoint(rig, { workersMin: 1 })
  await rig.clock.advance(1_000)
  await rig.change(id, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(1_000)
  assert.equal(asked.length, 1)
  await rig.crash()
  await rig.start()
  const stopped = rig.stop()
  await rig.clock.advance(10_000)
  await stopped
  assert.equal(asked.length, 1)
})

test('a second signal ends the draining at once', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const hurry = new AbortController()
  const stopped = rig.stop(hurry.signal)
  await rig.clock.advance(1_000)
  hurry.abort()
  await rig.clock.settle()
  await stopped
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
})

test('a wait for a result is answered with the present state when the server stops', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  await rig.clock.advance(1_000)
  await worker.takeJob()
  const stopped = rig.stop()
  const { status, json } = await answer
  assert.deepEqual([status, json.status], [200, 'IN_PROGRESS'])
  await worker.done(json.id)
  await rig.clock.advance(1_000)
  await stopped
})

test('a new server takes over the workers of the last one, with their jobs and polls', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const [running, queued] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await worker.takeJob()
  await rig.crash()
  await rig.clock.leap(5_000)
  await rig.start()
  await rig.clock.advance(2_000)
  assert.equal(rig.happened('worker.adopted').length, 1)
  assert.equal(rig.fleet.started.length, 1, 'no second worker was started')
  assert.equal((await worker.done(running, { output: 'across the restart' })).status, 200)
  assert.equal((await rig.status(endpoint, running)).json.output, 'across the restart')
  assert.equal(await worker.takeJob(), queued)
})

test('a worker that ended while the server was away gives its jobs back', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.crash()
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.start()
  const job = await rig.job(endpoint, id)
  assert.deepEqual([job.status, job.lostAttempts], ['IN_QUEUE', 1])
  assert.deepEqual((await worker.record()).exit?.cause, { kind: 'unseen', when: 'server_away' })
  await rig.clock.advance(1_100)
  assert.equal(await rig.worker(-1).takeJob(), id)
})

test('workers that know another address than the new server has are replaced', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.crash()
  await rig.start('http://127.0.0.1:9999')
  await rig.clock.advance(1_100)
  assert.equal((await worker.record()).stopReason, 'address_changed')
  const next = rig.worker(-1)
  assert.match(next.spec.protocolEnv.RUNPOD_WEBHOOK_GET_JOB!, /^http:\/\/127\.0\.0\.1:9999\//)
  assert.equal(await next.takeJob(), id)
})

test('a server that crashed while it started a worker leaves one that the next server knows, also when it ends', async t => {
  let dies = true
  const rig = await openRig(t, { onStart: () => (dies ? new Promise<void>(() => {}) : undefined) })
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(20)
  const first = rig.worker(0)
  assert.equal((await first.record()).handle, null)
  void rig.crash()
  dies = false
  await rig.start()
  assert.equal(rig.happened('worker.adopted').length, 1)
  rig.fleet.exit(first.id, { code: 1 })
  await rig.clock.advance(5_000)
  assert.equal((await first.record()).state, 'EXITED')
  assert.equal(await rig.worker(-1).takeJob(), id)
})

test('a job accepted before a crash is there after it', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const accepted = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: { a: 1 } } })
  await rig.crash()
  await rig.start()
  await rig.clock.advance(50)
  assert.deepEqual((await rig.worker(-1).take()).json, { id: accepted.json.id, input: { a: 1 } })
})

test('a worker that was ordered to stop a job before a restart gets the order again, and is killed if it ignores it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.clock.advance(1_000)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.deepEqual((await worker.stops()).json, { jobsToStop: [id] })
  await rig.crash()
  await rig.start()
  assert.deepEqual((await worker.stops()).json, { jobsToStop: [id] })
  await rig.clock.advance(6_100)
  assert.ok(rig.fleet.killed.has(worker.id))
})

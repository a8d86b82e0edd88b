import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

async function oneRunning(rig: Rig, policy: object = {}) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, policy })
  assert.equal(await worker.takeJob(), id)
  return { endpoint, worker, id }
}

test('a job that runs longer than its execution timeout is TIMED_OUT, and its worker is ordered to stop it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig, { executionTimeout: 5_000 })
  const stops = worker.stops()
  await rig.clock.advance(4_900)
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
  await rig.clock.advance(1_100)
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual([view.status, view.workerId], ['TIMED_OUT', worker.id])
  assert.equal(view.error, 'the job ran longer than its execution timeout of 5000 ms')
  assert.ok(view.executionTime >= 5_000 && view.executionTime <= 6_000, view.executionTime)
  assert.deepEqual((await stops).json, { jobsToStop: [id] })
  assert.equal((await rig.health(endpoint)).jobs.failed, 1)
})

test('a job times out while the driver hangs', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await oneRunning(rig, { executionTimeout: 5_000 })
  const release = rig.hangDriver()
  await rig.clock.advance(7_000)
  const { status } = (await rig.status(endpoint, id)).json
  release()
  assert.equal(status, 'TIMED_OUT')
})

test('the execution timeout of the endpoint applies to jobs without their own', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ executionTimeoutMs: 8_000 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.clock.advance(7_900)
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
  await rig.clock.advance(1_200)
  assert.equal((await rig.status(endpoint, id)).json.status, 'TIMED_OUT')
})

test('a wait for a job that times out is answered', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: {}, policy: { executionTimeout: 5_000 } }
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body })
  await rig.clock.advance(10)
  await worker.takeJob()
  await rig.clock.advance(6_100)
  assert.equal((await answer).json.status, 'TIMED_OUT')
})

test('a worker that does not stop a cancelled job within 5 seconds is killed and replaced', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  const next = await rig.submit(endpoint)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.clock.advance(4_900)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(1_200)
  assert.ok(rig.fleet.killed.has(worker.id))
  const end = await worker.record()
  assert.deepEqual([end.state, end.stopReason], ['EXITED', 'cancelled_job'])
  await rig.clock.advance(100)
  assert.equal(await rig.worker(-1).takeJob(), next, 'its end is no crash, so the next one starts at once')
})

test('a worker that stops a cancelled job is kept', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await rig.clock.advance(1_000)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.deepEqual((await worker.stops()).json, { jobsToStop: [id] })
  await rig.clock.advance(1_000)
  for (let time = 0; time < 6; time += 1) {
    await worker.ping([])
    await rig.clock.advance(10_000)
  }
  assert.equal((await worker.record()).state, 'READY')
})

test('a ping that still lists the job, or arrived before the order to stop, does not count as stopped', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await rig.clock.advance(1_000)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await worker.ping([])
  assert.equal((await rig.alive(endpoint))[0]!.held, 1)
  await worker.stops()
  await worker.ping([id])
  assert.equal((await rig.alive(endpoint))[0]!.held, 1)
  await worker.ping([])
  assert.equal((await rig.alive(endpoint))[0]!.held, 0)
})

test('a worker that takes jobs with no job in progress has stopped all', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  const poll = worker.take({ busy: false })
  await rig.clock.advance(25_000)
  assert.equal((await poll).status, 204)
  assert.ok(!rig.fleet.killed.has(worker.id))
})

test('a worker with other jobs is left alone when one of them is cancelled', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  const other = await rig.submit(endpoint)
  await worker.take({ busy: true })
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.clock.advance(30_000)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await worker.done(other)
  await rig.clock.advance(2_000)
  assert.ok(rig.fleet.killed.has(worker.id), 'and replaced when it holds nothing but the cancelled one')
})

test('a worker that ignores its stop signal is killed after 10 seconds', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { endpoint, worker } = await rig.endpointWithWorker()
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(9_900)
  assert.ok(rig.fleet.terminated.has(worker.id))
  assert.deepEqual(rig.fleet.running(), [worker.id])
  await rig.clock.advance(2_200)
  assert.deepEqual(rig.fleet.running(), [])
  assert.equal((await worker.record()).stopReason, 'scaled_down')
})

test('a worker that has ended stays visible for 24 hours with its exit and last output', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.print(worker.id, 'one', 'two')
  rig.fleet.exit(worker.id, { code: 3 })
  await rig.clock.advance(100)
  assert.deepEqual((await worker.record()).exit, {
    code: 3,
    signal: null,
    cause: { kind: 'ended' },
    lastLines: ['one', 'two'],
  })
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  await rig.clock.leap(24 * 3_600_000 - 1_000)
  assert.ok((await rig.store.workers.find(worker.id)) !== null)
  await rig.clock.leap(5_000)
  assert.equal(await rig.store.workers.find(worker.id), null)
})

test('jobs of a worker that ended are queued again also when the store failed in the middle of it', async t => {
  for (const method of ['jobOutcomes.requeueLost', 'workers.exited', 'stops.letGo'] as const) {
    for (const fault of ['before', 'after'] as const) {
      const rig = await openRig(t)
      const { endpoint, worker, id } = await oneRunning(rig)
      rig.failNext(method, fault)
      rig.fleet.exit(worker.id, { code: 1 })
      await rig.clock.advance(3_000)
      const job = await rig.job(endpoint, id)
      assert.deepEqual([job.status, job.lostAttempts], ['IN_QUEUE', 1], `${method} failed ${fault}`)
      assert.equal((await worker.record()).state, 'EXITED')
      await rig.clock.advance(5_000)
      assert.equal(await rig.worker(-1).takeJob(), id, `${method} failed ${fault}`)
    }
  }
})

test('a worker whose start could not be recorded is not listed as starting forever', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  rig.failNext('workers.started', 'before')
  rig.failNext('workers.exited', 'before')
  const id = await rig.submit(endpoint)
  await rig.clock.advance(10_000)
  assert.equal((await rig.alive(endpoint)).length, 1)
  assert.equal(rig.fleet.running().length, 1)
  assert.equal(await rig.worker(-1).takeJob(), id)
})

test('a worker that starts slowly is not treated as ended', async t => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const rig = await openRig(t, { beforeStart: () => promise })
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(30_000)
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ state }) => state),
    ['STARTING'],
  )
  resolve()
  await rig.clock.settle()
  assert.equal(await rig.worker(0).takeJob(), id)
  assert.equal(rig.happened('worker.exited').length, 0)
})

test('the sweeper continues after a failure of the store', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await oneRunning(rig, { executionTimeout: 5_000 })
  rig.failNext('jobOutcomes.timeOutOverdue', 'before', 8)
  await rig.clock.advance(10_000)
  assert.equal((await rig.job(endpoint, id)).status, 'TIMED_OUT')
  assert.ok(rig.happened('loop.failed').every(({ loop }) => loop === 'sweeper'))
})

test('a worker that stops a cancelled job while its take is open is noticed in time, and kept', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await rig.clock.advance(1_000)
  const answers: number[] = []
  const take = (busy: boolean) => void worker.take({ batch: 4, busy }).then(({ status }) => answers.push(status))
  take(true)
  const stops = worker.stops()
  await rig.clock.settle()
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.clock.settle()
  assert.deepEqual((await stops).json, { jobsToStop: [id] })
  await rig.clock.advance(1)
  assert.deepEqual(answers, [204])
  // It asks again before its handler has ended, and once more after that.
  take(true)
  await rig.clock.advance(1_000)
  assert.deepEqual(answers, [204, 204])
  take(false)
  await rig.clock.advance(20_000)
  assert.deepEqual([(await worker.record()).state, (await rig.alive(endpoint))[0]?.id], ['READY', worker.id])
  await rig.submit(endpoint)
  assert.deepEqual(answers, [204, 204, 200])
})

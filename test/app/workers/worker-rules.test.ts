/** The rules by which the watchdog finds running workers that lost a job, are stuck, silent or unhealthy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { exitText, type Worker } from '../../../src/core/workers/worker.ts'
import { problemText } from '../../../src/core/workers/worker-problem.ts'
import { type Answer, openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const endOf = (worker: Worker) => exitText(worker, worker.exit!)

const python = (version: string) => ({ 'user-agent': `RunPod-Python-SDK/${version} (Linux; x86_64)` })
const SDK = python('1.12.0')

/** A worker of the current SDK that has taken this many jobs one by one. */
async function holding(rig: Rig, count = 1, headers = SDK, fields: object = {}) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 2, ...fields })
  const ids: JobId[] = []
  for (let number = 0; number < count; number += 1) {
    ids.push(await rig.submit(endpoint))
    const answer = await worker.take({ headers, busy: number > 0 })
    assert.equal(answer.json.id, ids[number])
  }
  return { endpoint, worker, ids }
}

/** A take whose response nobody waits for. */
async function poll(
  rig: Rig,
  worker: RigWorker,
  { busy = true, headers = SDK, batch = 1 } = {},
): Promise<Promise<Answer>[]> {
  const answer = worker.take({ busy, headers, ...(batch > 1 ? { batch } : {}) })
  await rig.clock.settle()
  return [answer]
}

/** Pings as an SDK does, every 10 seconds. */
async function pingFor(rig: Rig, worker: RigWorker, times: number, jobs: readonly string[] = []): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await worker.ping(jobs)
    await rig.clock.advance(10_000)
  }
}

const statusOf = async (rig: Rig, endpoint: EndpointId, id: JobId) => (await rig.job(endpoint, id)).status

test('a job that a busy worker leaves out of two pings after it asked for more is queued again, and its worker retires', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig, 2)
  const [kept, lost] = ids as [JobId, JobId]
  await rig.clock.advance(2_000)
  await poll(rig, worker)
  await worker.ping([kept])
  assert.equal(await statusOf(rig, endpoint, lost), 'IN_PROGRESS')
  await rig.clock.advance(10_000)
  await worker.ping([kept])
  const job = await rig.job(endpoint, lost)
  assert.deepEqual([job.status, job.lostAttempts], ['IN_QUEUE', 1])
  assert.equal(await statusOf(rig, endpoint, kept), 'IN_PROGRESS')
  const { state, stopReason } = await worker.record()
  assert.deepEqual([state, stopReason], ['DRAINING', 'lost_lease'])
  assert.ok(!rig.fleet.terminated.has(worker.id), 'it may finish the job that it still has')

  await rig.clock.advance(5_000)
  assert.equal(await rig.worker(-1).takeJob(), lost, 'another worker gets it')
  await worker.done(kept)
  await rig.clock.advance(1_000)
  assert.ok(rig.fleet.terminated.has(worker.id))
  assert.equal((await rig.status(endpoint, kept)).json.status, 'COMPLETED')
})

test('a job whose response may have been lost with a relay is dispatched again, and the attempt does not count, once its worker reports no job', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig)
  await rig.clock.advance(5_000)
  rig.answersLost(6_000)
  assert.equal((await worker.take({ headers: SDK })).json.id, ids[0])
  assert.equal((await rig.job(endpoint, ids[0]!)).lostAttempts, 0)
  assert.equal((await worker.record()).state, 'READY')
  // A job that was delivered before that is lost as any other.
  await rig.clock.advance(5_000)
  rig.answersLost(4_000)
  await poll(rig, worker, { busy: false })
  assert.equal((await rig.job(endpoint, ids[0]!)).lostAttempts, 1)
  assert.equal((await worker.record()).stopReason, 'lost_lease')
})

test('a worker that says it holds nothing has lost its job, retires, and never gets the job again', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { endpoint, worker, ids } = await holding(rig)
  const again = await poll(rig, worker, { busy: false })
  await rig.clock.advance(1_000)
  assert.equal((await again[0])?.status, 204)
  assert.deepEqual([(await worker.record()).state, (await worker.record()).stopReason], ['STOPPING', 'lost_lease'])
  assert.equal((await worker.take({ headers: SDK })).status, 204)
  assert.equal(await rig.worker(-1).takeJob(), ids[0])
  assert.notEqual(rig.worker(-1).id, worker.id)
  assert.equal((await rig.health(endpoint)).jobs.retried, 1)
})

test('a job on its way to a worker is not lost because the take before it said that it holds nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK, delivered: false })).json.id, id)
  await rig.clock.settle()
  assert.equal((await worker.take({ headers: SDK })).json.id, id)
  const job = await rig.job(endpoint, id)
  assert.deepEqual([job.attempt, job.lostAttempts, (await worker.record()).state], [1, 0, 'READY'])
})

for (const version of ['1.6.2', '1.7.4', '1.7.13', '1.10.0', '1.12.0']) {
  test(`pings of SDK ${version} that leave a job out change nothing while the worker does not ask for more`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker, ids } = await holding(rig, 2, python(version))
    await pingFor(rig, worker, 10, [ids[0]!])
    assert.equal(await statusOf(rig, endpoint, ids[1]!), 'IN_PROGRESS')
    assert.equal((await worker.record()).state, 'READY')
  })
}

test('an old SDK that lists no waiting jobs has lost one only when it lists nothing at all', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig, 2, python('1.7.4'))
  await rig.clock.advance(2_000)
  await poll(rig, worker, { headers: python('1.7.4') })
  await pingFor(rig, worker, 4, [ids[0]!])
  assert.equal(await statusOf(rig, endpoint, ids[1]!), 'IN_PROGRESS')
  await worker.done(ids[0]!)
  await pingFor(rig, worker, 2)
  assert.equal(await statusOf(rig, endpoint, ids[1]!), 'IN_QUEUE')
})

test('ids that a worker lists and does not hold are ignored', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig, 1, python('1.9.1'))
  await rig.clock.advance(2_000)
  await poll(rig, worker, { headers: python('1.9.1') })
  await pingFor(rig, worker, 6, ['somebody-elses-u1', 'x,y', ...ids])
  assert.equal(await statusOf(rig, endpoint, ids[0]!), 'IN_PROGRESS')
  assert.equal((await worker.record()).state, 'READY')
  assert.equal((await worker.done(ids[0]!)).status, 200)
  assert.equal(await statusOf(rig, endpoint, ids[0]!), 'COMPLETED')
})

test('workers of an SDK whose list may be shared lose no job by what one of several of them lists', async t => {
  const rig = await openRig(t)
  const headers = python('1.9.1')
  const { endpoint, worker, ids } = await holding(rig, 2, headers, { workersMin: 2 })
  await rig.clock.advance(2_000)
  await poll(rig, worker, { headers })
  await pingFor(rig, worker, 5, [])
  assert.deepEqual(
    [await statusOf(rig, endpoint, ids[0]!), await statusOf(rig, endpoint, ids[1]!)],
    ['IN_PROGRESS', 'IN_PROGRESS'],
  )
})

test('a worker whose handler blocks it gets no further job while it is busy, and one when it is free', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const first = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK, batch: 4 })).json[0].id, first)
  const second = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK, batch: 2, busy: true })).json[0].id, second)
  // Blocked: it asks for nothing more and does not list the second.
  await pingFor(rig, worker, 3, [first])
  const third = await rig.submit(endpoint)
  await worker.done(first)
  const polls = await poll(rig, worker, { batch: 2 })
  await rig.clock.advance(1_000)
  assert.equal(await statusOf(rig, endpoint, third), 'IN_QUEUE', 'the second runs, so the third waits outside')
  assert.deepEqual((await rig.job(endpoint, second)).lostAttempts, 0)
  await worker.done(second)
  const answer = await polls[0]!
  assert.deepEqual(
    answer.json.map(({ id }: { id: JobId }) => id),
    [third],
    'at once, although its poll began before',
  )
})

test('jobs that wait behind a blocked worker go to another one', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMin: 2, workersMax: 2 })
  const first = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK, batch: 4 })).json[0].id, first)
  const second = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK, batch: 2, busy: true })).json[0].id, second)
  await pingFor(rig, worker, 3, [first])
  await poll(rig, worker, { batch: 2 })
  const other = rig.worker(0).id === worker.id ? rig.worker(1) : rig.worker(0)
  const free = await poll(rig, other)
  const third = await rig.submit(endpoint)
  assert.equal((await free[0])?.json.id, third)
})

test('a worker that pings and never asks again is ended as stuck, and that counts as a crash', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const [answer] = await poll(rig, worker, { busy: false })
  await pingFor(rig, worker, 3)
  assert.equal((await answer)?.status, 204)
  await pingFor(rig, worker, 11)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await pingFor(rig, worker, 1)
  assert.ok(rig.fleet.killed.has(worker.id))
  const record = await worker.record()
  assert.equal(record.stopReason, 'wedged')
  assert.equal(endOf(record), 'was ended because it pinged for 115 s without asking for a job, so its loop is stuck')
  assert.equal((await rig.health(endpoint)).workers.unhealthy, 1)
  await rig.submit(endpoint)
  const why = await rig.why(endpoint)
  assert.deepEqual([why.cause, /loop is stuck/.test(why.summary)], ['unhealthy', true])
})

test('a worker that takes the jobs of another for its own, and so never asks for any, is ended as stuck', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await pingFor(rig, worker, 13, ['somebody-elses-u1'])
  assert.equal((await worker.record()).stopReason, 'wedged')
})

test('a busy worker of an SDK whose list may be shared is not ended because its pings list the jobs of another', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig, 1, python('1.8.1'))
  await pingFor(rig, worker, 30, ['of-another'])
  assert.equal((await worker.record()).state, 'READY')
  await worker.done(ids[0]!)
  const { status, lostAttempts } = await rig.job(endpoint, ids[0]!)
  assert.deepEqual([status, lostAttempts], ['COMPLETED', 0])
})

test('a worker that works on something is not stuck, however long it takes', async t => {
  const rig = await openRig(t)
  const { worker, ids } = await holding(rig, 1, SDK, { executionTimeoutMs: 3_600_000 })
  await pingFor(rig, worker, 60, ids)
  assert.ok(!rig.fleet.killed.has(worker.id))
})

test('a silent worker is ended first, and only then its job is given to another', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig)
  await pingFor(rig, worker, 2, ids)
  await rig.clock.advance(23_000)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(4_000)
  assert.ok(rig.fleet.killed.has(worker.id))
  assert.equal(endOf(await worker.record()), 'was ended because it sent nothing for 35 s')
  assert.deepEqual(
    [await statusOf(rig, endpoint, ids[0]!), (await rig.job(endpoint, ids[0]!)).lostAttempts],
    ['IN_QUEUE', 1],
  )
})

test('a worker that has never called, and a busy one whose handler may keep it from pinging, are left alone', async t => {
  const rig = await openRig(t)
  const quiet = await holding(rig)
  const old = await holding(rig, 1, python('1.7.10'))
  await old.worker.ping(old.ids)
  await rig.clock.advance(120_000)
  for (const { worker } of [quiet, old]) assert.ok(!rig.fleet.killed.has(worker.id))
})

test('nothing is concluded from the silence of a server that was away', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig)
  const idle = await rig.endpointWithWorker({ workersMax: 1 })
  await idle.worker.ping()
  await worker.ping(ids)
  await rig.crash()
  await rig.clock.advance(300_000)
  await rig.start()
  await rig.clock.advance(5_000)
  await worker.ping(ids)
  await idle.worker.ping()
  await rig.clock.advance(30_000)
  assert.deepEqual([...rig.fleet.killed], [])
  assert.equal(await statusOf(rig, endpoint, ids[0]!), 'IN_PROGRESS')
  await rig.clock.advance(10_000)
  assert.deepEqual(
    [...rig.fleet.killed].sort(),
    [worker.id, idle.worker.id].sort(),
    'after it was back for long enough',
  )
})

test('after a restart an earlier job is given back as any other, once the worker takes again', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, ids } = await holding(rig, 2)
  await rig.crash()
  await rig.clock.advance(3_000)
  await rig.start()
  await pingFor(rig, worker, 4, [ids[0]!])
  assert.equal(await statusOf(rig, endpoint, ids[1]!), 'IN_PROGRESS')
  await poll(rig, worker)
  await pingFor(rig, worker, 2, [ids[0]!])
  assert.equal(await statusOf(rig, endpoint, ids[1]!), 'IN_QUEUE')
})

test('a worker that never asks for a job is ended after seven minutes, with what to do about it', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  await rig.submit(endpoint)
  await rig.clock.advance(419_000)
  const worker = rig.worker(0)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(2_000)
  assert.ok(rig.fleet.killed.has(worker.id))
  assert.equal((await worker.record()).stopReason, 'hung_start')
  const { cause, summary, action } = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.equal(cause, 'hung_start')
  assert.match(summary, /it did not ask for a job within 420 s of its start/)
  assert.match(action, /RUNPOD_INIT_TIMEOUT/)
})

test('RUNPOD_INIT_TIMEOUT of the endpoint says how long a worker may take to start', async t => {
  const rig = await openRig(t)
  const env = [{ key: 'RUNPOD_INIT_TIMEOUT', value: '900' }]
  const { worker } = await rig.endpointWithWorker({ env, workersMax: 1 })
  await rig.clock.advance(890_000)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(12_000)
  assert.ok(rig.fleet.killed.has(worker.id))
})

test('a worker that was starting while no server ran gets its whole time again', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.crash()
  await rig.clock.advance(500_000)
  await rig.start()
  await rig.clock.advance(410_000)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(12_000)
  assert.ok(rig.fleet.killed.has(worker.id))
})

const REPORT = '&status=unhealthy&check=_memory_check&reason=RuntimeError%3A%20Insufficient%20memory%0A%00'

test('a failed fitness check is shown with its reason, while the worker runs and after it has ended', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.submit(endpoint)
  await worker.ping([], REPORT)
  assert.equal((await rig.health(endpoint)).workers.unhealthy, 1)
  assert.match((await rig.why(endpoint)).summary, /its check _memory_check failed: RuntimeError: Insufficient memory$/)
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  const cause = 'exited with code 1 because its check _memory_check failed: RuntimeError: Insufficient memory'
  assert.equal(endOf(await worker.record()), cause)
  const why = await rig.why(endpoint)
  assert.deepEqual([why.cause, why.summary.includes(cause)], ['fitness_failed', true])
  assert.equal((await rig.health(endpoint)).workers.unhealthy, 1)
})

test('a worker that reports itself unhealthy gets no job and is ended when it does not end itself', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await worker.ping([], REPORT)
  const id = await rig.submit(endpoint)
  await poll(rig, worker)
  await rig.clock.advance(5_000)
  assert.equal(await statusOf(rig, endpoint, id), 'IN_QUEUE')
  await rig.clock.advance(6_500)
  assert.ok(rig.fleet.killed.has(worker.id))
  assert.equal((await worker.record()).stopReason, 'unhealthy')
})

test('what an unhealthy worker says is cut and cleaned', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await worker.ping(
    [],
    `&status=unhealthy&check=${'c'.repeat(3_000)}&reason=${encodeURIComponent('\u001b[31m😀'.repeat(800))}`,
  )
  const { problem } = await worker.record()
  assert.ok(problem !== null)
  const text = problemText(problem)
  assert.ok(text.length < 1_200)
  assert.doesNotMatch(text, /\p{C}/u)
})

test('a refreshed worker with other jobs finishes them, gets no more, and is replaced without counting as a crash', async t => {
  for (const endsByItself of [false, true]) {
    const rig = await openRig(t)
    const { endpoint, worker, ids } = await holding(rig, 2)
    await worker.done(ids[0]!, { output: 1, stopPod: true })
    await rig.clock.advance(3_000)
    assert.deepEqual([(await worker.record()).state, rig.fleet.terminated.size], ['DRAINING', 0])
    await worker.done(ids[1]!, { output: 2, ...(endsByItself ? { stopPod: true } : {}) })
    if (endsByItself) rig.fleet.exit(worker.id, { code: 0 })
    await rig.clock.advance(1_000)
    const { state, stopReason } = await worker.record()
    assert.deepEqual([state, stopReason], ['EXITED', 'refresh'])
    assert.equal((await rig.status(endpoint, ids[1]!)).json.output, 2)
    assert.equal((await rig.health(endpoint)).workers.unhealthy, 0)
  }
})

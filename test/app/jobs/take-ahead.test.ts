/** Several short jobs for a worker that asks for one, which it runs one after another. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { type EndpointFields, openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const SDK = 'RunPod-Python-SDK/1.12.0 (Linux 6.1; x86_64) Language/Python 3.11.2'

/** A take of one job by an SDK. @returns the ids of the jobs that it gets */
async function take(worker: RigWorker, sdk = SDK, busy = false): Promise<JobId[]> {
  const { status, json } = await worker.take({ busy, headers: { 'user-agent': sdk } })
  if (status === 204) return []
  assert.equal(status, 200)
  return (Array.isArray(json) ? json : [json]).map(({ id }: { id: JobId }) => id)
}

/** An endpoint with one worker that has run five jobs of 100 ms, one at a time. */
async function shortJobs(t: TestContext, fields: EndpointFields = {}, sdk = SDK) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1, ...fields })
  for (let n = 0; n < 5; n += 1) await runOne(rig, endpoint, worker, sdk)
  return { rig, endpoint, worker }
}

async function runOne(rig: Rig, endpoint: EndpointId, worker: RigWorker, sdk = SDK): Promise<void> {
  const id = await rig.submit(endpoint)
  assert.deepEqual(await take(worker, sdk), [id])
  await rig.clock.advance(100)
  await worker.done(id)
}

async function submit(rig: Rig, endpoint: EndpointId, count: number, body?: Record<string, unknown>): Promise<JobId[]> {
  const ids: JobId[] = []
  for (let n = 0; n < count; n += 1) ids.push(await rig.submit(endpoint, body))
  return ids
}

const started = async (rig: Rig, endpoint: EndpointId, ids: readonly JobId[]) =>
  Promise.all(ids.map(async id => (await rig.job(endpoint, id)).startedAtMs))

test('a worker gets a second of short jobs in their order, and each begins with the result of the one before', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  const ids = await submit(rig, endpoint, 30)
  const queuedAtMs = rig.clock.now()
  // Runs of 50 ms, after the pick-up of an idle worker.
  const taken = await take(worker)
  assert.deepEqual(taken, ids.slice(0, 20))
  assert.deepEqual(await started(rig, endpoint, taken.slice(0, 3)), [queuedAtMs, null, null])
  await rig.clock.advance(40)
  await worker.done(taken[0]!)
  assert.equal(rig.calls('jobs.begin'), 0, 'the begin is part of the end, so that no crash comes between them')
  assert.deepEqual(await started(rig, endpoint, taken.slice(0, 3)), [queuedAtMs, queuedAtMs + 40, null])
  const second = (await rig.status(endpoint, taken[1]!)).json
  assert.deepEqual([second.status, second.delayTime], ['IN_PROGRESS', 40])
  const third = (await rig.status(endpoint, taken[2]!)).json
  assert.deepEqual([third.status, third.delayTime, 'executionTime' in third], ['IN_PROGRESS', 40, false])
  await rig.clock.advance(30)
  await worker.done(taken[1]!)
  const { status, delayTime, executionTime } = (await rig.status(endpoint, taken[1]!)).json
  assert.deepEqual([status, delayTime, executionTime], ['COMPLETED', 40, 30])
  for (const id of taken.slice(2)) await worker.done(id)
  assert.deepEqual(await take(worker), ids.slice(20))
})

test('other SDKs, takes beside a job, takes of several and an endpoint that turns it off get what they ask for', async t => {
  for (const sdk of [
    'RunPod-Python-SDK/1.7.1 (x)',
    'RunPod-Python-SDK/2.0.0rc2 (x)',
    'RunPod-Python-SDK/unknown (x)',
    'Runyard-Worker-SDK/0.1.0 (x)',
    'curl/8',
  ]) {
    const { rig, endpoint, worker } = await shortJobs(t, {}, sdk)
    await submit(rig, endpoint, 5)
    assert.equal((await take(worker, sdk)).length, 1, sdk)
  }
  const busy = await shortJobs(t)
  await submit(busy.rig, busy.endpoint, 5)
  assert.equal((await take(busy.worker, SDK, true)).length, 1)
  const several = await shortJobs(t)
  await submit(several.rig, several.endpoint, 9)
  const headers = { 'user-agent': SDK }
  assert.equal((await several.worker.take({ batch: 3, headers })).json.length, 3)
  const off = await shortJobs(t, { env: [{ key: 'RUNYARD_TAKE_AHEAD', value: '0' }] })
  await submit(off.rig, off.endpoint, 5)
  assert.equal((await take(off.worker)).length, 1)
})

test('a worker gets no more than its share of the queue, and one job while others wait for jobs', async t => {
  const { rig, endpoint, worker } = await shortJobs(t, { workersMin: 3, workersMax: 3 })
  await rig.clock.advance(100)
  await submit(rig, endpoint, 7)
  assert.equal((await take(worker)).length, 3)
})

test('a chunk whose job could not begin with it comes again, is delivered once, and begins the job', async t => {
  for (const fault of ['before', 'after'] as const) {
    const { rig, endpoint, worker } = await shortJobs(t)
    await submit(rig, endpoint, 3)
    const [first, second] = await take(worker)
    await rig.ask('POST', `/v2/${endpoint}/cancel/${first}`)
    rig.failNext('jobs.begin', fault)
    assert.equal((await worker.chunk(second!, { output: 'x' })).status, 503)
    assert.equal((await worker.chunk(second!, { output: 'x' })).status, 200)
    const { json } = await rig.ask('GET', `/v2/${endpoint}/stream/${second}`)
    assert.deepEqual(
      json.stream.map(({ output }: { output: string }) => output),
      ['x'],
    )
    assert.notEqual((await rig.job(endpoint, second!)).startedAtMs, null)
  }
})

test('a job that has not begun is canceled at once, and its late result is dropped', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 3)
  const [first, second, third] = await take(worker)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${second}`)
  assert.equal((await rig.status(endpoint, second!)).json.status, 'CANCELLED')
  await worker.done(first!)
  await worker.done(second!)
  assert.equal((await rig.status(endpoint, second!)).json.status, 'CANCELLED')
  await worker.done(third!)
  assert.equal((await rig.status(endpoint, third!)).json.status, 'COMPLETED')
  assert.equal((await worker.record()).state, 'READY')
})

test('when the worker ends, only the job that it ran loses an attempt, and the others come first in their order', async t => {
  const { rig, endpoint, worker } = await shortJobs(t, { workersMax: 2 })
  const ids = await submit(rig, endpoint, 4)
  assert.deepEqual(await take(worker), ids)
  await worker.done(ids[0]!)
  rig.fleet.exit(worker.id, { code: 137 })
  await rig.clock.advance(1_000)
  const jobs = await Promise.all(ids.map(id => rig.job(endpoint, id)))
  assert.deepEqual(
    jobs.map(({ status, attempt, lostAttempts }) => [status, attempt, lostAttempts]),
    [
      ['COMPLETED', 1, 0],
      ['IN_QUEUE', 1, 1],
      ['IN_QUEUE', 0, 0],
      ['IN_QUEUE', 0, 0],
    ],
  )
  const other = rig.worker(rig.fleet.started.length - 1)
  assert.deepEqual(
    (await other.take({ batch: 9 })).json.map(({ id }: { id: JobId }) => id),
    ids.slice(1),
  )
})

test('when the first job is slow, the others go back after three seconds, and a result that another worker owes is refused', async t => {
  const { rig, endpoint, worker } = await shortJobs(t, { workersMin: 2, workersMax: 2 })
  const ids = await submit(rig, endpoint, 8)
  const taken = await take(worker)
  assert.deepEqual(taken, ids.slice(0, 4))
  await rig.clock.advance(2_900)
  assert.equal((await rig.job(endpoint, taken[1]!)).status, 'IN_PROGRESS')
  await rig.clock.advance(1_200)
  const [, second, third] = taken
  assert.deepEqual(await Promise.all(taken.map(async id => (await rig.job(endpoint, id)).status)), [
    'IN_PROGRESS',
    'IN_QUEUE',
    'IN_QUEUE',
    'IN_QUEUE',
  ])
  assert.equal((await rig.job(endpoint, second!)).attempt, 0)
  const other = [0, 1].map(index => rig.worker(index)).find(({ id }) => id !== worker.id)!
  // For a minute nobody gets more than it asks for.
  assert.deepEqual(await take(other), [second])
  await worker.done(second!, { output: 'of the slow worker' })
  assert.equal((await rig.job(endpoint, second!)).status, 'IN_PROGRESS')
  await other.done(second!, { output: 'of the other' })
  assert.equal((await rig.status(endpoint, second!)).json.output, 'of the other')
  // Nobody has claimed this one since.
  await worker.done(third!, { output: 'late' })
  assert.equal((await rig.status(endpoint, third!)).json.output, 'late')
})

test('the execution timeout of a job begins with the job', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 2, { input: {}, policy: { executionTimeout: 5_000 } })
  const [first, second] = await take(worker)
  await rig.clock.advance(2_000)
  await worker.done(first!)
  await rig.clock.advance(4_500)
  assert.equal((await rig.job(endpoint, second!)).status, 'IN_PROGRESS')
  await rig.clock.advance(1_000)
  assert.equal((await rig.job(endpoint, second!)).status, 'TIMED_OUT')
})

test('jobs of a response that was not written go back, and are handed out again', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  const ids = await submit(rig, endpoint, 3)
  await worker.take({ delivered: false, headers: { 'user-agent': SDK } })
  await rig.clock.settle()
  const jobs = await Promise.all(ids.map(id => rig.job(endpoint, id)))
  assert.deepEqual(
    jobs.map(({ status, attempt }) => [status, attempt]),
    ids.map(() => ['IN_QUEUE', 0]),
  )
  assert.deepEqual(await take(worker), ids)
})

test('a worker that asks for its replacement keeps the job that it ran, and the others go back', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  const ids = await submit(rig, endpoint, 3)
  await take(worker)
  await worker.done(ids[0]!, { output: 1, stopPod: true })
  assert.deepEqual(await Promise.all(ids.map(async id => (await rig.job(endpoint, id)).status)), [
    'COMPLETED',
    'IN_QUEUE',
    'IN_QUEUE',
  ])
})

test('why and the story of a job say that its worker has not begun it', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 2)
  const [, second] = await take(worker)
  const why = (await rig.ask('GET', `/v2/${endpoint}/explain/${second}`)).json
  assert.match(why.summary, /has the job and runs others before it/)
  const story = (await rig.ask('GET', `/v2/${endpoint}/requests/${second}/story`)).json
  assert.match(JSON.stringify(story), /behind others, which it got at the same time/)
})

test('behind a canceled job that has not begun, the next one begins once the worker is through with it', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 3, { input: {}, policy: { executionTimeout: 5_000 } })
  const [first, second, third] = await take(worker)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${second}`)
  await worker.done(first!)
  assert.deepEqual(await started(rig, endpoint, [third!]), [null])
  await rig.clock.advance(200)
  await worker.done(second!)
  assert.deepEqual(await started(rig, endpoint, [third!]), [rig.clock.now()])
})

test('the next job begins with a result although the worker got them from a server that has ended since', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 2)
  const [first, second] = await take(worker)
  await rig.crash()
  await rig.start()
  await worker.done(first!)
  assert.deepEqual(await started(rig, endpoint, [second!]), [rig.clock.now()])
})

test('the next job begins with a result that the relay did not pass on', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 2)
  const [first, second] = await take(worker)
  await worker.done(first!, '', { 'x-runyard-dropped': '1234' })
  assert.deepEqual(await started(rig, endpoint, [second!]), [rig.clock.now()])
})

test('a job begins behind one whose result was lost, as the result or a chunk of a later one shows', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 4)
  const [, second, third, fourth] = await take(worker)
  await rig.clock.advance(100)
  await worker.chunk(second!, { output: 1 })
  const begunAtMs = rig.clock.now()
  await rig.clock.advance(100)
  await worker.done(third!)
  const doneAtMs = rig.clock.now()
  assert.deepEqual(await started(rig, endpoint, [second!, fourth!]), [begunAtMs, doneAtMs])
})

test('a job begins with its first chunk or progress where no result showed it', async t => {
  const { rig, endpoint, worker } = await shortJobs(t)
  await submit(rig, endpoint, 3)
  const [first, second, third] = await take(worker)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${first}`)
  await rig.clock.advance(100)
  await worker.chunk(second!, { output: 1 })
  const begunAtMs = rig.clock.now()
  assert.deepEqual(await started(rig, endpoint, [second!, third!]), [begunAtMs, null])
  await rig.clock.advance(100)
  await worker.chunk(second!, { output: 2 })
  assert.deepEqual(await started(rig, endpoint, [second!, third!]), [begunAtMs, null])
})

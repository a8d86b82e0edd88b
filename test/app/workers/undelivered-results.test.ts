/** Results that a worker could not send, as its output says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const SDK = { 'user-agent': 'RunPod-Python-SDK/1.12.0 (Linux; x86_64)' }
const BYTES = 'Error while returning job result. | Object of type bytes is not JSON serializable'
const REFUSED = 'Failed to return job results. | Cannot connect to host 127.0.0.1:9000'

async function oneRunning(rig: Rig) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 2 })
  const id = await rig.submit(endpoint)
  assert.equal((await worker.take({ headers: SDK })).json.id, id)
  return { endpoint, worker, id, read: () => rig.job(endpoint, id) }
}

function fails(worker: RigWorker, id: JobId, message: string): void {
  worker.print(id, message)
  worker.print(id, 'Finished.', 'INFO')
}

test('a result that can never be sent fails its job within seconds, with the true reason and without another attempt', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  fails(worker, id, BYTES)
  await rig.clock.advance(1_200)
  const { status, error, retries } = (await rig.status(endpoint, id)).json
  assert.deepEqual(
    [status, error, retries],
    ['FAILED', 'the worker could not send its result: Object of type bytes is not JSON serializable', undefined],
  )
  assert.equal((await worker.record()).state, 'READY', 'its worker is as good as before')
})

test('the output comes before the rules: the next request of the worker does not queue the job again', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  worker.print(id, BYTES)
  void worker.take({ headers: SDK })
  await rig.clock.settle()
  assert.deepEqual([(await read()).status, (await worker.record()).state], ['FAILED', 'READY'])
})

const BAR = '\r 40%|████      | 4/10 [00:04<00:06,  1.00s/it]'
const printed = (id: JobId, message: string, level = 'ERROR') => JSON.stringify({ requestId: id, message, level })

test('a progress bar before it, which has no line break, hides no report', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  rig.print(worker.id, `${BAR}${printed(id, BYTES)}`)
  worker.print(id, 'Finished.', 'INFO')
  await rig.clock.advance(1_200)
  const { status, error } = (await rig.status(endpoint, id)).json
  assert.equal(status, 'FAILED')
  assert.match(error, /bytes is not JSON serializable/)
})

test('where bars stand before all that the worker prints, its next request shows that the job is over', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  rig.print(worker.id, `${BAR}${printed(id, BYTES)}`, `${BAR}${printed(id, 'Finished.', 'INFO')}`)
  void worker.take({ headers: SDK })
  await rig.clock.settle()
  assert.deepEqual([(await read()).status, (await worker.record()).state], ['FAILED', 'READY'])
})

test('a handler that prints what the SDK would print, within a line of its own text, does not fail its job', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  for (const message of [BYTES, REFUSED, 'Error handling job: no']) {
    rig.print(worker.id, `asked: ${printed(id, message)} - and then ${printed(id, 'Finished.', 'INFO')}.`)
  }
  await rig.clock.advance(5_000)
  assert.equal((await read()).status, 'IN_PROGRESS')
  await worker.done(id, { output: 'fine' })
  await rig.clock.advance(2_000)
  assert.deepEqual([(await read()).status, (await read()).output], ['COMPLETED', '"fine"'])
})

test('the output comes before the exit of the worker, too', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  worker.print(id, "Error handling job: 'utf-8' codec can't encode character '\\ud800'")
  rig.fleet.exit(worker.id, { code: 0 })
  await rig.clock.advance(100)
  assert.equal((await read()).status, 'FAILED')
})

test('a chunk that could not be sent is not an undelivered result: the job continues', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  worker.print(id, BYTES)
  await rig.clock.advance(20_000)
  assert.equal((await read()).status, 'IN_PROGRESS')
  await worker.done(id, { output: 'fine' })
  worker.print(id, 'Finished.', 'INFO')
  await rig.clock.advance(2_000)
  assert.deepEqual([(await read()).status, (await read()).output], ['COMPLETED', '"fine"'])
})

test('an undelivered result is worth another attempt, by another worker', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  fails(worker, id, REFUSED)
  await rig.clock.advance(1_200)
  assert.deepEqual([(await read()).status, (await read()).lostAttempts], ['IN_QUEUE', 1])
  assert.equal((await worker.record()).stopReason, 'lost_lease')
  assert.equal(await rig.worker(-1).takeJob(), id)
  assert.notEqual(rig.worker(-1).id, worker.id)
})

test('a result that was undelivered three times fails its job with what the worker said', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  let holder = worker
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    fails(holder, id, REFUSED)
    await rig.clock.advance(5_000)
    if (attempt === 3) break
    holder = rig.worker(-1)
    assert.equal(await holder.takeJob(), id)
  }
  const { status, error } = (await rig.status(endpoint, id)).json
  assert.equal(status, 'FAILED')
  assert.match(error, /lost 3 times .* Cannot connect to host/)
})

test('output of the time without a server is read when the server is back', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await oneRunning(rig)
  await rig.crash()
  fails(worker, id, REFUSED)
  await rig.clock.advance(5_000)
  await rig.start()
  await rig.clock.advance(1_500)
  assert.equal((await read()).status, 'IN_QUEUE')
})

test('a worker can fail only its own jobs, and only jobs without a result', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id, read } = await oneRunning(rig)
  const other = await oneRunning(rig)
  fails(other.worker, id, BYTES)
  await rig.clock.advance(3_000)
  assert.equal((await read()).status, 'IN_PROGRESS')
  await worker.done(id, { output: 1 })
  fails(worker, id, BYTES)
  fails(worker, 'no such job' as JobId, BYTES)
  await rig.clock.advance(3_000)
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
  assert.equal(rig.happened('job.result_ignored').length, 0)
})

test('a store that fails in the middle of it does not lose what was read', async t => {
  for (const fault of ['before', 'after'] as const) {
    const rig = await openRig(t)
    const { worker, id, read } = await oneRunning(rig)
    rig.failNext('jobOutcomes.finish', fault)
    fails(worker, id, BYTES)
    await rig.clock.advance(4_000)
    assert.equal((await read()).status, 'FAILED', fault)
  }
})

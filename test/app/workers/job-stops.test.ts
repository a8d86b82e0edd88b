/**
 * Stops of jobs that a worker holds: repeated until the worker releases the job, since the Python SDK ignores one
 * for a job that it has not begun.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

/** Polls for stops without a pause, as the SDK does. Returns when each job was named, in ms since `sinceMs`. */
function listens(rig: Rig, worker: RigWorker, sinceMs: number) {
  const orders: [jobs: JobId[], atMs: number][] = []
  const listening = (async () => {
    for (;;) {
      const { status, json } = await worker.stops()
      if (status !== 200) return
      orders.push([json.jobsToStop, rig.clock.now() - sinceMs])
    }
  })()
  return { orders, listening }
}

const cancel = (rig: Rig, endpoint: EndpointId, id: JobId) => rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)

/**
 * A worker with a job that was dispatched `agoMs` ago and is cancelled now, beside another that keeps the
 * worker from being replaced.
 */
async function cancelled(rig: Rig, agoMs: number) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const [id, other] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  assert.equal((await worker.take({ batch: 2 })).json.length, 2)
  await rig.clock.advance(agoMs)
  const { orders } = listens(rig, worker, rig.clock.now())
  await rig.clock.settle()
  await cancel(rig, endpoint, id)
  await rig.clock.settle()
  return { endpoint, worker, id, other, orders }
}

test('a job that its worker may not have begun is stopped a quarter of a second after its arrival, then after growing pauses', async t => {
  const rig = await openRig(t)
  const { worker, id, other, orders } = await cancelled(rig, 50)
  for (let second = 0; second < 40; second += 1) {
    await rig.clock.advance(1_000)
    await worker.ping([id, other])
  }
  assert.deepEqual(
    orders.map(([jobs, atMs]) => [jobs.join(), atMs]),
    // It had arrived 50 ms before.
    [200, 450, 950, 1_950, 3_950, 7_950, 15_950, 25_950, 35_950].map(atMs => [id, atMs]),
  )
})

test('a job that has begun is stopped again after two seconds, so that its handler has time for its cleanup', async t => {
  const rig = await openRig(t)
  const { worker, id, other, orders } = await cancelled(rig, 1_500)
  await worker.ping([id, other])
  await rig.clock.advance(7_000)
  assert.deepEqual(
    orders.map(([, atMs]) => atMs),
    [0, 2_000, 6_000],
  )
})

test('a worker that released a job gets no second order, however it shows the release', async t => {
  for (const letsGo of [
    (worker: RigWorker, id: JobId) => worker.done(id, { output: 'late' }),
    (worker: RigWorker, _id: JobId, other: JobId) => worker.ping([other]),
  ]) {
    const rig = await openRig(t)
    const { worker, id, other, orders } = await cancelled(rig, 50)
    await rig.clock.advance(1_300)
    const before = orders.length
    await letsGo(worker, id, other)
    await rig.clock.advance(9_000)
    assert.equal(orders.length, before)
    assert.deepEqual(await rig.store.stops.pending(worker.id), [])
  }
})

test('a ping that was sent before the worker had the job is no sign that it has let go', async t => {
  const rig = await openRig(t)
  const { worker, id, other } = await cancelled(rig, 50)
  await worker.ping([])
  assert.deepEqual(await rig.store.stops.pending(worker.id), [id])
  await rig.clock.advance(1_200)
  await worker.ping([other])
  assert.deepEqual(await rig.store.stops.pending(worker.id), [])
})

test('a job that is cancelled while its response is on its way is stopped a quarter of a second after its arrival', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  const sinceMs = rig.clock.now()
  const { orders } = listens(rig, worker, sinceMs)
  const { RUNPOD_WEBHOOK_GET_JOB: url, RUNPOD_AI_API_KEY: key } = worker.spec.protocolEnv
  const { pathname, search } = new URL(url!)
  const { answer, settle } = await rig.openUnsettled(`${pathname}${search}`, { key: key! })
  await cancel(rig, endpoint, id)
  await rig.clock.advance(800)
  assert.equal(orders.length, 0)
  assert.equal((await answer.json()).id, id)
  settle(true)
  const arrivedMs = rig.clock.now() - sinceMs
  await rig.clock.advance(1_000)
  assert.deepEqual(
    orders.map(([, atMs]) => atMs - arrivedMs),
    [250, 500, 1_000],
  )
})

test('a worker that ignores each stop is ended after five seconds, where it holds nothing else', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  const { orders } = listens(rig, worker, rig.clock.now())
  await cancel(rig, endpoint, id)
  await rig.clock.advance(4_500)
  assert.equal((await worker.record()).state, 'READY')
  await rig.clock.advance(3_000)
  assert.notEqual((await worker.record()).state, 'READY')
  assert.equal(orders.length, 5)
})

test('a job past its execution timeout is stopped again, too', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  const other = await rig.submit(endpoint)
  assert.equal((await worker.take({ batch: 2 })).json.length, 2)
  const { orders } = listens(rig, worker, rig.clock.now())
  await rig.clock.advance(5_000)
  await worker.ping([id, other])
  await rig.clock.advance(2_000)
  assert.deepEqual(
    orders.map(([jobs]) => jobs.join()),
    [id, id],
  )
})

/**
 * Everything ends some day: rows, files and what workers leave behind, also when a server ended in the middle of it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS, hourStart } from '../../../src/core/billing/usage.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const DAY_MS = 24 * HOUR_MS

/** A worker that ran and is no longer needed. */
async function oneWorker(rig: Rig) {
  const { endpoint, worker } = await rig.endpointWithWorker()
  await worker.take({ signal: AbortSignal.abort() })
  rig.print(worker.id, 'a line')
  await rig.change(endpoint, { workersMin: 0, workersMax: 1 })
  return { endpoint, worker }
}

test('files of an ended worker are removed also when the store did not confirm its end', async t => {
  const rig = await openRig(t)
  const { worker } = await oneWorker(rig)
  rig.failNext('workers.exited', 'after')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(5_000)
  assert.equal((await worker.record()).state, 'EXITED')
  assert.deepEqual(rig.fleet.left(), [])
  assert.equal(rig.happened('worker.exited').length, 1)
})

test('files of an ended worker are removed at the next start when the server ended before', async t => {
  const rig = await openRig(t)
  const { worker } = await oneWorker(rig)
  rig.failNext('workers.exited', 'after')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  assert.deepEqual(rig.fleet.left(), [worker.id])
  await rig.crash()
  await rig.start()
  assert.deepEqual(rig.fleet.left(), [])
})

for (const restarts of [false, true]) {
  test(`the output of a removed worker goes, ${restarts ? 'after a restart' : 'with no worker'} too`, async t => {
    const rig = await openRig(t)
    const { worker } = await oneWorker(rig)
    rig.fleet.exit(worker.id)
    await rig.clock.advance(5_000)
    assert.ok(rig.logs.workers().includes(worker.id), 'it is kept as long as the worker is')
    rig.failNext('workers.removeExited', 'after')
    await rig.clock.leap(DAY_MS)
    assert.equal(await rig.store.workers.find(worker.id), null)
    if (restarts) {
      await rig.crash()
      await rig.start()
    }
    await rig.clock.advance(5_000)
    assert.deepEqual(rig.logs.workers(), [])
  })
}

test('counts of REST windows are forgotten when the windows are long over', async t => {
  const rig = await openRig(t)
  const others = 'somebody' as OwnerId
  await rig.store.keys.saveWindowCounts(others, [{ startMs: rig.clock.now(), used: 3 }])
  await rig.clock.leap(DAY_MS)
  await rig.clock.advance(120_000)
  assert.equal((await rig.store.keys.windowCounts(others)).length, 1, 'a window of a day may still be open')
  await rig.clock.leap(DAY_MS)
  await rig.clock.advance(120_000)
  assert.deepEqual(await rig.store.keys.windowCounts(others), [])
})

test('usage is kept for 400 days', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  const startMs = hourStart(rig.clock.now())
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(15_000)
  const asked = { owner: DEFAULT_OWNER, endpointId: endpoint, bounds: [startMs, startMs + HOUR_MS] }
  const kept = async () => {
    const workers = await rig.store.usage.workers(asked, rig.clock.now())
    return [(await rig.store.usage.jobs(asked)).sums.length, workers.sums.length]
  }
  await rig.clock.leap(399 * DAY_MS)
  await rig.clock.advance(120_000)
  assert.deepEqual(await kept(), [1, 1])
  await rig.clock.leap(2 * DAY_MS)
  await rig.clock.advance(120_000)
  assert.deepEqual(await kept(), [0, 0])
})

test('the time of a worker that runs is counted every minute, once, across a kill of the server', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  // One that never asks for a job would be ended.
  const poll = worker.take()
  const bounds = [hourStart(rig.clock.now()), hourStart(rig.clock.now()) + 100 * HOUR_MS]
  const { createdAtMs } = await worker.record()
  /** The time of the worker as it was counted, without what a read would add. */
  const countedMs = async (nowMs = 0) => {
    const { sums } = await rig.store.usage.workers({ owner: DEFAULT_OWNER, endpointId: endpoint, bounds }, nowMs)
    return sums.reduce((sum, { usage }) => sum + usage.startingMs + usage.runningMs + usage.idleMs, 0)
  }
  await rig.clock.advance(10 * 60_000)
  await poll
  const before = await countedMs()
  assert.ok(before >= 9 * 60_000 && before <= 10 * 60_000 + 100, `${before}`)
  await rig.crash()
  await rig.clock.leap(5 * 60_000)
  await rig.start()
  await rig.clock.advance(90_000)
  const nowMs = rig.clock.now()
  assert.equal(await countedMs(nowMs), nowMs - createdAtMs, 'it has run while the server was away')
  await rig.clock.advance(90_000)
  const seenMs = await countedMs()
  await rig.crash()
  rig.fleet.exit(worker.id, { signal: 'SIGKILL' })
  await rig.clock.leap(DAY_MS)
  await rig.start()
  assert.equal((await worker.record()).state, 'EXITED')
  const after = await rig.store.usage.workers({ owner: DEFAULT_OWNER, endpointId: endpoint, bounds }, 0)
  const sum = after.sums.reduce((all, { usage }) => all + usage.startingMs + usage.runningMs + usage.idleMs, 0)
  assert.equal(sum, seenMs, 'nobody knows when it ended, so what was not seen is not counted')
})

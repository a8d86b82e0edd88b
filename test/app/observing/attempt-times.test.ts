/** Times of attempts that are kept for questions about other settings. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timesFromBlock } from '../../../src/core/jobs/attempt-times.ts'
import { openRig, type Rig } from '../../support/rig.ts'

async function storedTimes(rig: Rig, endpoint: string) {
  const blocks = await rig.store.attemptTimes.read(endpoint as never, 0, Number.MAX_SAFE_INTEGER, 100)
  return blocks
    .toReversed()
    .flatMap(timesFromBlock)
    .map(({ queuedAtMs, startedAtMs, finishedAtMs, cold }) => ({
      waitedMs: startedAtMs - queuedAtMs,
      ranMs: finishedAtMs - startedAtMs,
      cold,
    }))
}

test('each attempt leaves its times, and a job that was cancelled in the queue leaves no times', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  for (const result of [{ output: 1 }, { error: 'no' }]) {
    const job = await rig.submit(endpoint)
    await rig.clock.advance(2_000)
    await worker.takeJob()
    await rig.clock.advance(1_000)
    await worker.done(job, result)
  }
  const job = await rig.submit(endpoint)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/cancel/${job}`)).status, 200)
  await rig.clock.advance(25_000)
  const [first, second, ...others] = await storedTimes(rig, endpoint)
  assert.deepEqual([first?.waitedMs, first?.ranMs], [2_000, 1_000])
  assert.deepEqual([second?.waitedMs, second?.ranMs, second?.cold], [2_000, 1_000, false])
  assert.deepEqual(others, [])
  await rig.crash()
  await rig.start()
  await rig.clock.advance(25_000)
  assert.equal((await storedTimes(rig, endpoint)).length, 2)
})

test('times that could not be stored are stored later, once and in their order', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.failNext('attemptTimes.add', 'before')
  for (const ranMs of [1_000, 3_000]) {
    const job = await rig.submit(endpoint)
    await worker.takeJob()
    await rig.clock.advance(ranMs)
    await worker.done(job, { output: 1 })
    await rig.clock.advance(21_000)
  }
  await rig.clock.advance(60_000)
  assert.deepEqual(
    (await storedTimes(rig, endpoint)).map(({ ranMs }) => ranMs),
    [1_000, 3_000],
  )
})

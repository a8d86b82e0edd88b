/** A worker with a card is suspended in the middle of its job for an endpoint of higher priority. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { PlayedGpuOptions } from '../../../sim/played-gpus.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { FLASH_GPU, GIB, openCards } from '../../support/played-card-rig.ts'
import type { Rig, RigWorker } from '../../support/rig.ts'

const OFF = { flashBootType: 'OFF', scalerType: 'REQUEST_COUNT', scalerValue: 1, idleTimeout: undefined }

/** Two endpoints on a card that has room for one worker. */
async function openCard(t: TestContext, faults: Pick<PlayedGpuOptions, 'fails' | 'copyMs'> = {}) {
  const { rig, gpus, end, endpoint } = await openCards(t, faults)
  const batch = await endpoint({ ...OFF, name: 'batch', priority: 'low', preemptible: true })
  const chat = await endpoint({ ...OFF, name: 'chat', priority: 'high' })
  return { rig, gpus, end, endpoint, batch, chat }
}

async function begin(rig: Rig, endpoint: EndpointId, waitMs = 50) {
  const job = await rig.submit(endpoint)
  await rig.clock.advance(waitMs)
  const worker = rig.worker(-1)
  assert.equal(await worker.takeJob(), job)
  return { job, worker }
}

async function stateOf(rig: Rig, worker: RigWorker) {
  const { state, pause, suspension } = await worker.record()
  return [state, pause !== null, suspension !== null, rig.fleet.frozen.has(worker.id)]
}
const WORKS = ['READY', false, false, false]
const PAUSED = ['FROZEN', true, true, true]

test('the card of a paused worker is empty for the urgent one, and it goes on in the same process', async t => {
  const { rig, gpus, batch, chat } = await openCard(t, { copyMs: () => 2_000 })
  const low = await begin(rig, batch)
  const pid = gpus.pidOf(low.worker.id)
  await rig.clock.advance(30_000)
  const high = await begin(rig, chat, 4_900)
  assert.deepEqual(await stateOf(rig, low.worker), PAUSED)
  assert.deepEqual([gpus.stateOf(low.worker.id), gpus.usedBytes('GPU-0')], ['checkpointed', 20 * GIB])
  await high.worker.done(high.job)
  await rig.clock.advance(20_000)
  assert.deepEqual(await stateOf(rig, low.worker), WORKS)
  assert.deepEqual([gpus.runs(low.worker.id), gpus.pidOf(low.worker.id)], [true, pid])
  await low.worker.done(low.job, { output: 'the same' })
  const { status, attempt, output } = await rig.job(batch, low.job)
  assert.deepEqual([status, attempt, output], ['COMPLETED', 1, '"the same"'])
  const [{ pausedMs } = { pausedMs: 0 }] = rig.happened('worker.pause_ended')
  const { json } = await rig.status(batch, low.job)
  assert.ok(json.executionTime < 45_000 && json.delayTime >= pausedMs, JSON.stringify(json))
})

test('a sleeping worker of higher priority gets its card again from a busy one', async t => {
  const { rig, gpus, endpoint, batch } = await openCard(t)
  const model = await endpoint({ ...FLASH_GPU, name: 'model', priority: 'high' })
  const first = await begin(rig, model)
  await first.worker.done(first.job)
  await rig.clock.advance(3_000)
  const low = await begin(rig, batch)
  const job = await rig.submit(model)
  await rig.clock.advance(4_000)
  assert.deepEqual(await stateOf(rig, low.worker), PAUSED)
  assert.deepEqual([gpus.runs(first.worker.id), await first.worker.takeJob()], [true, job])
  assert.equal(rig.fleet.started.length, 2)
})

test('a worker that cannot be locked works on, the urgent job waits, and its release is remembered', async t => {
  const { rig, gpus, batch, chat } = await openCard(t, { fails: step => step === 'lock' })
  const low = await begin(rig, batch)
  const job = await rig.submit(chat)
  await rig.clock.advance(30_000)
  assert.deepEqual([await stateOf(rig, low.worker), gpus.runs(low.worker.id)], [WORKS, true])
  assert.equal(rig.happened('worker.pause_failed').length, 1, 'it is not tried again at once')
  await rig.clock.advance(300_000)
  assert.equal(rig.happened('worker.pause_failed').length, 3, 'not tried again after three failures')
  assert.equal((await rig.status(chat, job)).json.status, 'IN_QUEUE')
  await low.worker.done(low.job)
  assert.equal((await rig.job(batch, low.job)).attempt, 1)
})

for (const [step, whileGoingOn] of [
  ['checkpoint', false],
  ['restore', true],
] as const) {
  test(`a worker that a ${step} loses gives its job back without an attempt`, async t => {
    const { rig, batch, chat } = await openCard(t, { fails: failed => failed === step })
    const low = await begin(rig, batch)
    const high = await rig.submit(chat)
    await rig.clock.advance(3_000)
    const urgent = rig.worker(-1)
    assert.equal(await urgent.takeJob(), high)
    if (whileGoingOn) {
      await urgent.done(high)
      await rig.clock.advance(15_000)
    }
    assert.equal((await low.worker.record()).stopReason, 'suspend_failed')
    const { attempt, lostAttempts } = await rig.job(batch, low.job)
    assert.deepEqual([attempt, lostAttempts], [0, 0])
    assert.deepEqual((await rig.health(batch)).workers.unhealthy, 0, 'it is no crash')
  })
}

test('a paused worker waits while another program has its card, and says so', async t => {
  const { rig, gpus, batch, chat } = await openCard(t)
  const low = await begin(rig, batch)
  const high = await begin(rig, chat, 3_000)
  gpus.foreign.set('GPU-0', 2 * GIB)
  await high.worker.done(high.job)
  gpus.foreign.set('GPU-0', 10 * GIB)
  await rig.clock.advance(60_000)
  assert.deepEqual(await stateOf(rig, low.worker), PAUSED)
  assert.match((await rig.ask('GET', `/v2/${batch}/explain/${low.job}`)).text, /it needs .* of its GPU 0/)
  gpus.foreign.clear()
  await rig.clock.advance(8_000)
  assert.deepEqual(await stateOf(rig, low.worker), WORKS)
})

test('memory for suspended workers that is too short pauses nobody, and ends no paused worker', async t => {
  const { rig, batch, chat } = await openCard(t)
  rig.memory = { availableBytes: 25 * GIB, totalBytes: 100 * GIB }
  const low = await begin(rig, batch)
  await rig.submit(chat)
  await rig.clock.advance(5_000)
  assert.deepEqual(await stateOf(rig, low.worker), WORKS)
  rig.memory = { availableBytes: 90 * GIB, totalBytes: 100 * GIB }
  await rig.clock.advance(65_000)
  assert.deepEqual(await stateOf(rig, low.worker), PAUSED)
  rig.memory = { availableBytes: 5 * GIB, totalBytes: 100 * GIB }
  await rig.clock.advance(10_000)
  assert.deepEqual(await stateOf(rig, low.worker), PAUSED)
})

for (const goesOn of [false, true]) {
  test(`a kill of the server at any moment of ${goesOn ? 'the way back' : 'the way into a pause'} loses no work`, async t => {
    for (const killedMs of [4, 14, 24, 34, 80, 124, 144, 300]) {
      const { rig, gpus, end, batch, chat } = await openCard(t)
      const low = await begin(rig, batch)
      const pid = gpus.pidOf(low.worker.id)
      const high = await rig.submit(chat)
      if (goesOn) {
        await rig.clock.advance(3_000)
        assert.equal(await rig.worker(-1).takeJob(), high)
        await rig.worker(-1).done(high)
        await rig.clock.advance(5_000)
      }
      await rig.clock.advance(killedMs)
      const context = `killed after ${killedMs} ms, ${JSON.stringify(await stateOf(rig, low.worker))}`
      await rig.crash()
      end()
      await rig.clock.advance(50)
      await rig.start()
      await rig.clock.advance(70_000)
      if (!goesOn) {
        const urgent = rig.worker(-1)
        assert.notEqual(urgent.id, low.worker.id, context)
        assert.equal(await urgent.takeJob(), high, context)
        await urgent.done(high)
      }
      await rig.clock.advance(15_000)
      assert.deepEqual([await stateOf(rig, low.worker), gpus.runs(low.worker.id)], [WORKS, true], context)
      assert.equal(gpus.pidOf(low.worker.id), pid, context)
      await low.worker.done(low.job)
      assert.equal((await rig.job(batch, low.job)).attempt, 1, context)
    }
  })
}

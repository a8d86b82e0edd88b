/** A worker with a card is suspended before it is frozen, and resumed before it gets work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import type { Worker } from '../../../src/core/workers/worker.ts'
import { suspensionOf } from '../../../src/core/workers/worker-suspension.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { GIB, FLASH_GPU as GPU, openCards } from '../../support/played-card-rig.ts'
import type { Asking, Rig, RigWorker } from '../../support/rig.ts'

/** Has a new worker do a job. */
async function startWorker(rig: Rig, endpoint: EndpointId, asking: Asking = {}): Promise<RigWorker> {
  const job = await rig.submit(endpoint, { input: {} }, asking)
  await rig.clock.advance(20)
  const worker = rig.worker(-1)
  assert.equal(await worker.takeJob(), job)
  await worker.done(job)
  return worker
}

const phaseOf = async (worker: RigWorker) => suspensionOf((await worker.record()) as Worker)?.phase ?? null

test('an idle worker is suspended and then frozen, and a job resumes the same process before it gets it', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  const pid = gpus.pidOf(worker.id)
  await rig.clock.advance(2_000)
  const { state, asleepAtMs, suspension } = await worker.record()
  assert.deepEqual([state, asleepAtMs !== null, suspension?.bytes], ['FROZEN', true, 20 * GIB])
  assert.deepEqual([gpus.usedBytes('GPU-0'), rig.fleet.frozen.has(worker.id)], [0, true])
  const { json: machine } = await rig.ask('GET', '/v2/machine')
  assert.deepEqual(machine.suspending, { lack: null })
  assert.deepEqual([machine.gpus[0].state, machine.gpus[0].holders[0].suspended], ['FREE', true])
  const job = await rig.submit(a)
  await rig.clock.advance(50)
  assert.deepEqual([(await worker.record()).state, await phaseOf(worker)], ['READY', 'resuming'])
  assert.match((await rig.ask('GET', `/v2/${a}/explain`)).text, /gets its memory on its GPU again/)
  await rig.clock.advance(500)
  assert.deepEqual([await phaseOf(worker), gpus.runs(worker.id), gpus.pidOf(worker.id)], [null, true, pid])
  assert.equal(await worker.takeJob(), job)
  assert.equal(rig.fleet.started.length, 1, 'no other worker was started')
})

test('no job reaches a worker before it is unlocked, however early it asks', async t => {
  const { rig, gpus, endpoint } = await openCards(t, { copyMs: () => 5_000 })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(10_000)
  assert.equal(await phaseOf(worker), 'suspended')
  const job = await rig.submit(a)
  await rig.clock.advance(1_000)
  const asked = worker.take()
  await rig.clock.advance(3_000)
  assert.deepEqual([(await rig.status(a, job)).json.status, gpus.stateOf(worker.id)], ['IN_QUEUE', 'checkpointed'])
  await rig.clock.advance(4_000)
  assert.deepEqual([(await asked).json?.id, gpus.runs(worker.id)], [job, true])
})

test('a job that comes while its worker is being suspended waits for it, and no other worker is started', async t => {
  const { rig, endpoint } = await openCards(t, { copyMs: () => 3_000 })
  const a = await endpoint({ workersMax: 2 })
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  assert.equal(await phaseOf(worker), 'suspending')
  const job = await rig.submit(a)
  await rig.clock.advance(1_000)
  assert.deepEqual([(await worker.record()).state, await phaseOf(worker)], ['FROZEN', 'suspending'])
  await rig.clock.advance(8_000)
  assert.deepEqual([await phaseOf(worker), await worker.takeJob()], [null, job])
  assert.equal(rig.fleet.started.length, 1)
})

test('a suspend is broken off for a job that comes before the copy, which nobody is blamed for', async t => {
  const arrival: { submit: (() => void) | null } = { submit: null }
  const onHold = (_: unknown, isHeld: boolean) => {
    if (isHeld) arrival.submit?.()
    arrival.submit = null
  }
  const { rig, gpus, endpoint } = await openCards(t, { onHold, copyMs: () => 60_000 })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  const jobs: string[] = []
  arrival.submit = () => void rig.submit(a).then(job => jobs.push(job))
  await rig.clock.advance(3_000)
  assert.equal(jobs.length, 1)
  assert.deepEqual([gpus.stateOf(worker.id), await phaseOf(worker)], ['running', null])
  assert.equal(await worker.takeJob(), jobs[0])
  assert.deepEqual(rig.happened('worker.suspend_failed'), [])
  assert.equal(await rig.store.releases.suspendFailures(a, 1), null)
})

test('placement does not read from the store again and again whether a release can be suspended', async t => {
  const { rig, endpoint } = await openCards(t)
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(10_000)
  assert.equal(await phaseOf(worker), 'suspended')
  const reads = rig.calls('releases.suspendFailures')
  const whole = { flashBootType: 'FLASHBOOT', gpuIds: 'AMPERE_24', instanceIds: undefined, workersMin: 1 }
  await rig.endpoint({ ...whole, name: 'waits' })
  await rig.clock.advance(20_000)
  assert.ok(rig.calls('releases.suspendFailures') - reads <= 1)
})

test('a lock that times out is undone, the worker is frozen with its memory, and the release is remembered', async t => {
  const { rig, gpus, endpoint } = await openCards(t, { fails: step => step === 'lock' })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  for (let turn = 1; turn <= 4; turn += 1) {
    await rig.clock.advance(15_000)
    assert.deepEqual([(await worker.record()).state, await phaseOf(worker)], ['FROZEN', null])
    assert.deepEqual([gpus.usedBytes('GPU-0'), rig.fleet.frozen.has(worker.id)], [20 * GIB, true])
    const job = await rig.submit(a)
    await rig.clock.advance(50)
    assert.equal(await worker.takeJob(), job)
    await worker.done(job)
  }
  assert.equal(rig.happened('worker.suspend_failed').length, 3, 'not tried again after three failures')
  assert.deepEqual(await rig.store.releases.suspendFailures(a, 1), { reason: 'lock: NOT_READY', count: 3 })
  const { notes } = (await rig.ask('GET', `/v2/${a}/explain`)).json
  assert.match(notes[0], /keep their GPU memory until there is a new release, .*: lock: NOT_READY/)
})

test('a worker that a checkpoint loses ends without a crash, and its release is not suspended again', async t => {
  const { rig, gpus, endpoint } = await openCards(t, { fails: step => step === 'checkpoint' })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  const { state, stopReason, problem } = await worker.record()
  assert.deepEqual([state, stopReason, problem?.kind], ['EXITED', 'suspend_failed', 'not_suspended'])
  const next = await startWorker(rig, a)
  assert.notEqual(next.id, worker.id)
  await rig.clock.advance(3_000)
  assert.deepEqual([(await next.record()).state, gpus.stateOf(next.id)], ['FROZEN', 'running'])
})

test('the card of a suspended worker is not given to others while the driver lists its memory there', async t => {
  const { rig, gpus, endpoint } = await openCards(t, { fails: step => step === 'empty' })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  const { state, asleepAtMs, stopReason } = await worker.record()
  assert.deepEqual([state, asleepAtMs, stopReason], ['EXITED', null, 'suspend_failed'])
  const next = await startWorker(rig, a)
  await rig.clock.advance(3_000)
  assert.deepEqual([(await next.record()).state, gpus.stateOf(next.id)], ['FROZEN', 'running'], 'not tried again')
})

test('a worker that a restore loses ends, and its job goes to a new one with its attempts', async t => {
  const { rig, endpoint } = await openCards(t, { fails: step => step === 'restore' })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  const job = await rig.submit(a)
  await rig.clock.advance(2_000)
  assert.equal((await worker.record()).problem?.kind, 'not_resumed')
  const next = rig.worker(-1)
  assert.notEqual(next.id, worker.id)
  assert.equal(await next.takeJob(), job)
  await next.done(job)
  const { status, retries = 0 } = (await rig.status(a, job)).json
  assert.deepEqual([status, retries], ['COMPLETED', 0])
})

test('a resume without room is not tried: the worker sleeps on, with the reason, until there is room', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  gpus.foreign.set('GPU-0', 10 * GIB)
  const job = await rig.submit(a)
  await rig.clock.advance(30_000)
  assert.equal(await phaseOf(worker), 'suspended')
  assert.equal((await worker.record()).wakeWaitsFor, 'it needs 20480 MiB of its GPU 0, and 14336 MiB are free')
  assert.ok(rig.happened('worker.moved').length < 100, 'it is tried from time to time')
  gpus.foreign.clear()
  await rig.clock.advance(6_000)
  assert.deepEqual([await phaseOf(worker), await worker.takeJob()], [null, job])
})

test('a machine that cannot suspend freezes workers with their memory, and is asked again later', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  gpus.readiness = { lack: { why: 'old_driver', driver: '570.1' }, driver: '570.1', cuda: null }
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  assert.deepEqual([(await worker.record()).state, gpus.stateOf(worker.id)], ['FROZEN', 'running'])
  const { notes } = (await rig.ask('GET', `/v2/${a}/explain`)).json
  assert.deepEqual(notes, [
    'frozen workers keep their GPU memory: driver 570.1 is too old; 575.57 is the first that can',
  ])
  const { suspending } = (await rig.ask('GET', '/v2/machine')).json
  assert.equal(suspending.lack, 'driver 570.1 is too old; 575.57 is the first that can')
  gpus.readiness = { lack: null, driver: '580.1', cuda: 13_000 }
  await rig.clock.advance(600_000)
  const job = await rig.submit(a)
  await rig.clock.advance(50)
  assert.equal(await worker.takeJob(), job)
  await worker.done(job)
  await rig.clock.advance(2_000)
  assert.equal(await phaseOf(worker), 'suspended')
})

test('a suspended worker that has to end is killed, since it cannot follow a signal', async t => {
  const { rig, endpoint } = await openCards(t)
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  await rig.ask('PATCH', `/v2/serverless/${a}`, { body: { env: { A: 'b' } } })
  await rig.clock.advance(2_000)
  assert.deepEqual([(await worker.record()).state, rig.fleet.terminated.has(worker.id)], ['EXITED', false])
})

for (const [availableGib, sinceS, ended] of [
  [90, 65, false],
  [45, 65, true],
  [45, 5, false],
] as const) {
  test(`with ${availableGib} GB of memory a worker suspended for ${sinceS} s ${ended ? 'ends for' : 'stays beside'} the next one`, async t => {
    const { rig, gpus, endpoint } = await openCards(t)
    rig.machine = aMachine([aGpu(0), aGpu(1)])
    rig.memory = { availableBytes: availableGib * GIB, totalBytes: 100 * GIB }
    const [a, b] = [await endpoint(), await endpoint()]
    const first = await startWorker(rig, a)
    await rig.clock.advance(2_000)
    rig.memory = { availableBytes: (availableGib - 20) * GIB, totalBytes: 100 * GIB }
    await rig.clock.advance(sinceS * 1_000)
    const second = await startWorker(rig, b)
    await rig.clock.advance(3_000)
    const [{ state }, { stopReason }] = [await second.record(), await first.record()]
    assert.deepEqual([state, stopReason], ['FROZEN', ended ? 'memory_short' : null])
    if (!ended) assert.equal(gpus.stateOf(second.id), availableGib < 90 ? 'running' : 'checkpointed')
  })
}

test('an idle worker that makes room is suspended only where its next start takes longer than the copies', async t => {
  for (const [startMs, isSuspended] of [
    [3_000, false],
    [20_000, true],
  ] as const) {
    const { rig, endpoint } = await openCards(t)
    const share = { idleTimeout: 600, gpuMemoryGb: 20 }
    const [a, b] = [await endpoint(share), await endpoint(share)]
    const job = await rig.submit(a)
    await rig.clock.advance(startMs)
    const worker = rig.worker(-1)
    assert.equal(await worker.takeJob(), job)
    await worker.done(job)
    await rig.clock.advance(40_000)
    await rig.submit(b)
    await rig.clock.advance(20)
    const { summary } = await rig.why(b)
    await rig.clock.advance(5_000)
    const { state, stopReason } = await worker.record()
    const [event] = rig.happened('worker.evicted')
    if (isSuspended) {
      assert.deepEqual([state, event], ['FROZEN', undefined])
      continue
    }
    assert.deepEqual([state, stopReason], ['EXITED', 'evicted'])
    assert.deepEqual([event?.workerId, event?.notSuspended], [worker.id, 'start_is_faster'])
    assert.match(
      summary,
      /of a worker that is ending, since its next start is faster than a copy of its GPU memory and back/,
    )
  }
})

test('copies that were measured to be fast are made again, also where a start takes seconds', async t => {
  const { rig, endpoint } = await openCards(t, { copyMs: () => 500 })
  const first = await endpoint()
  await startWorker(rig, first)
  await rig.clock.advance(3_000)
  const share = { idleTimeout: 600, gpuMemoryGb: 20 }
  const a = await endpoint(share)
  for (const endpointId of [a, first]) {
    const job = await rig.submit(endpointId)
    await rig.clock.advance(endpointId === a ? 6_000 : 40_000)
    const worker = endpointId === a ? rig.worker(-1) : rig.worker(0)
    assert.equal(await worker.takeJob(), job)
    await worker.done(job)
  }
  assert.equal((await rig.worker(1).record()).state, 'FROZEN', 'it made room for the first one')
  assert.deepEqual(
    rig.happened('worker.suspended').map(({ workerId }) => workerId),
    [rig.worker(0).id, rig.worker(1).id],
  )
  assert.deepEqual(rig.happened('worker.evicted'), [])
})

test('an idle worker that makes room ends where another one would have to end for its copy', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  rig.memory = { availableBytes: 45 * GIB, totalBytes: 100 * GIB }
  const share = { gpuMemoryGb: 20 }
  const [a, b, c] = [await endpoint(share), await endpoint({ ...share, idleTimeout: 600 }), await endpoint(share)]
  const first = await startWorker(rig, a)
  await rig.clock.advance(3_000)
  assert.equal(gpus.stateOf(first.id), 'checkpointed')
  rig.memory = { availableBytes: 25 * GIB, totalBytes: 100 * GIB }
  const job = await rig.submit(b)
  await rig.clock.advance(25_000)
  const second = rig.worker(-1)
  assert.equal(await second.takeJob(), job)
  await second.done(job)
  await rig.clock.advance(70_000)
  await rig.submit(c)
  await rig.clock.advance(5_000)
  assert.equal((await second.record()).stopReason, 'evicted')
  assert.deepEqual([(await first.record()).state, gpus.stateOf(first.id)], ['FROZEN', 'checkpointed'])
  assert.equal(rig.happened('worker.evicted')[0]?.notSuspended, 'no_copy_memory')
})

test('a worker is not suspended where memory is too short for it alone, and nobody ends for it', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  rig.memory = { availableBytes: 25 * GIB, totalBytes: 100 * GIB }
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  assert.deepEqual([(await worker.record()).state, gpus.stateOf(worker.id)], ['FROZEN', 'running'])
  assert.match(
    rig.happened('worker.suspend_failed')[0]?.problem ?? '',
    /needs 20480 MiB of memory, and 12800 MiB are left for suspended workers \(--suspended-memory\)/,
  )
  assert.equal(await rig.store.releases.suspendFailures(a, 1), null, 'the next time may be better')
  const notes = async () => (await rig.ask('GET', `/v2/${a}/explain`)).json.notes
  assert.deepEqual(await notes(), [
    `worker ${worker.id} keeps its GPU memory while it is frozen: its memory on the GPU needs 20480 MiB of memory, and 12800 MiB are left for suspended workers (--suspended-memory)`,
  ])
  rig.memory = { availableBytes: 90 * GIB, totalBytes: 100 * GIB }
  const job = await rig.submit(a)
  await rig.clock.advance(50)
  assert.equal(await worker.takeJob(), job)
  assert.deepEqual(await notes(), [], 'it is not frozen any more')
  await worker.done(job)
  await rig.clock.advance(2_000)
  assert.deepEqual([await phaseOf(worker), await notes()], ['suspended', []])
})

test('no memory for suspended workers is the reason why frozen ones keep their cards', async t => {
  const { rig, endpoint } = await openCards(t, {}, { freezing: { suspendedBytes: 0 } })
  const a = await endpoint()
  const worker = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  assert.equal((await worker.record()).state, 'FROZEN')
  const { notes } = (await rig.ask('GET', `/v2/${a}/explain`)).json
  assert.deepEqual(notes, [
    'frozen workers keep their GPU memory: suspended workers may have no memory (--suspended-memory 0)',
  ])
})

test('a suspended worker leaves its card to another account, and gets it back when that one idles', async t => {
  const { rig, gpus, endpoint } = await openCards(t)
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: other } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const a = await endpoint()
  const first = await startWorker(rig, a)
  await rig.clock.advance(2_000)
  const b = await rig.endpoint(GPU, { key: other.key })
  const second = await startWorker(rig, b, { key: other.key })
  assert.deepEqual([gpus.stateOf(first.id), gpus.stateOf(second.id)], ['checkpointed', 'running'])
  const job = await rig.submit(a)
  await rig.clock.advance(40_000)
  assert.deepEqual([gpus.stateOf(first.id), gpus.stateOf(second.id)], ['running', 'checkpointed'])
  assert.equal(await first.takeJob(), job)
  assert.equal(rig.fleet.started.length, 2, 'each model was started once')
})

for (const [what, begins] of [
  ['suspend', false],
  ['resume', true],
] as const) {
  test(`a kill of the server at any moment of a ${what} loses neither the worker nor a job`, async t => {
    for (const killedMs of [4, 14, 24, 34, 80, 124, 134, 144, 154]) {
      const { rig, gpus, end, endpoint } = await openCards(t)
      const a = await endpoint()
      const worker = await startWorker(rig, a)
      if (begins) await rig.clock.advance(2_000)
      else await rig.clock.advance(980)
      const before = begins ? [await rig.submit(a)] : []
      await rig.clock.advance(killedMs)
      const phase = await phaseOf(worker)
      await rig.crash()
      end()
      await rig.clock.advance(50)
      await rig.start()
      await rig.clock.advance(3_000)
      const context = `killed after ${killedMs} ms, ${phase}`
      const [job] = begins ? before : [await rig.submit(a)]
      await rig.clock.advance(8_000)
      assert.equal(gpus.runs(worker.id), true, context)
      assert.equal(await worker.takeJob(), job, context)
      await worker.done(job!)
      assert.equal(rig.fleet.started.length, 1, context)
      await rig.clock.advance(3_000)
      assert.deepEqual([await phaseOf(worker), gpus.usedBytes('GPU-0')], ['suspended', 0], context)
    }
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

/** Times at which workers were created, in milliseconds since `fromMs`. */
function startsSince(rig: Rig, fromMs: number): Promise<number[]> {
  return Promise.all(rig.fleet.started.map(async (_, index) => (await rig.worker(index).record()).createdAtMs - fromMs))
}

/** States of the workers of an endpoint that have not ended, oldest first. */
async function states(rig: Rig, id: EndpointId): Promise<string[]> {
  return (await rig.alive(id)).map(({ state }) => state)
}

test('the first job starts a worker at once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 0)
  const submittedMs = rig.clock.now()
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  const [start] = await startsSince(rig, submittedMs)
  assert.ok(start !== undefined && start <= 20, `started after ${start} ms`)
})

test('an endpoint whose worker does all jobs is read ten times a second, and gets a second worker soon', async t => {
  const rig = await openRig(t)
  const options = { workersMin: 1, workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 2 } as const
  const { endpoint, worker } = await rig.endpointWithWorker(options)
  const before = rig.calls('endpoints.snapshot')
  for (let round = 0; round < 50; round += 1) {
    const id = await rig.submit(endpoint)
    await worker.takeJob()
    await worker.done(id)
    await rig.clock.advance(20)
  }
  const reads = rig.calls('endpoints.snapshot') - before
  assert.ok(reads <= 13, `${reads} reads in a second`)
  const submittedMs = rig.clock.now()
  for (let count = 0; count < 3; count += 1) await rig.submit(endpoint)
  await rig.clock.advance(130)
  assert.equal(rig.fleet.started.length, 2)
  const starts = await startsSince(rig, submittedMs)
  assert.ok(starts[1]! <= 120, `the second worker started after ${starts[1]} ms`)
})

test('a step reads the endpoints that are due, however many are at rest', async t => {
  const reads = []
  for (const others of [0, 40]) {
    const rig = await openRig(t)
    for (let n = 0; n < others; n += 1) await rig.submit(await rig.endpoint({ workersMax: 0 }))
    const endpoint = await rig.endpoint()
    await rig.clock.advance(60_000)
    const before = rig.calls('endpoints.snapshot')
    await rig.submit(endpoint)
    await rig.clock.advance(25_000)
    reads.push(rig.calls('endpoints.snapshot') - before)
  }
  assert.ok(reads[0]! > 0)
  assert.equal(reads[1], reads[0])
})

test('jobs of an endpoint without workers start one as soon as it may have some', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(100_000)
  assert.equal(rig.fleet.started.length, 0)
  const changedMs = rig.clock.now()
  await rig.change(endpoint, { workersMax: 2 })
  await rig.clock.advance(20)
  const [start] = await startsSince(rig, changedMs)
  assert.ok(start !== undefined && start <= 20, `started after ${start} ms`)
  assert.equal(await rig.worker(0).takeJob(), id)
})

test('endpoints are listed once a second at most while many are saved, and each starts its first worker at once', async t => {
  const rig = await openRig(t)
  await rig.clock.advance(60_000)
  const before = rig.calls('endpoints.ids')
  for (let n = 0; n < 30; n += 1) {
    const endpoint = await rig.endpoint()
    const submittedMs = rig.clock.now()
    await rig.submit(endpoint)
    await rig.clock.advance(50)
    assert.equal(rig.fleet.started.length, n + 1)
    const start = (await startsSince(rig, submittedMs)).at(-1)!
    assert.ok(start <= 20, `started after ${start} ms`)
  }
  assert.ok(rig.calls('endpoints.ids') - before <= 2, 'in a second and a half')
})

test('a worker gets the image, its variables and the address of its endpoint', async t => {
  const rig = await openRig(t)
  await rig.graphql('mutation { secretCreate(input: { name: "token", value: "s3cret" }) { id } }')
  const template = {
    env: [
      { key: 'A', value: 'template' },
      { key: 'B', value: 'x{{ RUNPOD_SECRET_token }}y' },
    ],
  }
  const env = [{ key: 'A', value: 'endpoint' }]
  const { endpoint, worker } = await rig.endpointWithWorker({ template: { ...template, dockerArgs: 'run me' }, env })
  assert.deepEqual(worker.spec.env, { A: 'endpoint', B: 'xs3crety' })
  assert.deepEqual([worker.spec.image, worker.spec.args], ['image:1', 'run me'])
  assert.equal(worker.spec.protocolEnv.RUNPOD_ENDPOINT_ID, endpoint)
})

test('an idle worker ends after the idle timeout, and not before', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ idleTimeout: 7 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(20)
  const worker = rig.worker(0)
  await worker.takeJob()
  await rig.clock.advance(60_000)
  assert.deepEqual(await states(rig, endpoint), ['READY'], 'a worker with a job is not idle')
  await worker.done(id)
  await rig.clock.advance(6_999)
  assert.deepEqual(await states(rig, endpoint), ['READY'])
  await rig.clock.advance(100)
  assert.deepEqual(await states(rig, endpoint), [])
  assert.equal((await worker.record()).stopReason, 'idle')
  assert.ok(!rig.fleet.killed.has(worker.id), 'it was asked, not killed')
})

test('a queue that scales on requestCount lets its workers go after 5 seconds', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ idleTimeout: 600, scalerType: 'REQUEST_COUNT', scalerValue: 1 })
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  await rig.worker(0).done(await rig.worker(0).takeJob())
  await rig.clock.advance(4_999)
  assert.equal((await states(rig, endpoint)).length, 1)
  await rig.clock.advance(100)
  assert.equal((await states(rig, endpoint)).length, 0)
})

test('workersMin workers stay however idle they are', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 3, idleTimeout: 1 })
  await rig.clock.advance(100)
  const polls = [rig.worker(0).take(), rig.worker(1).take()]
  await rig.clock.leap(600_000)
  assert.deepEqual(await states(rig, endpoint), ['READY', 'READY'])
  assert.equal(rig.fleet.started.length, 2)
  await Promise.all(polls)
})

test('workersMax 0 pauses an endpoint: jobs are accepted and wait until it is raised', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  await rig.submit(endpoint)
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 0)
  assert.equal((await rig.why(endpoint)).cause, 'paused')
  await rig.change(endpoint, { workersMax: 1 })
  await rig.clock.advance(20)
  assert.equal(rig.fleet.started.length, 1)
})

test('REQUEST_COUNT starts as many workers as the jobs need, up to the maximum', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ scalerType: 'REQUEST_COUNT', scalerValue: 2, workersMax: 4 })
  for (let number = 0; number < 5; number += 1) await rig.submit(endpoint)
  await rig.clock.advance(100)
  assert.equal(rig.fleet.started.length, 3)
  for (let number = 0; number < 20; number += 1) await rig.submit(endpoint)
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 4)
})

test('QUEUE_DELAY starts one more worker each time the head of the line has waited another delay', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ scalerValue: 4, workersMax: 3 })
  const fromMs = rig.clock.now()
  for (let number = 0; number < 9; number += 1) await rig.submit(endpoint)
  await rig.clock.advance(30_000)
  const starts = await startsSince(rig, fromMs)
  assert.equal(starts.length, 3)
  assert.ok(starts[0]! <= 20 && starts[1]! >= 4_000 && starts[1]! <= 4_020 && starts[2]! >= 8_000, `${starts}`)
})

test('QUEUE_DELAY starts a second worker at once when jobs are known to be slow', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ scalerValue: 4, workersMax: 3 })
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  const id = await rig.worker(0).takeJob()
  await rig.clock.advance(6_000)
  await rig.worker(0).done(id)
  await rig.submit(endpoint)
  await rig.submit(endpoint)
  await rig.clock.advance(100)
  assert.equal(rig.fleet.started.length, 2)
})

test('QUEUE_DELAY starts a second worker when a job takes much longer than those before it, and says so', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ scalerValue: 1, workersMax: 2 })
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  const first = rig.worker(0)
  for (let number = 0; number < 6; number += 1) {
    if (number > 0) await rig.submit(endpoint)
    const id = await first.takeJob()
    await rig.clock.advance(100)
    await first.done(id)
  }
  const long = await rig.submit(endpoint)
  assert.equal(await first.takeJob(), long)
  const short = await rig.submit(endpoint)
  await rig.clock.advance(900)
  assert.equal(rig.fleet.started.length, 1, 'one worker may still be enough')
  assert.match((await rig.why(endpoint)).summary, /enough for the wait that the scaler allows/)
  await rig.clock.advance(200)
  assert.equal(rig.fleet.started.length, 2, 'the head of the line has waited for the queue delay')
  assert.equal(await rig.worker(1).takeJob(), short)
  await rig.worker(1).done(short)
  await rig.clock.advance(60_000)
  await first.done(long)
  assert.equal(rig.fleet.started.length, 2)
})

test('one job starts one worker, however long that takes to start', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ scalerValue: 1, workersMax: 5 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(120_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.equal(await rig.worker(0).takeJob(), id)
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.started.length, 1)
})

test('one job starts one worker while the driver is slow and everybody is woken over and over', async t => {
  const slow = Promise.withResolvers<void>()
  const rig = await openRig(t, { beforeStart: () => slow.promise })
  const endpoint = await rig.endpoint({ scalerValue: 1, workersMax: 5 })
  await rig.submit(endpoint)
  for (let round = 0; round < 50; round += 1) {
    rig.notifier.publish(`load:${endpoint}`)
    rig.notifier.publish('endpoints')
    rig.notifier.publish('machine')
    await rig.clock.advance(round)
  }
  slow.resolve()
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('one job has one worker at a time when the store fails while that is recorded', async t => {
  for (const fault of ['before', 'after'] as const) {
    const rig = await openRig(t)
    const endpoint = await rig.endpoint({ scalerValue: 1, workersMax: 5 })
    rig.failNext('workers.insert', fault)
    await rig.submit(endpoint)
    for (let second = 0; second < 30; second += 1) {
      await rig.clock.advance(1_000)
      assert.ok((await rig.alive(endpoint)).length <= 1, fault)
    }
    assert.equal(rig.fleet.running().length, 1, fault)
  }
})

test('a job of low priority starts no worker, and runs on one that another job started', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const low = await rig.submit(endpoint, { input: {}, policy: { lowPriority: true } })
  await rig.clock.advance(120_000)
  assert.equal(rig.fleet.started.length, 0)
  assert.equal((await rig.why(endpoint)).cause, 'low_priority')
  const other = await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.deepEqual([await rig.worker(0).takeJob(), await rig.worker(0).takeJob()], [other, low])
})

test('without room for more, an idle worker makes room for a new one, and the busy one goes once that is ready', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const [busy, idle] = [rig.worker(0), rig.worker(1)]
  const id = await rig.submit(endpoint)
  await busy.takeJob()
  const poll = idle.take()
  await rig.clock.settle()
  await rig.change(endpoint, { env: [{ key: 'A', value: '2' }] })
  await rig.clock.advance(100)
  assert.equal((await poll).status, 204)
  assert.equal((await idle.record()).stopReason, 'outdated')
  assert.deepEqual([(await busy.record()).state, (await idle.record()).state], ['READY', 'EXITED'])
  assert.deepEqual(rig.worker(-1).spec.env, { A: '2' })
  void rig.worker(-1).take()
  await rig.clock.advance(100)
  assert.equal((await busy.record()).state, 'DRAINING')
  await busy.done(id)
  await rig.clock.advance(100)
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
  assert.equal((await busy.record()).state, 'EXITED')
  const versions = (await rig.alive(endpoint)).map(({ version }) => version)
  assert.deepEqual(versions, [2, 2])
})

test('a change of the range of workers replaces no worker', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await rig.change(endpoint, { workersMax: 5, idleTimeout: 20 })
  await rig.clock.advance(1_000)
  assert.equal((await worker.record()).state, 'STARTING')
  assert.equal(rig.fleet.started.length, 1)
})

test('saving a template replaces the workers of each endpoint that uses it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const query = 'query ($id: String!) { myself { endpoint(id: $id) { templateId version } } }'
  const before = (await rig.graphql(query, { id: endpoint })).myself.endpoint
  const input = { id: before.templateId, imageName: 'image:2' }
  await rig.graphql('mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }', { input })
  await rig.clock.advance(100)
  assert.equal((await worker.record()).stopReason, 'outdated')
  assert.equal(rig.worker(-1).spec.image, 'image:2')
})

test('there are never more workers than workersMax, those that are ending included', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { endpoint } = await rig.endpointWithWorker({ workersMax: 1 })
  for (let version = 0; version < 3; version += 1) {
    await rig.change(endpoint, { env: [{ key: 'V', value: String(version) }] })
    await rig.submit(endpoint)
    await rig.clock.advance(2_000)
    assert.equal(rig.fleet.running().length, 1)
  }
  await rig.clock.advance(20_000)
  assert.equal(rig.fleet.running().length, 1)
  assert.deepEqual(rig.worker(-1).spec.env, { V: '2' })
})

test('a smaller workersMax lets the superfluous workers go, the idle ones first', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 3, workersMax: 3 })
  await rig.clock.advance(100)
  await rig.submit(endpoint)
  await rig.worker(1).takeJob()
  await rig.change(endpoint, { workersMin: 0, workersMax: 1 })
  await rig.clock.advance(100)
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ id }) => id),
    [rig.worker(1).id],
  )
})

test('workers that crash are started again after 1, 2, 4 and 8 seconds', async t => {
  const rig: Rig = await openRig(t, {
    onStart: spec => queueMicrotask(() => rig.fleet.exit(spec.workerId, { code: 1 })),
  })
  const fromMs = rig.clock.now()
  await rig.submit(await rig.endpoint({ workersMax: 5 }))
  await rig.clock.advance(16_000)
  const starts = await startsSince(rig, fromMs)
  const gaps = starts.slice(1).map((start, index) => start - starts[index]!)
  assert.equal(gaps.length, 4)
  for (const [index, gap] of gaps.entries()) {
    const wanted = 1_000 * 2 ** index
    assert.ok(gap >= wanted && gap <= wanted + 100, `gaps are ${gaps}`)
  }
})

test('a restart starts a worker at once after crashes, and lets workers finish their jobs', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  const { version } = (await rig.ask('POST', `/ops/restart/${endpoint}`)).json
  await rig.clock.advance(1_000)
  void rig.worker(-1).take()
  await rig.clock.advance(100)
  assert.deepEqual([version, (await worker.record()).state], [2, 'DRAINING'])
  assert.equal((await worker.done(job)).status, 200)
  await rig.clock.advance(1_000)
  assert.equal((await worker.record()).state, 'EXITED')
  const next = await rig.submit(endpoint)
  await rig.clock.advance(100)
  for (let crashes = 0; crashes < 6; crashes += 1) {
    rig.fleet.exit(rig.worker(-1).spec.workerId, { code: 1 })
    await rig.clock.advance(20_000)
  }
  const before = rig.fleet.started.length
  rig.fleet.exit(rig.worker(-1).spec.workerId, { code: 1 })
  await rig.clock.advance(500)
  assert.equal(rig.fleet.started.length, before, 'the next start is delayed')
  await rig.ask('POST', `/ops/restart/${endpoint}`)
  await rig.clock.advance(500)
  assert.equal(rig.fleet.started.length, before + 1)
  assert.equal(await rig.worker(-1).takeJob(), next)
})

test('a crash loop explains itself with the exit, the output and what to do', async t => {
  const rig: Rig = await openRig(t, {
    onStart(spec) {
      rig.print(spec.workerId, "ModuleNotFoundError: No module named 'torch'")
      queueMicrotask(() => rig.fleet.exit(spec.workerId, { code: 1 }))
    },
  })
  const endpoint = await rig.endpoint()
  await rig.submit(endpoint)
  await rig.clock.advance(100)
  const { json } = await rig.ask('GET', `/v2/${endpoint}/explain`)
  assert.equal(json.cause, 'crash_loop')
  assert.equal(json.summary, 'the last worker exited with code 1; the next one starts in 1 s')
  assert.match(json.action, /install the Python module 'torch'/)
  assert.deepEqual(json.evidence, ["ModuleNotFoundError: No module named 'torch'"])
})

test('a worker that cannot be started counts as a crash, with the reason', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  rig.fleet.failNextStart({ kind: 'image_vanished', image: 'a' })
  await rig.submit(endpoint)
  await rig.clock.advance(500)
  assert.match((await rig.why(endpoint)).summary, /could not be started: image 'a' was downloaded but does not exist/)
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.running().length, 1)
})

test('a failed start is followed by another one also when the store failed while it was recorded', async t => {
  for (const fault of ['before', 'after'] as const) {
    const rig = await openRig(t)
    const endpoint = await rig.endpoint({ workersMax: 1 })
    rig.fleet.failNextStart({ kind: 'image_vanished', image: 'a' })
    rig.failNext('workers.exited', fault)
    await rig.submit(endpoint)
    await rig.clock.advance(5_000)
    assert.equal(rig.fleet.running().length, 1, fault)
    assert.equal((await rig.alive(endpoint)).length, 1, fault)
  }
})

test('a missing secret keeps workers from starting, is named, and a new secret fixes it at once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ env: [{ key: 'T', value: '{{ RUNPOD_SECRET_hf }}' }] })
  await rig.submit(endpoint)
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.started.length, 0)
  const { cause, summary } = await rig.why(endpoint)
  assert.equal(cause, 'secret_missing')
  assert.match(summary, /secrets that do not exist: hf/)
  await rig.graphql('mutation { secretCreate(input: { name: "hf", value: "v" }) { id } }')
  await rig.clock.advance(20)
  assert.deepEqual(rig.worker(0).spec.env, { T: 'v' })
})

test('an image that can never be started is tried again when the endpoint is changed', async t => {
  const rig = await openRig(t, { check: image => (image === 'broken' ? { kind: 'image_invalid', image } : null) })
  const endpoint = await rig.endpoint({ template: { imageName: 'broken' } })
  await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  assert.match((await rig.why(endpoint)).summary, /'broken' is not a reference of a container image/)
  assert.equal(rig.fleet.started.length, 0)
  const query = 'query ($id: String!) { myself { endpoint(id: $id) { templateId } } }'
  const { templateId } = (await rig.graphql(query, { id: endpoint })).myself.endpoint
  const input = { id: templateId, imageName: 'mended' }
  await rig.graphql('mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }', { input })
  await rig.clock.advance(50)
  assert.equal(rig.fleet.started.length, 1)
})

test('an endpoint that waits for room gets its worker soon after another endpoint lets one go', async t => {
  const rig = await openRig(t, {
    capacity: running => ({ freeWorkers: Math.max(0, 1 - running), bound: 'the limit of 1 worker' }),
  })
  const first = await rig.endpoint({ idleTimeout: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 })
  const second = await rig.endpoint({ scalerType: 'REQUEST_COUNT', scalerValue: 1 })
  const id = await rig.submit(first)
  await rig.clock.advance(20)
  await rig.worker(0).takeJob()
  await rig.submit(second)
  await rig.clock.advance(60_000)
  const { cause, summary } = await rig.why(second)
  assert.deepEqual([cause, summary], ['no_capacity', 'there is no room for a worker: the limit of 1 worker'])
  await rig.worker(0).done(id)
  await rig.clock.advance(5_000 + 2_000)
  assert.deepEqual((await rig.alive(second)).length, 1)
})

test('an endpoint whose workers were being looked at when the store failed is looked at again', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  rig.failNext('endpoints.snapshot', 'before')
  await rig.submit(endpoint)
  await rig.clock.advance(1_100)
  assert.equal(rig.happened('loop.failed').length, 1)
  assert.equal(rig.fleet.started.length, 1)
})

test('one endpoint that cannot be looked at does not keep another from its worker for long', async t => {
  const rig = await openRig(t)
  const [first, second] = [await rig.endpoint(), await rig.endpoint()]
  rig.failNext('endpoints.snapshot', 'before')
  await Promise.all([rig.submit(first), rig.submit(second)])
  await rig.clock.advance(1_100)
  assert.equal((await rig.alive(first)).length, 1)
  assert.equal((await rig.alive(second)).length, 1)
})

test('a new endpoint gets its workers also when the store failed while it was looked for', async t => {
  const rig = await openRig(t)
  rig.failNext('endpoints.ids', 'before')
  await rig.endpoint({ workersMin: 1 })
  await rig.clock.advance(1_100)
  assert.equal(rig.fleet.started.length, 1)
})

test('a lost notification costs seconds and no worker', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await worker.take({ signal: AbortSignal.abort() })
  rig.loses = topic => topic.startsWith('load:')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(7_000)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('an endpoint that is deleted while a worker is being started leaves no worker behind', async t => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const rig = await openRig(t, { onStart: () => promise })
  const endpoint = await rig.endpoint()
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  await rig.change(endpoint, { workersMax: 0 })
  await rig.graphql('mutation ($id: String!) { deleteEndpoint(id: $id) }', { id: endpoint })
  resolve()
  await rig.clock.advance(2_000)
  assert.deepEqual(rig.fleet.running(), [])
  assert.deepEqual(await rig.store.workers.alive(), [])
})

test('a job without a notification gets its worker within half a minute', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  await rig.clock.advance(60_000)
  rig.loses = topic => topic.startsWith('load:')
  await rig.submit(endpoint)
  await rig.clock.advance(31_000)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('idle endpoints are not read again and again, and one that gets a job is', async t => {
  const rig = await openRig(t)
  const endpoints = []
  for (let n = 0; n < 20; n += 1) endpoints.push(await rig.endpoint({ workersMax: 1 }))
  await rig.clock.advance(60_000)
  const before = rig.calls('endpoints.snapshot')
  await rig.clock.advance(600_000)
  assert.equal(rig.calls('endpoints.snapshot') - before, 0)
  await rig.submit(endpoints[7]!)
  await rig.clock.advance(100)
  assert.equal((await rig.alive(endpoints[7]!)).length, 1)
})

test('an endpoint without a notification gets its workers within half a minute', async t => {
  const rig = await openRig(t)
  await rig.clock.advance(60_000)
  rig.loses = topic => topic === 'endpoints'
  const endpoint = await rig.endpoint({ workersMin: 1 })
  await rig.clock.advance(31_000)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('endpoints are looked at also after the clock was set back by hours', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  await rig.clock.advance(60_000)
  rig.loses = topic => topic.startsWith('load:')
  rig.clock.set(-3_600_000)
  await rig.submit(endpoint)
  await rig.clock.advance(31_000)
  assert.equal((await rig.alive(endpoint)).length, 1)
})

test('the workers of a deleted endpoint end also when the store failed after the endpoint was gone', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await worker.take({ signal: AbortSignal.abort() })
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  rig.failNext('endpoints.remove', 'after')
  await rig.ask('POST', '/graphql', { body: { query: `mutation { deleteEndpoint(id: "${endpoint}") }` } })
  await rig.clock.advance(31_000)
  assert.deepEqual(rig.fleet.running(), [])
})

test('a server that starts ends the workers of endpoints that are gone', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await worker.take({ signal: AbortSignal.abort() })
  await rig.crash()
  await rig.store.endpoints.remove(endpoint, rig.clock.now())
  await rig.start()
  await rig.clock.advance(1_100)
  assert.deepEqual(await rig.store.workers.alive(), [])
})

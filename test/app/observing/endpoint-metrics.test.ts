/** Metrics of an endpoint over time, as its owner reads them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { MetricRecorder } from '../../../src/services/observing/metric-recorder.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig, type Rig } from '../../support/rig.ts'

async function points(rig: Rig, endpoint: string, query = '') {
  const { status, json } = await rig.ask('GET', `/v2/serverless/${endpoint}/metrics?${query}`)
  assert.equal(status, 200, JSON.stringify(json))
  return json.points
}

/** An endpoint with two jobs that succeeded after two seconds in the queue and one at work, and one that failed. */
async function busyEndpoint(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  for (const result of [{ output: 1 }, { output: 2 }, { error: 'no' }]) {
    const job = await rig.submit(endpoint)
    await rig.clock.advance(2_000)
    await worker.takeJob()
    await rig.clock.advance(1_000)
    await worker.done(job, result)
  }
  return { rig, endpoint, worker }
}

test('requests are counted by their end, with the percentiles of their times, before and after they are stored', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  const total = (found: { requests: Record<string, number>; delayMs: { count: number; p50: number | null } }[]) => ({
    completed: found.reduce((sum, { requests }) => sum + requests.completed!, 0),
    failed: found.reduce((sum, { requests }) => sum + requests.failed!, 0),
    delays: found.reduce((sum, { delayMs }) => sum + delayMs.count, 0),
  })
  const expected = { completed: 2, failed: 1, delays: 3 }
  assert.deepEqual(total(await points(rig, endpoint)), expected)
  await rig.clock.advance(60_000)
  const stored = await points(rig, endpoint)
  assert.deepEqual(total(stored), expected)
  const withDelay = stored.find((point: { delayMs: { count: number } }) => point.delayMs.count > 0)
  assert.ok(Math.abs(withDelay.delayMs.p50 - 2_000) < 200, JSON.stringify(withDelay))
  assert.ok(Math.abs(withDelay.executionMs.p99 - 1_000) < 100, JSON.stringify(withDelay))
  assert.deepEqual(total(await points(rig, endpoint, 'interval=1h')), expected)
  const [day] = await points(rig, endpoint, 'interval=1d')
  assert.deepEqual(total([day]), expected)
})

test('workers are counted by their state, and cold starts with their time', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  await rig.clock.advance(120_000)
  const found = await points(rig, endpoint, 'interval=1h')
  assert.equal(
    found.reduce((sum: number, { coldStartMs }: { coldStartMs: { count: number } }) => sum + coldStartMs.count, 0) >= 1,
    true,
  )
  const workers = found.map(
    ({ workers: { idle, running } }: { workers: Record<'idle' | 'running', { max: number }> }) =>
      Math.max(idle.max, running.max),
  )
  assert.ok(Math.max(...workers) >= 1, JSON.stringify(found))
})

test('the use of the GPUs that its workers have is measured, that of others and unknown values are not', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([aGpu(0), aGpu(1), aGpu(2)])
  const gpu = { instanceIds: undefined, gpuIds: 'ADA_24', workersMin: 1 }
  const [one, two] = [await rig.endpoint({ ...gpu, gpuCount: 2 }), await rig.endpoint(gpu)]
  await rig.clock.advance(100)
  const [held] = await rig.alive(two)
  const { index } = held!.placement!.gpus[0]!
  for (const other of [0, 1, 2]) rig.gpuUse.set(`GPU-${other}`, { busy: 20 + 40 * other, memory: 50 })
  rig.gpuUse.set(`GPU-${index}`, { busy: null, memory: 7 })
  await rig.clock.advance(30_000)
  const [first] = await points(rig, one, 'interval=1d')
  const busy = [0, 1, 2].filter(other => other !== index).map(other => 20 + 40 * other)
  const average = (busy[0]! + busy[1]!) / 2
  const memoryPercent = { average: 50, max: 50 }
  assert.deepEqual(first.gpus, { busyPercent: { average, max: Math.max(...busy) }, memoryPercent })
  const [second] = await points(rig, two, 'interval=1d')
  assert.deepEqual(second.gpus, { busyPercent: null, memoryPercent: { average: 7, max: 7 } })
})

test('the longest queue of an interval is kept, and crashes of workers are counted', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  for (let n = 0; n < 5; n += 1) await rig.submit(endpoint)
  await worker.takeJob()
  await rig.clock.advance(25_000)
  const [day] = await points(rig, endpoint, 'interval=1d')
  assert.deepEqual([day.queue, day.crashes], [{ waiting: 4, inProgress: 1 }, 0])
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(25_000)
  await rig.crash()
  await rig.start()
  const [after] = await points(rig, endpoint, 'interval=1d')
  assert.deepEqual([after.queue.inProgress, after.crashes], [1, 1])
})

test('requests are counted for the release of their worker, also after a restart', async t => {
  const { rig, endpoint, worker } = await busyEndpoint(t)
  const releases = async () => {
    const { json } = await rig.ask('GET', `/v2/serverless/${endpoint}/metrics`)
    return json.releases.map(({ version, ended, failed }: Record<string, number>) => [version, ended, failed])
  }
  assert.deepEqual(await releases(), [[1, 3, 1]])
  await rig.clock.advance(25_000)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(25_000)
  assert.deepEqual(await releases(), [[1, 3, 1]])
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  await worker.done(job, { output: 1 })
  assert.deepEqual(await releases(), [[1, 4, 1]])
})

test('requests of a load-balancing endpoint that wait and are in flight are counted as its queue', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  rig.probes.usual = { status: 200 }
  gateway.wait(id, 3)
  await rig.clock.advance(25_000)
  const [day] = await points(rig, id, 'interval=1d')
  assert.equal(day.queue.waiting, 3)
})

test('metrics survive a restart, and are not counted twice', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  await rig.clock.advance(25_000)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(25_000)
  const [hour] = await points(rig, endpoint, 'interval=1h')
  assert.equal(hour.requests.completed + hour.requests.failed, 3)
})

test('what could not be stored is stored later, once', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  rig.failNext('metrics.add', 'before')
  await rig.clock.advance(60_000)
  const [day] = await points(rig, endpoint, 'interval=1d')
  assert.equal(day.requests.completed, 2)
})

test('metrics are removed when their time is over', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  await rig.clock.advance(60_000)
  const atMs = rig.clock.now()
  assert.equal((await rig.store.metrics.removeOld('minute', atMs + 1, 100)) > 0, true)
  assert.equal((await points(rig, endpoint)).length, 0)
})

test('wrong ranges are refused with the reason, and endpoints of others are not found', async t => {
  const { rig, endpoint } = await busyEndpoint(t)
  const ask = (query: string, key?: string) =>
    rig.ask('GET', `/v2/serverless/${endpoint}/metrics?${query}`, key === undefined ? {} : { key })
  for (const [query, words] of [
    ['interval=2m', /interval/],
    ['from=yesterday', /from/],
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', /query.from: must be before to/],
    ['from=2020-01-01T00:00:00Z', /query.from: must be at most 1500 intervals of 1m before to/],
  ] as const) {
    const { status, text } = await ask(query)
    assert.equal(status, 400, query)
    assert.match(text, words)
  }
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: made } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  assert.equal((await ask('', made.key)).status, 404)
})

test('a worker that serves requests is counted as running while it has some', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  rig.probes.usual = { status: 200 }
  gateway.wait(id, 1)
  await rig.clock.advance(2_000)
  gateway.wait(id, 0)
  gateway.serve(id, rig.worker(0).id, 1)
  await rig.clock.advance(30_000)
  const [day] = await points(rig, id, 'interval=1d')
  assert.equal(day.workers.running.max, 1, JSON.stringify(day.workers))
})

test('requests of a load-balancing endpoint are the same number in its health, its metrics and its usage', async t => {
  const { rig } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  const recorder = new MetricRecorder(
    rig.ports,
    loads => loads,
    () => [],
  )
  const entry = { kind: 'request', endpointId: id, requestId: 'r', method: 'GET', path: '/', tries: 1 } as const
  const times = { waitMs: 20, connectMs: 1, firstByteMs: 3, totalMs: 120, bytesIn: 0, bytesOut: 0 }
  const ended = { ...entry, ...times, workerId: 'w' as WorkerId, complete: true }
  for (const status of [200, 200, 404, 500, 499]) recorder.emit('gateway.request_finished', { ...ended, status })
  recorder.emit('gateway.request_finished', { ...ended, status: 200, complete: false })
  assert.deepEqual(recorder.pendingRequests(id), { completed: 3, failed: 2 })
  rig.failNext('metrics.add', 'before')
  await assert.rejects(recorder.flush())
  await recorder.flush()
  assert.deepEqual(recorder.pendingRequests(id), { completed: 0, failed: 0 })
  await rig.clock.advance(1_000)
  const { completed, failed } = (await rig.ask('GET', `/v2/${id}/health`)).json.jobs
  assert.deepEqual({ completed, failed }, { completed: 3, failed: 2 })
  const [day] = await points(rig, id, 'interval=1d')
  assert.deepEqual(day.requests, { completed, failed, timedOut: 0, cancelled: 1, expired: 0 })
  const [record] = (await rig.ask('GET', '/v2/billing/serverless')).json.records
  const { queuedMs, executionMs, ...jobs } = record.usage.jobs
  assert.deepEqual(jobs, day.requests)
  assert.deepEqual([queuedMs, executionMs], [6 * 20, 6 * 100])
})

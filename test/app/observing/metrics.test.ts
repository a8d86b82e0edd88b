import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { FULL_SCOPE } from '../../../src/core/accounts/permission.ts'
import type { AccessLogEntry } from '../../../src/core/balancing/access-log-entry.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { createMetrics } from '../../../src/system/observing/metrics.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const NOTHING = { requests: 0, sockets: 0, waiting: 0, busyWorkers: 0 }

/** A request that went well, or as `fields` say. */
function passed(endpointId: EndpointId, fields: Partial<AccessLogEntry> = {}): AccessLogEntry {
  return {
    kind: 'request',
    endpointId,
    requestId: 'request-1',
    method: 'GET',
    path: '/',
    status: 200,
    complete: true,
    workerId: null,
    tries: 1,
    waitMs: 250,
    connectMs: null,
    firstByteMs: 3,
    totalMs: 500,
    bytesIn: 0,
    bytesOut: 7,
    ...fields,
  }
}

/** The value of one series, such as `name{a="b"}`; undefined if it does not exist. Answers are kept for a second. */
async function read(rig: Rig): Promise<(series: string) => number | undefined> {
  await rig.clock.advance(1_000)
  const { status, text, headers } = await rig.ask('GET', '/metrics')
  assert.equal(status, 200, text)
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  const values = new Map(lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
  return series => values.get(series)
}

test('the life of jobs shows in counters, histograms and gauges of their endpoint', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const [done, broken, cancelled] = [await rig.submit(endpoint), await rig.submit(endpoint), await rig.submit(endpoint)]
  await rig.submit(endpoint, { input: {}, policy: { lowPriority: true } })
  await rig.clock.advance(2_000)
  await worker.takeJob()
  let value = await read(rig)
  const of = (name: string, more = '') => value(`${name}{endpoint="${endpoint}"${more}}`)
  assert.equal(of('runyard_jobs_submitted_total'), 4)
  assert.equal(of('runyard_queue_jobs', ',state="queued"'), 2)
  assert.equal(of('runyard_queue_jobs', ',state="low_priority"'), 1)
  assert.equal(of('runyard_queue_jobs', ',state="in_progress"'), 1)
  assert.ok(of('runyard_queue_oldest_seconds')! >= 3)
  assert.equal(of('runyard_workers', ',state="running"'), 1)
  assert.equal(of('runyard_workers', ',state="idle"'), 0)
  assert.equal(of('runyard_job_delay_seconds_count'), 1)
  assert.ok(of('runyard_job_delay_seconds_sum')! >= 2)
  await rig.clock.advance(4_000)
  await worker.chunk(done, { output: 'abc' })
  await worker.done(done, { output: 'done' })
  await worker.takeJob()
  await worker.done(broken, { error: 'no' })
  await rig.ask('POST', `/v2/${endpoint}/retry/${broken}`)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${cancelled}`)
  value = await read(rig)
  const results = ['completed', 'failed', 'cancelled', 'timed_out'].map(result =>
    of('runyard_jobs_finished_total', `,result="${result}"`),
  )
  assert.deepEqual(results, [1, 1, 1, undefined])
  assert.equal(of('runyard_jobs_retried_total'), 1)
  assert.equal(of('runyard_job_execution_seconds_count'), 2)
  assert.ok(of('runyard_job_execution_seconds_sum')! >= 4)
  assert.equal(of('runyard_job_bytes_total', ',kind="input"'), 4)
  assert.equal(of('runyard_job_bytes_total', ',kind="output"'), 6)
  assert.equal(of('runyard_job_bytes_total', ',kind="stream"'), 16)
})

test('time-outs, expiries, lost attempts, cold starts and ends of workers show', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.clock.advance(3_000)
  const lost = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  await worker.takeJob()
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(5_000)
  assert.equal(await rig.worker(-1).takeJob(), lost)
  await rig.submit(endpoint, { input: {}, policy: { ttl: 10_000 } })
  await rig.clock.advance(30_000)
  const value = await read(rig)
  const of = (name: string, more = '') => value(`${name}{endpoint="${endpoint}"${more}}`)
  assert.equal(of('runyard_attempts_lost_total'), 1)
  assert.equal(of('runyard_jobs_finished_total', ',result="timed_out"'), 1)
  assert.equal(of('runyard_jobs_finished_total', ',result="expired"'), 1)
  assert.equal(of('runyard_workers_exited_total', ',asked="false"'), 1)
  assert.equal(of('runyard_worker_cold_start_seconds_count'), 2)
  assert.ok(of('runyard_worker_cold_start_seconds_sum')! >= 3)
  assert.ok(of('runyard_workers_created_total')! >= 2)
})

test('webhooks, requests and failing loops are counted', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint, { input: {}, webhook: 'http://receiver.example/' })
  await worker.takeJob()
  await worker.done(id)
  await rig.ask('GET', '/nowhere')
  await rig.ask('GET', `/v2/${endpoint}/health`, { key: null })
  rig.failNext('jobOutcomes.timeOutOverdue', 'before')
  await rig.clock.advance(3_000)
  const value = await read(rig)
  assert.equal(value(`runyard_webhooks_total{endpoint="${endpoint}",result="delivered"}`), 1)
  assert.equal(value('runyard_http_requests_total{surface="none",status="4xx"}'), 1)
  assert.equal(value('runyard_http_requests_total{surface="jobs",status="4xx"}'), 1)
  assert.equal(value('runyard_http_requests_total{surface="jobs",status="2xx"}'), 1)
  assert.equal(value('runyard_http_request_seconds_count{surface="worker"}'), 2)
  assert.equal(value('runyard_loop_failures_total{loop="sweeper"}'), 1)
})

test('more endpoints than the limit are counted together, and a deleted one takes its series with it', async t => {
  const rig = await openRig(t, { metricEndpoints: 2 })
  const [first, second, third, fourth] = [
    await rig.endpoint({ workersMax: 0 }),
    await rig.endpoint({ workersMax: 0 }),
    await rig.endpoint({ workersMax: 0 }),
    await rig.endpoint({ workersMax: 0 }),
  ]
  for (const id of [first, second, third, fourth]) await rig.submit(id)
  let value = await read(rig)
  const submitted = (id: string) => value(`runyard_jobs_submitted_total{endpoint="${id}"}`)
  assert.deepEqual([first, second, third, fourth, 'other'].map(submitted), [1, 1, undefined, undefined, 2])
  assert.equal(value('runyard_queue_jobs{endpoint="other",state="queued"}'), 2)
  await rig.change(first, { workersMin: 0, workersMax: 0 })
  await rig.graphql(`mutation { deleteEndpoint(id: "${first}") }`)
  value = await read(rig)
  assert.deepEqual([first, second, 'other'].map(submitted), [undefined, 1, 2])
  for (const id of [third, fourth]) await rig.submit(id)
  value = await read(rig)
  assert.deepEqual([third, fourth].map(submitted).sort(), [1, undefined], 'its place is free for another')
  assert.equal(value(`runyard_queue_jobs{endpoint="${first}",state="queued"}`), undefined)
  assert.ok(!(await rig.ask('GET', '/metrics')).text.includes(first))
})

test('series of an endpoint that another server has deleted go, too', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  await rig.submit(endpoint)
  await read(rig)
  await rig.store.endpoints.remove(endpoint, rig.clock.now())
  await read(rig)
  await read(rig)
  assert.ok(!(await rig.ask('GET', '/metrics')).text.includes(endpoint))
})

test('while the store fails, counters are shown, and that the rest is missing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  await rig.submit(endpoint)
  rig.failNext('endpoints.loads', 'before')
  const value = await read(rig)
  assert.equal(value('runyard_store_up'), 0)
  assert.equal(value(`runyard_jobs_submitted_total{endpoint="${endpoint}"}`), 1)
  assert.equal(value(`runyard_queue_jobs{endpoint="${endpoint}",state="queued"}`), undefined)
  assert.equal((await read(rig))('runyard_store_up'), 1)
})

test('however often metrics are asked for, the store is read once a second', async t => {
  const rig = await openRig(t)
  await Promise.all(Array.from({ length: 20 }, () => rig.ask('GET', '/metrics')))
  assert.equal(rig.calls('endpoints.loads'), 1)
  await read(rig)
  assert.equal(rig.calls('endpoints.loads'), 2)
})

test('metrics need a key of the operator that may read them, unless they are public', async t => {
  const rig = await openRig(t)
  const scope = { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' } as const
  const reader = await rig.addKey('rpa_reader', { scope })
  const manager = await rig.addKey('rpa_manager', { scope: { type: 'restricted', management: 'read', jobs: 'none' } })
  const client = await rig.addKey('rpa_client', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  const other = await rig.addKey('rpa_other', { owner: 'other' as OwnerId, scope: FULL_SCOPE })
  const status = async (key: string | null) => (await rig.ask('GET', '/metrics', { key })).status
  assert.deepEqual([await status(reader), await status(manager), await status(client)], [200, 403, 403])
  assert.equal(await status(other), 403)
  assert.deepEqual([await status(null), await status('rpa_wrong')], [401, 401])
  const open = await openRig(t, { metricsPublic: true })
  assert.equal((await open.ask('GET', '/metrics', { key: null })).status, 200)
})

test('clients that wait for a worker see the ready ones', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 2 })
  const ask = async (asking = {}) => rig.ask('GET', `/v2/${endpoint}/metrics`, asking)
  assert.deepEqual((await ask()).json.readyWorkers, [])
  assert.equal((await ask()).json.workers.initializing, 1)
  await rig.submit(endpoint)
  await worker.takeJob()
  const { readyWorkers, workers } = (await ask()).json
  assert.deepEqual(readyWorkers, [worker.id])
  const wanted = { idle: 0, initializing: 0, ready: 1, running: 1, throttled: 0, unhealthy: 0 }
  assert.deepEqual(workers, wanted)
  const reader = await rig.addKey('rpa_jobs', {
    scope: { type: 'restricted', management: 'none', jobs: { [endpoint]: 'read' } },
  })
  assert.equal((await ask({ key: reader })).status, 200)
  assert.equal((await ask({ key: null })).status, 401)
  assert.equal((await rig.ask('GET', '/v2/unknown/metrics')).status, 404)
})

test('requests to a load-balancing endpoint are counted by status, with their time in parts', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 })
  const { emit } = rig.ports
  emit('gateway.request_finished', passed(endpoint))
  emit('gateway.request_finished', passed(endpoint, { status: 204, connectMs: 2, tries: 2, bytesIn: 5, bytesOut: 0 }))
  emit('gateway.request_finished', passed(endpoint, { complete: false }))
  emit('gateway.request_finished', passed(endpoint, { status: 499, complete: false, firstByteMs: null, bytesOut: 0 }))
  emit('gateway.request_finished', passed(endpoint, { status: 502, complete: false, firstByteMs: null, bytesOut: 0 }))
  emit('gateway.request_finished', passed(endpoint, { kind: 'socket', status: 101, totalMs: 3_600_000, bytesIn: 100 }))
  const value = await read(rig)
  const of = (name: string, more = '') => value(`runyard_gateway_${name}{endpoint="${endpoint}"${more}}`)
  for (const [status, count] of [
    ['1xx', 1],
    ['2xx', 3],
    ['5xx', 1],
    ['aborted', 1],
    ['4xx', undefined],
  ] as const) {
    assert.equal(of('requests_total', `,status="${status}"`), count, status)
  }
  assert.deepEqual([of('broken_total'), of('retries_total')], [1, 1])
  assert.deepEqual([of('bytes_total', ',direction="in"'), of('bytes_total', ',direction="out"')], [105, 21])
  assert.deepEqual([of('wait_seconds_count'), of('wait_seconds_sum')], [6, 1.5])
  assert.deepEqual([of('connect_seconds_count'), of('first_byte_seconds_count')], [1, 4])
  assert.deepEqual([of('request_seconds_count'), of('request_seconds_sum')], [5, 2.5], 'sockets are not among them')
  const within = (le: string) => value(`runyard_gateway_request_seconds_bucket{le="${le}",endpoint="${endpoint}"}`)
  assert.deepEqual(['0.25', '0.5', '600', '+Inf'].map(within), [0, 5, 5, 5])
  assert.equal(of('passing', ',state="requests"'), 0)
})

test('requests in flight are a gauge, of endpoints that have any', async t => {
  const rig = await openRig(t)
  const [busy, quiet] = [await rig.endpoint(), await rig.endpoint()]
  const metrics = createMetrics({ clock: rig.clock, ofProcess: false })
  const loads = await rig.store.endpoints.loads(null, 10)
  const now = { requests: 3, sockets: 2, waiting: 1 }
  const { text } = await metrics.expose(loads, id => (id === busy ? { ...now, busyWorkers: 1 } : NOTHING))
  for (const [state, count] of Object.entries(now)) {
    assert.ok(text.includes(`runyard_gateway_passing{endpoint="${busy}",state="${state}"} ${count}`), text)
  }
  assert.ok(!text.includes(`runyard_gateway_passing{endpoint="${quiet}"`))
})

test('workers with requests are shown as running, and draining ones as that', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const metrics = createMetrics({ clock: rig.clock, ofProcess: false })
  const [load] = await rig.store.endpoints.loads(null, 10)
  const workers = { starting: 1, idle: 3, running: 0, frozen: 2, draining: 1, stopping: 0 }
  const { text } = await metrics.expose([{ ...load!, workers }], () => ({ ...NOTHING, busyWorkers: 3 }))
  for (const [state, count] of Object.entries({ ...workers, idle: 1, running: 2 })) {
    assert.ok(text.includes(`runyard_workers{endpoint="${endpoint}",state="${state}"} ${count}`), text)
  }
})

test('the reference names every metric, and no other', async t => {
  const rig = await openRig(t)
  const { text } = await createMetrics({ clock: rig.clock, ofProcess: true }).expose([], () => NOTHING)
  const shown = [...text.matchAll(/^# HELP (runyard_\S+)/gm)].map(([, name]) => name).sort()
  const page = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const documented = [...page.matchAll(/^\| `(runyard_\w+)`/gm)].map(([, name]) => name).sort()
  assert.deepEqual(documented, shown)
})

/** All endpoints of an account at a glance, as the console's list reads them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { openRig, type Rig } from '../../support/rig.ts'

async function overview(rig: Rig, query = '', key?: string) {
  const { status, json } = await rig.ask('GET', `/v2/overview${query}`, key === undefined ? {} : { key })
  assert.equal(status, 200, JSON.stringify(json))
  return json
}

// biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
async function rowOf(rig: Rig, id: string): Promise<any> {
  return (await overview(rig)).endpoints.find((row: { id: string }) => row.id === id)
}

test('a row says what an endpoint is, what its workers do, and how many requests ended', async t => {
  const rig = await openRig(t)
  const quiet = await rig.endpoint({ name: 'quiet' })
  await rig.clock.advance(10)
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'busy' })
  assert.equal((await rowOf(rig, endpoint)).state, 'STARTING')
  for (const result of [{ output: 1 }, { output: 2 }, { output: 3 }, { error: 'no' }]) {
    const job = await rig.submit(endpoint)
    await worker.takeJob()
    await worker.done(job, result)
  }
  const { endpoints, unexplained, pagination } = await overview(rig)
  assert.deepEqual(
    endpoints.map((row: { id: string; state: string }) => [row.id, row.state]),
    [
      [quiet, 'SCALED_TO_ZERO'],
      [endpoint, 'READY'],
    ],
  )
  assert.deepEqual([unexplained, pagination], [0, { nextCursor: null, hasNextPage: false }])
  const [, row] = endpoints
  assert.deepEqual([row.name, row.type, row.image, row.version, row.workersMin], ['busy', 'QUEUE', 'image:1', 1, 1])
  const none = { running: 0, initializing: 0, throttled: 0, unhealthy: 0, frozen: 0 }
  assert.deepEqual(row.workers, { ...none, idle: 1, total: 1 })
  assert.deepEqual(row.jobs, { inQueue: 0, inProgress: 0, oldestQueuedAt: null })
  assert.deepEqual([row.rate.points.length, row.rate.points.at(-1), row.rate.errorShare], [30, 4, 0.25])
  assert.ok(row.rate.perMinute > 0)
  assert.deepEqual([row.why, row.rollout], [null, null])
  assert.equal(endpoints[0].rate.errorShare, null)
})

test('requests of the last hour are known after a restart, and leave the row when the hour is over', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  await worker.done(job)
  const ended = async () => (await rowOf(rig, endpoint)).rate.points.reduce((sum: number, n: number) => sum + n, 0)
  assert.equal(await ended(), 1)
  await rig.clock.advance(120_000)
  await rig.crash()
  await rig.start()
  assert.equal(await ended(), 1)
  assert.equal((await rowOf(rig, endpoint)).rate.perMinute > 0, true)
  await rig.clock.advance(600_000)
  assert.equal((await rowOf(rig, endpoint)).rate.perMinute, 0)
  await rig.clock.advance(3_600_000)
  assert.equal(await ended(), 0)
})

test('where something waits or is wrong, the row says why', async t => {
  const rig = await openRig(t)
  const paused = await rig.endpoint({ workersMax: 0 })
  await rig.submit(paused)
  const { endpoint: crashing, worker } = await rig.endpointWithWorker()
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  const waits = await rowOf(rig, paused)
  assert.deepEqual([waits.state, waits.why.cause, waits.jobs.inQueue], ['PAUSED', 'paused', 1])
  assert.ok(Date.parse(waits.jobs.oldestQueuedAt) > 0)
  assert.equal(waits.why.sinceMs, Date.parse(waits.jobs.oldestQueuedAt))
  const row = await rowOf(rig, crashing)
  assert.deepEqual([row.state, row.workers.unhealthy], ['PROBLEM', 1])
  assert.equal(row.why.cause, 'crash_loop')
  assert.match(row.why.summary, /^1 worker is to be kept ready, but the last worker exited with code 1/)
  await rig.submit(crashing)
  const { cause, summary } = await rig.why(crashing)
  assert.deepEqual((await rowOf(rig, crashing)).why.summary, summary)
  assert.equal(cause, 'crash_loop')
})

test('an endpoint that is to keep a worker ready and can start none has a problem, though nothing waits', async t => {
  const rig = await openRig(t)
  const kept = await rig.endpoint({ workersMin: 1, env: [{ key: 'TOKEN', value: '{{ RUNPOD_SECRET_token }}' }] })
  const quiet = await rig.endpoint()
  await rig.clock.advance(5_000)
  const { state, why } = await rowOf(rig, kept)
  assert.deepEqual([state, why?.cause], ['PROBLEM', 'secret_missing'])
  assert.match(why.summary, /^1 worker is to be kept ready, but no worker can be started: .*token/)
  assert.equal((await rowOf(rig, quiet)).state, 'SCALED_TO_ZERO')
})

test('of many endpoints that wait, the row that has waited longest is explained, and all have a state', async t => {
  const rig = await openRig(t)
  for (let n = 0; n < 53; n += 1) {
    await rig.submit(await rig.endpoint({ workersMax: 0 }))
    await rig.clock.advance(10)
  }
  const { endpoints, unexplained } = await overview(rig)
  assert.equal(unexplained, 3)
  assert.deepEqual(
    endpoints.map(({ why }: { why: object | null }) => why !== null),
    Array.from({ length: 53 }, (_, n) => n < 50),
  )
  assert.ok(endpoints.every(({ state }: { state: string }) => state === 'PAUSED'))
})

test('it is read in a few statements, however many endpoints there are', async t => {
  const rig = await openRig(t)
  for (let n = 0; n < 20; n += 1) await rig.endpoint()
  await overview(rig)
  const before = rig.calls('endpoints.listed')
  const snapshots = rig.calls('endpoints.snapshot')
  await overview(rig)
  assert.deepEqual([rig.calls('endpoints.listed') - before, rig.calls('endpoints.snapshot') - snapshots], [1, 0])
})

test('pages of many endpoints are read a hundred at a time, and have each of them once', async t => {
  const rig = await openRig(t)
  const ids: string[] = []
  for (let n = 0; n < 205; n += 1) ids.push(await rig.endpoint())
  const before = rig.calls('endpoints.listed')
  const { endpoints } = await overview(rig, '?limit=1000')
  assert.equal(rig.calls('endpoints.listed') - before, 3)
  assert.deepEqual(endpoints.map(({ id }: { id: string }) => id).toSorted(), ids.toSorted())
  const lists = rig.calls('endpoints.list')
  const page = (await rig.ask('GET', '/v2/serverless?limit=1000')).json
  assert.equal(rig.calls('endpoints.list') - lists, 3)
  assert.deepEqual(
    page.endpoints.map(({ id }: { id: string }) => id),
    endpoints.map(({ id }: { id: string }) => id),
  )
})

test('it comes in pages, and another account sees nothing of it', async t => {
  const rig = await openRig(t)
  const ids: string[] = []
  for (let n = 0; n < 3; n += 1) {
    ids.push(await rig.endpoint())
    await rig.clock.advance(10)
  }
  const first = await overview(rig, '?limit=2')
  const second = await overview(rig, `?limit=2&cursor=${first.pagination.nextCursor}`)
  const both = [...first.endpoints, ...second.endpoints].map(({ id }: { id: string }) => id)
  assert.deepEqual(both, ids)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  assert.deepEqual((await overview(rig, '', stranger)).endpoints, [])
  assert.equal((await rig.ask('GET', '/v2/overview?limit=1001')).status, 400)
  assert.equal((await rig.ask('GET', '/v2/overview', { key: null })).status, 401)
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  assert.equal((await rig.ask('GET', '/v2/overview', { key: none })).status, 403)
})

test('of a load-balancing endpoint the requests are what waits and what workers have', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig)
  rig.probes.usual = { status: 200 }
  gateway.wait(id, 3)
  await rig.clock.advance(2_000)
  const waits = await rowOf(rig, id)
  assert.deepEqual([waits.type, waits.jobs.inQueue, waits.why !== null], ['LOAD_BALANCER', 3, true])
  gateway.wait(id, 0)
  gateway.serve(id, rig.worker(0).id, 2)
  await rig.clock.advance(100)
  const { state, jobs, workers } = await rowOf(rig, id)
  assert.deepEqual([state, jobs.inQueue, jobs.inProgress, workers.running], ['READY', 0, 2, 1])
})

/**
 * Deletions of endpoints and purges of queues with many jobs: each job gets what was promised, and
 * other endpoints are not delayed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hourStart } from '../../../src/core/billing/usage.ts'
import { DEFAULT_OWNER, type EndpointId, type JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const MANY = 450
const RECEIVER = 'http://receiver.example/done'

async function fill(rig: Rig, endpoint: EndpointId, count: number, body: object = {}): Promise<JobId[]> {
  const ids: JobId[] = []
  for (let n = 0; n < count; n += 1) {
    const { json } = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: { n }, ...body } })
    ids.push(json.id)
  }
  await rig.clock.settle()
  return ids
}

const erase = (rig: Rig, endpoint: EndpointId) => rig.ask('DELETE', `/v2/serverless/${endpoint}`)

/** Lets time go on until nothing is left of deleted endpoints. */
async function removed(rig: Rig): Promise<void> {
  for (let round = 0; (await rig.store.removals.endpoints(null, 9)).length > 0; round += 1) {
    assert.ok(round < 200, 'the removal does not come to its end')
    await rig.clock.advance(50)
  }
}

const cancelled = (rig: Rig) => rig.happened('job.moved').filter(({ to }) => to === 'CANCELLED')

test('an endpoint with many jobs is gone with the answer of its deletion, and its rows follow in small steps', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const [first] = await fill(rig, endpoint, MANY)
  assert.equal((await erase(rig, endpoint)).status, 204)
  assert.deepEqual(cancelled(rig), [], 'the answer does not wait for its jobs')
  for (const path of ['health', 'requests', `status/${first}`, 'explain']) {
    assert.equal((await rig.ask('GET', `/v2/${endpoint}/${path}`)).status, 404, path)
  }
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} } })).status, 404)
  assert.deepEqual((await rig.ask('GET', '/v2/serverless')).json.endpoints, [])
  await removed(rig)
  assert.equal(cancelled(rig).length, MANY)
  assert.ok(rig.calls('removals.removePart') >= MANY / 100)
})

test('a wait for a job of a deleted endpoint is answered at once with CANCELLED', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const running = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), running)
  await worker.chunk(running, { output: 1 })
  await rig.ask('GET', `/v2/${endpoint}/stream/${running}`)
  const waiting = (await fill(rig, endpoint, MANY)).at(-1)!
  // The rows stay where they are.
  rig.failNext('removals.removePart', 'before', 1_000)
  const waits = [
    rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } }),
    rig.ask('GET', `/v2/${endpoint}/status-sync/${waiting}`),
    rig.ask('GET', `/v2/${endpoint}/status-sync/${running}`),
    rig.ask('GET', `/v2/${endpoint}/stream/${running}`),
  ]
  await rig.clock.settle()
  assert.equal((await erase(rig, endpoint)).status, 204)
  const answers = await Promise.all(waits)
  assert.deepEqual(
    answers.map(({ json }) => json.status),
    ['CANCELLED', 'CANCELLED', 'CANCELLED', 'CANCELLED'],
  )
  assert.deepEqual(cancelled(rig), [])
  await worker.done(running)
  assert.deepEqual(rig.moves(running), ['claim IN_QUEUE IN_PROGRESS'], 'the result of its worker comes too late')
})

test('waiting callers are answered even when the result of the deletion was lost', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const [job] = await fill(rig, endpoint, 3)
  const wait = rig.ask('GET', `/v2/${endpoint}/status-sync/${job}`)
  await rig.clock.settle()
  rig.failNext('endpoints.remove', 'after')
  assert.equal((await erase(rig, endpoint)).status, 503)
  assert.equal((await wait).json.status, 'CANCELLED')
  await removed(rig)
})

test('each job of a deleted endpoint has its webhook, counts once, and is not lost by a restart in the middle', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const running = await rig.submit(endpoint, { input: {}, webhook: RECEIVER })
  assert.equal(await worker.takeJob(), running)
  const waiting = await fill(rig, endpoint, MANY, { webhook: RECEIVER })
  await erase(rig, endpoint)
  await rig.clock.advance(30)
  const before = cancelled(rig).length
  assert.ok(before < MANY, 'the restart is to come in the middle')
  await rig.crash()
  await rig.start()
  await removed(rig)
  await rig.clock.advance(120_000)
  const ids = cancelled(rig).map(({ jobId }) => jobId)
  assert.deepEqual([...ids].sort(), [running, ...waiting].sort())
  const called = rig.outbound.calls.map(({ body }) => JSON.parse(body))
  assert.deepEqual([...new Set(called.map(({ id }) => id))].sort(), [running, ...waiting].sort())
  assert.deepEqual([...new Set(called.map(({ status }) => status))], ['CANCELLED'])
  const nowMs = rig.clock.now()
  const bounds = [hourStart(nowMs) - 3_600_000, hourStart(nowMs) + 3_600_000]
  const { sums } = await rig.store.usage.jobs({ owner: DEFAULT_OWNER, endpointId: endpoint, bounds })
  const { cancelled: ends, attempts } = sums[0]!.usage
  assert.deepEqual([ends, attempts], [MANY + 1, 1])
})

test('a small endpoint that is deleted after a large one does not wait for it', async t => {
  const rig = await openRig(t)
  const large = await rig.endpoint({ workersMax: 0 })
  const small = await rig.endpoint({ workersMax: 0 })
  await fill(rig, large, 1_200)
  const [job] = await fill(rig, small, 1)
  await erase(rig, large)
  await erase(rig, small)
  for (let round = 0; rig.moves(job!).length === 0; round += 1) {
    assert.ok(round < 100)
    await rig.clock.advance(20)
  }
  assert.ok(cancelled(rig).length < 1_200, 'the large one is not through')
  await removed(rig)
})

test('a purge takes what waited when it was asked for, and no job that came while it went on', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const early = await fill(rig, endpoint, 250)
  const purge = rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  while (rig.calls('jobOutcomes.purge') === 0) await Promise.resolve()
  const late = await fill(rig, endpoint, 5)
  assert.deepEqual((await purge).json, { removed: 250, status: 'completed' })
  for (const id of late) assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
  for (const id of early) assert.equal((await rig.job(endpoint, id)).status, 'CANCELLED')
})

test('jobs that a purge has not reached at the end of the server stay queued', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const ids = await fill(rig, endpoint, 250)
  rig.failNext('jobOutcomes.waiting', 'before')
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/purge-queue`)).status, 503)
  const parts = await rig.store.jobOutcomes.waiting(endpoint)
  await rig.store.jobOutcomes.purge(endpoint, rig.clock.now(), 100, parts)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(30_000)
  const states = await Promise.all(ids.map(async id => (await rig.job(endpoint, id)).status))
  assert.deepEqual(states, [...Array(100).fill('CANCELLED'), ...Array(150).fill('IN_QUEUE')])
})

test('an endpoint that is deleted while its line is purged ends both', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  await fill(rig, endpoint, 350)
  const purge = rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  while (rig.calls('jobOutcomes.purge') === 0) await Promise.resolve()
  await erase(rig, endpoint)
  assert.equal((await purge).status, 200)
  await removed(rig)
  assert.equal(cancelled(rig).length, 350)
})

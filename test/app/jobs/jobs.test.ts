import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig } from '../../support/rig.ts'

const MINUTE_MS = 60_000

test('a job goes from the queue to a worker, and its result to the client', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const accepted = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: { a: 1 } } })
  assert.equal(accepted.status, 200)
  const id = accepted.json.id
  assert.deepEqual(accepted.json, { id, status: 'IN_QUEUE' })
  await rig.clock.advance(300)
  assert.deepEqual((await worker.take()).json, { id, input: { a: 1 } })
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
  await rig.clock.advance(1_200)
  assert.equal((await worker.done(id, { output: { b: 2 } })).status, 200)
  assert.deepEqual((await rig.status(endpoint, id)).json, {
    delayTime: 300,
    executionTime: 1_200,
    id,
    output: { b: 2 },
    status: 'COMPLETED',
    workerId: worker.id,
  })
  assert.deepEqual(rig.moves(id), ['claim IN_QUEUE IN_PROGRESS', 'finish IN_PROGRESS COMPLETED'])
})

test('integers of twenty digits reach the worker and come back digit for digit', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const input = '{"n":  12345678901234567890, "x": 1.10}'
  const { json } = await rig.ask('POST', `/v2/${endpoint}/run`, { body: `{"input": ${input}}` })
  assert.ok((await worker.take()).text.includes(`"input":${input}`))
  await worker.done(json.id, '{"output": [98765432109876543210, 1.0]}')
  assert.ok((await rig.status(endpoint, json.id)).text.includes('"output":[98765432109876543210, 1.0]'))
})

test('webhook, policy and s3Config reach the worker as they were sent', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const extras = { webhook: 'https://example.org/x', policy: { ttl: 60_000, own: [1] }, s3Config: { accessId: 'a' } }
  const id = await rig.submit(endpoint, { input: {}, ...extras })
  assert.deepEqual((await worker.take()).json, { id, input: {}, ...extras })
  assert.ok(!(await rig.job(endpoint, id)).s3Config!.includes('accessId'), 'credentials lie sealed in the store')
})

test('jobs are taken first in, first out, and those of low priority after all others', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const low = await rig.submit(endpoint, { input: {}, policy: { lowPriority: true } })
  const jobs: JobId[] = []
  for (let number = 0; number < 5; number += 1) jobs.push(await rig.submit(endpoint))
  const taken: JobId[] = []
  for (let number = 0; number < 6; number += 1) taken.push(await worker.takeJob())
  assert.deepEqual(taken, [...jobs, low])
})

test('a job that does not exist, or belongs to another endpoint, is 404 with a message', async t => {
  const rig = await openRig(t)
  const [one, other] = [await rig.endpoint(), await rig.endpoint()]
  const id = await rig.submit(one)
  const foreign = await rig.status(other, id)
  assert.deepEqual([foreign.status, foreign.json], [404, { error: `job ${id} not found` }])
  assert.equal((await rig.status(one, 'a,b' as JobId)).status, 404)
  assert.equal((await rig.ask('POST', `/v2/${other}/cancel/${id}`)).status, 404)
  assert.equal((await rig.status(one, id)).status, 200)
})

test('all mistakes of a submission are reported at once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const answer = await rig.ask('POST', `/v2/${endpoint}/runsync?wait=5`, { body: { input: 1, webhook: 'ftp://x' } })
  assert.equal(answer.status, 400)
  assert.deepEqual(answer.json, {
    error:
      '"wait" must be an integer from 1000 to 300000 milliseconds; "input" must be a JSON object, not a number; ' +
      '"webhook" must be an http or https URL',
  })
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
})

test('a job with millions of escapes in its input is accepted as any other', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = `{"input":{"text":"${'\\n'.repeat(4_000_000)}"}}`
  const { status, json } = await rig.ask('POST', `/v2/${endpoint}/run`, { body })
  assert.equal(status, 200)
  assert.equal((await worker.take()).text.length, body.length + `"id":"${json.id}",`.length)
})

test('a queued job that is cancelled is CANCELLED at once, and cancelling it again changes nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  for (let time = 0; time < 2; time += 1) {
    const { status, json } = await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
    assert.deepEqual([status, json], [200, { id, status: 'CANCELLED' }])
  }
  assert.deepEqual(rig.moves(id), ['cancel IN_QUEUE CANCELLED'])
  const poll = worker.take()
  await rig.clock.advance(25_000)
  assert.equal((await poll).status, 204)
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual(view, { delayTime: 0, executionTime: 0, id, status: 'CANCELLED', workerId: '' })
})

test('a running job that is cancelled is final at once, and its worker is ordered to stop it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const stops = worker.stops()
  await rig.clock.advance(2_000)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.deepEqual((await stops).json, { jobsToStop: [id] })
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual([view.status, view.executionTime, view.workerId], ['CANCELLED', 2_000, worker.id])
})

test('a finished job cannot be cancelled', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.done(await worker.takeJob())
  const { status, json } = await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.deepEqual([status, json], [409, { error: `job ${id} is COMPLETED and cannot be cancelled` }])
})

test('runsync answers as soon as the job is done', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  await rig.clock.advance(500)
  const id = await worker.takeJob()
  assert.match(id, /^sync-/)
  await rig.clock.advance(700)
  await worker.done(id, { output: 'yes' })
  const { status, json } = await answer
  assert.equal(status, 200)
  assert.deepEqual(json, {
    delayTime: 500,
    executionTime: 700,
    id,
    output: 'yes',
    status: 'COMPLETED',
    workerId: worker.id,
  })
})

test('runsync past its wait answers with the state and the times so far, and the job goes on', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const queued = rig.ask('POST', `/v2/${endpoint}/runsync?wait=1000`, { body: { input: {} } })
  await rig.clock.advance(1_000)
  const first = await queued
  assert.equal(first.status, 200)
  assert.deepEqual(first.json, { delayTime: 1_000, id: first.json.id, status: 'IN_QUEUE' })
  await worker.done(await worker.takeJob())
  const running = rig.ask('POST', `/v2/${endpoint}/runsync?wait=3000`, { body: { input: {} } })
  await rig.clock.advance(1_000)
  const id = await worker.takeJob()
  await rig.clock.advance(2_000)
  const { json } = await running
  assert.deepEqual(json, {
    delayTime: 1_000,
    executionTime: 2_000,
    id,
    status: 'IN_PROGRESS',
    workerId: worker.id,
  })
  await worker.done(id)
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
})

test('runsync waits 90 seconds by default', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  let answered = false
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } }).finally(() => (answered = true))
  await rig.clock.advance(89_999)
  assert.equal(answered, false)
  await rig.clock.advance(1)
  assert.equal((await answer).json.status, 'IN_QUEUE')
})

test('a wait for a job that expires is answered with TIMED_OUT and a reason', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  // The job is not removed in time, but responses no longer show it.
  rig.failNext('jobOutcomes.removeExpired', 'before', 100)
  const body = { input: {}, policy: { ttl: 10_000 } }
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync?wait=60000`, { body })
  await rig.clock.advance(10_001)
  const { status, json } = await answer
  assert.equal(status, 200)
  assert.deepEqual([json.status, json.error], ['TIMED_OUT', 'the job was not done within its ttl'])
  assert.deepEqual([json.executionTime, json.workerId], [0, ''])
  assert.equal((await rig.status(endpoint, json.id)).status, 404)
})

test('a wait is answered when another call shortens the life of the job', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync?wait=60000`, { body: { input: {} } })
  await rig.clock.settle()
  const id = rig.happened('job.accepted')[0]!.jobId
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=2000`)).status, 200)
  await rig.clock.advance(3_100)
  assert.equal((await answer).json.status, 'TIMED_OUT')
})

test('a wait is answered with the result of a job whose life was extended during it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: {}, policy: { ttl: 10_000 } }
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync?wait=60000`, { body })
  await rig.clock.advance(1_000)
  const id = await worker.takeJob()
  await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=50000`)
  await rig.clock.advance(20_000)
  await worker.done(id, { output: 'late but there' })
  assert.equal((await answer).json.output, 'late but there')
})

test('a client that disconnects cancels nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const client = new AbortController()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} }, signal: client.signal })
  await rig.clock.advance(100)
  client.abort()
  await answer
  const id = await worker.takeJob()
  await worker.done(id)
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
})

test('a job past its ttl is removed in every state, and the worker that runs it is ordered to stop', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = { input: {}, policy: { ttl: 10_000 } }
  const done = await rig.submit(endpoint, body)
  await worker.done(await worker.takeJob())
  const running = await rig.submit(endpoint, body)
  await worker.takeJob()
  const queued = await rig.submit(endpoint, body)
  const stops = worker.stops()
  await rig.clock.advance(9_999)
  for (const id of [done, running, queued]) assert.equal((await rig.status(endpoint, id)).status, 200)
  await rig.clock.advance(1)
  for (const id of [done, running, queued]) assert.equal((await rig.status(endpoint, id)).status, 404)
  await rig.clock.advance(1_000)
  assert.deepEqual((await stops).json, { jobsToStop: [running] })
  assert.equal((await worker.done(running)).status, 200)
  assert.equal((await rig.health(endpoint)).jobs.completed, 1)
})

test('?ttl= sets how long a job still lives, within its bounds', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const id = await rig.submit(endpoint)
  for (const ttl of ['0', '999', '604800001', 'x', '1.5', '-1', '']) {
    const { status, json } = await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=${ttl}`)
    assert.equal(status, 400, ttl)
    assert.equal(json.error, '"ttl" must be an integer from 1000 to 604800000 milliseconds')
  }
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=604800000`)).status, 200)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=1000`)).status, 200)
  await rig.clock.leap(999)
  assert.equal((await rig.status(endpoint, id)).status, 200)
  await rig.clock.leap(1)
  assert.equal((await rig.status(endpoint, id)).status, 404)
})

const retentions: [how: string, path: string, policy: object, keptMs: number][] = [
  ['run for 30 minutes', '/run', {}, 30 * MINUTE_MS],
  ['runsync for 1 minute', '/runsync', {}, MINUTE_MS],
  ['runsync with a short wait for 1 minute', '/runsync?wait=1000', {}, MINUTE_MS],
  ['runsync with a longer wait for that long', '/runsync?wait=150000', {}, 150_000],
  ['runsync with the longest wait for 5 minutes', '/runsync?wait=300000', {}, 5 * MINUTE_MS],
  ['run never past its ttl', '/run', { ttl: 20_000 }, 15_000],
]

for (const [how, path, policy, keptMs] of retentions) {
  test(`the result of ${how} is kept after its completion`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker } = await rig.endpointWithWorker()
    const answer = rig.ask('POST', `/v2/${endpoint}${path}`, { body: { input: {}, policy } })
    await rig.clock.settle()
    const id = await worker.takeJob()
    await rig.clock.leap(5_000)
    await worker.done(id)
    await answer
    await rig.clock.leap(keptMs - 1)
    assert.equal((await rig.status(endpoint, id)).json?.status, 'COMPLETED')
    await rig.clock.leap(1)
    assert.equal((await rig.status(endpoint, id)).status, 404)
  })
}

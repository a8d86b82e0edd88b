/** The list of an endpoint's jobs, and the end of a single worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openRig } from '../../support/rig.ts'

test('jobs are listed newest first with their times, and without input and output', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const submittedMs = rig.clock.now()
  const first = await rig.submit(endpoint, { input: { secret: 'planted' } })
  await rig.clock.advance(50)
  await worker.takeJob()
  await rig.clock.advance(20)
  await worker.done(first, { output: 'planted' })
  const second = await rig.submit(endpoint, { input: { secret: 'planted' } })
  await rig.clock.advance(30)
  const { json, text } = await rig.ask('GET', `/v2/${endpoint}/requests`)
  assert.deepEqual(json, {
    requests: [
      {
        id: second,
        status: 'IN_QUEUE',
        createdAt: submittedMs + 70,
        startedAt: null,
        completedAt: null,
        delayTime: 30,
        executionTime: 0,
        resultExpiresAt: submittedMs + 70 + 24 * 60 * 60_000,
        workerId: null,
        attempts: 0,
        retries: 0,
        inputBytes: 20,
        outputBytes: null,
        error: null,
        errorFingerprint: null,
      },
      {
        id: first,
        status: 'COMPLETED',
        createdAt: submittedMs,
        startedAt: submittedMs + 50,
        completedAt: submittedMs + 70,
        delayTime: 50,
        executionTime: 20,
        resultExpiresAt: submittedMs + 70 + 30 * 60_000,
        workerId: worker.id,
        attempts: 1,
        retries: 0,
        inputBytes: 20,
        outputBytes: 9,
        error: null,
        errorFingerprint: null,
      },
    ],
    pagination: { nextCursor: null, hasNextPage: false },
  })
  assert.equal(text.includes('planted'), false)
  const inState = async (status: string) =>
    (await rig.ask('GET', `/v2/${endpoint}/requests?status=${status}`)).json.requests.map(
      ({ id }: { id: string }) => id,
    )
  assert.deepEqual(await inState('COMPLETED'), [first])
  assert.deepEqual(await inState('COMPLETED,IN_QUEUE'), [second, first])
  assert.deepEqual(await inState('FAILED'), [])
})

test('pages of any size make up the whole list, each job once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const jobs: string[] = []
  for (let n = 0; n < 25; n += 1) {
    jobs.push(await rig.submit(endpoint))
    if (n % 3 === 0) await rig.clock.advance(1)
    if (n % 4 === 0) await rig.ask('POST', `/v2/${endpoint}/cancel/${jobs.at(-1)}`)
  }
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 30 }), async limit => {
      const seen: { id: string; createdAt: number }[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const query: string = `limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`
        const { json } = await rig.ask('GET', `/v2/${endpoint}/requests?${query}`)
        assert.ok(json.requests.length <= limit)
        assert.equal(json.pagination.hasNextPage, json.pagination.nextCursor !== null)
        seen.push(...json.requests)
        cursor = json.pagination.nextCursor
      }
      assert.deepEqual(seen.map(({ id }) => id).sort(), [...jobs].sort())
      const times = seen.map(({ createdAt }) => createdAt)
      assert.deepEqual(
        times,
        [...times].sort((a, b) => b - a),
      )
    }),
    { numRuns: 12 },
  )
})

test('all mistakes of the parameters are reported at once', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const { status, json } = await rig.ask('GET', `/v2/${endpoint}/requests?status=DONE,FAILED&limit=x&cursor=!`)
  assert.equal(status, 400)
  assert.deepEqual(
    json.error.split('; ').map((text: string) => text.split(' ')[0]),
    ['status', 'the', 'limit', 'cursor'],
  )
  for (const limit of ['0', '1001', '-1', '1.5', '']) {
    assert.equal((await rig.ask('GET', `/v2/${endpoint}/requests?limit=${limit}`)).status, 400, limit)
  }
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/requests`, { body: {} })).status, 405)
  assert.equal((await rig.ask('GET', '/v2/nothing/requests')).status, 404)
})

test('a job that is retried is among the newest again', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const failed = await rig.submit(endpoint)
  await worker.takeJob()
  await worker.done(failed, { error: 'no' })
  await rig.clock.advance(5)
  const other = await rig.submit(endpoint)
  const order = async () =>
    (await rig.ask('GET', `/v2/${endpoint}/requests`)).json.requests.map(({ id }: { id: string }) => id)
  assert.deepEqual(await order(), [other, failed])
  await rig.clock.advance(5)
  await rig.ask('POST', `/v2/${endpoint}/retry/${failed}`)
  assert.deepEqual(await order(), [failed, other])
})

test('a stopping worker finishes its job first, and is replaced', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const job = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), job)
  const path = `/v2/serverless/${endpoint}/workers/${worker.id}`
  assert.equal((await rig.ask('DELETE', path)).status, 204)
  assert.equal((await rig.ask('DELETE', path)).status, 204, 'saying it again is no mistake')
  const next = await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  assert.deepEqual([(await worker.record()).state, (await worker.record()).stopReason], ['DRAINING', 'requested'])
  await worker.done(job)
  await rig.clock.advance(1_000)
  assert.equal((await rig.job(endpoint, job)).status, 'COMPLETED')
  assert.notEqual((await worker.record()).state, 'DRAINING')
  await rig.clock.advance(60_000)
  assert.equal((await worker.record()).state, 'EXITED')
  assert.equal((await rig.ask('DELETE', path)).status, 404)
  const replacement = rig.worker(-1)
  assert.notEqual(replacement.id, worker.id)
  assert.equal(await replacement.takeJob(), next)
  assert.deepEqual(await rig.why(endpoint).then(({ cause }) => cause.includes('crash')), false)
})

test('a worker is ended through its own endpoint, by its own account and with the right to write', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const other = await rig.endpoint({ workersMax: 0 })
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as never })
  const end = async (id: string, workerId: string, key?: string) =>
    (await rig.ask('DELETE', `/v2/serverless/${id}/workers/${workerId}`, key === undefined ? {} : { key })).status
  assert.equal(await end(other, worker.id), 404)
  assert.equal(await end(endpoint, 'nothing'), 404)
  assert.equal(await end(endpoint, worker.id, reader), 403)
  assert.equal(await end(endpoint, worker.id, stranger), 404)
  assert.equal((await worker.record()).state, 'STARTING')
})

test('an id is resolved for its own account only', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const job = await rig.submit(endpoint)
  const locate = async (id: string) => (await rig.ask('GET', `/ops/locate/${id}`)).json
  assert.deepEqual(await locate(job), { kind: 'job', id: job, endpointId: endpoint })
  assert.deepEqual(await locate(worker.id), { kind: 'worker', id: worker.id, endpointId: endpoint })
  assert.deepEqual(await locate(endpoint), { kind: 'endpoint', id: endpoint, endpointId: endpoint })
  const key = await rig.addKey('rpa_stranger', { owner: 'stranger' as never })
  for (const id of [job, worker.id, endpoint]) {
    assert.equal((await rig.ask('GET', `/ops/locate/${id}`, { key })).status, 404)
  }
})

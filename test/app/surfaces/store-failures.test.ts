import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

const SENTENCE = /failed (?:before it did anything|after it was done), as planned/

test('a submission that the store could not keep is 503 with a message, and there is no job', async t => {
  for (const path of ['run', 'runsync']) {
    const rig = await openRig(t)
    const endpoint = await rig.endpoint()
    rig.failNext('jobs.insert', 'before')
    const { status, json } = await rig.ask('POST', `/v2/${endpoint}/${path}`, { body: { input: {} } })
    assert.equal(status, 503)
    assert.match(json.error, SENTENCE)
    assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
    assert.equal(rig.happened('job.accepted').length, 0)
  }
})

test('a submission that failed after the store had taken it leaves a whole job, which runs', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  await rig.clock.advance(60_000)
  rig.failNext('jobs.insert', 'after')
  const body = { input: { a: 1 }, policy: { own: 2 } }
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { body })).status, 503)
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 1)
  await rig.clock.advance(20)
  const taken = (await rig.worker(0).take()).json
  assert.deepEqual([taken.input, taken.policy], [{ a: 1 }, { own: 2 }])
  await rig.worker(0).done(taken.id)
  assert.equal((await rig.status(endpoint, taken.id)).json.status, 'COMPLETED')
})

test('a worker whose poll met a broken store is slowed down, and gets the job when it asks again', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  rig.failNext('jobs.claim', 'before')
  const { status, headers } = await worker.take()
  assert.deepEqual([status, headers.get('retry-after')], [429, '5'])
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
  assert.equal(await worker.takeJob(), id)
})

test('a broken store at one poll does not leave the job waiting while another worker is idle', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const polls = [rig.worker(0).take(), rig.worker(1).take()]
  await rig.clock.settle()
  rig.failNext('jobs.claim', 'before')
  const id = await rig.submit(endpoint)
  assert.equal((await polls[0])!.status, 429)
  assert.equal((await polls[1])!.json.id, id)
})

test('a result that was not stored is 503, and counts when it is sent again', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  rig.failNext('jobOutcomes.finish', 'before')
  assert.equal((await worker.done(id, { output: 'x' })).status, 503)
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
  assert.equal((await worker.done(id, { output: 'x' })).status, 200)
  assert.equal((await rig.status(endpoint, id)).json.output, 'x')
})

test('a result that failed after it was stored counts once, and a wait for it is answered', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  await rig.clock.advance(10)
  const id = await worker.takeJob()
  rig.failNext('jobOutcomes.finish', 'after')
  assert.equal((await worker.done(id, { output: 'x' })).status, 503)
  const sentAgainMs = rig.clock.now()
  assert.equal((await worker.done(id, { output: 'x' })).status, 200)
  await rig.clock.settle()
  assert.equal((await answer).json.output, 'x')
  assert.equal(rig.clock.now(), sentAgainMs)
  assert.equal((await rig.health(endpoint)).jobs.completed, 1)
  assert.equal((await rig.alive(endpoint))[0]!.held, 0)
})

for (const fault of ['before', 'after'] as const) {
  test(`a cancel that failed ${fault} the store did it can be asked for again`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker } = await rig.endpointWithWorker()
    const id = await rig.submit(endpoint)
    await worker.takeJob()
    await rig.clock.advance(1_000)
    rig.failNext('jobOutcomes.cancel', fault)
    assert.equal((await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)).status, 503)
    const again = await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
    assert.deepEqual([again.status, again.json], [200, { id, status: 'CANCELLED' }])
    assert.deepEqual((await worker.stops()).json, { jobsToStop: [id] })
  })
}

test('an answer that was lost together with the store is given back when the worker ends', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  rig.failNext('jobOutcomes.release', 'before')
  await worker.take({ delivered: false })
  await rig.clock.settle()
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
  assert.equal(rig.happened('request.failed').length, 1)
  rig.fleet.exit(worker.id)
  await rig.clock.advance(100)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
})

test('a store that cannot be asked for the key is 503 on every surface, not 401', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const asks: [method: string, path: string, body?: unknown][] = [
    ['GET', `/v2/${endpoint}/health`],
    ['GET', `/v2/serverless/${endpoint}`],
    ['POST', '/graphql', { query: '{ myself { id } }' }],
    ['GET', '/ops/why'],
  ]
  for (const [method, path, body] of asks) {
    const key = await rig.addKey(`rpa_key for ${path}`)
    rig.failNext('keys.findByHash', 'before')
    const broken = await rig.ask(method, path, { key, body })
    assert.equal(broken.status, 503, path)
    assert.equal(rig.happened('request.failed').at(-1)?.method, method)
    assert.equal((await rig.ask(method, path, { key, body })).status, 200, path)
  }
})

test('what went wrong inside never shows in an answer', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const find = rig.store.endpoints.find
  Object.assign(rig.store.endpoints, {
    find: () => Promise.reject(new Error('SELECT secret FROM table_of_secrets')),
  })
  const answers = [
    await rig.ask('GET', `/v2/${endpoint}/health`),
    await rig.ask('GET', `/v2/serverless/${endpoint}`),
    await rig.ask('POST', '/graphql', { body: { query: `{ myself { endpoint(id: "${endpoint}") { id } } }` } }),
  ]
  Object.assign(rig.store.endpoints, { find })
  for (const { text } of answers) {
    assert.ok(!text.includes('SELECT'), text)
    assert.match(text, /an internal error occurred/)
  }
  assert.equal(rig.happened('request.failed').filter(({ problem }) => problem.includes('table_of_secrets')).length, 3)
})

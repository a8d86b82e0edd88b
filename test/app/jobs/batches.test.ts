import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inputs, RigBatches, workOff } from '../../support/batches.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'

const DAY_MS = 24 * 60 * 60_000

/** An endpoint with one worker, and its batches. */
async function open(context: Parameters<typeof openRig>[0], options: RigOptions = {}) {
  const rig = await openRig(context, options)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  return { rig, endpoint, worker, batches: new RigBatches(rig, endpoint), at: `/v2/${endpoint}/batch` }
}

/** An endpoint without workers. */
async function paused(context: Parameters<typeof openRig>[0]) {
  const rig = await openRig(context)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  return { rig, endpoint, batches: new RigBatches(rig, endpoint), at: `/v2/${endpoint}/batch` }
}

test('a batch goes from a draft to the results of all its requests', async t => {
  const { rig, endpoint, worker, batches, at } = await open(t)
  const made = await rig.ask('POST', at, { body: inputs(2) })
  const { id } = made.json
  assert.deepEqual([made.status, made.json], [200, { id, status: 'DRAFT' }])
  const more = await batches.post(id, 'requests', { requests: [{ input: { n: 2 } }] })
  assert.deepEqual([more.status, more.json], [200, { id, status: 'DRAFT', requestTotal: 3 }])
  await rig.clock.advance(1_000)
  const finalized = await batches.post(id, 'finalize')
  assert.deepEqual([finalized.status, finalized.json], [200, { id, status: 'FINALIZED', requestTotal: 3 }])
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 3)
  const first = await worker.takeJob()
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 3, 1, 0, 0])
  await rig.clock.advance(500)
  await worker.done(first, { output: { n: 0 } })
  const second = await worker.takeJob()
  await worker.done(second, { error: 'no' })
  assert.deepEqual(await workOff(worker, 1), [{ n: 2 }])
  const createdAt = rig.clock.startMs + 40
  assert.deepEqual((await batches.read(id)).json, {
    id,
    endpointId: endpoint,
    status: 'FINALIZED',
    requestTotal: 3,
    requestInProgress: 0,
    requestCompleted: 2,
    requestFailed: 1,
    createdAt,
  })
  const [a, b, c] = await batches.ids(id)
  assert.deepEqual([a, b], [first, second])
  const startedAt = createdAt + 1_000
  const completedAt = startedAt + 500
  assert.deepEqual(await batches.page(id), {
    requests: [
      { id: a, status: 'COMPLETED', output: { n: 0 }, startedAt, completedAt },
      { id: b, status: 'FAILED', error: 'no', startedAt: completedAt, completedAt },
      { id: c, status: 'COMPLETED', output: { n: 2 }, startedAt: completedAt, completedAt },
    ],
    total: 3,
    offset: 0,
    limit: 100,
    hasMore: false,
  })
})

test('requests are jobs like others: they are read, cancelled, retried, counted, and their webhooks are sent', async t => {
  const { rig, endpoint, worker, batches } = await open(t)
  const webhook = 'https://example.com/hook'
  const id = await batches.running([
    { input: { n: 0 }, webhook },
    { input: { n: 1 }, policy: { own: 1 } },
    { input: {} },
  ])
  const [a, b, c] = await batches.ids(id)
  assert.equal((await rig.status(endpoint, a!)).json.status, 'IN_QUEUE')
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/cancel/${a}`)).status, 200)
  const taken = await worker.take()
  assert.deepEqual(taken.json, { id: b, input: { n: 1 }, policy: { own: 1 }, batchId: id })
  await worker.done(b!, { error: 'no' })
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 3, 0, 0, 2])
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${b}`)).status, 200)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 3, 0, 0, 1])
  await workOff(worker, 2)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 3, 0, 2, 1])
  assert.equal((await rig.status(endpoint, c!)).json.batchId, id)
  const { jobs } = await rig.health(endpoint)
  assert.deepEqual([jobs.completed, jobs.failed, jobs.retried, jobs.inQueue], [2, 1, 1, 0])
  await rig.clock.advance(100)
  assert.deepEqual(
    rig.outbound.calls.map(({ body }) => JSON.parse(body).status),
    ['CANCELLED'],
  )
})

test('a draft can be named, lose requests and be cancelled; its requests are no jobs', async t => {
  const { rig, endpoint, batches, at } = await paused(t)
  const named = await rig.ask('POST', `${at}?name=first%20try`, { body: inputs(3) })
  const { id } = named.json
  assert.equal((await batches.read(id)).json.name, 'first try')
  const renamed = await rig.ask('PUT', `${at}/${id}`, { body: { name: 'second' } })
  assert.deepEqual([renamed.status, renamed.json.name], [200, 'second'])
  const ids = await batches.ids(id)
  assert.equal((await rig.status(endpoint, ids[0]!)).status, 404)
  const dropped = await rig.ask('DELETE', `${at}/${id}/requests/${ids[1]}`)
  assert.deepEqual([dropped.status, dropped.json], [200, { id, status: 'DRAFT', requestTotal: 2 }])
  assert.deepEqual(await batches.ids(id), [ids[0], ids[2]])
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
  for (let time = 0; time < 2; time += 1) {
    const cancelled = await batches.post(id, 'cancel')
    assert.deepEqual([cancelled.status, cancelled.json], [200, { id, status: 'CANCELLED', requestTotal: 2 }])
  }
  assert.deepEqual(await batches.counts(id), ['CANCELLED', 2, 0, 0, 2])
})

test('batches are listed newest first, in pages', async t => {
  const { rig, batches, at } = await paused(t)
  const ids: string[] = []
  for (let n = 0; n < 3; n += 1) {
    ids.unshift(await batches.draft(0, { name: `n${n}` }))
    await rig.clock.advance(1)
  }
  const { json } = await rig.ask('GET', at)
  assert.deepEqual(
    json.batches.map((batch: { id: string }) => batch.id),
    ids,
  )
  assert.deepEqual([json.total, json.offset, json.limit, json.hasMore], [3, 0, 100, false])
  const part = (await rig.ask('GET', `${at}?offset=1&limit=1`)).json
  assert.deepEqual([part.batches[0].id, part.total, part.offset, part.limit, part.hasMore], [ids[1], 3, 1, 1, true])
})

test('a long list of requests comes in pages in the order in which they were added', async t => {
  const { batches } = await paused(t)
  const id = await batches.draft(150)
  await batches.post(id, 'requests', { requests: inputs(101) })
  const first = await batches.page(id)
  const second = await batches.page(id, '?offset=100&limit=100')
  const last = await batches.page(id, '?offset=200')
  assert.deepEqual([first.hasMore, second.hasMore, last.hasMore, last.requests.length], [true, true, false, 51])
  const all = [first, second, last].flatMap(page => page.requests.map((request: { id: string }) => request.id))
  assert.equal(new Set(all).size, 251)
  assert.deepEqual(await batches.ids(id), all)
})

test('a finished batch can be read for a day, and is then removed with its results', async t => {
  const { rig, endpoint, worker, batches } = await open(t)
  const id = await batches.running(2)
  const [a] = await batches.ids(id)
  await workOff(worker, 1)
  await rig.clock.leap(3 * DAY_MS)
  assert.equal((await rig.status(endpoint, a!)).json.status, 'COMPLETED', 'it is kept until the batch is done')
  await workOff(rig.worker(-1), 1)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 2, 0, 2, 0])
  await rig.clock.leap(DAY_MS - 1)
  assert.equal((await batches.page(id)).requests.length, 2)
  await rig.clock.advance(2_000)
  assert.equal((await batches.read(id)).status, 404)
  assert.equal((await rig.status(endpoint, a!)).status, 404)
})

test('a draft that is not finalized is removed a day after its last request was added', async t => {
  const { rig, batches, at } = await paused(t)
  const id = await batches.draft(600)
  await rig.clock.leap(DAY_MS - 1)
  await batches.post(id, 'requests', { requests: inputs(1) })
  await rig.clock.leap(DAY_MS - 1)
  assert.equal((await batches.read(id)).status, 200)
  await rig.clock.advance(1)
  assert.equal((await batches.read(id)).status, 404)
  await rig.clock.advance(5_000)
  assert.deepEqual((await rig.ask('GET', at)).json.batches, [])
})

test('a request past its own ttl is gone and counts as failed', async t => {
  const { rig, batches } = await paused(t)
  const id = await batches.draft([{ input: {}, policy: { ttl: 10_000 } }, { input: {} }])
  await rig.clock.advance(20_000)
  await batches.post(id, 'finalize')
  assert.equal((await batches.page(id)).requests[0].status, 'IN_QUEUE', 'its time counts from the finalization')
  await rig.clock.advance(12_000)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 2, 0, 0, 1])
  assert.equal((await batches.page(id)).total, 1)
})

test('a batch of which nothing succeeded is FAILED, until one of its requests is retried', async t => {
  const { rig, endpoint, worker, batches } = await open(t)
  const id = await batches.running(1)
  const job = await worker.takeJob()
  await worker.done(job, { error: 'no' })
  assert.deepEqual(await batches.counts(id), ['FAILED', 1, 0, 0, 1])
  assert.equal((await batches.post(id, 'cancel')).status, 409)
  await rig.ask('POST', `/v2/${endpoint}/retry/${job}`)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 1, 0, 0, 0])
})

test('cancelling a batch cancels queued jobs, lets running ones end, and notifies each receiver once', async t => {
  const { rig, endpoint, worker, batches } = await open(t)
  const id = await batches.running(700, { webhook: 'https://example.com/batch' })
  const job = await worker.takeJob()
  const cancelled = await batches.post(id, 'cancel')
  assert.deepEqual([cancelled.status, cancelled.json.status], [200, 'CANCELLED'])
  assert.deepEqual(await batches.counts(id), ['CANCELLED', 700, 1, 0, 699])
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
  await rig.clock.advance(100)
  assert.equal(rig.outbound.calls.length, 0)
  await worker.done(job)
  assert.deepEqual(await batches.counts(id), ['CANCELLED', 700, 0, 1, 699])
  await rig.clock.advance(100)
  assert.deepEqual(
    rig.outbound.calls.map(({ body }) => JSON.parse(body)),
    [(await batches.read(id)).json],
  )
  assert.equal((await batches.post(id, 'cancel')).status, 200)
})

test('purging the queue removes queued jobs of batches too, and leaves drafts alone', async t => {
  const { rig, endpoint, batches } = await paused(t)
  const id = await batches.running(3)
  const draft = await batches.draft(2)
  await rig.submit(endpoint)
  const purged = await rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  assert.deepEqual(purged.json, { removed: 4, status: 'completed' })
  assert.deepEqual(await batches.counts(id), ['FAILED', 3, 0, 0, 3])
  assert.deepEqual(await batches.counts(draft), ['DRAFT', 2, 0, 0, 0])
})

test('deleting the endpoint cancels its batches and everything of them is 404', async t => {
  const { rig, endpoint, batches, at } = await paused(t)
  const webhook = 'https://example.com/hook'
  const id = await batches.running([{ input: {}, webhook }])
  const draft = await batches.draft(2)
  await rig.graphql(`mutation { deleteEndpoint(id: "${endpoint}") }`)
  for (const path of [at, `${at}/${id}`, `${at}/${draft}/requests`])
    assert.equal((await rig.ask('GET', path)).status, 404)
  await rig.clock.advance(100)
  assert.equal(JSON.parse(rig.outbound.calls[0]!.body).status, 'CANCELLED')
})

test('a batch starts workers, and one of low priority does not', async t => {
  const rig = await openRig(t)
  const [one, other] = [await rig.endpoint(), await rig.endpoint()]
  await new RigBatches(rig, one).running([{ input: {}, policy: { lowPriority: true } }])
  await rig.clock.advance(10_000)
  assert.deepEqual(await rig.alive(one), [])
  assert.equal((await rig.why(one)).cause, 'low_priority')
  await new RigBatches(rig, other).running(1)
  await rig.clock.advance(40)
  assert.equal((await rig.alive(other)).length, 1)
})

test('explain says why a request waits, with how many of its batch come before it', async t => {
  const { rig, endpoint, worker, batches } = await open(t)
  const id = await batches.running(5)
  await worker.takeJob()
  const last = (await batches.ids(id)).at(-1)!
  const { json } = await rig.ask('GET', `/v2/${endpoint}/explain/${last}`)
  const turn = `batch ${id} takes turns with the other jobs, and 3 of its requests come before this one`
  assert.deepEqual(
    [json.cause, json.summary],
    ['batch_turn', `workersMax is 1, and there is 1 worker with 1 running job; ${turn}`],
  )
  const { jobs } = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.deepEqual(jobs, { inQueue: 4, ofBatches: 4, inProgress: 1 })
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/explain/${last}`)).json.cause, 'paused')
})

test('s3Config of a request is encrypted in the store and reaches the worker in the clear', async t => {
  const { worker, batches } = await open(t)
  await batches.running([{ input: {}, s3Config: { accessId: 'a' } }])
  assert.deepEqual((await worker.take()).json.s3Config, { accessId: 'a' })
})

test('a batch of OpenAI-sized numbers keeps them digit for digit', async t => {
  const { rig, worker, batches, at } = await open(t)
  const { json } = await rig.ask('POST', at, { body: '[ {"input": {"n": 12345678901234567890}} ]' })
  await batches.post(json.id, 'finalize')
  const taken = await worker.take()
  assert.ok(taken.text.includes('"input":{"n": 12345678901234567890}'))
  await worker.done(taken.json.id, '{"output": 1.10}')
  const { text } = await rig.ask('GET', `${at}/${json.id}/requests`)
  assert.ok(text.includes('"output":1.10'), text)
})

/** Restarts over the same store, as after a kill. */
async function restart(rig: Rig) {
  await rig.crash()
  await rig.start()
}

for (const fault of ['before', 'after'] as const) {
  test(`a server that is killed while requests become jobs goes on when it is back: a store that fails ${fault}`, async t => {
    const { rig, endpoint, batches } = await paused(t)
    const id = await batches.draft(600)
    rig.failNext('batches.release', fault)
    const finalized = await batches.post(id, 'finalize')
    assert.deepEqual([finalized.status, finalized.json.status], [200, 'FINALIZED'])
    assert.ok((await rig.health(endpoint)).jobs.inQueue! <= 250)
    assert.deepEqual(await batches.counts(id), ['FINALIZED', 600, 0, 0, 0])
    const before = await batches.ids(id)
    await restart(rig)
    await rig.clock.advance(2_000)
    assert.equal((await rig.health(endpoint)).jobs.inQueue, 600)
    assert.deepEqual(await batches.ids(id), before)
    assert.equal((await rig.status(endpoint, before.at(-1)!)).json.status, 'IN_QUEUE')
  })

  test(`a batch whose cancellation was cut short is cancelled wholly: a store that fails ${fault}`, async t => {
    const { rig, endpoint, batches } = await paused(t)
    const id = await batches.running(600)
    rig.failNext('batches.cancelWaiting', fault)
    assert.equal((await batches.post(id, 'cancel')).status, 200)
    assert.ok((await rig.health(endpoint)).jobs.inQueue! >= 350)
    await restart(rig)
    await rig.clock.advance(2_000)
    assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
    assert.deepEqual(await batches.counts(id), ['CANCELLED', 600, 0, 0, 600])
  })

  test(`a batch is there wholly or not at all when the store fails ${fault} it was taken`, async t => {
    const { rig, at, batches } = await paused(t)
    rig.failNext('batches.create', fault)
    assert.equal((await rig.ask('POST', at, { body: inputs(3) })).status, 503)
    const { json } = await rig.ask('GET', at)
    assert.equal(json.total, fault === 'before' ? 0 : 1)
    for (const batch of json.batches) assert.equal(batch.requestTotal, 3)
    const id = await batches.draft(1)
    rig.failNext('batches.add', fault)
    assert.equal((await batches.post(id, 'requests', { requests: inputs(2) })).status, 503)
    assert.equal((await batches.counts(id))[1], fault === 'before' ? 1 : 3)
  })
}

test('requests that became jobs without an answer of the store reach a worker at once, and start one from zero', async t => {
  const { rig, worker, batches } = await open(t)
  const id = await batches.draft(1)
  const poll = worker.take()
  await rig.clock.settle()
  rig.failNext('batches.release', 'after')
  await batches.post(id, 'finalize')
  await rig.clock.advance(100)
  assert.deepEqual(await batches.counts(id), ['FINALIZED', 1, 1, 0, 0])
  assert.equal((await poll).json.batchId, id)
  const empty = await rig.endpoint()
  await rig.clock.advance(60_000)
  const others = new RigBatches(rig, empty)
  const other = await others.draft(1)
  rig.failNext('batches.release', 'after')
  await others.post(other, 'finalize')
  await rig.clock.advance(100)
  assert.equal((await rig.alive(empty)).length, 1)
})

test('the same Idempotency-Key makes one batch, and adds requests once', async t => {
  const { rig, batches, at } = await paused(t)
  const headers = { 'idempotency-key': 'k' }
  const make = () => rig.ask('POST', at, { body: inputs(2), headers })
  const { id } = (await make()).json
  assert.equal((await make()).json.id, id)
  const add = () => rig.ask('POST', `${at}/${id}/requests`, { body: { requests: inputs(3) }, headers })
  for (let time = 0; time < 2; time += 1) assert.equal((await add()).json.requestTotal, 5)
  const job = await rig.ask('POST', at.replace('/batch', '/run'), { body: { input: {} }, headers })
  assert.match(job.json.id, /-u1$/, 'the key of a job is another one')
  await rig.clock.leap(DAY_MS)
  assert.notEqual((await make()).json.id, id)
  assert.equal((await batches.read(id)).status, 404)
})

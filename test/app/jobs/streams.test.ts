import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { type Asking, openRig, type Rig } from '../../support/rig.ts'

/** An endpoint of at most one worker that holds one job, and ways to stream it. */
async function streaming(rig: Rig) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  const read = (asking: Asking = {}, query = '') => rig.ask('GET', `/v2/${endpoint}/stream/${id}${query}`, asking)
  return { endpoint, worker, id, read }
}

const outputs = (answer: { json: { stream: { output: unknown }[] } }) => answer.json.stream.map(({ output }) => output)

test('chunks are delivered once, in order, and the final status comes with the last of them', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  await worker.chunk(id, { output: 1 })
  await worker.chunk(id, { output: { two: 2 } })
  const first = await read()
  assert.deepEqual(first.json, { id, status: 'IN_PROGRESS', stream: [{ output: 1 }, { output: { two: 2 } }] })
  await worker.chunk(id, { output: 3, metrics: { tokens: 1 } })
  await worker.done(id, { output: [] })
  const last = await read()
  assert.deepEqual(last.json, { id, status: 'COMPLETED', stream: [{ output: 3, metrics: { tokens: 1 } }] })
  assert.deepEqual((await read()).json, { id, status: 'COMPLETED', stream: [] })
})

test('FAILED comes in a response of its own, after the chunks', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  await worker.chunk(id, { output: 1 })
  await worker.done(id, { error: 'handler: boom' })
  assert.deepEqual((await read()).json, { id, status: 'IN_PROGRESS', stream: [{ output: 1 }] })
  assert.deepEqual((await read()).json, { id, status: 'FAILED', stream: [] })
})

test('a stream is held while nothing is new, for 8 s or as long as was asked, and answered by the next chunk', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  const startMs = rig.clock.now()
  const idle = read()
  await rig.clock.advance(8_000)
  assert.deepEqual((await idle).json, { id, status: 'IN_PROGRESS', stream: [] })
  assert.equal(rig.clock.now() - startMs, 8_000)
  const held = read({}, '?wait=60000')
  await rig.clock.advance(20_000)
  await worker.chunk(id, { output: 'late' })
  assert.deepEqual(outputs(await held), ['late'])
  assert.deepEqual(outputs(await read({}, '?wait=0')), [])
})

test('chunks whose response did not reach the client come again, in order', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  await worker.chunk(id, { output: 1 })
  assert.deepEqual(outputs(await read({ delivered: false })), [1])
  await rig.clock.settle()
  await worker.chunk(id, { output: 2 })
  assert.deepEqual(outputs(await read()), [1, 2])
  await rig.clock.settle()
  assert.deepEqual(outputs(await read({}, '?wait=0')), [])
})

test('a client that disconnects cancels nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id, read } = await streaming(rig)
  const connection = new AbortController()
  const gone = read({ signal: connection.signal })
  await rig.clock.advance(100)
  connection.abort()
  await gone
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
  await worker.chunk(id, { output: 1 })
  assert.deepEqual(outputs(await read()), [1])
})

test('after a lost attempt the stream begins again', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  await worker.chunk(id, { output: 'old' })
  await worker.chunk(id, { output: 'older' })
  assert.deepEqual(outputs(await read()), ['old', 'older'])
  rig.fleet.exit(worker.id, { signal: 'SIGKILL' })
  assert.ok(await rig.clock.until(() => rig.fleet.started.length === 2, 400_000))
  const next = rig.worker(-1)
  assert.equal(await next.takeJob(), id)
  await next.chunk(id, { output: 'new' })
  assert.deepEqual(outputs(await read()), ['new'])
})

test('exactly application/json gets the bare array, a format decides, everything else gets the object', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  await worker.chunk(id, { output: 1 })
  assert.deepEqual((await read({ headers: { accept: 'application/json' } })).json, [{ output: 1 }])
  await rig.clock.settle()
  await worker.chunk(id, { output: 2 })
  assert.deepEqual((await read({ headers: { accept: 'application/json, text/plain, */*' } })).json.stream, [
    { output: 2 },
  ])
  await rig.clock.settle()
  await worker.chunk(id, { output: 3 })
  assert.deepEqual((await read({}, '?format=array')).json, [{ output: 3 }])
  const wrong = await read({}, '?format=xml')
  assert.deepEqual([wrong.status, wrong.json], [400, { error: '"format" must be array or envelope' }])
})

test('server-sent events bring one event per chunk and a last one with the end', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  const events = read({ headers: { accept: 'text/event-stream' } })
  for (const output of ['one', { two: 'a\nb' }]) {
    await worker.chunk(id, { output })
    await rig.clock.advance(10)
  }
  await worker.done(id, { output: [] })
  await rig.clock.advance(10)
  const { headers, text } = await events
  assert.equal(headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const [one, two, end, rest] = text.split('\n\n')
  assert.deepEqual([one, two], ['data: {"output":"one"}', 'data: {"output":{"two":"a\\nb"}}'])
  assert.match(end!, /^event: status\ndata: \{"id":"[^"]+","status":"COMPLETED","delayTime":\d+,"executionTime":\d+,/)
  assert.equal(rest, '')
})

test('a chunk over 1 MB arrives in pieces that fit', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  const long = 'ä'.repeat(1_500_000)
  await worker.chunk(id, { output: long })
  const { json, text } = await read()
  assert.ok(json.stream.length > 2, `${json.stream.length} pieces`)
  assert.equal(json.stream.map((item: { output: string }) => item.output).join(''), long)
  assert.ok(text.length > 0)
})

test('a chunk that is sent again after an error of the server is delivered once', async t => {
  const rig = await openRig(t)
  const { worker, id, read } = await streaming(rig)
  rig.failNext('streams.append', 'after')
  assert.equal((await worker.chunk(id, { output: 'x' })).status, 503)
  assert.equal((await worker.chunk(id, { output: 'x' })).status, 200)
  await worker.chunk(id, { output: 'x' })
  assert.deepEqual(outputs(await read()), ['x', 'x'])
})

test('status-sync is held until the job is final, or for as long as was asked', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await streaming(rig)
  const path = `/v2/${endpoint}/status-sync/${id}`
  const idle = rig.ask('POST', `${path}?wait=3000`)
  await rig.clock.advance(3_000)
  assert.equal((await idle).json.status, 'IN_PROGRESS')
  const held = rig.ask('GET', path)
  await rig.clock.advance(1_000)
  await worker.done(id, { output: 7 })
  assert.deepEqual([(await held).json.status, (await held).json.output], ['COMPLETED', 7])
})

test('retry queues a failed job again with its input, and refuses every other state', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await streaming(rig)
  const retry = (job: JobId) => rig.ask('POST', `/v2/${endpoint}/retry/${job}`)
  const sentence = `job ${id} is IN_PROGRESS; only FAILED and TIMED_OUT jobs can be retried`
  const early = await retry(id)
  assert.deepEqual([early.status, early.json], [409, { error: sentence }])
  await worker.done(id, { error: 'no' })
  assert.deepEqual((await retry(id)).json, { id, status: 'IN_QUEUE' })
  const queued = (await rig.status(endpoint, id)).json
  assert.deepEqual([queued.status, queued.output, queued.error], ['IN_QUEUE', undefined, undefined])
  assert.equal(await worker.takeJob(), id)
  await worker.done(id, { output: 'yes' })
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
  assert.equal((await rig.health(endpoint)).jobs.retried, 1)
  assert.equal((await retry('none' as JobId)).status, 404)
})

test('purge-queue cancels queued jobs, answers waits for them, and leaves running ones', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await streaming(rig)
  const waiting = await rig.submit(endpoint)
  const held = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  await rig.clock.settle()
  assert.deepEqual((await rig.ask('POST', `/v2/${endpoint}/purge-queue`)).json, { removed: 2, status: 'completed' })
  assert.equal((await held).json.status, 'CANCELLED')
  assert.equal((await rig.status(endpoint, waiting)).json.status, 'CANCELLED')
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_PROGRESS')
})

test('the same Idempotency-Key on the same endpoint returns the first job', async t => {
  const rig = await openRig(t)
  const [one, two]: [EndpointId, EndpointId] = [await rig.endpoint(), await rig.endpoint()]
  const run = (endpoint: EndpointId, key: string) =>
    rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} }, headers: { 'idempotency-key': key } })
  const first = (await run(one, 'k')).json
  assert.deepEqual((await run(one, 'k')).json, first)
  assert.notEqual((await run(one, 'other')).json.id, first.id)
  assert.notEqual((await run(two, 'k')).json.id, first.id)
  const bad = await run(one, 'k'.repeat(256))
  assert.deepEqual([bad.status, bad.json.error], [400, '"Idempotency-Key" must have 1 to 255 visible ASCII characters'])
})

test('a stream of a job that expires ends with TIMED_OUT, as a response or as the last event', async t => {
  const rig = await openRig(t)
  const { endpoint } = await streaming(rig)
  const id = await rig.submit(endpoint, { input: {}, policy: { ttl: 10_000 } })
  const path = `/v2/${endpoint}/stream/${id}`
  const events = rig.ask('GET', path, { headers: { accept: 'text/event-stream' } })
  await rig.clock.advance(5_000)
  const held = rig.ask('GET', path)
  await rig.clock.advance(12_000)
  assert.deepEqual((await held).json, { id, status: 'TIMED_OUT', stream: [] })
  assert.match(
    (await events).text,
    /event: status\ndata: \{.*"status":"TIMED_OUT".*"error":"the job was not done within its ttl"/,
  )
  assert.equal((await rig.ask('GET', path)).status, 404)
})

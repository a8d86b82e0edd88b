import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { type Answer, type Asking, openRig, type RigOptions } from '../../support/rig.ts'

const CHAT = { model: 'm', messages: [] }

/** An endpoint of one worker, and requests to its OpenAI route that the worker has taken. */
async function openAi(t: TestContext, options: RigOptions = {}) {
  const rig = await openRig(t, options)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const path = (route: string) => `/v2/${endpoint}/openai${route}`
  const begin = async (method: string, route: string, asking: Asking = {}) => {
    const answer = rig.ask(method, path(route), asking)
    await rig.clock.settle()
    const taken = await worker.take()
    assert.equal(taken.status, 200, taken.text)
    const { id, input } = taken.json as { id: JobId; input: Record<string, unknown> }
    return { answer, id, input }
  }
  const chat = (fields: object = {}, asking: Asking = {}) =>
    begin('POST', '/v1/chat/completions', { body: { ...CHAT, ...fields }, ...asking })
  const statusOf = async (id: JobId) => (await rig.job(endpoint, id)).status
  return { rig, endpoint, worker, path, begin, chat, statusOf }
}

const seen = ({ status, json }: Answer) => [status, json?.error?.message, json?.error?.type]

test('a request is a job of the queue, and its output comes back without an envelope', async t => {
  const { worker, chat, statusOf } = await openAi(t)
  const { answer, id, input } = await chat({ n: 1 })
  assert.deepEqual(input, { openai_route: '/v1/chat/completions', openai_input: { ...CHAT, n: 1 } })
  await worker.done(id, { output: [{ object: 'chat.completion', id: 1 }] })
  const { status, headers, json } = await answer
  assert.deepEqual([status, json], [200, { object: 'chat.completion', id: 1 }])
  assert.deepEqual([headers.get('content-type'), headers.get('x-runyard-job-id')], ['application/json', id])
  assert.equal(await statusOf(id), 'COMPLETED')
})

test('a request without a body gives the worker an empty object', async t => {
  const { worker, begin } = await openAi(t)
  const { answer, id, input } = await begin('GET', '/v1/models?limit=3')
  assert.deepEqual(input, { openai_route: '/v1/models', openai_input: {} })
  await worker.done(id, { output: { object: 'list', data: [] } })
  assert.deepEqual((await answer).json, { object: 'list', data: [] })
})

test('a list of models is asked for as n8n does, also with a base URL that ends with a slash', async t => {
  const { worker, begin } = await openAi(t)
  const list = { object: 'list', data: [{ id: 'tiny' }] }
  for (const route of ['/v1/models', '/v1/v1/models']) {
    const { answer, id, input } = await begin('GET', route, { headers: { 'openai-organization': '' } })
    assert.deepEqual(input, { openai_route: '/v1/models', openai_input: {} }, route)
    await worker.done(id, { output: list })
    assert.deepEqual((await answer).json, list)
  }
})

test('the answer of a generator without an output of its own is made of its chunks', async t => {
  const { worker, chat } = await openAi(t)
  for (const outputs of [[{ id: 2 }], ['{"id"', ':2}']]) {
    const { answer, id } = await chat()
    for (const output of outputs) await worker.chunk(id, { output })
    await worker.done(id, { output: [] })
    assert.deepEqual((await answer).json, { id: 2 })
  }
})

test('there is no limit to the wait but the life of the job', async t => {
  const { rig, endpoint, worker, chat } = await openAi(t)
  const long = await chat()
  await rig.clock.advance(500_000)
  await worker.done(long.id, { output: 1 })
  assert.equal((await long.answer).text, '1')
  for (const stream of [false, true]) {
    const { answer, id } = await chat({ stream })
    await rig.ask('GET', `/v2/${endpoint}/status/${id}?ttl=60000`)
    await rig.clock.advance(61_000)
    assert.deepEqual(seen(await answer).slice(0, 2), [504, 'the job was not done within its ttl'])
    await worker.done(id, { output: 1 })
  }
})

test('a stream goes out verbatim and its end is said once', async t => {
  const { rig, worker, chat } = await openAi(t)
  for (const end of ['data: [DONE]\n\n', '']) {
    const { answer, id } = await chat({ stream: true })
    for (const output of ['data: {"a"', ':1}\n\nda', 'ta: 2\n\n', end]) {
      await worker.chunk(id, { output })
      await rig.clock.advance(40_000)
    }
    await worker.done(id, { output: [] })
    await rig.clock.advance(10)
    const { status, headers, text } = await answer
    assert.deepEqual([status, text], [200, 'data: {"a":1}\n\ndata: 2\n\ndata: [DONE]\n\n'])
    const names = ['content-type', 'cache-control', 'x-accel-buffering', 'x-runyard-job-id']
    assert.deepEqual(
      names.map(name => headers.get(name)),
      ['text/event-stream; charset=utf-8', 'no-cache', 'no', id],
    )
  }
})

test('chunks that are values become events, and so does the output of a handler that streams nothing', async t => {
  const { worker, chat } = await openAi(t)
  const long = { text: '"'.repeat(1_500_000) }
  const streamed = await chat({ stream: true })
  for (const output of [{ a: 1 }, [{ b: 2 }, { c: 3 }], long]) await worker.chunk(streamed.id, { output })
  await worker.done(streamed.id, { output: [] })
  const expected = [{ a: 1 }, { b: 2 }, { c: 3 }, long].map(value => `data: ${JSON.stringify(value)}\n\n`).join('')
  assert.equal((await streamed.answer).text, `${expected}data: [DONE]\n\n`)
  const whole = await chat({ stream: true })
  await worker.done(whole.id, { output: [{ a: 1 }] })
  assert.equal((await whole.answer).text, 'data: {"a":1}\n\ndata: [DONE]\n\n')
})

test('a stream that fails before its first chunk has the status of its error, afterwards an event', async t => {
  const { worker, chat } = await openAi(t)
  const inner = { error: { message: 'no such model', type: 'NotFoundError', code: 404 } }
  const error = `{'message': 'vLLM returned HTTP 404: ${JSON.stringify(inner)}', 'code': None}`
  const early = await chat({ stream: true })
  await worker.done(early.id, { error })
  assert.deepEqual([(await early.answer).status, (await early.answer).json], [404, inner])
  assert.equal((await early.answer).headers.get('x-runyard-job-id'), early.id)
  const late = await chat({ stream: true })
  await worker.chunk(late.id, { output: 'data: 1\n\n' })
  await worker.done(late.id, { error })
  assert.deepEqual(
    [(await late.answer).status, (await late.answer).text],
    [200, `data: 1\n\ndata: ${JSON.stringify(inner)}\n\n`],
  )
  const object = await chat({ stream: true })
  await worker.chunk(object.id, { output: { object: 'error', message: 'bad', type: 'BadRequestError', code: 400 } })
  assert.deepEqual(seen(await object.answer), [400, 'bad', 'BadRequestError'])
})

test('every way to end has its status', async t => {
  const { rig, endpoint, worker, chat, statusOf } = await openAi(t)
  const failed = await chat()
  await worker.done(failed.id, { error: 'boom' })
  assert.deepEqual(seen(await failed.answer), [500, 'boom', 'worker_error'])
  for (const stream of [false, true]) {
    const cancelled = await chat({ stream })
    await rig.ask('POST', `/v2/${endpoint}/cancel/${cancelled.id}`)
    assert.equal((await cancelled.answer).status, 499)
    await worker.done(cancelled.id, {})
  }
  await rig.change(endpoint, { executionTimeoutMs: 5_000 })
  const late = await chat()
  await rig.clock.advance(7_000)
  assert.equal((await late.answer).status, 504)
  assert.equal((await late.answer).headers.get('x-should-retry'), 'false')
  assert.equal(await statusOf(late.id), 'TIMED_OUT')
})

test('a client that goes away cancels its job, whether it waits, streams or is queued', async t => {
  const { rig, endpoint, worker, path, chat, statusOf } = await openAi(t)
  for (const stream of [false, true]) {
    const connection = new AbortController()
    const { answer, id } = await chat({ stream }, { signal: connection.signal })
    connection.abort()
    await answer
    assert.equal(await statusOf(id), 'CANCELLED')
    await worker.done(id, {})
  }
  const connection = new AbortController()
  const streaming = await chat({ stream: true }, { signal: connection.signal })
  await worker.chunk(streaming.id, { output: 'data: 1\n\n' })
  connection.abort()
  await streaming.answer
  assert.equal(await statusOf(streaming.id), 'CANCELLED')
  const queued = new AbortController()
  const waiting = rig.ask('POST', path('/v1/completions'), { body: {}, signal: queued.signal })
  await rig.clock.settle()
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 1)
  queued.abort()
  await waiting
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
  assert.deepEqual(rig.happened('request.failed'), [])
})

test('a client that leaves when it has read the last event does not cancel its job', async t => {
  const { rig, worker, chat, statusOf } = await openAi(t)
  const connection = new AbortController()
  const { answer, id } = await chat({ stream: true }, { signal: connection.signal })
  for (const output of ['data: 1\n\n', 'data: [DONE]\n\n']) {
    await worker.chunk(id, { output })
    await rig.clock.settle()
  }
  connection.abort()
  await answer
  assert.equal(await statusOf(id), 'IN_PROGRESS')
  await worker.done(id, { output: [] })
  assert.equal(await statusOf(id), 'COMPLETED')
})

test('an answer that breaks off because its worker is lost is not begun again', async t => {
  const { rig, worker, chat, statusOf } = await openAi(t)
  const { answer, id } = await chat({ stream: true })
  await worker.chunk(id, { output: 'data: 1\n\n' })
  rig.fleet.exit(worker.id, { signal: 'SIGKILL' })
  await rig.clock.advance(60_000)
  const { text } = await answer
  assert.match(text, /^data: 1\n\ndata: \{"error":\{"message":"the worker was lost in the middle of its answer"/)
  assert.doesNotMatch(text, /DONE/)
  assert.equal(await statusOf(id), 'CANCELLED')
})

test('an answer that breaks off because its worker is taken away is not begun again, although its attempt does not count', async t => {
  const place = { node: 'a', gpuType: null, gpuCount: 0 }
  const { rig, worker, chat, statusOf } = await openAi(t, { arrival: () => place })
  const { answer, id } = await chat({ stream: true })
  await worker.chunk(id, { output: 'data: 1\n\n' })
  rig.fleet.reclaim(worker.id, { kind: 'evicted', node: 'a', said: '' })
  await rig.clock.advance(2_000)
  const next = rig.worker(-1)
  assert.equal(await next.takeJob(), id)
  await next.chunk(id, { output: 'data: 1\n\n' })
  await rig.clock.advance(60_000)
  const { text } = await answer
  assert.match(text, /^data: 1\n\ndata: \{"error":\{"message":"the worker was lost in the middle of its answer"/)
  assert.equal(await statusOf(id), 'CANCELLED')
})

test('a server that stops ends what it holds', async t => {
  const { rig, worker, path, chat } = await openAi(t)
  const { answer, id } = await chat()
  const stopped = rig.stop()
  const { status, headers, json } = await answer
  assert.deepEqual([status, headers.get('retry-after'), json.error.message], [503, '5', 'the server is stopping'])
  assert.equal((await rig.ask('POST', path('/v1/completions'), { body: {} })).status, 503)
  await worker.done(id, {})
  await rig.clock.advance(60_000)
  await stopped
})

test('what is refused before there is a job has the form of OpenAI', async t => {
  const { rig, endpoint, path } = await openAi(t)
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'restricted', management: 'none', jobs: 'read' } })
  const cases: [string, Asking, number, RegExp][] = [
    [path('/v1/models'), { key: null }, 401, /key/],
    [path('/v1/models'), { key: 'rpa_wrong' }, 401, /key/],
    [path('/v1/models'), { key: reader }, 403, /./],
    ['/v2/nothing/openai/v1/models', {}, 404, /endpoint nothing not found/],
    [path(''), {}, 404, /base URL/],
    [path('/'), {}, 404, /base URL/],
    [path('/v1/audio'), { body: '--boundary' }, 400, /not JSON/],
    [path('/v1/big'), { body: JSON.stringify('x'.repeat(20_971_520)) }, 413, /too large/],
  ]
  for (const [where, asking, status, message] of cases) {
    const answer = await rig.ask('POST', where, asking)
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.json.error.message, message)
    assert.deepEqual(Object.keys(answer.json.error), ['message', 'type', 'param', 'code'])
    assert.equal(answer.headers.get('x-runyard-job-id'), null)
  }
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
})

test('a store that fails during a stream is reported in the stream, and the job is cancelled', async t => {
  const { rig, worker, chat, statusOf } = await openAi(t)
  const { answer, id } = await chat({ stream: true })
  await worker.chunk(id, { output: 'data: 1\n\n' })
  rig.failNext('streams.read', 'before')
  await worker.chunk(id, { output: 'data: 2\n\n' })
  const { text } = await answer
  assert.match(text, /^data: 1\n\ndata: \{"error":/)
  assert.equal(await statusOf(id), 'CANCELLED')
})

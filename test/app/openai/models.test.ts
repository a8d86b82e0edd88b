import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HandedRequest } from '../../../src/api/surface.ts'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { BALANCED, openBalancedRig, serveOnce } from '../../support/balanced.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'

const chat = (rig: Rig, model: unknown, more: object = {}) =>
  rig.ask('POST', '/openai/v1/chat/completions', { body: { messages: [], model }, ...more })

const list = async (rig: Rig, key = KEY) => {
  const { status, json } = await rig.ask('GET', '/openai/v1/models', { key })
  assert.equal(status, 200)
  return json.data as {
    id: string
    runyard: { state: string; served: string[]; typical_start_seconds: number | null }
  }[]
}

/** A call of a model that a load-balancing endpoint gets: what the listener would hand over. */
async function handed(rig: Rig, model: string, path = '/openai/v1/chat/completions?x=1'): Promise<HandedRequest> {
  const calls: HandedRequest[] = []
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ messages: [], model, n: 1 })
  const request = new Request(`http://localhost:8080${path}`, { method: 'POST', headers, body })
  const response = await rig.surface(request, {
    delivery: { onSettled: () => {} },
    requestId: 'r1',
    balanced: call => {
      calls.push(call)
      return { sent: Promise.resolve(), ended: Promise.resolve(201) }
    },
  })
  assert.equal(response.status, 201, await response.text())
  return calls[0]!
}

const text = ({ body }: HandedRequest) => Buffer.concat(body).toString()

test('a request goes to the queue endpoint that its model names, by name and by id', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'qwen', workersMax: 1 })
  for (const model of ['qwen', endpoint]) {
    const answer = chat(rig, model, { headers: {} })
    await rig.clock.settle()
    const taken = await worker.take()
    const { id, input } = taken.json as { id: JobId; input: { openai_route: string; openai_input: object } }
    assert.deepEqual(input, { openai_route: '/v1/chat/completions', openai_input: { messages: [], model: 'qwen' } })
    await worker.done(id, { output: { object: 'chat.completion' } })
    assert.deepEqual((await answer).json, { object: 'chat.completion' })
    assert.equal((await answer).headers.get('x-runyard-job-id'), id)
  }
})

test('a worker reads the model that it serves: named behind a slash, by its variables, or as it said itself', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({
    name: 'qwen',
    workersMax: 1,
    env: [{ key: 'MODEL_NAME', value: 'Qwen/Qwen3-8B' }],
  })
  const modelOf = async (model: string) => {
    const answer = chat(rig, model)
    await rig.clock.settle()
    const { id, input } = (await worker.take()).json as { id: JobId; input: { openai_input: { model: string } } }
    await worker.done(id, { output: 1 })
    await answer
    return input.openai_input.model
  }
  assert.equal(await modelOf('qwen'), 'Qwen/Qwen3-8B')
  assert.equal(await modelOf('qwen/lora-1'), 'lora-1')
  const asked = rig.ask('GET', `/v2/${endpoint}/openai/v1/models`)
  await rig.clock.settle()
  const { id } = (await worker.take()).json as { id: JobId }
  await worker.done(id, { output: { object: 'list', data: [{ id: 'first' }, { id: 'second' }] } })
  await asked
  assert.equal(await modelOf('qwen'), 'first')
  assert.deepEqual(
    (await list(rig)).map(({ id: name }) => name),
    ['qwen', 'qwen/first', 'qwen/second'],
  )
})

test('a request for a load-balancing endpoint is handed over, untouched but for its model', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  const cold = await handed(rig, 'llama')
  assert.deepEqual([cold.endpointId, cold.prefix, cold.path], [id, '/openai', '/v1/chat/completions?x=1'])
  assert.equal(text(cold), '{"messages":[],"model":"llama","n":1}')
  assert.equal((await list(rig))[0]?.runyard.state, 'cold')

  rig.probes.text = (_, path) => (path === '/v1/models' ? '{"data":[{"id":"llama-3.gguf"}]}' : null)
  await serveOnce(opened, id)
  await rig.clock.advance(2_000)
  assert.equal(text(await handed(rig, 'llama')), '{"messages":[],"model":"llama-3.gguf","n":1}')
  const [ready] = await list(rig)
  assert.deepEqual([ready?.id, ready?.runyard.state, ready?.runyard.served], ['llama', 'ready', ['llama-3.gguf']])
  assert.equal(typeof ready?.runyard.typical_start_seconds, 'number')

  await rig.clock.advance(60_000)
  const [slept] = await list(rig)
  assert.notEqual(slept?.runyard.state, 'ready')
  assert.deepEqual(slept?.runyard.served, ['llama-3.gguf'], 'what it said is remembered')
  assert.equal(text(await handed(rig, 'llama')), '{"messages":[],"model":"llama-3.gguf","n":1}')
})

test('a worker is asked for its models at most once a minute', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama', workersMin: 1 })
  let asked = 0
  rig.probes.text = () => {
    asked += 1
    return null
  }
  await serveOnce(opened, id)
  await rig.clock.advance(2_000)
  for (let at = 0; at < 20; at += 1) await list(rig)
  await handed(rig, 'llama')
  assert.equal(asked, 1)
  await rig.clock.advance(60_000)
  await list(rig)
  assert.equal(asked, 2)
})

test('a key sees and calls the models of its endpoints alone', async t => {
  const rig = await openRig(t)
  const mine = await rig.endpoint({ name: 'mine' })
  await rig.endpoint({ name: 'other' })
  const jobs = { [mine]: 'write' } as Record<EndpointId, 'write'>
  const key = await rig.addKey('rpa_key_of_one_endpoint', { scope: { type: 'restricted', management: 'none', jobs } })
  assert.deepEqual(
    (await list(rig, key)).map(({ id }) => id),
    ['mine'],
  )
  const refused = await chat(rig, 'other', { key })
  assert.equal(refused.status, 404)
  assert.equal(refused.json.error.message, "there is no model 'other': there are mine")
  const none = await rig.ask('GET', '/openai/v1/models', { key: 'rpa_wrong_key_that_nobody_has' })
  assert.deepEqual([none.status, none.json.error.code], [401, 'invalid_api_key'])
})

test('an unknown model is refused in the form of OpenAI, with what there is and the nearest name', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'qwen-32b' })
  const { status, json } = await chat(rig, 'qwen-32')
  assert.equal(status, 404)
  assert.deepEqual(json.error, {
    message: "there is no model 'qwen-32'; did you mean 'qwen-32b'? there are qwen-32b",
    type: 'not_found_error',
    param: null,
    code: 'not_found',
  })
  const one = await rig.ask('GET', '/openai/v1/models/qwen-32b')
  assert.deepEqual([one.status, one.json.id, one.json.object], [200, 'qwen-32b', 'model'])
  assert.equal((await rig.ask('GET', '/openai/v1/models/none')).status, 404)
})

test('a request without a model, of another method or to another path says what is wrong', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'qwen' })
  const seen = async (method: string, path: string, body?: unknown) => {
    const { status, json } = await rig.ask(method, path, body === undefined ? {} : { body })
    return [status, json.error.message]
  }
  const missing = 'the body needs the name of a model in its member model, as a text'
  for (const body of [{}, { model: 1 }, []])
    assert.deepEqual(await seen('POST', '/openai/v1/responses', body), [400, missing])
  assert.equal((await seen('PUT', '/openai/v1/chat/completions', {}))[0], 405)
  for (const path of ['/openai/chat', '/openai', '/openai/v1/files'])
    assert.deepEqual(await seen('GET', path), [404, 'there is no such operation; the base URL ends with /openai/v1'])
})

test('of endpoints with one name the first that is ready answers', async t => {
  const rig = await openRig(t)
  const first = await rig.endpoint({ name: 'twin' })
  const { endpoint: second, worker } = await rig.endpointWithWorker({ name: 'twin', workersMax: 1 })
  assert.notEqual(first, second)
  const answer = chat(rig, 'twin')
  await rig.clock.settle()
  const { id } = (await worker.take()).json as { id: JobId }
  await worker.done(id, { output: { by: 'second' } })
  assert.deepEqual((await answer).json, { by: 'second' })
})

test('a key in the header of Anthropic counts', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker({ name: 'claude', workersMax: 1 })
  const answer = rig.ask('POST', '/openai/v1/messages', {
    key: null,
    headers: { 'x-api-key': KEY },
    body: { model: 'claude', messages: [] },
  })
  await rig.clock.settle()
  const { id, input } = (await worker.take()).json as { id: JobId; input: { openai_route: string } }
  assert.equal(input.openai_route, '/v1/messages')
  await worker.done(id, { output: { type: 'message' } })
  assert.deepEqual((await answer).json, { type: 'message' })
})

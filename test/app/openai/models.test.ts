import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HandedRequest } from '../../../src/api/surface.ts'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { ServedModelNotes } from '../../../src/services/openai/served-model-notes.ts'
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
async function handed(
  rig: Rig,
  model: string,
  {
    path = '/openai/v1/chat/completions?x=1',
    more = {},
    key = KEY,
  }: { path?: string; more?: object; key?: string } = {},
): Promise<HandedRequest> {
  const calls: HandedRequest[] = []
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ messages: [], model, n: 1, ...more })
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

const says = (...models: string[]) => JSON.stringify({ data: models.map(id => ({ id })) })

test('an endpoint at zero keeps its models over a restart, for a week', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama', env: [{ key: 'MODEL_NAME', value: 'a/b' }] })
  rig.probes.text = (_, path) => (path === '/v1/models' ? says('llama-3.gguf', 'lora') : null)
  await serveOnce(opened, id)
  await rig.clock.advance(2_000)
  await list(rig)
  await rig.clock.advance(60_000)
  rig.probes.text = () => null

  const seen = async () => [(await list(rig)).map(model => [model.id, ...model.runyard.served])]
  const served = ['llama-3.gguf', 'lora']
  for (const end of [() => rig.crash(), () => rig.stop()]) {
    await end()
    await rig.start()
    assert.notEqual((await list(rig))[0]?.runyard.state, 'ready')
    assert.deepEqual(await seen(), [
      [
        ['llama', ...served],
        ['llama/llama-3.gguf', ...served],
        ['llama/lora', ...served],
      ],
    ])
  }
  await rig.crash()
  await rig.start()
  const first = await handed(rig, 'llama')
  assert.equal(JSON.parse(text(first)).model, 'llama-3.gguf', 'a request before any list')
  const key = await rig.addKey('rpa_key_of_one_endpoint', {
    scope: { type: 'restricted', management: 'none', jobs: 'none', models: ['llama/lora'] },
  })
  assert.deepEqual((await list(rig, key))[0]?.runyard.served, served)

  await rig.crash()
  await rig.clock.advance(7 * 24 * 3_600_000)
  await rig.start()
  assert.deepEqual(await seen(), [[['llama']]])
  assert.equal(JSON.parse(text(await handed(rig, 'llama'))).model, 'a/b')
})

test('models are stored when they change and read at most once a minute, however many requests and endpoints there are', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'qwen', workersMax: 1 })
  for (let at = 0; at < 5; at += 1) await rig.endpoint({ name: `other-${at}` })
  const ask = async (...models: string[]) => {
    const asked = rig.ask('GET', `/v2/${endpoint}/openai/v1/models`)
    await rig.clock.settle()
    const { id } = (await worker.take()).json as { id: JobId }
    await worker.done(id, { output: JSON.parse(says(...models)) })
    assert.equal((await asked).status, 200)
  }
  const stored = async () => (await rig.store.servedModels.of([endpoint])).map(({ models }) => models)
  rig.failNext('servedModels.save', 'before')
  await ask('a')
  assert.deepEqual((await list(rig))[0]?.runyard.served, ['a'], 'a failed write fails nothing')
  assert.deepEqual(await stored(), [])
  await rig.clock.advance(60_000)
  for (let at = 0; at < 5; at += 1) await ask('a')
  assert.deepEqual(await stored(), [['a']])
  assert.equal(rig.calls('servedModels.save'), 2)
  for (const name of ['b', 'a', 'c']) await ask(name)
  assert.equal(rig.calls('servedModels.save'), 2, 'a worker that says another name each time does not write each time')
  await rig.clock.advance(60_000)
  await ask('c', 'd')
  assert.deepEqual(await stored(), [['c', 'd']])

  await rig.crash()
  await rig.start()
  rig.failNext('servedModels.of', 'before')
  const names = async () => (await list(rig)).map(({ id }) => id)
  assert.equal((await names()).length, 6, 'a failed read fails nothing')
  const before = rig.calls('servedModels.of')
  for (let at = 0; at < 5; at += 1) assert.ok((await names()).includes('qwen/d'))
  assert.equal(rig.calls('servedModels.of'), before + 1)
})

test('the models that one server learns are those of another one a minute later', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ name: 'qwen' })
  const [one, other] = [new ServedModelNotes(rig.ports), new ServedModelNotes(rig.ports)]
  for (const models of [['a'], ['b', 'c']]) {
    one.keep(id, 1, models)
    await rig.clock.settle()
    await other.recall([id])
    assert.deepEqual(other.models(id), models)
    await rig.clock.advance(60_000)
  }
  assert.deepEqual([other.arePresent({ id, version: 1 }), other.arePresent({ id, version: 2 })], [true, false])
})

test('a stream of a cold load-balancing model waits with a cause; other requests, and those of a ready model, do not', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  const waits = async (more: object) => (await handed(rig, 'llama', { more })).waitsFor
  assert.equal(await waits({ stream: true }), 'about_to_start')
  for (const more of [{}, { stream: false }, { stream: 'true' }, { tools: [{ stream: true }] }])
    assert.equal(await waits(more), undefined, JSON.stringify(more))
  await serveOnce(opened, id)
  await rig.clock.advance(2_000)
  assert.equal(await waits({ stream: true }), undefined)
})

test('a worker of a cold model is asked for its models before its first request, once for all that wait', async t => {
  const opened = await openBalancedRig(t)
  const { rig, gateway } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  await rig.endpoint({ ...BALANCED, name: 'named', env: [{ key: 'MODEL_NAME', value: 'a/b' }] })
  const asked: string[] = []
  rig.probes.text = (_, path) => {
    asked.push(path)
    return '{"data":[{"id":"llama-3.gguf"}]}'
  }
  const waiting = [await handed(rig, 'llama'), await handed(rig, 'llama', { more: { stream: true } })]
  await serveOnce(opened, id)
  const { traffic } = gateway.targets.get(id)![0]!.servedAt!
  const bodies = await Promise.all(waiting.map(({ bodyFor }) => bodyFor!(traffic)))
  const models = bodies.map(body => JSON.parse(Buffer.concat(body).toString()).model)
  assert.deepEqual(models, ['llama-3.gguf', 'llama-3.gguf'])
  assert.deepEqual(asked, ['/v1/models'])
  assert.equal((await handed(rig, 'llama')).bodyFor, undefined, 'it is known from then on')
  assert.equal((await handed(rig, 'llama/other')).bodyFor, undefined)
  assert.equal((await handed(rig, 'named')).bodyFor, undefined)
})

test('a worker that does not say its models gets the name of the endpoint, and is not asked for each request', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  let asked = 0
  rig.probes.text = () => {
    asked += 1
    return null
  }
  await serveOnce(opened, id)
  const { traffic } = opened.gateway.targets.get(id)![0]!.servedAt!
  for (let at = 0; at < 3; at += 1) {
    const { bodyFor } = await handed(rig, 'llama')
    const body = await bodyFor!(traffic)
    assert.equal(JSON.parse(Buffer.concat(body).toString()).model, 'llama')
  }
  assert.equal(asked, 1)
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
  assert.equal(refused.json.error.message, "there is no model 'other': there is mine")
  const none = await rig.ask('GET', '/openai/v1/models', { key: 'rpa_wrong_key_that_nobody_has' })
  assert.deepEqual([none.status, none.json.error.code], [401, 'invalid_api_key'])
})

test('a key that names models calls them by these names alone, and nothing else', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  await serveOnce(opened, id)
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'words', workersMax: 1 })
  await rig.ask('PUT', '/v2/account/model-aliases', { body: { name: 'gpt', endpoints: ['words'] } })
  const create = (scope: object, key = KEY) =>
    rig.ask('POST', '/v2/account/keys', { body: { name: 'k', scope: { type: 'restricted', ...scope } }, key })
  const models = ['gpt', 'llama/lora-1', 'nothing']
  const { json } = await create({ management: 'none', jobs: 'none', models })
  assert.deepEqual(json.scope.models, models)
  const { key } = json
  assert.deepEqual(
    (await list(rig, key)).map(model => model.id),
    ['gpt', 'llama/lora-1'],
  )

  const answer = chat(rig, 'gpt', { key })
  await rig.clock.settle()
  const { id: job, input } = (await worker.take()).json as { id: JobId; input: { openai_input: { model: string } } }
  assert.equal(input.openai_input.model, 'words')
  await worker.done(job, { output: { by: 'words' } })
  assert.deepEqual((await answer).json, { by: 'words' })
  const passed = await handed(rig, 'llama/lora-1', { key })
  assert.deepEqual([passed.endpointId, passed.model, JSON.parse(text(passed)).model], [id, 'llama/lora-1', 'lora-1'])

  for (const model of ['words', endpoint, 'llama', 'llama/lora-2', id, 'GPT', 'nothing']) {
    const refused = await chat(rig, model, { key })
    assert.deepEqual([model, refused.status], [model, 404])
  }
  for (const [method, path] of [
    ['POST', `/v2/${endpoint}/run`],
    ['POST', `/v2/${endpoint}/openai/v1/chat/completions`],
    ['POST', `/v2/${id}/openai/v1/chat/completions`],
    ['GET', `/v2/${endpoint}/status/${job}`],
    ['GET', '/v2/serverless'],
    ['POST', '/v2/account/models/warm'],
  ] as const) {
    const body = method === 'GET' ? {} : { body: { model: 'gpt', input: {} } }
    assert.equal((await rig.ask(method, path, { key, ...body })).status, 403, path)
  }
  const manager = (await create({ management: 'write', jobs: 'none', models: ['gpt'] })).json.key
  assert.equal((await create({ management: 'none', jobs: 'none', models: ['gpt'] }, manager)).status, 201)
  assert.equal((await create({ management: 'none', jobs: 'none', models: ['llama'] }, manager)).status, 403)
  assert.equal((await create({ management: 'none', jobs: 'none', models: [''] })).status, 400)
})

test('an unknown model is refused in the form of OpenAI, with what there is and the nearest name', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'qwen-32b' })
  const { status, json } = await chat(rig, 'qwen-32')
  assert.equal(status, 404)
  assert.deepEqual(json.error, {
    message: "there is no model 'qwen-32'; did you mean 'qwen-32b'? there is qwen-32b",
    type: 'not_found_error',
    param: null,
    code: 'not_found',
  })
  const one = await rig.ask('GET', '/openai/v1/models/qwen-32b')
  assert.deepEqual([one.status, one.json.id, one.json.object], [200, 'qwen-32b', 'model'])
  const ofAnthropic = [one.json.type, one.json.display_name, typeof one.json.created_at]
  assert.deepEqual(ofAnthropic, ['model', 'qwen-32b', 'string'])
  assert.equal((await rig.ask('GET', '/openai/v1/models/none')).status, 404)
  assert.equal((await rig.ask('GET', '/openai/v1/models/')).json.object, 'list')
  const warmed = await rig.ask('POST', '/v2/account/models/warm', { body: { model: 'qwen-32' } })
  assert.match(warmed.text, /there is no model 'qwen-32'; did you mean 'qwen-32b'\?/)
})

test('the refusal of an unknown model reads names alone, however many endpoints there are', async t => {
  const calls = []
  for (const count of [1, 30]) {
    const rig = await openRig(t)
    for (let n = 0; n < count; n += 1) await rig.endpoint({ name: `model-${n}` })
    const names = ['endpoints.names', 'endpoints.listed', 'endpoints.snapshot', 'endpoints.find'] as const
    const before = names.map(name => rig.calls(name))
    const { status, json } = await chat(rig, 'modle-0')
    assert.equal(status, 404)
    assert.match(json.error.message, /^there is no model 'modle-0'; did you mean 'model-0'\? there (is|are) model-/)
    calls.push(names.map((name, at) => rig.calls(name) - before[at]!))
  }
  assert.deepEqual(calls, [
    [1, 0, 0, 0],
    [1, 0, 0, 0],
  ])
})

test('the refusal of an unknown model has the names that a ready worker says, and aliases', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  const id = await rig.endpoint({ ...BALANCED, name: 'llama' })
  await rig.ask('PUT', '/v2/account/model-aliases', { body: { name: 'gpt', endpoints: ['llama'] } })
  let asked = 0
  rig.probes.text = () => {
    asked += 1
    return says('base', 'lora')
  }
  await serveOnce(opened, id)
  await rig.clock.advance(2_000)
  for (let at = 0; at < 3; at += 1) {
    const { json } = await chat(rig, 'other')
    assert.equal(json.error.message, "there is no model 'other': there are llama, llama/base, llama/lora, gpt")
  }
  assert.equal(asked, 1)
  assert.deepEqual(
    (await list(rig)).map(model => model.id),
    ['llama', 'llama/base', 'llama/lora', 'gpt'],
  )
})

test('a request without a model, of another method or to another path says what is wrong', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'qwen' })
  const seen = async (method: string, path: string, body?: unknown) => {
    const { status, json } = await rig.ask(method, path, body === undefined ? {} : { body })
    return [status, json.error.message]
  }
  const names = 'model must be the name of a model, as a text'
  for (const [body, problem] of [
    [{}, 'the body needs the name of a model in its member model'],
    [[], 'the body must be a JSON object with a member model'],
    [{ model: 1 }, `${names}, not a number`],
    [{ model: null }, `${names}, not null`],
    [{ model: ['qwen'] }, `${names}, not a list`],
    [{ model: { text: 'x'.repeat(2_000) } }, `${names}, not an object`],
    [{ model: '' }, `${names}; it is empty`],
    [{ model: 'x'.repeat(10_000) }, 'the name of a model has at most 512 characters'],
    [{ model: 'x'.repeat(600) }, 'the name of a model has at most 512 characters'],
  ] as const)
    assert.deepEqual(await seen('POST', '/openai/v1/responses', body), [400, problem])
  const open = { method: 'POST', headers: { authorization: `Bearer ${KEY}`, 'content-type': 'multipart/form-data' } }
  const form = await rig.open('/openai/v1/audio/transcriptions', { ...open, body: 'x' }, 'POST')
  assert.deepEqual(
    [form.status, (await form.json()).error.message],
    [
      415,
      'the body must be JSON (application/json) or a form (multipart/form-data), not multipart/form-data without a boundary',
    ],
  )
  assert.equal((await rig.open('/openai/v1/models', { headers: open.headers }, 'HEAD')).status, 200)
  assert.equal((await seen('PUT', '/openai/v1/chat/completions', {}))[0], 405)
  assert.equal((await seen('GET', '/openai/v1/chat/completions'))[0], 405)
  for (const [method, path] of [
    ['GET', '/v1/models'],
    ['POST', '/v1/chat/completions'],
  ] as const) {
    const { status, text } = await rig.ask(method, path, method === 'GET' ? {} : { body: {} })
    assert.deepEqual([status, /the base URL of OpenAI's clients ends with \/openai\/v1/.test(text)], [404, true], text)
  }
  for (const path of ['/openai/chat', '/openai', '/openai/v1/files'])
    assert.deepEqual(await seen('GET', path), [404, 'there is no such operation; the base URL ends with /openai/v1'])
})

test('a body or a form that names several models is refused: which of them counts depends on the worker', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'mine' })
  for (const body of ['{"model":"mine","model":"other"}', '{"model":"other","a":[],"mod\\u0065l":"mine"}']) {
    const { status, json } = await rig.ask('POST', '/openai/v1/chat/completions', { body })
    assert.deepEqual([status, json.error.message], [400, 'the body has the member model more than once'])
  }
  for (const second of ['model', 'model[]']) {
    const form = new FormData()
    form.append('model', 'mine')
    form.append(second, second === 'model' ? 'other' : new File(['x'], 'a'))
    const sent = new Request('http://x/', { method: 'POST', body: form })
    const { status, json } = await rig.ask('POST', '/openai/v1/images/edits', {
      headers: { 'content-type': sent.headers.get('content-type')! },
      body: await sent.text(),
    })
    assert.deepEqual([status, json.error.message], [400, 'the form has the field model more than once'])
  }
})

test('of endpoints with one name the first that is ready answers', async t => {
  const rig = await openRig(t)
  const first = await rig.endpoint({ name: 'twin' })
  const { endpoint: second, worker } = await rig.endpointWithWorker({ name: 'twin', workersMax: 1 })
  assert.notEqual(first, second)
  const taken = worker.take()
  await rig.clock.settle()
  const answer = chat(rig, 'twin')
  const { id } = (await taken).json as { id: JobId }
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

test('refusals and failed jobs have the form of Anthropic for its operations, and no other', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'claude', workersMax: 1 })
  const refused = async (path: string, body: object, more: object = {}) => {
    const { status, json } = await rig.ask('POST', path, { body, ...more })
    assert.deepEqual(Object.keys(json), ['type', 'error'], JSON.stringify(json))
    assert.deepEqual(Object.keys(json.error), ['type', 'message'])
    return [status, json.error.type]
  }
  const path = '/openai/v1/messages'
  assert.deepEqual(await refused(path, { model: 'claudia' }), [404, 'not_found_error'])
  assert.deepEqual(await refused(path, {}), [400, 'invalid_request_error'])
  assert.deepEqual(await refused(path, {}, { key: 'rpa_wrong_key_that_nobody_has' }), [401, 'authentication_error'])
  assert.deepEqual(await refused('/v2/nothing/openai/v1/messages/count_tokens', {}), [404, 'not_found_error'])
  const limits = { requestsPerMinute: 1 }
  const { json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'limited', limits } })
  for (const asked of [path, `/v2/${endpoint}${path}`]) {
    const failed = refused(asked, { model: 'claude' })
    await rig.clock.settle()
    const { id } = (await worker.take()).json as { id: JobId }
    await worker.done(id, {
      error: 'vLLM returned HTTP 400: {"error":{"message":"too long","type":"BadRequestError"}}',
    })
    assert.deepEqual(await failed, [400, 'invalid_request_error'])
  }
  const passed = rig.ask('POST', path, { body: { model: 'claude' }, key: json.key })
  await rig.clock.settle()
  const { id } = (await worker.take()).json as { id: JobId }
  await worker.done(id, { output: { type: 'message', usage: { input_tokens: 1, output_tokens: 1 } } })
  assert.equal((await passed).json.type, 'message')
  assert.deepEqual(await refused(path, { model: 'claude' }, { key: json.key }), [429, 'rate_limit_error'])
})

test('a stream of Anthropic has named events, its error as one, and ends with its last event', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'claude', workersMax: 1 })
  const whole = await streamed(rig, 'claude', 'messages')
  await whole.next()
  await rig.clock.advance(5_000)
  const worker = rig.worker(0)
  const { id } = (await worker.take()).json as { id: JobId }
  const first = whole.next()
  await worker.chunk(id, { output: { type: 'message_start', message: {} } })
  assert.equal(await first, 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n')
  await worker.done(id, { output: [] })
  assert.equal(await whole.next(), null, 'its clients know no [DONE]')
  const begun = streamed(rig, 'claude', 'messages')
  await rig.clock.settle()
  const taken = (await worker.take()).json as { id: JobId }
  await worker.chunk(taken.id, { output: { type: 'message_start' } })
  const failing = await begun
  assert.match((await failing.next())!, /^event: message_start/)
  await worker.done(taken.id, { error: 'boom' })
  assert.equal(
    await failing.next(),
    'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"boom"}}\n\n',
  )
})

test('an alias leads to the first of its endpoints that is ready, else to the first, and obeys the key', async t => {
  const rig = await openRig(t)
  const cold = await rig.endpoint({ name: 'big' })
  const { worker } = await rig.endpointWithWorker({ name: 'small', workersMax: 1 })
  const put = (body: object) => rig.ask('PUT', '/v2/account/model-aliases', { body })
  const saved = await put({ name: 'gpt-4o', endpoints: ['big', 'small'] })
  assert.equal(saved.status, 200)
  assert.deepEqual(
    saved.json.endpoints.map(({ name }: { name: string }) => name),
    ['big', 'small'],
  )
  const taken = worker.take()
  await rig.clock.settle()
  const answer = chat(rig, 'gpt-4o')
  const { id, input } = (await taken).json as { id: JobId; input: { openai_input: { model: string } } }
  assert.equal(input.openai_input.model, 'small')
  await worker.done(id, { output: 1 })
  assert.equal((await answer).status, 200)
  const ids = async (key = KEY) => (await list(rig, key)).map(model => model.id)
  assert.deepEqual((await ids()).sort(), ['big', 'gpt-4o', 'small'])

  const jobs = { [cold]: 'write' } as Record<EndpointId, 'write'>
  const key = await rig.addKey('rpa_key_of_big', { scope: { type: 'restricted', management: 'none', jobs } })
  assert.deepEqual(await ids(key), ['big', 'gpt-4o'])
  assert.equal((await rig.ask('GET', '/v2/account/model-aliases', { key })).status, 403)

  const missing = await put({ name: 'x', endpoints: ['nothing'] })
  assert.equal(missing.status, 404)
  assert.equal((await rig.ask('DELETE', '/v2/account/model-aliases?name=gpt-4o')).status, 204)
  assert.equal((await chat(rig, 'gpt-4o')).status, 404)
  assert.equal((await rig.ask('DELETE', '/v2/account/model-aliases?name=gpt-4o')).status, 404)
  const { json } = await rig.ask('GET', '/v2/audit?limit=20')
  assert.ok(JSON.stringify(json).includes('saveModelAlias'), 'changes are in the audit log')
})

test('a model that is warmed has a worker, which ends after its idle time', async t => {
  for (const fields of [{ name: 'queue' }, { ...BALANCED, name: 'served' }]) {
    const rig = await openRig(t)
    const id = await rig.endpoint({ ...fields, idleTimeout: 30 })
    const before = await rig.store.endpoints.find(id)
    const warmed = await rig.ask('POST', '/v2/account/models/warm', { body: { model: fields.name } })
    assert.deepEqual([warmed.status, warmed.json], [200, { id, name: fields.name, state: 'cold' }])
    await rig.clock.advance(2_000)
    assert.ok(rig.worker(0))
    if (fields.name === 'queue') void rig.worker(0).take()
    await rig.clock.advance(1_000)
    assert.equal((await list(rig))[0]?.runyard.state, 'ready')
    await rig.clock.advance(90_000)
    assert.notEqual((await list(rig))[0]?.runyard.state, 'ready')
    assert.deepEqual(await rig.store.endpoints.find(id), before, 'nothing of the endpoint is changed')
  }
})

test('the list says what each model needs: nothing, a wake, a start, or more workers than it may have', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'paused', workersMax: 0 })
  const endpoint = await rig.endpoint({ name: 'fast', flashBootType: 'FLASHBOOT', idleTimeout: 1 })
  const states = async () => Object.fromEntries((await list(rig)).map(({ id, runyard }) => [id, runyard.state]))
  assert.deepEqual(await states(), { paused: 'paused', fast: 'cold' })
  await rig.submit(endpoint)
  await rig.clock.advance(20)
  assert.deepEqual(await states(), { paused: 'paused', fast: 'starting' })
  const worker = rig.worker(-1)
  const job = await worker.takeJob()
  assert.deepEqual(await states(), { paused: 'paused', fast: 'ready' })
  await worker.done(job)
  await rig.clock.advance(1_100)
  assert.deepEqual(await states(), { paused: 'paused', fast: 'sleeping' })
})

/** A streamed chat before its end: the response with its head, and what comes of it. */
async function streamed(rig: Rig, model: string, operation = 'chat/completions') {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ messages: [], model, stream: true })
  const request = new Request(`http://localhost:8080/openai/v1/${operation}`, { method: 'POST', headers, body })
  const response = await rig.surface(request, { delivery: { onSettled: () => {} }, requestId: 'r1' })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const next = async () => (await reader.read()).value ?? null
  return { response, next, leave: () => reader.cancel() }
}

test('the first stream of a cold model has its head at once, with what it waits for, and comments until it begins', async t => {
  const rig = await openRig(t)
  await rig.endpoint({ name: 'cold', workersMax: 1 })
  const { response, next } = await streamed(rig, 'cold')
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'])
  assert.equal(response.headers.get('x-runyard-wait'), 'about_to_start')
  assert.equal(await next(), ': waiting for a worker\n\n')
  const second = next()
  await rig.clock.advance(12_000)
  assert.equal(await second, ': waiting for a worker\n\n')
  const worker = rig.worker(0)
  const { id } = (await worker.take()).json as { id: JobId }
  const third = next()
  await worker.chunk(id, { output: 'data: {"a":1}\n\n' })
  assert.equal(await third, 'data: {"a":1}\n\n')
  await worker.done(id, { output: [] })
  assert.equal(await next(), 'data: [DONE]\n\n')
  assert.equal(await next(), null)
})

test('a cold stream whose client leaves cancels its job, and one whose job fails says so in the stream', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ name: 'cold', workersMax: 1 })
  const left = await streamed(rig, 'cold')
  await left.next()
  const id = left.response.headers.get('x-runyard-job-id') as JobId
  await left.leave()
  await rig.clock.settle()
  assert.equal((await rig.job(endpoint, id)).status, 'CANCELLED')

  const failing = await streamed(rig, 'cold')
  await failing.next()
  await rig.clock.advance(5_000)
  const taken = (await rig.worker(0).take()).json as { id: JobId }
  const event = failing.next()
  await rig.worker(0).done(taken.id, { error: 'boom' })
  assert.match((await event)!, /boom/)
})

test('a form is found by its field model: bytes for a load-balancing endpoint, files as base64 for a handler', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  await rig.endpoint({ ...BALANCED, name: 'whisper', env: [{ key: 'MODEL_NAME', value: 'openai/whisper-1' }] })
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'queue', workersMax: 1 })
  const call = async (model: string, path = '/openai/v1/audio/transcriptions') => {
    const form = new FormData()
    form.append('file', new File([Uint8Array.of(0, 255, 13, 10, 45, 45)], 'a.wav', { type: 'audio/wav' }))
    form.append('model', model)
    const request = new Request(`http://localhost:8080${path}`, { method: 'POST', body: form })
    request.headers.set('authorization', `Bearer ${KEY}`)
    const calls: HandedRequest[] = []
    const response = rig.surface(request, {
      delivery: { onSettled: () => {} },
      requestId: 'r1',
      balanced: given => {
        calls.push(given)
        return { sent: Promise.resolve(), ended: Promise.resolve(200) }
      },
    })
    return { response, calls, type: request.headers.get('content-type')! }
  }
  const balanced = await call('whisper')
  assert.equal((await balanced.response).status, 200)
  const [passed] = balanced.calls
  const read = await new Response(Buffer.concat(passed!.body), {
    headers: { 'content-type': balanced.type },
  }).formData()
  assert.equal(read.get('model'), 'openai/whisper-1')
  assert.deepEqual(await (read.get('file') as File).bytes(), Uint8Array.of(0, 255, 13, 10, 45, 45))

  for (const path of ['/openai/v1/audio/transcriptions', `/v2/${endpoint}/openai/v1/audio/transcriptions`]) {
    const queued = await call('queue', path)
    await rig.clock.settle()
    const { id, input } = (await worker.take()).json as { id: JobId; input: object }
    const file = { filename: 'a.wav', content_type: 'audio/wav', base64: 'AP8NCi0t' }
    assert.deepEqual(input, {
      openai_route: '/v1/audio/transcriptions',
      openai_input: { file, model: 'queue' },
    })
    await worker.done(id, { output: { text: 'hello' } })
    assert.deepEqual(await (await queued.response).json(), { text: 'hello' })
  }
  const none = await call('nothing')
  assert.equal((await none.response).status, 404)
})

test('a form has as many bytes as its endpoint takes: files for a handler count as base64', async t => {
  const opened = await openBalancedRig(t)
  const { rig } = opened
  await rig.endpoint({ ...BALANCED, name: 'whisper' })
  const { endpoint, worker } = await rig.endpointWithWorker({ name: 'queue', workersMax: 1 })
  const send = async (path: string, model: string, bytes: number) => {
    const form = new FormData()
    form.append('file', new File([new Uint8Array(bytes)], 'a.wav'))
    form.append('model', model)
    const request = new Request(`http://localhost:8080${path}`, { method: 'POST', body: form })
    request.headers.set('authorization', `Bearer ${KEY}`)
    const balanced = ({ body }: HandedRequest) => {
      assert.ok(body.reduce((sum, piece) => sum + piece.length, 0) > bytes)
      return { sent: Promise.resolve(), ended: Promise.resolve(200) }
    }
    return rig.surface(request, { delivery: { onSettled: () => {} }, requestId: 'r1', balanced })
  }
  const route = '/v1/audio/transcriptions'
  for (const path of [`/openai${route}`, `/v2/${endpoint}/openai${route}`]) {
    const answer = send(path, 'queue', 15_700_000)
    await rig.clock.settle()
    let taken = await worker.take()
    for (let at = 0; at < 50 && taken.status !== 200; at += 1) {
      await rig.clock.settle()
      taken = await worker.take()
    }
    const { id, input } = taken.json as { id: JobId; input: { openai_input: { file: { base64: string } } } }
    assert.equal(input.openai_input.file.base64.length, Math.ceil(15_700_000 / 3) * 4)
    await worker.done(id, { output: { text: 'hello' } })
    assert.equal((await answer).status, 200)
    assert.equal((await send(path, 'queue', 15_800_000)).status, 413)
  }
  assert.equal((await send(`/openai${route}`, 'whisper', 30_000_000)).status, 200)
})

/**
 * The official OpenAI client for JavaScript against a real server and a Node worker that answers in OpenAI's shapes.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import OpenAI from 'openai'
import { healthOf, makeEndpoint, whenFinal } from '../support/client.ts'
import { type Gate, openGate } from '../support/gate.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const model = 'tiny'
const user = (content: string) => [{ role: 'user' as const, content }]
const TEXT = 'héllo wörld 🌍 how are you'

describe('the official OpenAI client for JavaScript', () => {
  let server: Server
  let gate: Gate
  let id: string
  let client: OpenAI

  before(async () => {
    server = await startServer()
    gate = await openGate(server)
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
    id = await makeEndpoint(server, { folder: fixture('node-openai'), settings })
    client = open()
  })

  const open = (more: object = {}) =>
    new OpenAI({ baseURL: `${gate.url}/v2/${id}/openai/v1`, apiKey: server.apiKey, maxRetries: 0, ...more })

  /** Fields that the fixture understands and OpenAI's API has not. */
  const extra = (fields: object) => fields as Record<never, never>

  test('a base URL that ends with a slash works as one without', async () => {
    const twice = open({ baseURL: `${gate.url}//v2//${id}/openai/v1//` })
    const names: string[] = []
    for await (const found of twice.models.list()) names.push(found.id)
    assert.deepEqual(names, [model])
    const direct = await fetch(`${gate.url}/v2/${id}/openai/v1//models`, { headers: { authorization: server.apiKey } })
    assert.equal(direct.status, 200)
  })

  test('models are listed and looked up', async () => {
    const names: string[] = []
    for await (const found of client.models.list()) names.push(found.id)
    assert.deepEqual(names, [model])
    assert.equal((await client.models.retrieve(model)).owned_by, 'test')
  })

  test('a chat is answered whole, with the id of its job', async () => {
    const call = client.chat.completions.create({ model, messages: user(TEXT) })
    const { data, response } = await call.withResponse()
    assert.deepEqual([data.choices[0]?.message.content, data.usage?.total_tokens], [TEXT, 3])
    const job = response.headers.get('x-runyard-job-id') ?? ''
    assert.equal((await whenFinal(server, id, job)).status, 'COMPLETED')
  })

  test('a chat is streamed as it is yielded', async () => {
    const times: number[] = []
    let text = ''
    const fields = extra({ sleepMs: 200 })
    for await (const event of await client.chat.completions.create({
      model,
      messages: user(TEXT),
      stream: true,
      ...fields,
    })) {
      times.push(performance.now())
      text += event.choices[0]?.delta.content ?? ''
    }
    assert.equal(text, TEXT)
    assert.ok(times.at(-1)! - times[0]! > 300, 'all of it came at once')
  })

  test('its helper that collects a stream has the whole', async () => {
    const stream = client.chat.completions.stream({ model, messages: user(TEXT) })
    assert.equal((await stream.finalMessage()).content, TEXT)
  })

  test('completions work whole and streamed', async () => {
    const whole = await client.completions.create({ model, prompt: TEXT })
    assert.equal(whole.choices[0]?.text, TEXT)
    let text = ''
    for await (const event of await client.completions.create({ model, prompt: TEXT, stream: true })) {
      text += event.choices[0]?.text ?? ''
    }
    assert.equal(text, TEXT)
  })

  test('embeddings work in both encodings', async () => {
    for (const encoding_format of ['float', 'base64', undefined] as const) {
      const format = encoding_format === undefined ? {} : { encoding_format }
      const { data } = await client.embeddings.create({ model, input: ['ab', 'cde'], ...format })
      assert.equal(data.length, 2)
      if (encoding_format !== 'base64') assert.deepEqual(data[1]?.embedding, [3, 1])
    }
  })

  test('responses work whole and streamed', async () => {
    assert.equal((await client.responses.create({ model, input: TEXT })).output_text, TEXT)
    const kinds: string[] = []
    let text = ''
    for await (const event of await client.responses.create({ model, input: TEXT, stream: true })) {
      kinds.push(event.type)
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    assert.deepEqual([kinds[0], kinds.at(-1), text], ['response.created', 'response.completed', TEXT])
  })

  test('20 streams at once each get their own words', async () => {
    const one = async (number: number) => {
      let text = ''
      const call = client.chat.completions.create({ model, messages: user(`number ${number}`), stream: true })
      for await (const event of await call) text += event.choices[0]?.delta.content ?? ''
      return text
    }
    const expected = Array.from({ length: 20 }, (_, number) => `number ${number}`)
    assert.deepEqual(await Promise.all(expected.map((_, number) => one(number))), expected)
  })

  const refusals: (readonly [status: number, error: new (...args: never[]) => Error])[] = [
    [400, OpenAI.BadRequestError],
    [401, OpenAI.AuthenticationError],
    [403, OpenAI.PermissionDeniedError],
    [404, OpenAI.NotFoundError],
    [409, OpenAI.ConflictError],
    [422, OpenAI.UnprocessableEntityError],
    [429, OpenAI.RateLimitError],
    [500, OpenAI.InternalServerError],
    [503, OpenAI.InternalServerError],
  ]
  for (const [status, kind] of refusals) {
    test(`a model's ${status} is its exception, whole and streamed`, async () => {
      for (const stream of [false, true]) {
        const fields = { model, messages: user('a'), stream, ...extra({ refuse: status }) }
        await assert.rejects(
          Promise.resolve(client.chat.completions.create(fields)),
          (error: InstanceType<typeof OpenAI.APIError>) => {
            assert.ok(error instanceof kind)
            assert.deepEqual([error.status, error.message], [status, `${status} the model says ${status}`])
            return true
          },
        )
      }
    })
  }

  test('our own refusals are its exceptions', async () => {
    await assert.rejects(Promise.resolve(open({ apiKey: 'rpa_wrong' }).models.list()), {
      status: 401,
      code: 'invalid_api_key',
    })
    const nowhere = open({ baseURL: `${gate.url}/v2/nosuch/openai/v1` })
    await assert.rejects(Promise.resolve(nowhere.models.list()), {
      status: 404,
      message: '404 endpoint nosuch not found',
    })
    const file = new File(['x'], 'a.wav')
    const unserved = Promise.resolve(client.audio.translations.create({ model, file }))
    await assert.rejects(unserved, { status: 404, message: '404 the model says 404' })
  })

  test('429 is retried after Retry-After, as often as the client is configured to', async () => {
    let times = 0
    gate.rule = () => {
      times += 1
      return times > 2
        ? undefined
        : { status: 429, headers: { 'retry-after': '1' }, body: '{"error":{"message":"slow"}}' }
    }
    const began = performance.now()
    await open({ maxRetries: 3 }).models.list()
    gate.rule = () => undefined
    assert.equal(times, 3)
    assert.ok(performance.now() - began > 1_900)
  })

  test('a stream whose worker fails in the middle throws after what came before', async () => {
    const fields = { model, messages: user(TEXT), stream: true as const, ...extra({ failAfterFirst: true }) }
    let text = ''
    const read = async () => {
      for await (const event of await client.chat.completions.create(fields)) text += event.choices[0]?.delta.content
    }
    await assert.rejects(read(), /the model fell over/)
    assert.equal(text, 'héllo')
  })

  test('leaving a stream, aborting it and giving up a call cancel their jobs, and the worker is free again', async () => {
    const slow = { model, messages: user('a b c d e f g h i j'), ...extra({ sleepMs: 30_000 }) }
    const left = await client.chat.completions.create({ ...slow, stream: true })
    for await (const _event of left) break
    const aborted = await client.chat.completions.create({ ...slow, stream: true })
    for await (const _event of aborted) aborted.controller.abort()
    const cancelled = () => server.events('job.moved').filter(({ transition }) => transition === 'cancel').length
    await until('two jobs to be cancelled', () => cancelled() === 2)
    const accepted = () => server.events('job.accepted').length
    const before = accepted()
    const stop = new AbortController()
    const stopped = assert.rejects(
      Promise.resolve(client.chat.completions.create(slow, { signal: stop.signal })),
      OpenAI.APIUserAbortError,
    )
    await until('its job', () => accepted() === before + 1)
    stop.abort()
    await stopped
    const impatient = client.chat.completions.create(slow, { timeout: 2_000 })
    await assert.rejects(Promise.resolve(impatient), OpenAI.APIConnectionTimeoutError)
    await until('the four jobs to be cancelled', () => cancelled() === 4)
    await until('the worker to let go of them', async () => (await healthOf(server, id)).workers.idle === 1)
    assert.deepEqual(server.events('worker.exited'), [], 'it had to be replaced')
  })
})

/** Tokens of answers in OpenAI's form: summed for their account, key, endpoint and model, over restarts. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { DEFAULT_OWNER, type EndpointId, type JobId, type KeyId, type OwnerId } from '../../../src/core/ids.ts'
import { DAY_MS, dayStart, MAX_MODELS, OTHER_MODELS, tokensOfRequest } from '../../../src/core/openai/token-sums.ts'
import type { Ports } from '../../../src/ports/ports.ts'
import { TokenCounter } from '../../../src/services/billing/token-counter.ts'
import { type Asking, openRig, type Rig } from '../../support/rig.ts'

const place = { owner: DEFAULT_OWNER, endpointId: 'e' as EndpointId, keyId: 'k' as KeyId }
const USAGE = { prompt_tokens: 7, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 2 } }

/** An endpoint of one worker that answers requests to its OpenAI route. */
async function openAi(t: TestContext) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const chat = async (
    outputs: readonly unknown[],
    body: object = {},
    asking: Asking = {},
    route = 'chat/completions',
  ) => {
    const answer = rig.ask('POST', `/v2/${endpoint}/openai/v1/${route}`, { body: { model: 'm', ...body }, ...asking })
    await rig.clock.settle()
    const { id } = (await worker.take()).json as { id: JobId }
    for (const output of outputs.slice(0, -1)) await worker.chunk(id, { output })
    await worker.done(id, { output: outputs.at(-1) })
    await rig.clock.settle()
    return answer
  }
  return { rig, endpoint, worker, chat }
}

async function tokens(rig: Rig, query = '', key?: string) {
  const { status, json, text } = await rig.ask('GET', `/v2/billing/tokens${query}`, key === undefined ? {} : { key })
  assert.equal(status, 200, text)
  return json
}

test('answers and streams count their tokens under their key and the model that they name', async t => {
  const { rig, endpoint, chat } = await openAi(t)
  await chat([{ model: 'qwen', choices: [], usage: USAGE }])
  const events = [
    'data: {"model":"qwen","choices":[]}\n\n',
    `data: {"model":"qwen","usage":${JSON.stringify(USAGE)}}\n\n`,
  ]
  assert.match((await chat([...events, []], { stream: true })).text, /DONE/)
  await chat([{ choices: [] }])
  const { records, metadata } = await tokens(rig)
  const keyId = records[0].keyId
  assert.ok(keyId)
  const sum = { serverlessId: endpoint, keyId, model: 'qwen', requests: 2, measuredRequests: 2 }
  const seen = records.map(({ startTime: _, endTime: __, ...record }: Record<string, unknown>) => record)
  assert.deepEqual(seen, [
    { ...sum, model: null, requests: 1, measuredRequests: 0, promptTokens: 0, completionTokens: 0, cachedTokens: 0 },
    { ...sum, promptTokens: 14, completionTokens: 10, cachedTokens: 4 },
  ])
  const totals = { requests: 3, measuredRequests: 2, promptTokens: 14, completionTokens: 10, cachedTokens: 4 }
  assert.deepEqual([metadata.recordCount, metadata.totals], [2, totals])
  assert.equal((await tokens(rig, `?keyId=${keyId}&serverlessId=${endpoint}`)).metadata.totals.requests, 3)
  assert.equal((await tokens(rig, '?keyId=other')).metadata.recordCount, 0)
  const bill = async (size: string) =>
    (await rig.ask('GET', `/v2/billing/serverless?bucketSize=${size}&lastN=1`)).json.records
  assert.deepEqual(
    (await bill('day')).map((record: { usage: { tokens: object } }) => record.usage.tokens),
    [totals],
    'the bill has them by endpoint',
  )
  assert.equal((await bill('hour'))[0].usage.tokens, null)
})

test('a key with accounting asks for usage in streams, and its client gets no event that it did not ask for', async t => {
  const { rig, endpoint, worker } = await openAi(t)
  const { json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'accounted', accounting: true } })
  const stream = async (body: object, key?: string, isForm = false) => {
    const fields = Object.entries({ model: 'm', ...body })
    const parts = fields.map(
      ([name, value]) => `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    const asForm = { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body: `${parts.join('')}--b--` }
    const answer = rig.ask('POST', `/v2/${endpoint}/openai/v1/chat/completions`, {
      ...(isForm ? asForm : { body: Object.fromEntries(fields) }),
      ...(key === undefined ? {} : { key }),
    })
    await rig.clock.settle()
    const { id, input } = (await worker.take()).json as { id: JobId; input: { openai_input: object } }
    await worker.chunk(id, { output: { model: 'm', choices: [{ delta: { content: 'a' } }] } })
    await worker.chunk(id, { output: { model: 'm', choices: [], usage: USAGE } })
    await worker.done(id, { output: [] })
    await rig.clock.settle()
    return { given: input.openai_input, text: (await answer).text }
  }
  const hidden = await stream({ stream: true }, json.key)
  assert.deepEqual(hidden.given, { stream_options: { include_usage: true }, model: 'm', stream: true })
  assert.equal(hidden.text, 'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n')
  const asked = { model: 'm', stream: true, stream_options: { include_usage: true } }
  const shown = await stream(asked, json.key)
  assert.deepEqual(shown.given, asked)
  assert.match(shown.text, /"usage"/)
  // A worker may read these as a stream, so the server does.
  for (const given of ['true', 1]) {
    const read = await stream({ stream: given }, json.key)
    assert.deepEqual(read.given, { stream_options: { include_usage: true }, model: 'm', stream: true })
    assert.equal(read.text, hidden.text)
  }
  const unclear = { model: 'm', stream: 'perhaps' }
  const refused = await rig.ask('POST', `/v2/${endpoint}/openai/v1/chat/completions`, { body: unclear, key: json.key })
  assert.deepEqual([refused.status, refused.json.error.code], [400, 'invalid'])
  const form = await stream({ stream: true }, json.key, true)
  assert.deepEqual([form.given, form.text], [hidden.given, hidden.text])
  const other = await stream({ stream: true })
  assert.deepEqual(other.given, { model: 'm', stream: true })
  assert.match(other.text, /"usage"/)
  assert.equal((await tokens(rig, `?keyId=${json.id}`)).metadata.totals.promptTokens, 35)
})

test('tokens are a metric of their endpoint', async t => {
  const { rig, endpoint, chat } = await openAi(t)
  await chat([{ model: 'm', usage: USAGE }])
  const { text } = await rig.ask('GET', '/metrics')
  for (const [kind, count] of Object.entries({ prompt: 7, cached: 2, completion: 5 })) {
    assert.ok(text.includes(`runyard_tokens_total{endpoint="${endpoint}",kind="${kind}"} ${count}`), text)
  }
})

test('a list of models, a failed request and an error count nothing', async t => {
  const { rig, chat } = await openAi(t)
  await chat([{ object: 'list', usage: USAGE }], {}, {}, 'models')
  await chat([{ object: 'error', message: 'no', code: 400, usage: USAGE }])
  assert.equal((await tokens(rig)).metadata.recordCount, 0)
})

test('tokens stay after a stop, and after their endpoint is deleted', async t => {
  const { rig, endpoint, chat } = await openAi(t)
  await chat([{ model: 'm', usage: USAGE }])
  await rig.handOver(0)
  await rig.start()
  assert.equal((await tokens(rig)).metadata.totals.promptTokens, 7)
  await rig.ask('DELETE', `/v2/serverless/${endpoint}`)
  assert.equal((await tokens(rig, '?bucketSize=month')).metadata.totals.promptTokens, 7)
})

test('a kill loses no tokens that came more than five seconds before', async t => {
  const { rig, chat } = await openAi(t)
  await chat([{ model: 'm', usage: USAGE }])
  await rig.clock.advance(6_000)
  await rig.crash()
  await rig.start()
  assert.equal((await tokens(rig)).metadata.totals.promptTokens, 7)
})

test('tokens are summed by days and more, for their own account alone', async t => {
  const rig = await openRig(t)
  const dayMs = dayStart(rig.clock.now())
  const figures = tokensOfRequest({ model: 'm', promptTokens: 7, completionTokens: 5, cachedTokens: 0 })
  const today = { ...place, model: 'm', dayMs, figures }
  await rig.store.usage.addTokens([today, { ...today, dayMs: dayMs - DAY_MS }])
  const { records } = await tokens(rig, '?bucketSize=day')
  assert.equal(records.length, 2)
  assert.equal(Date.parse(records[0].endTime) - Date.parse(records[0].startTime), DAY_MS)
  assert.equal(records[1].startTime, records[0].endTime)
  const years = await tokens(rig, '?bucketSize=year&lastN=2')
  assert.equal(years.metadata.totals.promptTokens, 14)
  const hour = await rig.ask('GET', '/v2/billing/tokens?bucketSize=hour')
  assert.equal(hour.status, 400)
  const account = (await rig.ask('POST', '/v2/account/accounts', { body: { name: 'other' } })).json.id
  const { key } = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'k', account } })).json
  assert.equal((await tokens(rig, '', key)).metadata.recordCount, 0)
})

const used = (model: string, owner: OwnerId = DEFAULT_OWNER) => ({
  ...place,
  owner,
  usage: { model, promptTokens: 1, completionTokens: 2, cachedTokens: 0 },
})

test('an account has a limited number of names of models in a day, also over restarts; no token is lost', async t => {
  const rig = await openRig(t)
  for (let start = 0; start < 3; start += 1) {
    const counter = new TokenCounter(rig.ports)
    for (let n = 0; n < 60; n += 1) counter.emit('tokens.used', used(`model ${start} ${n}`))
    await counter.flush()
  }
  const bounds = [0, rig.clock.now() + DAY_MS]
  const { sums } = await rig.store.usage.tokens({ owner: DEFAULT_OWNER, bounds })
  const other = sums.find(({ model }) => model === OTHER_MODELS)
  assert.deepEqual([sums.length, other?.figures.requests], [MAX_MODELS + 1, 180 - MAX_MODELS])
})

test('while the store fails figures wait in memory, within a limit, and each is added once', async t => {
  const rig = await openRig(t)
  let isAway = true
  const store = {
    usage: {
      ...rig.store.usage,
      addTokens: (days: []) => (isAway ? Promise.reject(new Error('away')) : rig.store.usage.addTokens(days)),
    },
  }
  const counter = new TokenCounter({ clock: rig.clock, store } as unknown as Ports)
  const count = (n: number) => counter.emit('tokens.used', { ...used('m'), keyId: `k${n}` as KeyId })
  for (let n = 0; n < 20_100; n += 1) count(n)
  await assert.rejects(counter.flush(), /away/)
  isAway = false
  count(0)
  await Promise.all([counter.flush(), counter.flush()])
  const { sums } = await rig.store.usage.tokens({ ...place, keyId: null, bounds: [0, rig.clock.now() + DAY_MS] })
  assert.equal(sums.length, 0, 'more than one read has')
  const beyond = await rig.store.usage.tokens({
    ...place,
    keyId: 'k0' as KeyId,
    bounds: [0, rig.clock.now() + DAY_MS],
  })
  assert.equal(beyond.sums[0]?.figures.requests, 2)
})

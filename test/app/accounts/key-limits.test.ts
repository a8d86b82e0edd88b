/** Limits of keys on requests in OpenAI's form: requests and tokens a minute, tokens a day. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig } from '../../support/rig.ts'

const USAGE = { prompt_tokens: 60, completion_tokens: 40 }

async function limited(t: TestContext, limits: object) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const { json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'limited', limits } })
  const ask = (route: string) =>
    rig.ask('POST', `/v2/${endpoint}/openai/v1/${route}`, { body: { model: 'm' }, key: json.key })
  const chat = async (route = 'chat/completions') => {
    const answer = ask(route)
    await rig.clock.settle()
    const { id } = (await worker.take()).json as { id: JobId }
    await worker.done(id, { output: { model: 'm', usage: USAGE } })
    await rig.clock.settle()
    return answer
  }
  return { rig, id: json.id as string, key: json.key as string, limits: json.limits, ask, chat, endpoint }
}

test('a key is refused in OpenAI form once its requests of the minute are used, and the next minute is new', async t => {
  const { rig, chat, ask, limits } = await limited(t, { requestsPerMinute: 2 })
  assert.deepEqual(limits, { requestsPerMinute: 2, tokensPerMinute: null, tokensPerDay: null })
  const first = await chat()
  assert.deepEqual([first.status, first.headers.get('x-ratelimit-remaining-requests')], [200, '1'])
  await chat('models')
  assert.equal((await chat()).status, 200, 'a list of models is not counted')
  const { status, headers, json } = await ask('chat/completions')
  assert.deepEqual([status, json.error.type, json.error.code], [429, 'requests', 'rate_limit_exceeded'])
  assert.deepEqual(
    [headers.get('x-ratelimit-limit-requests'), headers.get('x-ratelimit-remaining-requests')],
    ['2', '0'],
  )
  assert.ok(Number(headers.get('retry-after')) <= 60)
  await rig.clock.advance(60_000)
  assert.equal((await chat()).status, 200)
})

test('tokens of a minute and a day are counted at the end of answers; those of a day stay over a restart', async t => {
  const { rig, chat, ask } = await limited(t, { tokensPerMinute: 100, tokensPerDay: 200 })
  const first = await chat()
  assert.equal(first.headers.get('x-ratelimit-remaining-tokens'), '100')
  const { status, json } = await ask('chat/completions')
  assert.deepEqual([status, json.error.type], [429, 'tokens'])
  await rig.clock.advance(60_000)
  assert.equal((await chat()).status, 200)
  await rig.clock.advance(60_000)
  await rig.crash()
  await rig.start()
  const refused = await ask('chat/completions')
  assert.match(refused.json.error.message, /200 tokens a day/)
})

test('accounting is changed by itself, and a key with it makes no key without it', async t => {
  const rig = await openRig(t)
  const { json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'accounted', accounting: true } })
  const make = async (body: object) =>
    rig.ask('POST', '/v2/account/keys', { body: { name: 'made', ...body }, key: json.key })
  assert.equal((await make({})).json.accounting, true)
  assert.equal((await make({ accounting: false })).status, 403)
  const path = `/v2/account/keys/${json.id}`
  const kept = await rig.ask('PATCH', path, { body: { limits: { tokensPerDay: 5 } } })
  assert.deepEqual([kept.json.accounting, kept.json.limits.tokensPerDay], [true, 5])
  assert.equal((await rig.ask('PATCH', path, { body: { accounting: false }, key: json.key })).status, 403)
  const off = await rig.ask('PATCH', path, { body: { accounting: false } })
  assert.deepEqual([off.json.accounting, off.json.limits.tokensPerDay], [false, 5])
})

test('limits are changed one by one and at once, and other keys have none', async t => {
  const { rig, id, chat, ask } = await limited(t, { requestsPerMinute: 1, tokensPerDay: 1_000_000 })
  await chat()
  assert.equal((await ask('chat/completions')).status, 429)
  const { json } = await rig.ask('PATCH', `/v2/account/keys/${id}`, { body: { limits: { requestsPerMinute: null } } })
  assert.deepEqual(json.limits, { requestsPerMinute: null, tokensPerMinute: null, tokensPerDay: 1_000_000 })
  const { status, headers } = await chat()
  assert.deepEqual([status, headers.get('x-ratelimit-limit-requests')], [200, null])
  const wrong = await rig.ask('PATCH', `/v2/account/keys/${id}`, { body: { limits: { tokensPerDay: 0 } } })
  assert.equal(wrong.status, 400)
})

test('a key with limits gives no key more, and gets no key of an endpoint', async t => {
  const { rig, key, endpoint } = await limited(t, { tokensPerDay: 50 })
  const create = (limits?: object) =>
    rig.ask('POST', '/v2/account/keys', { body: { name: 'next', ...(limits && { limits }) }, key })
  assert.equal((await create()).json.limits.tokensPerDay, 50)
  assert.equal((await create({ tokensPerDay: 51 })).status, 403)
  assert.equal((await create({ tokensPerDay: null })).json.limits.tokensPerDay, 50)
  const own = (await create({ tokensPerDay: 10 })).json
  assert.equal(own.limits.tokensPerDay, 10)
  const raised = await rig.ask('PATCH', `/v2/account/keys/${own.id}`, { body: { limits: { tokensPerDay: null } }, key })
  assert.equal(raised.status, 403)
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/rotate-key`, { key })).status, 403)
})

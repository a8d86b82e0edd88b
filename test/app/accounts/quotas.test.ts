/** Limits of accounts: what is refused, with which words, and what goes on. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { GivenLimits } from '../../../src/core/accounts/quotas.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'

const ACCOUNTS = '/v2/account/accounts'

/** A second account on a rig, with an endpoint that no worker serves. */
async function stranger(context: TestContext, accountLimits: GivenLimits, options: RigOptions = {}) {
  const rig = await openRig(context, { accountLimits, ...options })
  const { id } = (await rig.ask('POST', ACCOUNTS, { body: { name: 'Ada' } })).json
  const { key } = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: id } })).json
  const make = (workersMin = 0) => makeEndpoint(rig, key, workersMin)
  return { rig, id, key, make }
}

function makeEndpoint(rig: Rig, key: string, workersMin: number) {
  const body = {
    name: 'hers',
    type: 'QUEUE',
    image: 'image:1',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: workersMin, max: 64 },
  }
  return rig.ask('POST', '/v2/serverless', { key, body })
}

test('a batch that fills the limit of its account is answered again to its Idempotency-Key', async t => {
  const { rig, key, make } = await stranger(t, { queuedJobs: 2 })
  const { id } = (await make()).json
  const headers = { 'idempotency-key': 'once' }
  const body = { requests: [{ input: {} }, { input: {} }] }
  const create = (how: object) => rig.ask('POST', `/v2/${id}/batch`, { key, body, ...how })
  const first = await create({ headers })
  assert.equal(first.status, 200, first.text)
  const again = await create({ headers })
  assert.deepEqual([again.status, again.json.id], [200, first.json.id])
  assert.equal((await create({})).status, 429)
  const add = () => rig.ask('POST', `/v2/${id}/batch/${first.json.id}/requests`, { key, body, headers })
  assert.equal((await add()).status, 429)
})

test('waiting jobs of an account are limited, with a 429 that says so, and more come in when some are gone', async t => {
  const { rig, key, make } = await stranger(t, { queuedJobs: 2 })
  const { id } = (await make()).json
  await rig.ask('PATCH', `/v2/serverless/${id}`, { key, body: { workers: { min: 0, max: 0 } } })
  const submit = () => rig.ask('POST', `/v2/${id}/run`, { key, body: { input: {} } })
  assert.deepEqual([(await submit()).status, (await submit()).status], [200, 200])
  const refused = await submit()
  assert.equal(refused.status, 429)
  assert.match(refused.text, /queuedJobs of 2 waiting jobs is reached; wait until some are done, purge a queue/)
  assert.equal(refused.headers.get('retry-after'), '5')
  await rig.ask('POST', `/v2/${id}/purge-queue`, { key })
  await rig.clock.advance(5_000)
  assert.equal((await submit()).status, 200)
  assert.equal((await rig.ask('GET', `${ACCOUNTS}/own/quotas`, { key })).json.quotas.queuedJobs.limit, 2)
})

test('what waited before a start of the server counts after it', async t => {
  const { rig, key, make } = await stranger(t, { queuedMb: 1 })
  const { id } = (await make()).json
  await rig.ask('PATCH', `/v2/serverless/${id}`, { key, body: { workers: { min: 0, max: 0 } } })
  const submit = () => rig.ask('POST', `/v2/${id}/run`, { key, body: { input: { text: 'x'.repeat(600_000) } } })
  assert.equal((await submit()).status, 200)
  await rig.crash()
  await rig.start()
  await rig.ask('GET', `${ACCOUNTS}/own/quotas`, { key })
  const refused = await submit()
  assert.equal(refused.status, 429)
  assert.match(refused.text, /queuedMb of 1 MB of waiting inputs/)
})

test('objects and workersMin of an account are limited with a 409, also when many are made at once', async t => {
  const { rig, key, make } = await stranger(t, { objects: 2, workersMin: 3 })
  const answers = await Promise.all([make(2), make(2), make(0)])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 409])
  const refused = answers.find(({ status }) => status === 409)
  assert.match(refused?.text ?? '', /limit workersMin of 3 for all endpoints together would be passed with 4/)
  assert.match((await make(0)).text, /limit objects of 2 endpoints is reached; delete some/)
  const kept = answers.find(({ status }) => status === 201)?.json.id
  const raised = await rig.ask('PATCH', `/v2/serverless/${kept}`, { key, body: { workers: { min: 9, max: 64 } } })
  assert.equal(raised.status, 409)
})

test('the bytes of secrets of an account are limited, also when they are changed, and it can always make them smaller', async t => {
  const { rig, id, key } = await stranger(t, { secretsMb: 2 })
  const secrets = '/v2/account/secrets'
  const make = (name: string, length: number) =>
    rig.ask('POST', secrets, { key, body: { name, value: 'v'.repeat(length) } })
  const first = await make('first', 600_000)
  assert.equal(first.status, 201)
  const answers = await Promise.all([make('second', 600_000), make('third', 600_000), make('fourth', 600_000)])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409])
  const refused = answers.find(({ status }) => status === 409)!
  assert.match(refused.text, /limit secretsMb of 2 MB of secrets would be passed; delete some, or make them smaller/)
  const change = (length: number) =>
    rig.ask('PATCH', `${secrets}/${first.json.id}`, { key, body: { value: 'w'.repeat(length) } })
  assert.equal((await change(1_000_000)).status, 409)
  const { quotas } = (await rig.ask('GET', `${ACCOUNTS}/own/quotas`, { key })).json
  assert.deepEqual(quotas.secretsMb, { used: 2, limit: 2 })
  await rig.ask('PATCH', `${ACCOUNTS}/${id}`, { body: { limits: { secretsMb: 1 } } })
  assert.equal((await change(500_000)).status, 200)
  assert.equal((await change(600_000)).status, 409)
})

test('what workers of an account print takes no more of the disk than its limit, and the newest stays', async t => {
  const { rig, key, make } = await stranger(t, { logsMb: 1 })
  const { id } = (await make(2)).json
  await rig.clock.advance(10_000)
  const [first, second] = (await rig.alive(id)).map(worker => worker.id)
  for (const worker of [first!, second!])
    rig.print(worker, ...Array.from({ length: 20_000 }, (_, at) => `${worker} line ${at} ${'x'.repeat(50)}`))
  const mine = await rig.endpoint({ workersMin: 1 })
  await rig.clock.advance(1_000)
  const [operators] = (await rig.alive(mine)).map(worker => worker.id)
  rig.print(operators!, ...Array.from({ length: 30_000 }, (_, at) => `line ${at} ${'x'.repeat(50)}`))
  await rig.clock.advance(5_000)
  const bytes = await rig.logs.trim(new Set([first!, second!, operators!]))
  assert.ok(bytes.get(first!)! + bytes.get(second!)! <= 1024 * 1024)
  assert.ok(bytes.get(operators!)! > 1024 * 1024, 'the operator has no limit')
  assert.match((await rig.logs.tail(first!, 1))[0]!.line, / line 19999 /)
  const { quotas } = (await rig.ask('GET', `${ACCOUNTS}/own/quotas`, { key })).json
  assert.deepEqual(quotas.logsMb, { used: 1, limit: 1 })
})

test('an operator gives an account limits of its own, which no other account changes', async t => {
  const { rig, id, key, make } = await stranger(t, { objects: 0 })
  assert.equal((await make()).status, 409)
  const limits = { objects: null, workers: 0 }
  assert.equal((await rig.ask('PATCH', `${ACCOUNTS}/own`, { key, body: { limits } })).status, 403)
  assert.equal((await rig.ask('PATCH', `${ACCOUNTS}/${id}`, { body: { limits: { objects: -1 } } })).status, 400)
  const changed = await rig.ask('PATCH', `${ACCOUNTS}/${id}`, { body: { limits } })
  assert.deepEqual([changed.status, changed.json.limits], [200, limits])
  const made = await make(3)
  assert.equal(made.status, 201)
  await rig.clock.advance(10_000)
  await rig.ask('POST', `/v2/${made.json.id}/run`, { key, body: { input: {} } })
  await rig.clock.advance(10_000)
  assert.equal((await rig.alive(made.json.id)).length, 0)
  const why = await rig.ask('GET', `/v2/${made.json.id}/explain`, { key })
  assert.match(why.text, /limit of 0 workers that its account may have at once is reached/)
})

test("the operator's account has no limits unless it gives itself some", async t => {
  const rig = await openRig(t, { accountLimits: { objects: 0, workersMin: 0, queuedJobs: 0 } })
  const endpoint = await rig.endpoint({ workersMin: 1 })
  await rig.submit(endpoint)
})

test('a large result that an account may not keep fails its job, and nothing of it is kept', async t => {
  const { rig, key, make } = await stranger(t, { storedMb: 10 }, { resultBytes: 64 * 1024 * 1024 })
  const { id } = (await make(1)).json
  await rig.clock.advance(40)
  const job = (await rig.ask('POST', `/v2/${id}/run`, { key, body: { input: {} } })).json.id
  const worker = rig.worker(-1)
  await worker.takeJob()
  const result = `{"output":"${'x'.repeat(21 * 1024 * 1024)}"}`
  await worker.done(job, result, { 'content-length': String(result.length) })
  const { json } = await rig.ask('GET', `/v2/${id}/status/${job}`, { key })
  assert.equal(json.status, 'FAILED')
  assert.match(json.error, /^the result was not kept: .*storedMb of 10 MB of kept inputs and results is reached/)
  while (await rig.store.largeTexts.removeUnused(1, 100));
  assert.equal(await rig.store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'parts are left')
})

test('each large result counts once, and one that was given up counts no more', async t => {
  const { rig, key, make } = await stranger(t, { storedMb: 55 }, { resultBytes: 64 * 1024 * 1024 })
  const { id } = (await make(1)).json
  await rig.clock.advance(40)
  const worker = rig.worker(-1)
  const result = `{"output":"${'x'.repeat(25 * 1024 * 1024)}"}`
  const post = async (body: string) => {
    const job = (await rig.ask('POST', `/v2/${id}/run`, { key, body: { input: {} } })).json.id
    await worker.takeJob()
    await worker.done(job, body, { 'content-length': String(body.length) })
    return (await rig.ask('GET', `/v2/${id}/requests/${job}`, { key })).json
  }
  assert.match((await post(`${result}!`)).error, /not JSON/)
  assert.equal((await post(result)).error, null)
  assert.equal((await post(result)).error, null)
  assert.match((await post(result)).error, /^the result was not kept: .*storedMb of 55 MB/)
})

test('a large input that was deleted counts until it is removed', async t => {
  const { rig, key, make } = await stranger(t, { storedMb: 55 }, { inputBytes: 64 * 1024 * 1024 })
  const { id } = (await make(0)).json
  const body = `{"input":{"a":"${'x'.repeat(25 * 1024 * 1024)}"}}`
  const send = () => rig.ask('POST', `/v2/${id}/run`, { key, body, headers: { 'content-length': String(body.length) } })
  // Behind a search for such texts.
  await rig.clock.advance(6_000)
  for (let sent = 0; sent < 2; sent += 1) {
    const job = (await send()).json.id
    await rig.ask('POST', `/v2/${id}/cancel/${job}`, { key })
    assert.equal((await rig.ask('DELETE', `/v2/${id}/requests/${job}`, { key })).status, 200)
    await rig.clock.advance(1_100)
  }
  assert.equal((await send()).status, 429)
  await rig.clock.advance(10_000)
  assert.equal((await send()).status, 200)
})

test('a large input counts once, and one without room is refused before it is stored', async t => {
  const { rig, key, make } = await stranger(t, { storedMb: 55 }, { inputBytes: 64 * 1024 * 1024 })
  const { id } = (await make(0)).json
  const body = `{"input":{"a":"${'x'.repeat(25 * 1024 * 1024)}"}}`
  const send = (text: string, headers: Record<string, string>) =>
    rig.ask('POST', `/v2/${id}/run`, { key, body: text, headers })
  const length = { 'content-length': String(body.length) }
  assert.equal((await send(`${body.slice(0, -1)}!`, length)).status, 400)
  assert.deepEqual([(await send(body, length)).status, (await send(body, {})).status], [200, 200])
  const stored = rig.calls('largeTexts.append')
  for (const headers of [length, {}]) {
    const refused = await send(body, headers)
    assert.equal(refused.status, 429)
    assert.match(refused.json.error, /storedMb of 55 MB of kept inputs and results is reached/)
  }
  assert.equal(rig.calls('largeTexts.append'), stored)
})

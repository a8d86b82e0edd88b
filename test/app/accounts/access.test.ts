import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointScope, type KeyScope } from '../../../src/core/accounts/permission.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { Access } from '../../../src/services/accounts/access.ts'
import { type Answer, KEY, openRig, type Rig } from '../../support/rig.ts'

const RUN = { body: { input: {} } }
const MYSELF = { body: { query: '{ myself { id endpoints { id } } }' } }
const DELETE = { body: { query: 'mutation { deleteTemplate(templateName: "nothing") }' } }

/** One request with this key to each surface. */
function everySurface(rig: Rig, endpoint: EndpointId, key: string | null): Promise<Answer[]> {
  return Promise.all([
    rig.ask('POST', `/v2/${endpoint}/run`, { ...RUN, key }),
    rig.ask('GET', `/v2/serverless/${endpoint}`, { key }),
    rig.ask('POST', '/graphql', { ...MYSELF, key }),
    rig.ask('GET', '/ops/why', { key }),
  ])
}

const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)

test('a wrong, an expired and a disabled key are 401 on every surface', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const expired = await rig.addKey('rpa_expired', { expiresAtMs: rig.clock.now() })
  const disabled = await rig.addKey('rpa_disabled', { disabled: true })
  for (const key of ['rpa_wrong', expired, disabled]) {
    const answers = await everySurface(rig, endpoint, key)
    assert.deepEqual(statuses(answers), [401, 401, 401, 401], key)
    for (const { text } of answers) assert.match(text, /the API key is invalid or has expired/)
  }
})

test('a key works until the instant of its expiry', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const key = await rig.addKey('rpa_short', { expiresAtMs: rig.clock.now() + 1_000 })
  await rig.clock.advance(999)
  assert.deepEqual(statuses(await everySurface(rig, endpoint, key)), [200, 200, 200, 200])
  await rig.clock.advance(1)
  assert.deepEqual(statuses(await everySurface(rig, endpoint, key)), [401, 401, 401, 401])
})

test('without a key only public fields of GraphQL can be queried', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const [run, rest, graphql, why] = await everySurface(rig, endpoint, null)
  assert.deepEqual(statuses([run!, rest!, graphql!, why!]), [401, 401, 200, 401])
  assert.equal(graphql!.json.data.myself, null)
  assert.equal((await rig.ask('POST', '/graphql', { ...DELETE, key: null })).status, 401)
})

test('job operations take the key with and without Bearer, REST only with it, GraphQL in the address too', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const bare = { key: null, headers: { authorization: KEY } }
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/health`, bare)).status, 200)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`, bare)).status, 401)
  assert.equal((await rig.ask('POST', '/graphql', { ...MYSELF, ...bare })).json.data.myself.endpoints.length, 1)
  const inAddress = await rig.ask('POST', `/graphql?api_key=${KEY}`, { ...MYSELF, key: null })
  assert.equal(inAddress.json.data.myself.endpoints.length, 1)
})

const jobsRead: KeyScope = { type: 'restricted', management: 'none', jobs: 'read' }
const managementRead: KeyScope = { type: 'restricted', management: 'read', jobs: 'none' }

test('a key that may only read jobs sees them and changes nothing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const id = await rig.submit(endpoint)
  const key = await rig.addKey('rpa_reader', { scope: jobsRead })
  const at = `/v2/${endpoint}`
  assert.equal((await rig.ask('GET', `${at}/status/${id}`, { key })).status, 200)
  assert.equal((await rig.ask('GET', `${at}/health`, { key })).status, 200)
  const refused = await rig.ask('POST', `${at}/run`, { ...RUN, key })
  assert.equal(refused.status, 403)
  assert.deepEqual(refused.json, { error: `this API key has no write right for the jobs of endpoint ${endpoint}` })
  assert.equal((await rig.ask('POST', `${at}/cancel/${id}`, { key })).status, 403)
  assert.equal((await rig.ask('GET', `${at}/status/${id}?ttl=5000`, { key })).status, 403)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`, { key })).status, 403)
  assert.match((await rig.ask('POST', '/graphql', { ...MYSELF, key })).json.errors[0].message, /no read right/)
})

test('a key that may only read in management sees endpoints and changes nothing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const key = await rig.addKey('rpa_manager', { scope: managementRead })
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`, { key })).status, 200)
  assert.equal((await rig.ask('POST', '/graphql', { ...MYSELF, key })).json.data.myself.endpoints.length, 1)
  const refused = await rig.ask('POST', '/graphql', { ...DELETE, key })
  assert.deepEqual(
    [refused.status, refused.json.errors[0].message],
    [200, 'this API key has no write right for management'],
  )
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { ...RUN, key })).status, 403)
})

test('a key for the jobs of some endpoints opens those and no others', async t => {
  const rig = await openRig(t)
  const [mine, other] = [await rig.endpoint(), await rig.endpoint()]
  const key = await rig.addKey('rpa_one', { scope: endpointScope(mine) })
  assert.equal((await rig.ask('POST', `/v2/${mine}/run`, { ...RUN, key })).status, 200)
  assert.equal((await rig.ask('POST', `/v2/${other}/run`, { ...RUN, key })).status, 403)
})

test('what belongs to another owner is 404, as if it did not exist', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  const key = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  for (const path of [
    ...[`/v2/${endpoint}/health`, `/v2/${endpoint}/status/${id}`, `/v2/serverless/${endpoint}`],
    ...[`/ops/why/${endpoint}`, `/ops/why/${id}`, `/ops/logs/${worker.id}`, `/ops/top?endpoint=${endpoint}`],
    ...[`/v2/serverless/${endpoint}/workers`, `/v2/serverless/${endpoint}/workers/${worker.id}`],
  ]) {
    const { status, text } = await rig.ask('GET', path, { key })
    assert.equal(status, 404, path)
    assert.match(text, /not found/)
  }
  assert.deepEqual((await rig.ask('POST', '/graphql', { ...MYSELF, key })).json.data.myself.endpoints, [])
  const query = 'mutation ($id: String!) { deleteEndpoint(id: $id) }'
  const refused = await rig.ask('POST', '/graphql', { body: { query, variables: { id: endpoint } }, key })
  assert.match(refused.json.errors[0].message, /not found/)
})

const WINDOWS = [
  { name: 'minute', quota: 3, seconds: 60 },
  { name: 'hour', quota: 5, seconds: 3_600 },
] as const

test('REST requests are counted: headers on every answer, 429 with Retry-After over the quota', async t => {
  const rig = await openRig(t, { rateWindows: WINDOWS })
  const endpoint = await rig.endpoint()
  await rig.clock.advance(60_000 - (rig.clock.now() % 60_000) + 10_000)
  const get = (path = endpoint as string) => rig.ask('GET', `/v2/serverless/${path}`)
  const policy = '"minute";q=3;w=60, "hour";q=5;w=3600'
  const hourLeft = Math.ceil((3_600_000 - (rig.clock.now() % 3_600_000)) / 1000)
  for (const [path, status, left] of [
    [endpoint, 200, 2],
    ['nothing', 404, 1],
    [endpoint, 200, 0],
  ] as const) {
    const answer = await get(path)
    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('ratelimit'), `"minute";r=${left};t=50, "hour";r=${left + 2};t=${hourLeft}`)
    assert.equal(answer.headers.get('ratelimit-policy'), policy)
  }
  const refused = await get()
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), '50')
  assert.equal(refused.headers.get('content-type'), 'application/problem+json')
  assert.deepEqual(refused.json, {
    title: 'Too Many Requests',
    status: 429,
    detail: 'the limit of 3 requests per minute is used up',
    requestId: refused.headers.get('x-request-id'),
  })
  await rig.clock.advance(50_000)
  assert.deepEqual([(await get()).status, (await get()).status, (await get()).status], [200, 200, 429])
  assert.match((await get()).json.detail, /5 requests per hour/)
})

test('keys of one owner share its windows, an exempt key has no window, and other surfaces are not counted', async t => {
  const rig = await openRig(t, { rateWindows: [{ name: 'minute', quota: 1, seconds: 60 }] })
  const endpoint = await rig.endpoint()
  const second = await rig.addKey('rpa_second')
  const exempt = await rig.addKey('rpa_exempt', { exempt: true })
  const path = `/v2/serverless/${endpoint}`
  assert.equal((await rig.ask('GET', path)).status, 200)
  assert.equal((await rig.ask('GET', path, { key: second })).status, 429)
  const free = await rig.ask('GET', path, { key: exempt })
  assert.deepEqual([free.status, free.headers.get('ratelimit')], [200, null])
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/health`)).status, 200)
  const unauthorized = await rig.ask('GET', path, { key: 'rpa_wrong' })
  assert.deepEqual([unauthorized.status, unauthorized.headers.get('ratelimit')], [401, null])
})

test('where jobs are limited, an endpoint takes so many calls, and more when it has more workers', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const access = new Access(rig.ports, [], true)
  const caller = await access.authenticate(KEY)
  const purge = () => access.countJobs(caller, endpoint, 'purge-queue')
  await rig.clock.advance(10_000 - (rig.clock.now() % 10_000))
  for (let n = 0; n < 2; n += 1) (await purge())()
  await assert.rejects(purge(), {
    code: 'rate_limited',
    retryAfterSeconds: 10,
    message: 'the limit of 2 calls in 10 seconds of purge-queue on this endpoint is reached',
  })
  const exempt = { ...caller, exempt: true }
  await access.countJobs(exempt, endpoint, 'purge-queue')
  await rig.clock.advance(10_000)
  const cancels = await Promise.all(Array.from({ length: 20 }, () => access.countJobs(caller, endpoint, 'cancel')))
  await assert.rejects(access.countJobs(caller, endpoint, 'cancel'), { message: /20 calls at once of cancel/ })
  cancels[0]!()
  cancels[0]!()
  await access.countJobs(caller, endpoint, 'cancel')
  await assert.rejects(access.countJobs(caller, endpoint, 'cancel'), { code: 'rate_limited' })
  const off = new Access(rig.ports, [])
  for (let n = 0; n < 5; n += 1) await off.countJobs(caller, endpoint, 'purge-queue')
})

test('an operation over its limit is 429 with Retry-After, others are served, and a finished call frees its place', async t => {
  const rig = await openRig(t, { limitJobs: true })
  const endpoint = await rig.endpoint()
  await rig.clock.advance(10_000 - (rig.clock.now() % 10_000))
  const purge = () => rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  assert.deepEqual([(await purge()).status, (await purge()).status], [200, 200])
  const refused = await purge()
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '10'])
  assert.match(refused.json.error, /^the limit of 2 calls in 10 seconds of purge-queue/)
  for (let n = 0; n < 25; n += 1) await rig.submit(endpoint)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/health`)).status, 200)
  const cancels = async () =>
    statuses(await Promise.all(Array.from({ length: 25 }, () => rig.ask('POST', `/v2/${endpoint}/cancel/x`))))
  assert.equal((await cancels()).filter(status => status === 429).length, 5)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/cancel/x`)).status, 404)
})

test('while the store is away a key that was valid stays so, for minutes, and no other becomes it', async t => {
  const rig = await openRig(t)
  const access = new Access(rig.ports, [])
  const { keyId } = await access.authenticate(KEY)
  for (let second = 0; second < 295; second += 5) {
    await rig.clock.advance(5_000)
    rig.failNext('keys.findByHash', 'before')
    assert.equal((await access.authenticate(KEY)).keyId, keyId)
    assert.equal((await access.authenticate(KEY)).keyId, keyId, 'the store is not asked each time')
  }
  rig.failNext('keys.findByHash', 'before')
  await assert.rejects(access.authenticate('rpa_other'), { code: 'unavailable' })
  await rig.clock.advance(5_000)
  rig.failNext('keys.findByHash', 'before')
  await assert.rejects(access.authenticate(KEY), { code: 'unavailable' })
})

test('a valid key without a right is reported with its account, its id and the right', async t => {
  const rig = await openRig(t)
  const emitted: unknown[] = []
  const access = new Access({ ...rig.ports, emit: (name, data) => void emitted.push([name, data]) }, [])
  const caller = await access.authenticate(
    await rig.addKey('rpa_bare', { scope: endpointScope('other' as EndpointId) }),
  )
  assert.throws(() => access.requireManagement(caller, 'write'), /no write right for management/)
  assert.throws(() => access.requireJobs(caller, 'read', 'none' as EndpointId), /no read right for the jobs/)
  const { owner: account, keyId } = caller
  assert.deepEqual(emitted, [
    ['right.refused', { account, keyId, right: 'management:write' }],
    ['right.refused', { account, keyId, right: 'jobs:read' }],
  ])
})

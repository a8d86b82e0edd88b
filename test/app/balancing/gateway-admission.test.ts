import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { endpointScope } from '../../../src/core/accounts/permission.ts'
import { AppError } from '../../../src/core/errors.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import {
  type AdmissionRules,
  type ArrivingRequest,
  CLOSED,
  GatewayAdmission,
} from '../../../src/gateway/entrance/admission.ts'
import type { Preflight } from '../../../src/gateway/entrance/cors.ts'
import type { ProxyRequest } from '../../../src/gateway/proxy/proxy-request.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const PEER = '203.0.113.7'

const addressOf = (id: EndpointId) => `https://runyard.example/v2/${id}`

/** A gate, and an endpoint behind it. */
async function openGate(t: TestContext, rules: Partial<AdmissionRules> = {}) {
  const rig = await openRig(t)
  const id = await balanced(rig)
  const { access } = servicesOf(rig)
  const gate = new GatewayAdmission(rig.ports, access, { ...CLOSED, ...rules }, addressOf)
  t.after(() => gate.close())
  return { rig, id, gate, access }
}

function balanced(rig: Rig, fields: Record<string, unknown> = {}): Promise<EndpointId> {
  return rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4, ...fields })
}

interface Coming extends Partial<Omit<ArrivingRequest, 'route' | 'rawHeaders'>> {
  readonly path?: string
  readonly headers?: readonly (readonly [string, string])[]
  readonly prefix?: string | null
}

const BEARER = ['Authorization', `Bearer ${KEY}`] as const

function arriving(
  endpointId: EndpointId,
  { path = '/', headers = [BEARER], prefix = null, ...rest }: Coming = {},
): ArrivingRequest {
  const route = { endpointId, prefix, path, host: null }
  const rawHeaders = headers.flat()
  return { method: 'GET', peer: PEER, host: 'x.localhost:8080', rawHeaders, route, requestId: 'request-1', ...rest }
}

async function admitted(gate: GatewayAdmission, id: EndpointId, coming: Coming = {}): Promise<ProxyRequest> {
  const found = await gate.admit(arriving(id, coming))
  assert.ok('path' in found, 'it is no preflight')
  return found
}

async function refused(
  gate: GatewayAdmission,
  id: EndpointId,
  coming: Coming = {},
): Promise<[status: number, error: string]> {
  try {
    await gate.admit(arriving(id, coming))
  } catch (error) {
    assert.ok(error instanceof AppError, String(error))
    return [error.status, error.message]
  }
  return assert.fail('it was let in')
}

test('a key is read with and without Bearer, from the query and from a subprotocol, and is never forwarded', async t => {
  const { gate, id } = await openGate(t)
  const more = ['X-More', 'y'] as const
  const forms: readonly Coming[] = [
    { headers: [BEARER, more] },
    { headers: [['authorization', KEY], more] },
    { headers: [['AUTHORIZATION', `bearer  ${KEY}`], more] },
    { path: `/?api_key=${KEY}`, headers: [more] },
    { headers: [['Sec-WebSocket-Protocol', `runyard.key.${KEY}`], more] },
    { path: `/?api_key=${KEY}`, headers: [BEARER, BEARER, ['sec-websocket-protocol', `runyard.key.${KEY}`], more] },
  ]
  for (const form of forms) {
    const call = await admitted(gate, id, form)
    assert.deepEqual(call.rawHeaders, more, JSON.stringify(form))
    assert.equal(call.path, '/')
  }
})

test('the rest of the query stays byte for byte', async t => {
  const { gate, id } = await openGate(t)
  const paths: readonly [string, string][] = [
    [`/a?api_key=${KEY}`, '/a'],
    [`/a?api_key=${KEY}&b=%20+c`, '/a?b=%20+c'],
    [`/a?b=1&&api_key=${KEY}&b=2&`, '/a?b=1&&b=2&'],
    [`/%2Fa//../b?x&api_key=${encodeURIComponent(KEY)}`, '/%2Fa//../b?x'],
    [`/a?api_key=${KEY}&api_key=own`, '/a?api_key=own'],
    [`/a?q=api_key=${KEY.slice(0, 4)}&api_key=${KEY}`, `/a?q=api_key=${KEY.slice(0, 4)}`],
  ]
  for (const [path, expected] of paths) assert.equal((await admitted(gate, id, { path, headers: [] })).path, expected)
})

test('an Authorization header that holds no key of ours is forwarded where the key came in another way', async t => {
  const { gate, id } = await openGate(t)
  const own = ['Authorization', 'Bearer of-the-application'] as const
  const call = await admitted(gate, id, { path: `/?api_key=${KEY}`, headers: [own] })
  assert.deepEqual(call.rawHeaders, own)
  assert.deepEqual(await refused(gate, id, { headers: [own] }), [401, 'the API key is invalid or has expired'])
})

test('the address of the page that a browser names has no key in it either', async t => {
  const { gate, id } = await openGate(t)
  const referer = ['Referer', `http://x.localhost:8080/?a=1&api_key=${KEY}`] as const
  const { rawHeaders } = await admitted(gate, id, { headers: [BEARER, referer] })
  assert.deepEqual(rawHeaders, ['Referer', 'http://x.localhost:8080/?a=1'])
  const another = ['Referer', 'http://x.localhost:8080/?api_key=rpa_another'] as const
  assert.deepEqual((await admitted(gate, id, { headers: [BEARER, another] })).rawHeaders, [
    'Referer',
    'http://x.localhost:8080/',
  ])
  assert.equal((await refused(gate, id, { headers: [referer] }))[0], 401, 'it lets nobody in')
})

test('cookies of the console are not forwarded, and all others are, byte for byte', async t => {
  const { gate, id } = await openGate(t)
  const forms: readonly [string, string | null][] = [
    ['a=1;b="2"; runyard=3', 'a=1;b="2"; runyard=3'],
    ['runyard-console-8080=x', null],
    ['a=1; runyard-console=x; __Host-runyard-console-8443=y ;b=2', 'a=1;b=2'],
    ['=runyard-console=x; RUNYARD-console=y; c', 'c'],
    ['a=runyard-console=x', 'a=runyard-console=x'],
  ]
  for (const [cookie, kept] of forms) {
    const headers = [BEARER, ['Cookie', cookie], ['cookie', cookie]] as const
    const { rawHeaders } = await admitted(gate, id, { headers })
    assert.deepEqual(rawHeaders, kept === null ? [] : ['Cookie', kept, 'cookie', kept], cookie)
  }
})

test('other subprotocols are forwarded, and without others the response names the one with the key', async t => {
  const { gate, id } = await openGate(t)
  const ours = `runyard.key.${KEY}`
  const both = await admitted(gate, id, { headers: [['Sec-WebSocket-Protocol', `chat, ${ours},v2`]] })
  assert.deepEqual([both.rawHeaders, both.subprotocol], [['Sec-WebSocket-Protocol', 'chat, v2'], undefined])
  const two = await admitted(gate, id, {
    headers: [
      ['Sec-WebSocket-Protocol', ours],
      ['Sec-WebSocket-Protocol', 'chat'],
    ],
  })
  assert.deepEqual([two.rawHeaders, two.subprotocol], [['Sec-WebSocket-Protocol', 'chat'], undefined])
  const alone = await admitted(gate, id, { headers: [['Sec-WebSocket-Protocol', ours]] })
  assert.deepEqual([alone.rawHeaders, alone.subprotocol], [[], ours])
})

test('a key that was just checked needs no wait, and is refused from the moment of its revocation', async t => {
  const { rig, id } = await openGate(t)
  const { access, keys } = servicesOf(rig)
  const gate = new GatewayAdmission(rig.ports, access, CLOSED, addressOf)
  t.after(() => gate.close())
  const operator = await access.authenticate(KEY)
  const headersOf = (key: string) => [['Authorization', `Bearer ${key}`]] as const
  const letIn = async (key: string) => {
    await admitted(gate, id, { headers: headersOf(key) })
    assert.ok(!(gate.admit(arriving(id, { headers: headersOf(key) })) instanceof Promise))
  }
  const revoked = await keys.create(operator, { name: 'revoked', scope: { type: 'all' } })
  const weakened = await keys.create(operator, { name: 'weakened', scope: { type: 'all' } })
  const short = await keys.create(operator, { name: 'x', scope: { type: 'all' }, expiresAtMs: rig.clock.now() + 1_000 })
  for (const { key } of [revoked, weakened, short]) await letIn(key)
  await keys.remove(operator, revoked.record.id)
  await keys.update(operator, weakened.record.id, { scope: { type: 'read-only' } })
  await rig.clock.advance(1_000)
  const status = async ({ key }: { key: string }) => (await refused(gate, id, { headers: headersOf(key) }))[0]
  assert.deepEqual([await status(revoked), await status(weakened), await status(short)], [401, 403, 401])
  await letIn(KEY)
  const others = await rig.addKey('rpa_others', { owner: 'another' as OwnerId })
  assert.equal(await status({ key: others }), 404)
  assert.equal(await status({ key: others }), 404, 'remembered, it is still that of another account')
})

test('without a valid key it is 401, whether there is such an endpoint or not', async t => {
  const { gate, id, rig } = await openGate(t)
  const expired = await rig.addKey('rpa_expired', { expiresAtMs: rig.clock.now() })
  for (const endpoint of [id, 'nobody' as EndpointId]) {
    assert.deepEqual(await refused(gate, endpoint, { headers: [] }), [401, 'the API key is missing'])
    const headers = [['Authorization', `Bearer ${expired}`]] as const
    assert.deepEqual(await refused(gate, endpoint, { headers }), [401, 'the API key is invalid or has expired'])
    assert.equal((await refused(gate, endpoint, { headers: [['Authorization', 'Bearer']] }))[0], 401)
  }
})

test('an unknown endpoint and one of another account are both 404, and a queue endpoint is 400', async t => {
  const { gate, id, rig } = await openGate(t)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'other' as OwnerId })
  const headers = [['Authorization', stranger]] as const
  assert.deepEqual(await refused(gate, 'nobody' as EndpointId), [404, 'endpoint nobody not found'])
  assert.deepEqual(await refused(gate, id, { headers }), [404, `endpoint ${id} not found`])
  const queue = await rig.endpoint()
  const [status, error] = await refused(gate, queue)
  assert.equal(status, 400)
  const address = addressOf(queue)
  assert.ok(error.startsWith(`not allowed for QB API: endpoint ${queue} takes jobs`), error)
  assert.ok(error.endsWith(`jobs go to ${address}/run, calls of OpenAI clients to ${address}/openai/v1`), error)
  assert.equal((await refused(gate, queue, { headers }))[0], 404)
})

test('a key needs the right to write jobs of this very endpoint', async t => {
  const { gate, id, rig } = await openGate(t)
  const own = await rig.addKey('rpa_of_this', { scope: endpointScope(id) })
  const foreign = await rig.addKey('rpa_of_another', { scope: endpointScope('another' as EndpointId) })
  const reading = await rig.addKey('rpa_reading', { scope: { type: 'read-only' } })
  assert.equal((await admitted(gate, id, { headers: [['Authorization', own]] })).endpointId, id)
  for (const key of [foreign, reading]) {
    const expected = `this API key has no write right for the jobs of endpoint ${id}`
    assert.deepEqual(await refused(gate, id, { headers: [['Authorization', key]] }), [403, expected])
  }
})

test('a request with more texts than can be keys is refused before any of them is looked up', async t => {
  const { gate, id } = await openGate(t)
  const path = `/?${[1, 2, 3, 4, 5].map(n => `api_key=${n}`).join('&')}`
  assert.deepEqual(await refused(gate, id, { path }), [400, 'a request has at most 4 keys'])
})

test('a public endpoint needs no key, by its id or its name, and the token of the application is forwarded', async t => {
  const own = ['Authorization', 'Bearer of-the-application'] as const
  const { rig, id } = await openGate(t)
  const named = await balanced(rig, { name: 'chat' })
  const gate = new GatewayAdmission(rig.ports, servicesOf(rig).access, { ...CLOSED, open: [id, 'chat'] }, addressOf)
  t.after(() => gate.close())
  for (const endpoint of [id, named]) {
    assert.deepEqual((await admitted(gate, endpoint, { headers: [own] })).rawHeaders, own)
    assert.deepEqual((await admitted(gate, endpoint, { headers: [] })).rawHeaders, [])
    assert.deepEqual((await admitted(gate, endpoint, { headers: [own, BEARER] })).rawHeaders, own, 'ours stays here')
  }
  assert.equal((await admitted(gate, id, { headers: [BEARER] })).isOpen, true, 'whoever asks may be a stranger')
  const closed = await balanced(rig)
  assert.equal((await admitted(gate, closed, { headers: [BEARER] })).isOpen, false)
  assert.equal((await refused(gate, closed, { headers: [] }))[0], 401)
  assert.equal((await refused(gate, await rig.endpoint({ name: 'chat' }), { headers: [] }))[0], 400)
})

test('another account cannot make its own endpoint public by this name', async t => {
  const { gate, rig, id } = await openGate(t, { open: ['chat'] })
  await rig.change(id, { name: 'chat', type: 'LB' })
  assert.equal((await admitted(gate, id, { headers: [] })).endpointId, id)
  const endpoint = (await rig.store.endpoints.find(id))!
  const theirs = { ...endpoint, id: 'theirs' as EndpointId, owner: 'other' as OwnerId }
  await rig.store.endpoints.insert(theirs)
  assert.equal((await refused(gate, theirs.id, { headers: [] }))[0], 401)
})

const ASKS = [
  ['Origin', 'https://page.example'],
  ['Access-Control-Request-Method', 'PUT'],
  ['Access-Control-Request-Headers', 'authorization, x-own'],
] as const

test('a preflight request for the key header is allowed; all others go to the application', async t => {
  const { gate, id } = await openGate(t)
  const { headers } = (await gate.admit(arriving(id, { method: 'OPTIONS', headers: ASKS }))) as Preflight
  assert.deepEqual(headers, {
    'access-control-allow-origin': 'https://page.example',
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'PUT',
    'access-control-allow-headers': 'authorization, x-own',
    'access-control-max-age': '600',
    vary: 'origin, access-control-request-method, access-control-request-headers',
  })
  assert.equal((await refused(gate, id, { method: 'OPTIONS', headers: [] }))[0], 401)
  assert.equal((await refused(gate, id, { method: 'GET', headers: ASKS }))[0], 401)
  const path = `/?api_key=${KEY}`
  assert.deepEqual((await admitted(gate, id, { method: 'OPTIONS', headers: ASKS, path })).rawHeaders, ASKS.flat())
})

test('a preflight for a request that will be refused is allowed, so that the page can read the refusal', async t => {
  const { gate, rig, id } = await openGate(t, { open: ['nobody'] })
  const asks = async (of: EndpointId, key: string) => {
    const coming = { method: 'OPTIONS', headers: ASKS, path: `/?api_key=${key}` }
    return 'headers' in (await gate.admit(arriving(of, coming)))
  }
  assert.ok(await asks(id, 'rpa_none'), 'an invalid key')
  assert.ok(await asks('nothere' as EndpointId, KEY), 'no endpoint')
  assert.ok(await asks(await rig.endpoint({ name: 'queue' }), KEY), 'one with a queue')
})

test('a preflight is not allowed while it is unknown whether the application must answer it', async t => {
  const { gate, rig, id } = await openGate(t, { open: ['open'] })
  rig.store.endpoints.find = () => Promise.reject(new AppError('unavailable', 'the store is away'))
  for (const path of ['/', `/?api_key=${KEY}`]) {
    assert.equal((await refused(gate, id, { method: 'OPTIONS', headers: ASKS, path }))[0], 503)
  }
})

test('only a GET or HEAD of the health path is for the health port', async t => {
  const { gate, rig } = await openGate(t)
  const template = { env: [{ key: 'HEALTH_CHECK_PATH', value: '/well/up?deep=1' }] }
  const id = await balanced(rig, { template })
  const toHealth = async (method: string, path: string) => (await admitted(gate, id, { method, path })).toHealth
  assert.equal(await toHealth('GET', '/well/up'), true)
  assert.equal(await toHealth('HEAD', '/well/up?a=1'), true)
  for (const [method, path] of [
    ['POST', '/well/up'],
    ['GET', '/well/up/'],
    ['GET', '/ping'],
    ['GET', '/'],
  ] as const) {
    assert.equal(await toHealth(method, path), false, `${method} ${path}`)
  }
  const usual = await balanced(rig)
  assert.equal((await admitted(gate, usual, { path: '/ping' })).toHealth, true)
})

test('forwarded headers of clients are removed, and those of trusted proxies are kept', async t => {
  const said = [
    ['X-Forwarded-For', '6.6.6.6, 198.51.100.4, 10.0.0.2'],
    ['X-Forwarded-Proto', 'https'],
    ['X-Forwarded-Host', 'chat.example'],
    ['X-Forwarded-Prefix', '/ai/'],
    ['X-Forwarded-Port', '443'],
    ['Forwarded', 'for=6.6.6.6'],
    ['X-Real-IP', '6.6.6.6'],
    ['X-Other', '1'],
  ] as const
  const { gate, id } = await openGate(t, { trustedProxies: ['10.0.0.0/8', 'fd00::/8'] })
  const headers = [BEARER, ...said]
  const prefix = `/lb/${id}`
  const direct = await admitted(gate, id, { headers, prefix })
  assert.deepEqual(direct.rawHeaders, ['X-Other', '1'])
  assert.deepEqual(
    [direct.client, direct.protocol, direct.host, direct.prefix],
    [PEER, 'http', 'x.localhost:8080', prefix],
  )
  const behind = await admitted(gate, id, { headers, prefix, peer: '::ffff:10.0.0.9' })
  assert.deepEqual(behind.rawHeaders, ['X-Other', '1'])
  assert.deepEqual(
    [behind.client, behind.protocol, behind.host, behind.prefix],
    ['198.51.100.4, 10.0.0.2, 10.0.0.9', 'https', 'chat.example', `/ai${prefix}`],
  )
  const v6 = await admitted(gate, id, {
    headers: [BEARER, ['x-forwarded-for', 'nonsense, 2001:db8::1']],
    peer: 'fd00::9',
  })
  assert.deepEqual([v6.client, v6.prefix], ['2001:db8::1, fd00::9', null])
  // A proxy may pass on what its client says, and redirects have the prefix in them.
  for (const hostile of ['//evil.example', '/\\evil.example', '/a/../..', '/a; Domain=x', '/a?b', '/a b', 'evil']) {
    const named = [BEARER, ['X-Forwarded-Prefix', hostile]] as const
    assert.equal((await admitted(gate, id, { headers: named, prefix, peer: '10.0.0.9' })).prefix, prefix, hostile)
  }
})

test('the paths with which workers sleep and wake are for the server alone', async t => {
  const { gate, rig } = await openGate(t)
  const env = [
    { key: 'RUNYARD_SLEEP_URL', value: '/sleep?level=1' },
    { key: 'RUNYARD_WAKE_URL', value: '/wake_up' },
  ]
  const id = await balanced(rig, { template: { env } })
  for (const path of [
    '/sleep',
    '/sleep?level=2',
    '//sleep',
    '/a/%2e%2e/sleep',
    '/%73leep',
    '/wake%5fup/',
    '/WAKE_UP',
  ]) {
    for (const method of ['GET', 'POST']) {
      const [status, error] = await refused(gate, id, { method, path })
      assert.deepEqual([status, /for the server alone/.test(error)], [404, true], `${method} ${path}`)
    }
  }
  assert.equal((await admitted(gate, id, { path: '/sleepy?a=/sleep' })).path, '/sleepy?a=/sleep')
  const other = await balanced(rig, { name: 'other' })
  assert.equal((await admitted(gate, other, { path: '/sleep' })).path, '/sleep')
})

test('a change of an endpoint, or its deletion, applies from the next request', async t => {
  const { gate, rig, id } = await openGate(t)
  const env = [{ key: 'HEALTH_CHECK_PATH', value: '/up' }]
  assert.equal((await admitted(gate, id, { path: '/up' })).toHealth, false)
  await rig.change(id, { type: 'LB', env })
  assert.equal((await admitted(gate, id, { path: '/up' })).toHealth, true)
  await rig.change(id, { type: 'QB', scalerType: 'QUEUE_DELAY' })
  assert.equal((await refused(gate, id))[0], 400)
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}`)).status, 204)
  assert.equal((await refused(gate, id))[0], 404)
})

test('the path of the health check may come from a secret, and a new value applies from the next request', async t => {
  const { gate, rig, id } = await openGate(t)
  const secret = (await rig.ask('POST', '/v2/account/secrets', { body: { name: 'path', value: '/up?t=1' } })).json
  const toHealth = async (path: string) => (await admitted(gate, id, { path })).toHealth
  await rig.change(id, { type: 'LB', env: [{ key: 'HEALTH_CHECK_PATH', value: '{{ RUNPOD_SECRET_path }}' }] })
  assert.deepEqual([await toHealth('/up'), await toHealth('/ping')], [true, false])
  await rig.ask('PATCH', `/v2/account/secrets/${secret.id}`, { body: { value: '/other' } })
  await rig.clock.settle()
  assert.deepEqual([await toHealth('/up'), await toHealth('/other')], [false, true])
})

test('a change applies within seconds even without a notification', async t => {
  const { gate, rig, id } = await openGate(t)
  await admitted(gate, id)
  rig.loses = () => true
  await rig.change(id, { type: 'QB', scalerType: 'QUEUE_DELAY' })
  await rig.clock.advance(5_000)
  assert.equal((await refused(gate, id))[0], 400)
})

test('a known endpoint and a known key need no read of the store', async t => {
  const { gate, rig, id } = await openGate(t)
  await admitted(gate, id)
  const before = [rig.calls('endpoints.find'), rig.calls('keys.findByHash')]
  for (let time = 0; time < 10; time += 1) await admitted(gate, id)
  assert.deepEqual([rig.calls('endpoints.find'), rig.calls('keys.findByHash')], before)
})

test('while the store is unavailable, requests with known keys reach known endpoints for minutes', async t => {
  const { gate, rig, id } = await openGate(t)
  await admitted(gate, id)
  const away = () => {
    for (const method of ['endpoints.find', 'keys.findByHash'] as const) rig.failNext(method, 'before')
  }
  for (let second = 0; second < 295; second += 5) {
    await rig.clock.advance(5_000)
    away()
    assert.equal((await admitted(gate, id)).endpointId, id)
  }
  rig.failNext('keys.findByHash', 'before')
  const headers = [['Authorization', 'rpa_unknown']] as const
  assert.equal((await refused(gate, id, { headers }))[0], 503, 'nobody else is let in')
  await rig.clock.advance(5_000)
  rig.failNext('endpoints.find', 'before')
  assert.equal((await refused(gate, id))[0], 503)
  assert.equal((await admitted(gate, id)).endpointId, id)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Caller,
  callerFromKey,
  FULL_SCOPE,
  type KeyScope,
  METRICS_SCOPE,
} from '../../../src/core/accounts/permission.ts'
import { DEFAULT_OWNER, type EndpointId, type KeyId, type OwnerId } from '../../../src/core/ids.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const READ_ONLY: KeyScope = { type: 'read-only' }
/** The services of these tests are those of another server than the one that is asked. */
const OTHER_SERVERS_MS = 5_001
const MANAGER: KeyScope = { type: 'restricted', management: 'write', jobs: 'none' }

/** The caller of a key that the rig knows. */
async function callerWith(rig: Rig, key = KEY): Promise<Caller> {
  return callerFromKey((await rig.store.keys.findByHash(rig.vault.hash(key)))!)
}

const statusOf = async (rig: Rig, key: string, endpoint: EndpointId) =>
  (await rig.ask('GET', `/v2/${endpoint}/health`, { key })).status

test('a key is shown once, opens what its scope says, and is kept as a hash with a hint', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const { keys } = servicesOf(rig)
  const caller = await callerWith(rig)
  const { key, record } = await keys.create(caller, { name: 'reader', scope: READ_ONLY })
  assert.match(key, /^rpa_[\w-]{32}$/)
  assert.equal(record.hint, key.slice(0, 8))
  assert.ok(!('hash' in record))
  assert.equal(await statusOf(rig, key, endpoint), 200)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { key, body: { input: {} } })).status, 403)
  assert.deepEqual(await keys.find(caller, record.id), { ...record, lastUsedAtMs: rig.clock.now() })
  assert.deepEqual((await keys.list(caller)).map(({ name, kind }) => [name, kind]).sort(), [
    ['reader', 'user'],
    ['test', 'server'],
  ])
  const { rows } = { rows: JSON.stringify(await rig.store.keys.list(DEFAULT_OWNER)) }
  assert.ok(!rows.includes(key) && !JSON.stringify(rig.events).includes(key))
})

test('no key can make one with more rights, a longer life or fewer limits than its own', async t => {
  const rig = await openRig(t)
  const { keys } = servicesOf(rig)
  const endsAtMs = rig.clock.now() + 60_000
  await rig.addKey('rpa_manager', { scope: MANAGER, expiresAtMs: endsAtMs })
  const manager = await callerWith(rig, 'rpa_manager')
  const of = (scope: KeyScope, expiresAtMs: number | null = endsAtMs) => ({ name: 'new', scope, expiresAtMs })
  const forbidden = { code: 'forbidden' }
  for (const scope of [FULL_SCOPE, READ_ONLY, { type: 'restricted', management: 'none', jobs: 'read' } as const]) {
    await assert.rejects(keys.create(manager, of(scope)), forbidden, JSON.stringify(scope))
  }
  await assert.rejects(keys.create(manager, of(MANAGER, null)), forbidden)
  await assert.rejects(keys.create(manager, of(MANAGER, endsAtMs + 1)), forbidden)
  await assert.rejects(keys.create(manager, { ...of(MANAGER), exempt: true }), forbidden)
  await assert.rejects(keys.create(manager, { ...of(MANAGER), account: 'x' as OwnerId }), { code: 'not_found' })
  const { record } = await keys.create(manager, of(MANAGER))
  await assert.rejects(keys.update(manager, record.id, { scope: FULL_SCOPE }), forbidden)
  await assert.rejects(keys.update(manager, record.id, { expiresAtMs: null }), forbidden)
  await rig.addKey('rpa_full')
  const full = (await rig.store.keys.findByHash(rig.vault.hash('rpa_full')))!
  for (const refused of [keys.update(manager, full.id, { disabled: true }), keys.remove(manager, full.id)]) {
    await assert.rejects(refused, forbidden)
  }
})

test('a key with an end gives nobody rights that go on after it', async t => {
  const rig = await openRig(t)
  const { keys } = servicesOf(rig)
  const lasting = await keys.create(await callerWith(rig), { name: 'lasting', scope: READ_ONLY })
  await rig.addKey('rpa_ending', { expiresAtMs: rig.clock.now() + 60_000 })
  const ending = await callerWith(rig, 'rpa_ending')
  await assert.rejects(keys.update(ending, lasting.record.id, { scope: FULL_SCOPE }), { code: 'forbidden' })
  const narrow: KeyScope = { type: 'restricted', management: 'read', jobs: 'none' }
  assert.deepEqual((await keys.update(ending, lasting.record.id, { scope: narrow })).scope, narrow)
})

test('a key is rotated in one operation with all that it may do, and the old one goes on for the overlap', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const gone = await rig.endpoint()
  const scope = { type: 'restricted', management: 'read', jobs: { [endpoint]: 'write', [gone]: 'read' } }
  const limits = { requestsPerMinute: 7, tokensPerMinute: null, tokensPerDay: 900 }
  const expiresAt = new Date(rig.clock.now() + 40 * 86_400_000).toISOString()
  const given = { name: 'ci', scope, limits, accounting: true, expiresAt, exempt: true }
  const old = (await rig.ask('POST', '/v2/account/keys', { body: given })).json
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${gone}`)).status, 204)
  const rotate = (id: string, overlapSeconds: number, key = KEY) =>
    rig.ask('POST', `/v2/account/keys/${id}/rotate`, { key, body: { overlapSeconds } })
  const { status, json: next } = await rotate(old.id, 3_600)
  assert.equal(status, 201)
  const keptScope = { ...scope, jobs: { [endpoint]: 'write' } }
  const of = ({ name, scope: has, limits: within, accounting, expiresAt: ends, exempt }: Record<string, unknown>) => ({
    name,
    scope: has,
    limits: within,
    accounting,
    expiresAt: ends,
    exempt,
  })
  assert.deepEqual(of(next), { ...given, scope: keptScope })
  assert.deepEqual([await statusOf(rig, old.key, endpoint), await statusOf(rig, next.key, endpoint)], [200, 200])
  const { entries } = (await rig.ask('GET', '/v2/audit?limit=1000')).json
  const made = entries.filter(
    ({ operation, outcome }: Record<string, string>) => /Key$/.test(operation!) && outcome === 'done',
  )
  assert.deepEqual(
    made.map(({ operation, object }: { operation: string; object: { id: string } }) => [operation, object.id]),
    [
      ['rotateKey', old.id],
      ['createKey', old.id],
    ],
  )
  assert.equal(made[0].detail.made, next.id)
  const { name, expiresAt: ends } = (await rig.ask('GET', `/v2/account/keys/${old.id}`)).json
  assert.deepEqual([name, Date.parse(ends) - rig.clock.now()], ['ci (replaced)', 3_600_000])
  const last = await rotate(next.id, 0)
  assert.deepEqual([await statusOf(rig, next.key, endpoint), await statusOf(rig, last.json.key, endpoint)], [401, 200])
  assert.equal((await rotate(next.id, 0)).status, 404)
  assert.equal((await rotate(last.json.id, -1)).status, 400)
  await rig.ask('PATCH', `/v2/account/keys/${last.json.id}`, { body: { disabled: true } })
  assert.equal((await rotate(last.json.id, 0)).status, 409)
})

test('nobody rotates a key that may do more, lives longer or has higher limits than their own', async t => {
  const rig = await openRig(t)
  const { keys } = servicesOf(rig)
  const main = await callerWith(rig)
  await rig.addKey('rpa_manager', { scope: MANAGER, expiresAtMs: rig.clock.now() + 60_000 })
  const manager = await callerWith(rig, 'rpa_manager')
  const lasting = await keys.create(main, { name: 'lasting', scope: MANAGER })
  const wide = await keys.create(main, { name: 'wide', scope: READ_ONLY, expiresAtMs: rig.clock.now() + 1 })
  const exempt = await keys.create(main, { name: 'x', scope: MANAGER, exempt: true, expiresAtMs: rig.clock.now() + 1 })
  for (const { record } of [lasting, wide, exempt]) {
    await assert.rejects(keys.rotate(manager, record.id, 0), { code: 'forbidden' }, record.name)
    assert.deepEqual(await keys.find(main, record.id), record)
  }
  assert.equal((await keys.list(main)).length, 5)
  const server = (await rig.store.keys.findByHash(rig.vault.hash(KEY)))!
  await assert.rejects(keys.rotate(main, server.id, 0), { code: 'conflict' })
  const stranger = await callerWith(rig, await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId }))
  await assert.rejects(keys.rotate(stranger, lasting.record.id, 0), { code: 'not_found' })
})

test('a key for metrics is made by REST, for the account of the operator alone', async t => {
  const rig = await openRig(t)
  const scope = { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' }
  const { status, json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'prometheus', scope } })
  assert.deepEqual([status, json.scope], [201, scope])
  assert.equal((await rig.ask('GET', '/metrics', { key: json.key })).status, 200)
  assert.equal((await rig.ask('GET', '/v2/account/keys', { key: json.key })).status, 403)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const refused = await rig.ask('POST', '/v2/account/keys', { key: stranger, body: { name: 'p', scope } })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /can have metrics only for a key of the operator's account/)
})

test('everything wrong with a key is said at once', async t => {
  const rig = await openRig(t)
  const { keys } = servicesOf(rig)
  const caller = await callerWith(rig)
  const scope = { type: 'restricted', management: 'none', jobs: { nowhere: 'read' } } as unknown as KeyScope
  await assert.rejects(keys.create(caller, { name: ' ', scope, expiresAtMs: rig.clock.now() }), {
    code: 'invalid',
    failures: ['name must not be empty', 'expiresAtMs must be in the future', 'scope: endpoint nowhere not found'],
  })
})

test('a key that is disabled or revoked is refused from the next request on', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const caller = await callerWith(rig)
  // The use cases of the control plane itself, since its cache must receive the change.
  const { keys } = rig.services
  const { key, record } = await keys.create(caller, { name: 'k', scope: FULL_SCOPE })
  assert.equal(await statusOf(rig, key, endpoint), 200)
  await keys.update(caller, record.id, { disabled: true })
  assert.equal(await statusOf(rig, key, endpoint), 401)
  await keys.update(caller, record.id, { disabled: false })
  assert.equal(await statusOf(rig, key, endpoint), 200)
  await keys.update(caller, record.id, { scope: MANAGER })
  assert.equal(await statusOf(rig, key, endpoint), 403)
  await keys.remove(caller, record.id)
  assert.equal(await statusOf(rig, key, endpoint), 401)
  await assert.rejects(keys.find(caller, record.id), { code: 'not_found' })
})

test('another server notices within five seconds that a key was revoked', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const caller = await callerWith(rig)
  const elsewhere = servicesOf(rig).keys
  const { key, record } = await elsewhere.create(caller, { name: 'k', scope: FULL_SCOPE })
  assert.equal(await statusOf(rig, key, endpoint), 200)
  await elsewhere.remove(caller, record.id)
  await rig.clock.advance(5_000)
  assert.equal(await statusOf(rig, key, endpoint), 401)
})

test('the key of the server, and the last one of the operator, cannot be lost by accident', async t => {
  const rig = await openRig(t)
  const { keys, access } = servicesOf(rig)
  const caller = await callerWith(rig)
  const own = await keys.find(caller, caller.keyId)
  assert.equal(own.kind, 'server')
  for (const refused of [
    keys.remove(caller, own.id),
    keys.update(caller, own.id, { disabled: true }),
    keys.update(caller, own.id, { scope: READ_ONLY }),
  ]) {
    await assert.rejects(refused, { code: 'conflict', message: /the key of the server itself/ })
  }
  const { record } = await keys.create(caller, { name: 'second', scope: FULL_SCOPE })
  await rig.store.keys.remove(DEFAULT_OWNER, own.id)
  for (const refused of [
    keys.remove(caller, record.id),
    keys.update(caller, record.id, { disabled: true }),
    keys.update(caller, record.id, { expiresAtMs: rig.clock.now() + 1_000 }),
  ]) {
    await assert.rejects(refused, { code: 'conflict', message: /last key with all rights/ })
  }
  await access.ensureKeys(DEFAULT_OWNER, [{ name: 'main', key: 'rpa_from_the_environment', scope: FULL_SCOPE }])
  await keys.remove(caller, record.id)
})

test('of all keys of the operator that are taken away at once, one stays', async t => {
  const rig = await openRig(t)
  const { keys } = servicesOf(rig)
  const caller = await callerWith(rig)
  const made: KeyId[] = []
  for (const name of ['a', 'b', 'c', 'd']) made.push((await keys.create(caller, { name, scope: FULL_SCOPE })).record.id)
  await rig.store.keys.remove(DEFAULT_OWNER, caller.keyId)
  const [a, b, c, d] = made as [KeyId, KeyId, KeyId, KeyId]
  const ends = await Promise.allSettled([
    keys.remove(caller, a),
    keys.update(caller, b, { disabled: true }),
    keys.update(caller, c, { scope: READ_ONLY }),
    keys.update(caller, d, { expiresAtMs: rig.clock.now() + 1_000 }),
  ])
  const refused = ends.filter(({ status }) => status === 'rejected')
  assert.equal(refused.length, 1)
  assert.match(String((refused[0] as PromiseRejectedResult).reason), /last key with all rights/)
  const left = (await keys.list(caller)).filter(
    ({ scope, disabled, expiresAtMs }) => scope.type === 'all' && !disabled && expiresAtMs === null,
  )
  assert.equal(left.length, 1)
})

test('a key for metrics in the settings of a server reads them and nothing else, and ends when it leaves the settings', async t => {
  const rig = await openRig(t)
  const { access } = rig.services
  const main = { name: 'test', key: KEY, scope: FULL_SCOPE }
  await access.ensureKeys(DEFAULT_OWNER, [main, { name: 'metrics', key: 'rpa_metrics', scope: METRICS_SCOPE }])
  const statuses = async () => [
    (await rig.ask('GET', '/metrics', { key: 'rpa_metrics' })).status,
    (await rig.ask('GET', '/v2/account/keys', { key: 'rpa_metrics' })).status,
    (await rig.ask('GET', '/v2/account/keys')).status,
  ]
  assert.deepEqual(await statuses(), [200, 403, 200])
  assert.deepEqual(await access.ensureKeys(DEFAULT_OWNER, [main]), ['metrics'])
  assert.deepEqual(await statuses(), [401, 401, 200])
})

test('the key that a server is started with has all rights, whatever became of its record', async t => {
  const rig = await openRig(t)
  const { access } = servicesOf(rig)
  const key = await rig.addKey('rpa_disabled', { disabled: true, scope: READ_ONLY, expiresAtMs: 1 })
  await access.ensureKeys(DEFAULT_OWNER, [{ name: 'main', key, scope: FULL_SCOPE }])
  assert.ok((await access.authenticate(key)).operator)
  await assert.rejects(access.authenticate(KEY), { code: 'unauthorized' })
})

test('the use of a key is noted at most once a minute, and a store that fails does not disturb it', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const key = await rig.addKey('rpa_used')
  const lastUsed = async () => (await rig.store.keys.findByHash(rig.vault.hash(key)))?.lastUsedAtMs
  assert.equal(await lastUsed(), null)
  const before = rig.calls('keys.used')
  const startMs = rig.clock.now()
  for (let n = 0; n < 10; n += 1) {
    assert.equal(await statusOf(rig, key, endpoint), 200)
    await rig.clock.advance(5_999)
  }
  assert.deepEqual([rig.calls('keys.used') - before, await lastUsed()], [1, startMs])
  await rig.clock.advance(1_000)
  rig.failNext('keys.used', 'before')
  assert.equal(await statusOf(rig, key, endpoint), 200)
  assert.equal(await lastUsed(), startMs)
})

test('an endpoint has a key that opens its jobs and nothing else, is in a list of its own, and goes with it', async t => {
  const rig = await openRig(t)
  const { keys, endpoints } = servicesOf(rig)
  const caller = await callerWith(rig)
  const [mine, other] = [await rig.endpoint(), await rig.endpoint()]
  const endpoint = await endpoints.find(DEFAULT_OWNER, mine)
  const count = (await keys.list(caller)).length
  const [key, same] = await Promise.all([keys.ofEndpoint(caller, endpoint), keys.ofEndpoint(caller, endpoint)])
  assert.match(key!, /^rpa_/)
  assert.deepEqual([same, await keys.ofEndpoint(caller, endpoint)], [key, key])
  assert.equal((await keys.list(caller)).length, count)
  assert.deepEqual(
    (await keys.listOfEndpoints(caller)).items.map(({ endpointId, kind }) => [endpointId, kind]),
    [[mine, 'endpoint']],
  )
  assert.equal((await rig.ask('POST', `/v2/${mine}/run`, { key, body: { input: {} } })).status, 200)
  assert.equal(await statusOf(rig, key!, other), 403)
  assert.equal((await rig.ask('GET', `/v2/serverless/${mine}`, { key })).status, 403)
  await endpoints.remove(DEFAULT_OWNER, mine, true)
  assert.equal(await rig.store.keys.findByHash(rig.vault.hash(key!)), null)
})

test('a key without the right to write jobs of an endpoint, or with an end, is not shown the key of the endpoint', async t => {
  const rig = await openRig(t)
  const { keys, endpoints } = servicesOf(rig)
  const endpoint = await endpoints.find(DEFAULT_OWNER, await rig.endpoint())
  await rig.addKey('rpa_reader', { scope: READ_ONLY })
  await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  await rig.addKey('rpa_guest', { expiresAtMs: rig.clock.now() + 60_000 })
  for (const key of ['rpa_reader', 'rpa_stranger', 'rpa_guest']) {
    assert.equal(await keys.ofEndpoint(await callerWith(rig, key), endpoint), null, key)
  }
})

test('the key of an endpoint is revoked, and a new one comes only by rotation', async t => {
  const rig = await openRig(t)
  const { keys, endpoints } = servicesOf(rig)
  const caller = await callerWith(rig)
  const id = await rig.endpoint()
  const endpoint = await endpoints.find(DEFAULT_OWNER, id)
  const first = (await keys.ofEndpoint(caller, endpoint))!
  assert.equal(await statusOf(rig, first, id), 200)
  const { items } = await keys.listOfEndpoints(caller)
  for (const _ of [1, 2]) await keys.remove(caller, items[0]!.id)
  await rig.clock.advance(OTHER_SERVERS_MS)
  assert.equal(await statusOf(rig, first, id), 401)
  assert.equal(await keys.ofEndpoint(caller, endpoint), null)
  assert.equal((await keys.listOfEndpoints(caller)).items[0]?.disabled, true)
  await assert.rejects(keys.update(caller, items[0]!.id, { disabled: false }), { code: 'conflict' })
  const { key, record } = await keys.rotateOfEndpoint(caller, endpoint)
  assert.equal(await keys.ofEndpoint(caller, endpoint), key)
  assert.equal(await statusOf(rig, key, id), 200)
  const next = await keys.rotateOfEndpoint(caller, endpoint)
  await rig.clock.advance(OTHER_SERVERS_MS)
  assert.deepEqual([await statusOf(rig, key, id), await statusOf(rig, next.key, id)], [401, 200])
  await assert.rejects(keys.find(caller, record.id), { code: 'not_found' })
  const revocations = rig.happened('key.revoked').map(({ keyId, by }) => [keyId, by])
  assert.deepEqual(revocations, [
    [items[0]!.id, caller.keyId],
    [record.id, caller.keyId],
  ])
})

test('only a key without an end that may write the jobs of an endpoint rotates the key of it', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const manager: KeyScope = { type: 'restricted', management: 'write', jobs: 'read' }
  await rig.addKey('rpa_manager', { scope: manager })
  await rig.addKey('rpa_guest', { expiresAtMs: rig.clock.now() + 60_000 })
  await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  await rig.addKey('rpa_reader', { scope: READ_ONLY })
  const ask = async (key: string) => rig.ask('POST', `/v2/serverless/${id}/rotate-key`, { key })
  assert.deepEqual(
    await Promise.all(
      ['rpa_manager', 'rpa_guest', 'rpa_stranger', 'rpa_reader'].map(async key => (await ask(key)).status),
    ),
    [403, 403, 404, 403],
  )
  const { status, json } = await ask(KEY)
  assert.deepEqual([status, json.endpoint, json.s3], [201, id, null])
  assert.equal(await statusOf(rig, json.key, id), 200)
  const listed = await rig.ask('GET', '/v2/account/endpoint-keys')
  assert.deepEqual(
    listed.json.keys.map((key: { id: string; endpoint: string }) => [key.id, key.endpoint]),
    [[json.id, id]],
  )
  assert.ok(!listed.text.includes(json.key))
  assert.equal((await rig.ask('DELETE', `/v2/account/keys/${json.id}`)).status, 204)
  assert.equal(await statusOf(rig, json.key, id), 401)
})

test('an operator makes accounts and keys for them, which see their own objects alone', async t => {
  const rig = await openRig(t)
  const { keys, accounts } = servicesOf(rig)
  const operator = await callerWith(rig)
  const { id } = await accounts.create(operator, 'Ada')
  const { key } = await keys.create(operator, { name: 'first', scope: FULL_SCOPE, account: id })
  const ada = await callerWith(rig, key)
  assert.deepEqual([ada.owner, ada.operator], [id, false])
  const endpoint = await rig.endpoint()
  assert.equal(await statusOf(rig, key, endpoint), 404)
  assert.deepEqual(
    (await accounts.list(operator)).map(({ name }) => name),
    ['operator', 'Ada'],
  )
  assert.equal((await accounts.update(operator, id, { name: 'Ada L.' })).name, 'Ada L.')
  assert.deepEqual(
    (await keys.list(operator, id)).map(({ name }) => name),
    ['first'],
  )
  for (const refused of [accounts.create(ada, 'x'), accounts.list(ada), accounts.update(ada, id, { name: 'x' })]) {
    await assert.rejects(refused, { code: 'forbidden' })
  }
  for (const refused of [
    accounts.find(ada, DEFAULT_OWNER),
    keys.list(ada, DEFAULT_OWNER),
    keys.find(ada, operator.keyId),
    keys.create(ada, { name: 'x', scope: READ_ONLY, account: DEFAULT_OWNER }),
    keys.create(operator, { name: 'x', scope: READ_ONLY, account: 'none' as OwnerId }),
    keys.find(operator, 'none' as KeyId),
  ]) {
    await assert.rejects(refused, { code: 'not_found' })
  }
  assert.equal((await accounts.find(ada, id)).id, id)
  const mine = await keys.create(ada, { name: 'second', scope: READ_ONLY })
  assert.equal(mine.record.owner, id)
  await keys.remove(operator, ada.keyId)
})

test('an account keeps its public SSH keys', async t => {
  const rig = await openRig(t)
  const { accounts } = servicesOf(rig)
  assert.deepEqual(await accounts.sshKeys(DEFAULT_OWNER), [])
  const keys = ['ssh-ed25519 AAAA me', 'ecdsa-sha2-nistp256 AAAA']
  assert.deepEqual(await accounts.replaceSshKeys(DEFAULT_OWNER, keys), keys)
  assert.deepEqual(await accounts.sshKeys(DEFAULT_OWNER), keys)
  await assert.rejects(accounts.replaceSshKeys(DEFAULT_OWNER, ['x']), { code: 'invalid' })
  assert.deepEqual(await accounts.sshKeys('stranger' as OwnerId), [])
})

/** Alerts of endpoints that need attention: one message when it begins, one when it is over, over restarts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const MINUTE_MS = 60_000
const SLACK = { name: 'ops', kind: 'slack', address: 'https://hooks.example/T1/secret-path' }

const add = (rig: Rig, body: object = SLACK, asking = {}) =>
  rig.ask('POST', '/v2/account/alert-receivers', { ...asking, body })

const sent = (rig: Rig) => rig.outbound.calls.map(({ body }) => JSON.parse(body).text.split('\n')[0])

/** An endpoint whose workers cannot start: it needs a secret that does not exist. */
async function broken(rig: Rig) {
  const endpoint = await rig.endpoint({ workersMax: 1, env: [{ key: 'TOKEN', value: '{{ RUNPOD_SECRET_token }}' }] })
  await rig.submit(endpoint)
}

async function stranger(rig: Rig): Promise<string> {
  const { id } = (await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })).json
  return (await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: id } })).json.key
}

test('an endpoint that stays broken is one message, also over a restart, and one more once it is well', async t => {
  const rig = await openRig(t)
  assert.equal((await add(rig)).status, 201)
  await broken(rig)
  await rig.clock.advance(3 * MINUTE_MS)
  assert.equal(sent(rig).length, 1)
  assert.match(sent(rig)[0], /needs attention/)
  const { json } = await rig.ask('GET', '/v2/account/alerts')
  assert.equal(json.alerts.length, 1)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(10 * MINUTE_MS)
  assert.equal(sent(rig).length, 1)
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: 'x' } })
  await rig.clock.advance(MINUTE_MS)
  const worker = rig.worker(0)
  await worker.done(await worker.takeJob())
  await rig.clock.advance(5 * MINUTE_MS)
  assert.equal(sent(rig).length, 2)
  assert.match(sent(rig)[1], /is well again/)
  assert.deepEqual((await rig.ask('GET', '/v2/account/alerts')).json.alerts, [])
})

test('a receiver that does not answer gets the message later, and its list says why', async t => {
  const rig = await openRig(t)
  const { json: receiver } = await add(rig)
  rig.outbound.answer = () => ({ status: 500 })
  assert.equal((await rig.ask('POST', '/v2/account/alert-tests', { body: { receiver: receiver.id } })).status, 201)
  await rig.clock.advance(1_000)
  const failed = await rig.ask('GET', `/v2/account/alert-receivers/${receiver.id}`)
  assert.deepEqual([failed.json.problem, failed.json.sentAt], ['it answered 500', null])
  rig.outbound.answer = () => ({ status: 200 })
  await rig.clock.advance(MINUTE_MS)
  const { json } = await rig.ask('GET', `/v2/account/alert-receivers/${receiver.id}`)
  assert.equal(json.problem, null)
  assert.notEqual(json.sentAt, null)
  const ids = new Set(rig.outbound.calls.map(({ headers }) => headers['webhook-id']))
  assert.deepEqual([rig.outbound.calls.length, ids.size], [2, 1])
})

test('the address of a receiver is neither shown nor in the audit log', async t => {
  const rig = await openRig(t)
  const { text, json } = await add(rig)
  assert.equal(json.address, 'https://hooks.example')
  const lists = await rig.ask('GET', '/v2/account/alert-receivers')
  const audit = await rig.ask('GET', '/v2/audit')
  for (const answer of [text, lists.text, audit.text]) assert.doesNotMatch(answer, /secret-path/)
})

test('receivers are of their account, and at most ten', async t => {
  const rig = await openRig(t)
  const other = await stranger(rig)
  const { json: receiver } = await add(rig)
  const foreign = await rig.ask('GET', `/v2/account/alert-receivers/${receiver.id}`, { key: other })
  assert.equal(foreign.status, 404)
  for (let count = 1; count < 10; count += 1) assert.equal((await add(rig)).status, 201)
  assert.equal((await add(rig)).status, 409)
  assert.equal((await add(rig, SLACK, { key: other })).status, 201)
})

test('mails need a mail server and go out for the operator alone', async t => {
  const mail = { name: 'me', kind: 'email', address: 'me@example.org' }
  const without = await openRig(t)
  assert.equal((await add(without, mail)).status, 400)
  const rig = await openRig(t, { mails: true })
  const other = await stranger(rig)
  assert.equal((await add(rig, mail, { key: other })).status, 400)
  const { json: receiver } = await add(rig, mail)
  await rig.ask('POST', '/v2/account/alert-tests', { body: { receiver: receiver.id } })
  await rig.clock.advance(1_000)
  assert.deepEqual(
    rig.mails.map(({ to, subject }) => [to, subject]),
    [['me@example.org', 'Runyard: a test']],
  )
})

test('another account does not learn what is at a private address', async t => {
  const rig = await openRig(t)
  const other = await stranger(rig)
  rig.outbound.isPublic = () => false
  rig.outbound.answer = () => ({ problem: 'connect ECONNREFUSED 10.0.0.7:80' })
  const { json: receiver } = await add(rig, { ...SLACK, address: 'http://internal.lan/' }, { key: other })
  await rig.ask('POST', '/v2/account/alert-tests', { key: other, body: { receiver: receiver.id } })
  await rig.clock.advance(1_000)
  const { text } = await rig.ask('GET', `/v2/account/alert-receivers/${receiver.id}`, { key: other })
  assert.doesNotMatch(text, /10\.0\.0\.7|ECONNREFUSED/)
  assert.match(text, /not delivered/)
})

test('an address that cannot be opened is the problem of its receiver, and holds up no other one', async t => {
  const rig = await openRig(t)
  const { json: lost } = await add(rig)
  const { json: well } = await add(rig)
  const record = (await rig.store.alerts.findReceiver(DEFAULT_OWNER, lost.id))!
  await rig.store.alerts.removeReceiver(DEFAULT_OWNER, lost.id)
  await rig.store.alerts.insertReceiver(record, 'sealed with another key')
  for (const { id } of [lost, well]) await rig.ask('POST', '/v2/account/alert-tests', { body: { receiver: id } })
  await rig.clock.advance(1_000)
  assert.equal(rig.outbound.calls.length, 1)
  const { json } = await rig.ask('GET', `/v2/account/alert-receivers/${lost.id}`)
  assert.match(json.problem, /address cannot be read/)
})

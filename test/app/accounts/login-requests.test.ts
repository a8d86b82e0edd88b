/** Logins of command lines: a program without a key asks, a person approves, and the program gets a new key once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

const MINUTE_MS = 60_000
const NOBODY = {
  key: null,
  address: '192.0.2.7',
  headers: { 'user-agent': 'RunPod-Python-SDK/2.0.0rc2 (Linux)\u00e9' },
}

async function asked(rig: Rig, asking = NOBODY): Promise<string> {
  const { createFlashAuthRequest: login } = await rig.graphql(
    'mutation { createFlashAuthRequest { id status expiresAt } }',
    {},
    asking,
  )
  assert.match(login.id, /^[\w-]{22}$/)
  assert.equal(login.status, 'PENDING')
  assert.equal(login.expiresAt, new Date(rig.clock.now() + 10 * MINUTE_MS).toISOString())
  return login.id
}

async function polled(rig: Rig, id: string, asking = NOBODY): Promise<{ status: string; apiKey: string | null }> {
  const query = 'query ($id: String!) { flashAuthRequestStatus(flashAuthRequestId: $id) { status apiKey } }'
  return (await rig.graphql(query, { id }, asking)).flashAuthRequestStatus
}

const approve = (rig: Rig, id: string, body: object = { name: 'laptop' }, asking = {}) =>
  rig.ask('POST', '/v2/account/login-approvals', { ...asking, body: { id, ...body } })

test('an approved login hands out a new key of the chosen rights, once', async t => {
  const rig = await openRig(t)
  const id = await asked(rig)
  assert.deepEqual({ ...(await polled(rig, id)) }, { status: 'PENDING', apiKey: null })
  const shown = await rig.ask('GET', `/v2/account/logins/${id}`)
  assert.equal(shown.status, 200, shown.text)
  const { address, agent, status } = shown.json
  assert.deepEqual(
    { address, agent, status },
    { address: '192.0.2.7', agent: 'RunPod-Python-SDK/2.0.0rc2 (Linux)', status: 'PENDING' },
  )
  const made = await approve(rig, id, { name: 'laptop', scope: { type: 'read-only' } })
  assert.equal(made.status, 201, made.text)
  const { status: given, apiKey } = await polled(rig, id)
  assert.equal(given, 'APPROVED')
  assert.match(apiKey!, /^rpa_/)
  assert.ok(!made.text.includes(apiKey!), 'the person who approves does not see the key')
  assert.ok(!JSON.stringify(rig.events).includes(id), 'the id is worth the key until the program took it')
  assert.equal((await rig.ask('GET', '/v2/serverless', { key: apiKey })).status, 200)
  assert.equal((await rig.ask('POST', '/v2/templates', { key: apiKey, body: {} })).status, 403)
  assert.deepEqual({ ...(await polled(rig, id)) }, { status: 'CONSUMED', apiKey: null })
  assert.equal((await approve(rig, id)).status, 409)
  await rig.clock.advance(11 * MINUTE_MS)
  assert.equal((await rig.ask('GET', '/v2/serverless', { key: apiKey })).status, 200)
})

test('a login that is denied, or that nobody decides in ten minutes, gives no key', async t => {
  const rig = await openRig(t)
  const denied = await asked(rig)
  const late = await asked(rig)
  assert.equal((await rig.ask('POST', '/v2/account/login-denials', { body: { id: denied } })).json.status, 'DENIED')
  assert.deepEqual({ ...(await polled(rig, denied)) }, { status: 'DENIED', apiKey: null })
  assert.equal((await approve(rig, denied)).status, 409)
  await rig.clock.advance(10 * MINUTE_MS)
  assert.deepEqual({ ...(await polled(rig, late)) }, { status: 'EXPIRED', apiKey: null })
  const refused = await approve(rig, late)
  assert.equal(refused.status, 409)
  assert.match(refused.text, /this login is expired already/)
})

test('a key that no program takes is revoked when its login ends', async t => {
  const rig = await openRig(t)
  const id = await asked(rig)
  const { json } = await approve(rig, id)
  assert.equal((await rig.ask('GET', `/v2/account/keys/${json.id}`)).status, 200)
  await rig.clock.advance(10 * MINUTE_MS)
  assert.equal((await rig.ask('GET', `/v2/account/keys/${json.id}`)).status, 404)
  assert.deepEqual({ ...(await polled(rig, id)) }, { status: 'EXPIRED', apiKey: null })
})

test('a login gives no more rights than the key that approves it', async t => {
  const rig = await openRig(t)
  await rig.addKey('rpa_of_a_reader', { scope: { type: 'read-only' } })
  await rig.addKey('rpa_of_a_manager', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  const id = await asked(rig)
  assert.equal((await approve(rig, id, { name: 'x' }, { key: 'rpa_of_a_reader' })).status, 403)
  assert.equal((await approve(rig, id, { name: 'x' }, { key: 'rpa_of_a_manager' })).status, 403)
  assert.equal((await approve(rig, id, { name: '' })).status, 400)
  assert.equal((await polled(rig, id)).status, 'PENDING', 'a failed approval leaves the login open')
  assert.equal((await approve(rig, id)).status, 201)
})

test('ids of no login count as failed keys, and one address cannot end the logins of others', async t => {
  const rig = await openRig(t)
  const first = await asked(rig)
  const theirs = { ...NOBODY, address: '198.51.100.9' }
  const many = 'mutation { createFlashAuthRequest { id } }'
  for (let count = 0; count < 30; count += 1) await rig.graphql(many, {}, theirs)
  assert.equal((await polled(rig, first)).status, 'PENDING')
  const query = 'query ($id: String!) { flashAuthRequestStatus(flashAuthRequestId: $id) { status } }'
  const texts = []
  for (let count = 0; count < 21; count += 1) {
    const { text } = await rig.ask('POST', '/graphql', {
      ...theirs,
      body: { query, variables: { id: `guess${count}` } },
    })
    texts.push(text)
  }
  assert.match(texts[0]!, /this login is unknown or ended; run the login again/)
  assert.match(texts.at(-1)!, /too many invalid API keys came from this address/)
})

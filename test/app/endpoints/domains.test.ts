/** The own domain of a load-balancing endpoint: its rules, and the surfaces that show it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const DOMAIN = 'chat.example.org'
const BODY = {
  name: 'chat',
  type: 'LOAD_BALANCER',
  image: 'example/chat:1',
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  scaling: { type: 'REQUEST_COUNT', requestCount: 4 },
}

const create = (rig: Rig, body: object = {}, key?: string) =>
  rig.ask('POST', '/v2/serverless', { body: { ...BODY, ...body }, ...(key === undefined ? {} : { key }) })
const update = (rig: Rig, id: string, body: object, key?: string) =>
  rig.ask('PATCH', `/v2/serverless/${id}`, { body, ...(key === undefined ? {} : { key }) })
const endpointOf = (rig: Rig, domain = DOMAIN) => rig.services.domains.find(domain)

test('a domain is set with an endpoint or later, shown with the address for browsers, and removed again', async t => {
  const rig = await openRig(t)
  const made = await create(rig, { domain: 'Chat.Example.ORG.' })
  assert.deepEqual([made.status, made.json.domain, made.json.browserUrl], [201, DOMAIN, `http://${DOMAIN}:8080`])
  const { id } = made.json
  assert.equal(made.json.requestUrls.base, `http://localhost:8080/lb/${id}`, 'programs keep the previous address')
  assert.equal(endpointOf(rig), id)
  const version = (await rig.store.endpoints.find(id))!.version
  for (const none of [null, '']) {
    const removed = await update(rig, id, { domain: none })
    assert.deepEqual([removed.status, removed.json.domain, endpointOf(rig)], [200, null, null])
    assert.equal((await update(rig, id, { domain: DOMAIN })).json.domain, DOMAIN)
  }
  assert.equal(
    (await update(rig, id, { workers: { max: 1 } })).json.domain,
    DOMAIN,
    'a change of something else keeps it',
  )
  assert.equal((await update(rig, id, { domain: 'other.example.org' })).status, 200)
  assert.deepEqual([endpointOf(rig), endpointOf(rig, 'other.example.org')], [null, id])
  assert.equal((await rig.store.endpoints.find(id))!.version, version, 'no worker is replaced for it')
})

test('GraphQL sets, shows and removes it', async t => {
  const rig = await openRig(t)
  const { id } = (await create(rig)).json
  const save = async (domain: string) => {
    const query = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id domain } }'
    const { json } = await rig.ask('POST', '/graphql', {
      body: { query, variables: { input: { id, name: 'chat', domain } } },
    })
    return json
  }
  assert.deepEqual((await save(DOMAIN)).data.saveEndpoint, { id, domain: DOMAIN })
  assert.equal(endpointOf(rig), id)
  assert.match(JSON.stringify((await save('localhost')).errors), /domain: 'localhost' is of loopback/)
  assert.deepEqual((await save('')).data.saveEndpoint, { id, domain: null })
})

test('one endpoint has a domain: the first one that asks, of any account', async t => {
  const rig = await openRig(t)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const first = (await create(rig, { domain: DOMAIN })).json
  const mine = await create(rig, { domain: DOMAIN })
  assert.deepEqual([mine.status, mine.json.detail], [409, `the domain ${DOMAIN} is taken: endpoint ${first.id} has it`])
  const other = (await create(rig, {}, stranger)).json
  for (const path of ['', '?dryRun=true']) {
    const foreign = await rig.ask('PATCH', `/v2/serverless/${other.id}${path}`, {
      body: { domain: DOMAIN },
      key: stranger,
    })
    const detail = `the domain ${DOMAIN} is taken: another endpoint of this server has it`
    assert.deepEqual([foreign.status, foreign.json.detail], [409, detail])
    assert.ok(!foreign.text.includes(first.id) && !foreign.text.includes('owner'))
  }
  assert.equal((await rig.ask('POST', '/v2/serverless?dryRun=true', { body: { ...BODY, domain: DOMAIN } })).status, 409)
  assert.equal(endpointOf(rig), first.id)
  assert.equal((await update(rig, first.id, { domain: DOMAIN, name: 'again' })).status, 200, 'who has it may say so')
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${first.id}`)).status, 204)
  assert.equal(endpointOf(rig), null, 'a deleted endpoint has none')
  assert.equal((await update(rig, other.id, { domain: DOMAIN }, stranger)).status, 200)
  assert.equal(endpointOf(rig), other.id)
})

test('names of the server are refused, and an endpoint that has one of them by now can still be changed', async t => {
  const own = new Set(['runyard.example'])
  const rig = await openRig(t, { isServerName: name => own.has(name) })
  const refused = await create(rig, { domain: 'Runyard.example' })
  assert.equal(refused.status, 400)
  assert.match(
    refused.text,
    /\$\.domain: 'runyard\.example' is a name of this server or of its endpoints \(--lb-domain\)/,
  )
  const { id } = (await create(rig, { domain: DOMAIN })).json
  own.add(DOMAIN)
  assert.equal((await update(rig, id, { name: 'again' })).status, 200)
  assert.equal((await update(rig, id, { domain: 'a b' })).status, 400)
  assert.equal(endpointOf(rig), id)
})

test('a queue endpoint has no domain, and a load-balancing one with a domain cannot become a queue', async t => {
  const rig = await openRig(t)
  const queue = { type: 'QUEUE', scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } }
  const refused = await create(rig, { ...queue, domain: DOMAIN })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /\$\.domain: is for load-balancing endpoints/)
  const { json } = await create(rig, queue)
  assert.deepEqual(['domain' in json, 'browserUrl' in json], [false, false])
  const { id } = (await create(rig, { domain: DOMAIN })).json
  const query = `mutation { saveEndpoint(input: { id: "${id}", name: "chat", type: "QB" }) { id } }`
  const changed = await rig.ask('POST', '/graphql', { body: { query } })
  assert.match(JSON.stringify(changed.json.errors), /domain is for load-balancing endpoints/)
})

test('a key that may only read changes no domain, and another account changes no domain here', async t => {
  const rig = await openRig(t)
  const { id } = (await create(rig)).json
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read_only' } as never })
  assert.equal((await update(rig, id, { domain: DOMAIN }, stranger)).status, 404)
  assert.equal((await update(rig, id, { domain: DOMAIN }, reader)).status, 403)
  assert.equal(endpointOf(rig), null)
})

test('domains work after a start, and after a change during which the store was away', async t => {
  const rig = await openRig(t)
  const { id } = (await create(rig, { domain: DOMAIN })).json
  await rig.crash()
  await rig.start()
  await rig.services.domains.load()
  assert.equal(endpointOf(rig), id)
  rig.failNext('endpoints.domains', 'before', 1)
  assert.equal((await update(rig, id, { domain: null })).status, 200)
  assert.equal(endpointOf(rig), id, 'domains stay while the store cannot be read')
  await rig.clock.advance(1_000)
  endpointOf(rig)
  await rig.clock.settle()
  assert.equal(endpointOf(rig), null)
})

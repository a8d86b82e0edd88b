/**
 * Fields about serving are checked when they are saved, on every surface; mistakes that only a start can show are
 * left to the start.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { type EndpointFields, openRig, type Rig } from '../../support/rig.ts'

const COUNT = { type: 'REQUEST_COUNT', requestCount: 2 }
const LB = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 2 }
const BALANCED = { name: 'e', type: 'LOAD_BALANCER', image: 'image:1', scaling: COUNT, gpu: { pools: ['ADA_24'] } }
const SAVE = {
  endpoint: 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }',
  template: 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }',
}

const ALL_WRONG = {
  PORT: '99999',
  PORT_HEALTH: 'no',
  HEALTH_CHECK_PATH: 'ping',
  RUNYARD_MAX_CONCURRENCY: '0',
  RUNYARD_SLEEP_URL: 'http://other.example/sleep',
  RUNYARD_WAKE_URL: 'wake',
  RUNPOD_INIT_TIMEOUT: '5m',
}
const SENTENCES = [
  'the variable PORT must be a port from 1 to 65535',
  'the variable PORT_HEALTH must be a port from 1 to 65535',
  'the variable HEALTH_CHECK_PATH must be a path that begins with a slash and has no blanks',
  'the variable RUNYARD_MAX_CONCURRENCY must be an integer from 1 to 1000000',
  'the variable RUNYARD_SLEEP_URL must be a path that begins with a slash, or http://127.0.0.1:<PORT>/<path>',
  'the variable RUNYARD_WAKE_URL must be a path that begins with a slash, or http://127.0.0.1:<PORT>/<path>',
  'the variable RUNPOD_INIT_TIMEOUT must be a number of seconds from 1 to 86400',
]
const inEnv = SENTENCES.map(sentence => `env: ${sentence}`)
/** The same as REST version 2 shows it. */
const atEnv = inEnv.map(sentence => `$.${sentence}`)

function pairs(env: Readonly<Record<string, string>>) {
  return Object.entries(env).map(([key, value]) => ({ key, value }))
}

/** The failures of a request by REST, either version. */
async function refusedByRest(rig: Rig, method: string, path: string, body: object): Promise<string[]> {
  const { status, json, text } = await rig.ask(method, path, { body })
  assert.equal(status, 400, text)
  return json.errors
}

/** The message of a refusal by GraphQL. */
async function refusedByGraphql(rig: Rig, query: string, input: object): Promise<string> {
  const { json, text } = await rig.ask('POST', '/graphql', { body: { query, variables: { input } } })
  assert.equal(json.errors?.length, 1, text)
  return json.errors[0].message
}

async function balanced(rig: Rig, fields: EndpointFields = {}): Promise<EndpointId> {
  return rig.endpoint({ ...LB, name: 'served', ...fields })
}

/** A load-balancing endpoint and a queue that are linked to the same template. */
async function openShared(t: TestContext) {
  const rig = await openRig(t)
  const templateId = await rig.template({ name: 'shared' })
  const link = { templateId, template: undefined }
  const linked = async (input: object) => {
    const saved = await rig.graphql(SAVE.endpoint, {
      input: { name: 'served', instanceIds: ['cpu3g-2-8'], ...link, ...input },
    })
    return saved.saveEndpoint.id as EndpointId
  }
  const id = await linked(LB)
  await linked({ name: 'queue' })
  return { rig, templateId, id, linked }
}

test('all of it is refused at once where a load-balancing endpoint comes about, on each surface', async t => {
  const rig = await openRig(t)
  const created = await refusedByRest(rig, 'POST', '/v2/serverless', {
    ...BALANCED,
    env: ALL_WRONG,
    workers: { min: 2, max: 1 },
  })
  assert.deepEqual(
    created.toSorted(),
    ['$.workers.min: 2 must not exceed workers.max (1)', ...SENTENCES.map(sentence => `$.env: ${sentence}`)].toSorted(),
  )
  const input = { name: 'e', ...LB, instanceIds: ['cpu3g-2-8'] }
  const template = { imageName: 'image:1', containerDiskInGb: 0, env: pairs(ALL_WRONG) }
  const message = await refusedByGraphql(rig, SAVE.endpoint, { ...input, workersMin: -1, template })
  for (const part of ['workersMin must be ', 'containerDiskInGb must be ', ...inEnv])
    assert.ok(message.includes(part), message)
  const templateId = await rig.template({ env: pairs({ PORT: '0' }) })
  assert.match(
    await refusedByGraphql(rig, SAVE.endpoint, { ...input, templateId }),
    /^env: the variable PORT must be a port from 1 to 65535$/,
  )
  const body = { ...BALANCED, image: undefined, templateId }
  assert.match(
    (await refusedByRest(rig, 'POST', '/v2/serverless', body)).join(),
    /^\$\.env: the variable PORT must be a port from 1 to 65535$/,
  )
  assert.deepEqual((await rig.ask('GET', '/v2/serverless')).json.endpoints, [])
})

test('what the endpoint says wins over its template, also where that is wrong', async t => {
  const rig = await openRig(t)
  const id = await balanced(rig, { template: { env: pairs({ PORT: '0' }) }, env: pairs({ PORT: '8000' }) })
  assert.match(
    await refusedByGraphql(rig, SAVE.endpoint, { id, name: 'served', env: pairs({}) }),
    /^env: the variable PORT must be a port from 1 to 65535$/,
  )
})

test('all of it is refused at once where a load-balancing endpoint is changed, on each surface', async t => {
  const rig = await openRig(t)
  const id = await balanced(rig)
  const path = `/v2/serverless/${id}`
  const before = (await rig.ask('GET', path)).json
  assert.deepEqual((await refusedByRest(rig, 'PATCH', path, { env: ALL_WRONG })).toSorted(), atEnv.toSorted())
  const change = { id, name: 'served' }
  const own = { template: { imageName: 'image:2', containerDiskInGb: 1, env: pairs(ALL_WRONG) } }
  for (const input of [own, { env: pairs(ALL_WRONG) }]) {
    assert.equal(await refusedByGraphql(rig, SAVE.endpoint, { ...change, ...input }), inEnv.join('; '))
  }
  assert.deepEqual((await rig.ask('GET', path)).json, before)
})

test('a queue may have what it likes in its environment, until it becomes a load balancer', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ env: pairs(ALL_WRONG) })
  const change = { id, name: 'e', ...LB }
  assert.equal(await refusedByGraphql(rig, SAVE.endpoint, change), inEnv.join('; '))
  await rig.change(id, { env: [] })
  await rig.change(id, change)
})

test('another template is refused where its environment is wrong for a load-balancing endpoint, on each surface', async t => {
  const { rig, id } = await openShared(t)
  const templateId = await rig.template({ env: pairs(ALL_WRONG) })
  const link = 'mutation ($input: UpdateEndpointTemplateInput) { updateEndpointTemplate(input: $input) { id } }'
  assert.equal(await refusedByGraphql(rig, link, { endpointId: id, templateId }), inEnv.join('; '))
  assert.equal(await refusedByGraphql(rig, SAVE.endpoint, { id, name: 'served', templateId }), inEnv.join('; '))
  assert.deepEqual(await refusedByRest(rig, 'PATCH', `/v1/endpoints/${id}`, { templateId }), inEnv)
  assert.deepEqual(await refusedByRest(rig, 'PATCH', `/v2/serverless/${id}`, { templateId }), atEnv)
})

test('a template is not changed into what a load-balancing endpoint with it cannot use, on each surface', async t => {
  const { rig, templateId, linked } = await openShared(t)
  const right = { PORT: '1', PORT_HEALTH: '2', HEALTH_CHECK_PATH: '/', RUNYARD_MAX_CONCURRENCY: '1' }
  const hooks = { RUNYARD_SLEEP_URL: '/sleep', RUNYARD_WAKE_URL: '/wake' }
  await linked({ ...LB, name: 'says it itself', env: pairs({ ...right, ...hooks, RUNPOD_INIT_TIMEOUT: '60' }) })
  const used = inEnv.map(sentence => `${sentence} (load-balancing endpoint 'served' uses this template)`)
  const before = (await rig.ask('GET', `/v2/templates/${templateId}`)).json
  const refusedAt = (path: string) => refusedByRest(rig, 'PATCH', path + templateId, { env: ALL_WRONG })
  assert.deepEqual(await refusedAt('/v1/templates/'), used)
  assert.deepEqual(
    await refusedAt('/v2/templates/'),
    used.map(sentence => `$.${sentence}`),
  )
  const input = { id: templateId, containerDiskInGb: 0, env: pairs(ALL_WRONG) }
  const message = await refusedByGraphql(rig, SAVE.template, input)
  assert.equal(message, ['containerDiskInGb must be an integer of at least 1', ...used].join('; '))
  assert.deepEqual((await rig.ask('GET', `/v2/templates/${templateId}`)).json, before)
  const unused = await rig.template({ name: 'unused', env: pairs(ALL_WRONG) })
  assert.equal((await rig.ask('PATCH', `/v2/templates/${unused}`, { body: { env: { PORT: '0' } } })).status, 200)
})

test('an endpoint that has it already is still changed, paused and deleted', async t => {
  const rig = await openRig(t)
  const id = await balanced(rig)
  const endpoint = (await rig.store.endpoints.find(id))!
  await rig.store.endpoints.replace({ ...endpoint, env: { PORT: '0' } }, endpoint, rig.clock.now())
  await rig.change(id, { workersMax: 1 })
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${id}`, { body: { workers: { max: 0 } } })).status, 200)
  assert.match(
    (await refusedByRest(rig, 'PATCH', `/v2/serverless/${id}`, { env: { PORT: '1x' } })).join(),
    /^\$\.env: the variable PORT must be a port from 1 to 65535$/,
  )
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}`)).status, 204)
})

test('one of the two sleep hooks is refused, unless the template has the other', async t => {
  const rig = await openRig(t)
  const id = await balanced(rig, {
    template: { env: pairs({ RUNYARD_SLEEP_URL: '/sleep', RUNYARD_WAKE_URL: '/wake' }) },
  })
  await rig.change(id, { ...LB, env: pairs({ RUNYARD_WAKE_URL: '/wake_up' }) })
  const other = await balanced(rig, { name: 'other' })
  const change = { id: other, name: 'other', ...LB, env: pairs({ RUNYARD_WAKE_URL: '/wake_up' }) }
  const sentence = 'env: the variable RUNYARD_SLEEP_URL must be given where RUNYARD_WAKE_URL is'
  assert.equal(await refusedByGraphql(rig, SAVE.endpoint, change), sentence)
  const env = { RUNYARD_WAKE_URL: '/wake_up' }
  assert.deepEqual(await refusedByRest(rig, 'PATCH', `/v2/serverless/${other}`, { env }), [`$.${sentence}`])
})

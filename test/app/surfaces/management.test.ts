import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import { makeVolume } from '../../contract/store-world.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const SAVE = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
const REMOVE = 'mutation ($id: String!) { deleteEndpoint(id: $id) }'

/** The sentences with which a GraphQL operation is refused. */
async function refusal(rig: Rig, query: string, variables: object): Promise<string> {
  const { status, json } = await rig.ask('POST', '/graphql', { body: { query, variables } })
  assert.equal(status, 200)
  assert.ok(json.errors !== undefined, 'it was not refused')
  return json.errors.map(({ message }: { message: string }) => message).join('\n')
}

const WHOLE = {
  gpuIds: 'AMPERE_16,ADA_24,-NVIDIA RTX A4000',
  gpuCount: 2,
  allowedCudaVersions: '12.1,12.4',
  idleTimeout: 30,
  scalerType: 'QUEUE_DELAY',
  scalerValue: 0.5,
  locations: 'US,EU-RO-1',
  workersMin: 0,
  workersMax: 7,
  executionTimeoutMs: 60_000,
  flashBootType: 'FLASHBOOT',
  networkVolumeId: 'vol1',
  env: [{ key: 'A', value: 'b' }],
}
const ALL = `{ name gpuIds gpuCount allowedCudaVersions idleTimeout scalerType scalerValue locations workersMin
  workersMax executionTimeoutMs flashBootType networkVolumeId env { key value } type templateId }`

test('saveEndpoint with an id keeps every field that is left out', async t => {
  const rig = await openRig(t)
  await rig.store.volumes.insert(makeVolume('vol1', { owner: DEFAULT_OWNER }))
  const endpoint = await rig.endpoint({ ...WHOLE, instanceIds: null })
  const read = `query ($id: String!) { myself { endpoint(id: $id) ${ALL} } }`
  const before = (await rig.graphql(read, { id: endpoint })).myself.endpoint
  for (const [field, value] of Object.entries(WHOLE)) assert.deepEqual(before[field], value, field)
  const save = `mutation ($input: EndpointInput!) { saveEndpoint(input: $input) ${ALL} }`
  const saved = await rig.graphql(save, { input: { id: endpoint, name: 'other', workersMax: 9 } })
  assert.deepEqual(saved.saveEndpoint, { ...before, name: 'other', workersMax: 9 })
})

test('everything wrong with an endpoint is said at once, and nothing is saved', async t => {
  const rig = await openRig(t)
  const needs = await refusal(rig, SAVE, { input: { name: 'x', type: 'ZZ' } })
  assert.equal(
    needs,
    "type must be QB or LB, not 'ZZ'; templateId (or template) is needed; gpuIds (or instanceIds) is needed",
  )
  const template = { imageName: 'i', containerDiskInGb: 1 }
  const input = { name: '', template, gpuIds: 'NOPE', idleTimeout: 0, workersMin: 5, workersMax: 2, scalerValue: 0.1 }
  const wrong = await refusal(rig, SAVE, { input })
  for (const sentence of [
    ...['name must not be empty', 'workersMin (5) must not exceed workersMax (2)'],
    ...['idleTimeout must be an integer from 1 to 3600 seconds', 'scalerValue must be at least 0.5 seconds'],
    "'NOPE' is not a GPU pool",
  ]) {
    assert.ok(wrong.includes(sentence), `${sentence} is missing in: ${wrong}`)
  }
  const { endpoints, podTemplates } = (await rig.graphql('{ myself { endpoints { id } podTemplates { name } } }'))
    .myself
  assert.deepEqual([endpoints, podTemplates], [[], []])
})

test('workersMin above workersMax is refused also when they come one after the other', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 0, workersMax: 2 })
  assert.match(await refusal(rig, SAVE, { input: { id: endpoint, name: 'x', workersMin: 3 } }), /must not exceed/)
})

test('the type of an endpoint changes only while it has no unfinished job', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const id = await rig.submit(endpoint)
  const input = { id: endpoint, name: 'x', type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 }
  assert.match(await refusal(rig, SAVE, { input }), /cannot change while it has unfinished jobs/)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.graphql(SAVE, { input })
  const { requestUrls } = (await rig.ask('GET', `/v2/serverless/${endpoint}`)).json
  const wrongType = `not allowed for LB API: endpoint ${endpoint} takes requests, not jobs; its address is ${requestUrls.base}`
  for (const [operation, shown] of [
    ['run', { error: wrongType }],
    ['runsync', { error: wrongType }],
    [
      'openai/v1/chat/completions',
      { error: { message: `${wrongType}/v1`, type: 'invalid_request_error', param: null, code: 'invalid' } },
    ],
  ] as const) {
    const refused = await rig.ask('POST', `/v2/${endpoint}/${operation}`, { body: { input: {} } })
    assert.deepEqual([refused.status, refused.json], [400, shown])
  }
  const elsewhere = await rig.ask('POST', `/v2/${endpoint}/v1/chat`, { body: {} })
  assert.equal(elsewhere.status, 404)
  assert.ok(elsewhere.json.error.endsWith(`a load-balancing endpoint has its paths below ${requestUrls.base}`))
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/health`)).status, 200)
})

test('an endpoint becomes a load-balancing one by its type alone, and a queue again', async t => {
  const rig = await openRig(t)
  const query = 'query ($id: String!) { myself { endpoint(id: $id) { type scalerType scalerValue } } }'
  for (const [start, input, scalerValue] of [
    [{}, {}, 4],
    [{ scalerType: 'QUEUE_DELAY', scalerValue: 9 }, {}, 4],
    [{}, { scalerValue: 7 }, 7],
    [{ scalerType: 'REQUEST_COUNT', scalerValue: 3 }, {}, 3],
    [{ type: 'LB' }, { scalerValue: 6 }, 6],
  ] as const) {
    const id = await rig.endpoint(start)
    const shown = async () => (await rig.graphql(query, { id })).myself.endpoint
    await rig.graphql(SAVE, { input: { id, name: 'x', type: 'LB', ...input } })
    assert.deepEqual(await shown(), { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue })
    await rig.graphql(SAVE, { input: { id, name: 'x', type: 'QB' } })
    assert.deepEqual(await shown(), { type: 'QB', scalerType: 'REQUEST_COUNT', scalerValue })
  }
  const id = await rig.endpoint()
  const input = { id, name: 'x', type: 'LB', scalerType: 'QUEUE_DELAY' }
  assert.match(await refusal(rig, SAVE, { input }), /scalerType must be REQUEST_COUNT/)
})

test('an endpoint can be deleted only when workersMin and workersMax are 0', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const said = await refusal(rig, REMOVE, { id: endpoint })
  assert.match(said, /only when workersMin and workersMax are 0; set them to 0 first, or /)
  for (const name of ['deleteRunningEndpoints of the account', '--delete-running-endpoints of the server']) {
    assert.ok(said.includes(name), said)
  }
  await rig.change(endpoint, { workersMax: 0 })
  assert.deepEqual(await rig.graphql(REMOVE, { id: endpoint }), { deleteEndpoint: null })
  assert.match(await refusal(rig, REMOVE, { id: endpoint }), /not found/)
})

test('an endpoint that may have workers is deleted where the server or its account lets it be', async t => {
  const allowing = await openRig(t, { deleteRunningEndpoints: true })
  const running = await allowing.endpoint({ workersMin: 1, workersMax: 2 })
  await allowing.clock.settle()
  const id = await allowing.submit(running)
  assert.deepEqual(await allowing.graphql(REMOVE, { id: running }), { deleteEndpoint: null })
  assert.equal((await allowing.ask('GET', `/v2/${running}/status/${id}`)).status, 404)
  await allowing.clock.advance(60_000)
  assert.deepEqual(await allowing.store.workers.alive(), [])

  const rig = await openRig(t)
  const path = '/v2/account/accounts'
  const { json: ada } = await rig.ask('POST', path, { body: { name: 'Ada' } })
  const key = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: ada.id } })).json.key
  const made = {
    name: 'hers',
    type: 'QUEUE',
    image: 'image:1',
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    gpu: { pools: ['ADA_24'] },
  }
  const endpoint = (await rig.ask('POST', '/v2/serverless', { body: made, key })).json.id
  const removed = async () =>
    (await rig.ask('POST', '/graphql', { key, body: { query: REMOVE, variables: { id: endpoint } } })).json
  await rig.ask('PATCH', `${path}/own`, { body: { deleteRunningEndpoints: true } })
  assert.match((await removed()).errors[0].message, /only when/, 'what another account has chosen does not count')
  const changed = await rig.ask('PATCH', `${path}/own`, { key, body: { deleteRunningEndpoints: true } })
  assert.deepEqual([changed.status, changed.json.id, changed.json.deleteRunningEndpoints], [200, ada.id, true])
  assert.deepEqual(await removed(), { data: { deleteEndpoint: null } })
})

test('an account shows and changes what it has chosen, and no other but the operator does', async t => {
  const rig = await openRig(t)
  const path = '/v2/account/accounts'
  const { json: ada } = await rig.ask('POST', path, { body: { name: 'Ada' } })
  const { key } = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: ada.id } })).json
  const scope = { type: 'read-only' }
  const reader = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'r', account: ada.id, scope } })).json.key
  assert.deepEqual([ada.name, ada.deleteRunningEndpoints], ['Ada', false])
  const on = { deleteRunningEndpoints: true }
  const statuses = async (asking: object, to: string) => (await rig.ask('PATCH', `${path}/${to}`, asking)).status
  assert.equal(await statuses({ key, body: on }, ada.id), 200)
  assert.deepEqual((await rig.ask('GET', `${path}/own`, { key: reader })).json, { ...ada, ...on })
  assert.deepEqual((await rig.ask('GET', `${path}/${ada.id}`)).json, { ...ada, ...on })
  assert.equal(await statuses({ key: reader, body: on }, 'own'), 403)
  assert.equal(await statuses({ key, body: { name: 'Eve' } }, 'own'), 403)
  assert.equal(await statuses({ key, body: on }, 'owner'), 404)
  assert.equal(await statuses({ key, body: { deleteRunningEndpoints: 'yes' } }, 'own'), 400)
  assert.equal(await statuses({ body: on }, 'nobody'), 404)
  const both = { name: 'Ada L.', deleteRunningEndpoints: false }
  assert.deepEqual((await rig.ask('PATCH', `${path}/${ada.id}`, { body: both })).json, { ...ada, ...both })
  assert.equal((await rig.ask('GET', `${path}/own`)).json.deleteRunningEndpoints, false)
})

test('deleting an endpoint cancels its jobs, answers waits for them, and ends its workers', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { endpoint, worker } = await rig.endpointWithWorker()
  const waits = [1, 2].map(() => rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } }))
  await rig.clock.advance(10)
  const running = await worker.takeJob()
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  const beforeMs = rig.clock.now()
  await rig.graphql(REMOVE, { id: endpoint })
  const answers = await Promise.all(waits)
  assert.equal(rig.clock.now(), beforeMs, 'at once')
  assert.deepEqual(
    answers.map(({ status, json }) => [status, json.status]),
    [
      [200, 'CANCELLED'],
      [200, 'CANCELLED'],
    ],
  )
  await rig.clock.advance(100)
  assert.deepEqual(rig.fleet.running(), [])
  assert.equal((await worker.done(running)).status, 401, 'it was ended, and nobody waits for the result')
  for (const path of ['health', `status/${running}`, 'explain']) {
    assert.equal((await rig.ask('GET', `/v2/${endpoint}/${path}`)).status, 404, path)
  }
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`)).status, 404)
  assert.equal(rig.moves(running).at(-1), 'cancel IN_PROGRESS CANCELLED')
})

test('a template in use cannot be deleted until its last endpoint is', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0, templateId: await rig.template({ name: 'mine' }) })
  const remove = 'mutation { deleteTemplate(templateName: "mine") }'
  assert.match(await refusal(rig, remove, {}), /in use by an endpoint/)
  await rig.graphql(REMOVE, { id: endpoint })
  assert.deepEqual(await rig.graphql(remove), { deleteTemplate: null })
})

test('names of templates and secrets are unique', async t => {
  const rig = await openRig(t)
  const fields = 'imageName: "i", containerDiskInGb: 1, volumeInGb: 0'
  const template = `mutation { saveTemplate(input: { name: "a", ${fields} }) { id } }`
  await rig.graphql(template)
  assert.match(await refusal(rig, template, {}), /a template named 'a' already exists/)
  const secret = 'mutation { secretCreate(input: { name: "s", value: "v" }) { id name } }'
  const { id } = (await rig.graphql(secret)).secretCreate
  assert.match(await refusal(rig, secret, {}), /a secret named 's' already exists/)
  await rig.graphql('mutation ($id: ID!) { secretDelete(id: $id) }', { id })
  await rig.graphql(secret)
})

test('only a serverless template can be used by an endpoint', async t => {
  const rig = await openRig(t)
  const fields = 'name: "pod", imageName: "i", containerDiskInGb: 1, volumeInGb: 20'
  const { id } = (await rig.graphql(`mutation { saveTemplate(input: { ${fields} }) { id } }`)).saveTemplate
  const input = { name: 'x', templateId: id, instanceIds: ['cpu3g-2-8'] }
  assert.match(await refusal(rig, SAVE, { input }), /is not a serverless template/)
})

test('health counts what happened since the creation of the endpoint', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const zero = { completed: 0, failed: 0, inProgress: 0, inQueue: 0, retried: 0 }
  assert.deepEqual(await rig.health(endpoint), {
    jobs: zero,
    workers: { idle: 0, initializing: 1, ready: 0, running: 0, throttled: 0, unhealthy: 0 },
  })
  for (const result of [{ output: 1 }, { error: 'no' }]) {
    await rig.submit(endpoint)
    await worker.done(await worker.takeJob(), result)
  }
  const late = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  await worker.takeJob()
  await rig.clock.advance(6_100)
  await worker.done(late)
  const cancelled = await rig.submit(endpoint)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${cancelled}`)
  const running = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.submit(endpoint, { input: {}, policy: { lowPriority: true } })
  assert.deepEqual(await rig.health(endpoint), {
    jobs: { completed: 1, failed: 2, inProgress: 1, inQueue: 1, retried: 0 },
    workers: { idle: 0, initializing: 0, ready: 1, running: 1, throttled: 0, unhealthy: 0 },
  })
  await worker.done(running)
  assert.deepEqual((await rig.health(endpoint)).workers, {
    idle: 1,
    initializing: 0,
    ready: 1,
    running: 0,
    throttled: 0,
    unhealthy: 0,
  })
})

test('looking at the health of an endpoint starts nothing', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  await rig.health(endpoint)
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 0)
})

test('explain says one thing at each step of a job', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  assert.equal((await rig.why(endpoint)).cause, 'nothing_waits')
  const id = await rig.submit(endpoint)
  await rig.clock.advance(30)
  assert.equal((await rig.why(endpoint)).cause, 'worker_starting')
  await rig.worker(0).takeJob()
  assert.deepEqual((await rig.why(endpoint)).summary, '1 job running, none waiting')
  const next = await rig.submit(endpoint)
  const { cause, summary } = await rig.why(endpoint)
  assert.deepEqual([cause, summary], ['max_reached', 'workersMax is 1, and there is 1 worker with 1 running job'])
  const ofJob = async (job: string) => (await rig.ask('GET', `/v2/${endpoint}/explain/${job}`)).json
  assert.deepEqual([(await ofJob(id)).cause, (await ofJob(next)).cause], ['running', 'max_reached'])
  await rig.worker(0).done(id, { error: 'boom' })
  const end = await ofJob(id)
  assert.deepEqual([end.cause, end.summary, end.final], ['finished', 'the job is FAILED: boom', true])
})

test('REST shows the whole endpoint with its template', async t => {
  const rig = await openRig(t)
  await rig.store.volumes.insert(makeVolume('vol1', { owner: DEFAULT_OWNER }))
  const template = { imageName: 'image:9', dockerArgs: 'go', containerDiskInGb: 7, env: [{ key: 'T', value: '1' }] }
  const endpoint = await rig.endpoint({ ...WHOLE, instanceIds: null, template })
  const { status, json } = await rig.ask('GET', `/v2/serverless/${endpoint}`)
  assert.equal(status, 200)
  const at = `http://localhost:8080/v2/${endpoint}`
  assert.deepEqual(json, {
    id: endpoint,
    name: 'e1',
    type: 'QUEUE',
    requestUrls: {
      run: `${at}/run`,
      runSync: `${at}/runsync`,
      status: `${at}/status/{job_id}`,
      stream: `${at}/stream/{job_id}`,
      cancel: `${at}/cancel/{job_id}`,
      retry: `${at}/retry/{job_id}`,
      purgeQueue: `${at}/purge-queue`,
      health: `${at}/health`,
    },
    gpu: {
      pools: ['AMPERE_16', 'ADA_24'],
      excludedTypes: ['NVIDIA RTX A4000'],
      count: 2,
      allowedCudaVersions: ['12.1', '12.4'],
      minCudaVersion: null,
    },
    workers: { min: 0, max: 7, idleTimeout: 30 },
    scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 },
    dataCenterIds: ['US', 'EU-RO-1'],
    networkVolumes: ['vol1'],
    timeout: 60_000,
    flashboot: 'FLASHBOOT',
    priority: 'normal',
    preemptible: false,
    modelReferences: [],
    corsOrigins: [],
    createdAt: new Date(rig.clock.now()).toISOString(),
    args: 'go',
    disk: 7,
    env: { T: '1', A: 'b' },
    image: 'image:9',
    ports: [],
    registry: null,
  })
})

test('REST leaves the idle timeout out where it does not apply, and switching back shows it again', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ idleTimeout: 77 })
  const workers = async () => (await rig.ask('GET', `/v2/serverless/${endpoint}`)).json.workers
  await rig.change(endpoint, { scalerType: 'REQUEST_COUNT', scalerValue: 3 })
  assert.deepEqual(await workers(), { min: 0, max: 3 })
  await rig.change(endpoint, { scalerType: 'QUEUE_DELAY', scalerValue: 3 })
  assert.deepEqual(await workers(), { min: 0, max: 3, idleTimeout: 77 })
})

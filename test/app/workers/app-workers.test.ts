/** Workers of apps of RunPod's SDK 2.0 that are processes of the machine: who may run them, and where they call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runtimeImage } from '../../../src/core/endpoints/runtime-image.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { createApp, createEnvironment } from '../../support/apps.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'

const IMAGE = 'runpod/queue:py3.11-latest'
const PYTHON = { kind: 'python_missing', python: '3.14', found: ['3.10', '3.11'] } as const

const onMachine = (image: string) => runtimeImage(image) !== null

interface Saved {
  readonly image?: string
  readonly key?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: object
}

const save = (rig: Rig, { image: imageName = IMAGE, key, env = {}, input = {} }: Saved) => {
  const query = 'mutation($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const variables = Object.entries(env).map(([key, value]) => ({ key, value }))
  const template = { name: 'app-add', imageName, containerDiskInGb: 10, dockerArgs: '', env: variables }
  const whole = { name: 'add', instanceIds: ['cpu3c-1-2'], volumes: [], template, ...input }
  return rig.ask('POST', '/graphql', {
    body: { query, variables: { input: whole } },
    ...(key !== undefined && { key }),
  })
}

const idOf = ({ json }: Awaited<ReturnType<typeof save>>) => json.data.saveEndpoint.id as EndpointId

test('only the operator runs apps as processes, and in containers every account may', async t => {
  const rig = await openRig(t, { runsOnMachine: onMachine })
  const key = await rig.addKey('rpa_stranger', { owner: 'user_stranger' as OwnerId })
  const reading = await rig.addKey('rpa_writer', {
    scope: { type: 'restricted', management: 'write', jobs: 'write' },
  })
  assert.match((await save(rig, { key })).text, /are run only for the operator's account/)
  assert.match((await save(rig, { key: reading })).text, /only a key of the operator's account that has all rights/)
  assert.match((await save(rig, {})).text, /"saveEndpoint":\{"id"/)
  const other = await openRig(t)
  const stranger = await other.addKey('rpa_stranger', { owner: 'user_stranger' as OwnerId })
  assert.match((await save(other, { key: stranger })).text, /"saveEndpoint":\{"id"/)
})

test('an endpoint whose Python the machine lacks is refused where it is saved, with those that it has', async t => {
  const rig = await openRig(t, {
    runsOnMachine: onMachine,
    check: image => (runtimeImage(image)?.python === '3.14' ? PYTHON : null),
  })
  const refused = await save(rig, { image: 'runpod/queue:py3.14-latest' })
  assert.match(refused.text, /the app needs Python 3\.14, which this machine lacks; it has 3\.10, 3\.11/)
  assert.match((await save(rig, {})).text, /"saveEndpoint":\{"id"/)
})

/** A worker of an app with these variables beside the key of the person who deployed it. */
async function appWorker(rig: Rig, env: Record<string, string>, input = {}) {
  const endpoint = idOf(await save(rig, { env: { RUNPOD_API_KEY: KEY, ...env }, input }))
  await rig.submit(endpoint, { input: {} })
  await rig.clock.advance(100)
  return { endpoint, worker: rig.worker(-1), key: rig.worker(-1).spec.env.RUNPOD_API_KEY! }
}

const run = (rig: Rig, endpoint: EndpointId, key: string) =>
  rig.ask('POST', `/v2/${endpoint}/run`, { key, body: { input: {} } })

test('the key of the person who deploys is in no template; a worker has its token in its place', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, key } = await appWorker(rig, { FLASH_RESOURCE_NAME: 'add' })
  assert.equal(worker.spec.protocolEnv.RUNPOD_AI_API_KEY, key)
  const everything = [
    '/v2/serverless',
    `/v2/serverless/${endpoint}`,
    '/v1/templates?includeEndpointBoundTemplates=true',
  ]
  for (const path of [...everything, `/v2/serverless/${endpoint}/releases`])
    assert.ok(!(await rig.ask('GET', path)).text.includes(KEY), path)
  assert.equal((await run(rig, endpoint, key)).status, 200)
  for (const [method, path] of [
    ['DELETE', `/v2/serverless/${endpoint}`],
    ['GET', `/v2/serverless/${endpoint}`],
    ['GET', '/v2/templates'],
    ['GET', '/ops/client'],
  ] as const)
    assert.equal((await rig.ask(method, path, { key })).status, 403, path)
  rig.fleet.exit(worker.id, { code: 0 })
  await rig.clock.advance(10_000)
  assert.equal((await run(rig, endpoint, key)).status, 401)
})

test('the token of a worker reads no logs of workers, its own neither', async t => {
  const rig = await openRig(t)
  const { worker, key } = await appWorker(rig, { FLASH_RESOURCE_NAME: 'add' })
  const { worker: other } = await rig.endpointWithWorker()
  for (const { id } of [worker, other]) {
    assert.equal((await rig.ask('GET', `/v2/pods/${id}/logs`, { key })).status, 404)
    assert.equal((await rig.ask('GET', `/v1/pod/${id}/logs`, { key })).status, 403)
  }
})

test('the token of a worker of a dev session opens and lists the endpoints of its app alone, without variables', async t => {
  const rig = await openRig(t)
  const ofApp = (app: string) => ({ RUNPOD_DEV_APP: app, MODEL: 'hidden-value' })
  const sibling = idOf(await save(rig, { env: ofApp('shop'), input: { name: 'dev-shop-sibling-0a1b2c' } }))
  const stranger = idOf(await save(rig, { env: ofApp('bank'), input: { name: 'dev-bank-stranger-0a1b2c' } }))
  const plain = await rig.endpoint()
  const dev = { name: 'dev-shop-add-0a1b2c' }
  const { endpoint, key } = await appWorker(rig, ofApp('shop'), dev)
  for (const [id, status] of [
    [endpoint, 200],
    [sibling, 200],
    [stranger, 403],
    [plain, 403],
  ] as const) {
    assert.equal((await run(rig, id, key)).status, status)
    assert.equal((await rig.ask('GET', `/v2/${id}/requests`, { key })).status, status)
  }
  const { json, text } = await rig.ask('GET', '/v2/serverless', { key })
  assert.deepEqual(json.endpoints.map(({ id }: { id: string }) => id).sort(), [endpoint, sibling].sort())
  assert.ok(!text.includes('hidden-value'))
})

test('the token of a deployed worker is known without a list of all endpoints of its account', async t => {
  const rig = await openRig(t)
  const flashEnvironmentId = await createEnvironment(rig, await createApp(rig, 'shop'), 'default')
  const named = { FLASH_RESOURCE_NAME: 'add' }
  const deployed = await appWorker(rig, named, { name: 'one', flashEnvironmentId })
  const same = idOf(await save(rig, { env: named, input: { name: 'two', flashEnvironmentId } }))
  const other = idOf(await save(rig, { env: named, input: { name: 'three' } }))
  await rig.clock.advance(10_000)
  const list = t.mock.method(rig.store.endpoints, 'list')
  assert.equal((await run(rig, same, deployed.key)).status, 200)
  assert.equal((await run(rig, other, deployed.key)).status, 403)
  assert.equal(list.mock.callCount(), 0)
})

test('the token of a worker of a dev session is known without a list of all endpoints of its account', async t => {
  const rig = await openRig(t)
  const env = { RUNPOD_DEV_APP: 'shop' }
  const { key } = await appWorker(rig, env, { name: 'dev-shop-add-0a1b2c' })
  const sibling = idOf(await save(rig, { env, input: { name: 'dev-shop-sum-0a1b2c' } }))
  await rig.clock.advance(10_000)
  const lists = [t.mock.method(rig.store.endpoints, 'list'), t.mock.method(rig.store.templates, 'ofEndpoints')]
  assert.equal((await run(rig, sibling, key)).status, 200)
  assert.deepEqual(
    lists.map(({ mock }) => mock.callCount()),
    [0, 0],
  )
})

test('the token of a worker whose environment does not exist opens its own endpoint alone', async t => {
  const rig = await openRig(t)
  const staging = { FLASH_RESOURCE_NAME: 'add', FLASH_ENVIRONMENT: 'staging' }
  const unknown = { flashEnvironmentId: 'env-1' }
  const { endpoint, key } = await appWorker(rig, staging, { name: 'one', ...unknown })
  const other = idOf(await save(rig, { env: staging, input: { name: 'two', ...unknown } }))
  await rig.clock.advance(10_000)
  assert.equal((await run(rig, endpoint, key)).status, 200)
  assert.equal((await run(rig, other, key)).status, 403)
})

test('a worker of a dev session prints no more than its program and warnings, unless it is asked for more', async t => {
  const rig = await openRig(t)
  const levelOf = async (env: Record<string, string>) => {
    const { spec } = (await appWorker(rig, env, { name: Object.keys(env).join('-') })).worker
    return spec.protocolEnv.RUNPOD_LOG_LEVEL ?? spec.env.RUNPOD_LOG_LEVEL
  }
  assert.equal(await levelOf({ RUNPOD_DEV_APP: 'shop' }), 'WARN')
  assert.equal(await levelOf({ RUNPOD_DEV_APP: 'shop', RUNPOD_LOG_LEVEL: 'DEBUG' }), 'DEBUG')
  assert.equal(await levelOf({ FLASH_RESOURCE_NAME: 'add' }), 'INFO')
})

test('an edit in a dev session ends the workers of the source before, and the next call has a fresh one', async t => {
  const rig = await openRig(t)
  const edited = (generation: string) =>
    Object.entries({ RUNPOD_DEV_APP: 'shop', RUNPOD_DEV_GENERATION: generation }).map(([key, value]) => ({
      key,
      value,
    }))
  const endpoint = await rig.endpoint({ workersMin: 0, env: edited('1') })
  await rig.submit(endpoint)
  await rig.clock.advance(100)
  const old = rig.worker(-1)
  await old.done(await old.takeJob())
  await rig.clock.advance(1_000)
  await rig.change(endpoint, { env: edited('2') })
  await rig.clock.advance(100)
  const job = await rig.submit(endpoint)
  const late = old.take()
  await rig.clock.advance(30_000)
  assert.notEqual((await late).status, 200)
  const fresh = rig.worker(-1)
  assert.notEqual(fresh.id, old.id)
  assert.equal(await fresh.takeJob(), job)
})

test('the token of a worker of no app is no key', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  assert.equal('RUNPOD_API_KEY' in worker.spec.env, false)
  const token = worker.spec.protocolEnv.RUNPOD_AI_API_KEY!
  assert.equal((await rig.ask('GET', '/v2/serverless', { key: token })).status, 401)
})

test('a key of another server is a variable as any other, and its workers have none here', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, key } = await appWorker(rig, { RUNPOD_API_KEY: 'rpa_of_another_server' })
  assert.equal(key, 'rpa_of_another_server')
  const token = worker.spec.protocolEnv.RUNPOD_AI_API_KEY!
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { key: token, body: { input: {} } })).status, 401)
})

test('no template and no variables of an endpoint show a key of this server that somebody gave an app by hand', async t => {
  const rig = await openRig(t)
  const env = { FLASH_RESOURCE_NAME: 'add', RUNPOD_API_KEY: KEY }
  const own = { FLASH_RESOURCE_NAME: 'add' }
  const template = async (name: string, env: object) => {
    const made = await rig.ask('POST', '/v2/templates', { body: { name, image: IMAGE, serverless: true, env } })
    assert.equal(made.status, 201, made.text)
    return made.json.id as string
  }
  const given = await template('given', env)
  const changed = await template('changed', own)
  await rig.ask('PATCH', `/v2/templates/${changed}`, { body: { env } })
  const endpoint = async (name: string, body: object) => {
    const gpu = { pools: ['ADA_24'], count: 1 }
    const scaling = { type: 'QUEUE_DELAY', queueDelay: 4 }
    const made = await rig.ask('POST', '/v2/serverless', { body: { name, type: 'QUEUE', gpu, scaling, ...body } })
    assert.equal(made.status, 201, made.text)
    return made.json.id as string
  }
  const linked = await endpoint('linked', { templateId: given })
  const withEnv = await endpoint('with-env', { image: IMAGE, env })
  const late = await endpoint('late', { templateId: await template('late', own) })
  await rig.ask('PATCH', `/v2/serverless/${late}`, { body: { envChanges: { RUNPOD_API_KEY: KEY } } })
  const graphql = 'mutation($input: SaveTemplateInput) { saveTemplate(input: $input) { id env { key value } } }'
  const variables = Object.entries(env).map(([key, value]) => ({ key, value }))
  const input = {
    name: 'by-graphql',
    imageName: IMAGE,
    containerDiskInGb: 5,
    dockerArgs: '',
    volumeInGb: 0,
    env: variables,
  }
  const saved = await rig.ask('POST', '/graphql', { body: { query: graphql, variables: { input } } })
  assert.match(saved.text, /RUNYARD_WORKER_KEY/)
  const views = ['/v2/templates', '/v2/serverless', `/v2/serverless/${late}`, `/v2/templates/${changed}`]
  for (const view of views) {
    const { text } = await rig.ask('GET', view)
    assert.equal(text.includes(KEY), false, view)
    assert.ok(text.includes('RUNYARD_WORKER_KEY'), view)
  }
  for (const id of [linked, withEnv, late]) {
    await rig.submit(id as EndpointId)
    await rig.clock.advance(100)
    assert.notEqual(rig.worker(-1).spec.env.RUNPOD_API_KEY, KEY)
    assert.equal((await run(rig, id as EndpointId, rig.worker(-1).spec.env.RUNPOD_API_KEY!)).status, 200)
  }
})

test('a wait with the token of a worker lasts as long as its worker', async t => {
  const rig = await openRig(t)
  const { endpoint, key } = await appWorker(rig, { FLASH_RESOURCE_NAME: 'add' })
  const waiting = rig.ask('POST', `/v2/${endpoint}/runsync?wait=5000`, { key, body: { input: {} } })
  await rig.clock.advance(6_000)
  assert.equal((await waiting).json.status, 'IN_QUEUE')
})

test('a key without the jobs of the account gets none by workers of an app: neither a new one nor one that has a key', async t => {
  const rig = await openRig(t)
  const manager = await rig.addKey('rpa_manager', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  const app = { FLASH_RESOURCE_NAME: 'add' }
  const marked = await save(rig, { key: manager, env: { ...app, RUNPOD_API_KEY: '{{ RUNYARD_WORKER_KEY }}' } })
  assert.match(marked.text, /only a key that may write all jobs may choose what they run/)
  const template = { name: 't', image: IMAGE, env: { ...app, RUNPOD_API_KEY: '{{ RUNYARD_WORKER_KEY }}' } }
  assert.equal((await rig.ask('POST', '/v2/templates', { key: manager, body: template })).status, 403)
  const endpoint = idOf(await save(rig, { key: manager, env: { ...app, RUNPOD_API_KEY: manager } }))
  await rig.submit(endpoint, { input: {} })
  await rig.clock.advance(100)
  const { env, protocolEnv } = rig.worker(-1).spec
  assert.equal(env.RUNPOD_API_KEY, undefined)
  const token = protocolEnv.RUNPOD_AI_API_KEY!
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { key: token, body: { input: {} } })).status, 401)
  const { endpoint: full } = await appWorker(rig, app)
  const change = (body: object) => rig.ask('PATCH', `/v2/serverless/${full}`, { key: manager, body })
  assert.equal((await change({ envChanges: { PYTHONSTARTUP: '/runpod-volume/x.py' } })).status, 403)
  assert.equal((await change({ workers: { max: 1 } })).status, 200)
})

test('only the operator and workers of the app call what runs the source of a call as a process of the machine', async t => {
  const rig = await openRig(t, { runsOnMachine: onMachine })
  const { endpoint, key } = await appWorker(rig, { RUNPOD_DEV_APP: 'shop' })
  const jobs = await rig.addKey('rpa_jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  const deployed = idOf(await save(rig, { env: { FLASH_RESOURCE_NAME: 'add' }, input: { name: 'deployed' } }))
  assert.match((await run(rig, endpoint, jobs)).text, /brings its program/)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/runsync`, { key: jobs, body: { input: {} } })).status, 403)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/health`, { key: jobs })).status, 200)
  for (const [id, who] of [
    [endpoint, KEY],
    [endpoint, key],
    [deployed, jobs],
  ] as const)
    assert.equal((await run(rig, id, who)).status, 200)
})

test('a worker in a container does not choose what a process of the machine runs, under the name of its app either', async t => {
  const rig = await openRig(t, { runsOnMachine: onMachine })
  const live = idOf(await save(rig, { env: { RUNPOD_DEV_APP: 'shop' }, input: { name: 'dev-shop-live-0a1b2c' } }))
  const writer = await rig.addKey('rpa_writer', {
    scope: { type: 'restricted', management: 'write', jobs: 'write' },
  })
  const env = { RUNPOD_DEV_APP: 'shop', RUNPOD_API_KEY: writer }
  const endpoint = idOf(await save(rig, { key: writer, image: 'other/image:1', env }))
  await rig.submit(endpoint, { input: {} })
  await rig.clock.advance(100)
  const key = rig.worker(-1).spec.env.RUNPOD_API_KEY!
  assert.equal((await run(rig, endpoint, key)).status, 200)
  assert.equal((await run(rig, live, key)).status, 403)
})

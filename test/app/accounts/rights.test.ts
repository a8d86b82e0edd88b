/**
 * Every operation of every surface against every kind of key: who may do it, who may not, and
 * to whom it does not exist.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiParts } from '../../../src/api/parts.ts'
import { absentRoutes } from '../../../src/api/rest/routes/absent.ts'
import { restRoutes } from '../../../src/api/rest/routes.ts'
import { v1Routes } from '../../../src/api/rest-v1/routes.ts'
import type { KeyScope } from '../../../src/core/accounts/permission.ts'
import type { OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

type Right = 'read' | 'write' | 'none'
type Need = 'read' | 'write' | 'operator'

/** Each kind of key with its right in management, and with the jobs of the endpoint `mine`. */
const KEYS: readonly {
  readonly name: string
  readonly scope: KeyScope
  readonly manage: Right
  readonly jobs: Right
}[] = [
  { name: 'all', scope: { type: 'all' }, manage: 'write', jobs: 'write' },
  { name: 'read-only', scope: { type: 'read-only' }, manage: 'read', jobs: 'read' },
  ...(['none', 'read', 'write'] as const).flatMap(manage =>
    (['none', 'read', 'write'] as const).map(jobs => ({
      name: `restricted ${manage} ${jobs}`,
      manage,
      jobs,
      scope: { type: 'restricted', management: manage, jobs } as const,
    })),
  ),
]

/** The operations on jobs, with the right that each needs. */
const JOBS: readonly (readonly [method: string, path: string, needs: 'read' | 'write'])[] = [
  ['POST', 'run', 'write'],
  ['POST', 'runsync?wait=1000', 'write'],
  ['GET', 'status/x', 'read'],
  ['GET', 'status/x?ttl=5000', 'write'],
  ['GET', 'status-sync/x', 'read'],
  // Whoever reads a stream takes its chunks away.
  ['GET', 'stream/x', 'write'],
  ['POST', 'cancel/x', 'write'],
  ['POST', 'retry/x', 'write'],
  ['POST', 'purge-queue', 'write'],
  ['GET', 'health', 'read'],
  ['GET', 'metrics', 'read'],
  ['GET', 'explain', 'read'],
  ['GET', 'webhooks/x', 'read'],
  ['GET', 'requests', 'read'],
  ['GET', 'batch', 'read'],
  ['POST', 'batch', 'write'],
]

/**
 * Each operation of both versions of REST: its method, a path with ids that do not exist (and a query, for one with an
 * endless response), and its right.
 */
function managed(): { method: string; path: string; needs: Need }[] {
  const parts = {} as ApiParts
  return [...absentRoutes(parts), ...restRoutes(parts), ...v1Routes(parts)].flatMap(
    ({ contract: { method, path, level } }) =>
      level === 'open'
        ? []
        : [{ method: method.toUpperCase(), path: withoutEnd(path.replaceAll(/\{\w+\}/g, 'nothing')), needs: level }],
  )
}

function withoutEnd(path: string): string {
  return path === '/v2/events' ? `${path}?endpoint=nothing` : path
}

function allowed(right: Right, needs: 'read' | 'write'): boolean {
  return right === 'write' || right === needs
}

test('of each operation of REST a key without the right gets 403, before anything else is looked at', async t => {
  const rig = await openRig(t, { rateWindows: [] })
  for (const { name, scope, manage } of KEYS) {
    const key = await rig.addKey(`rpa_${name}`, { scope })
    for (const { method, path, needs } of managed()) {
      const body = needs === 'operator' ? { name: 'another' } : {}
      const { status } = await rig.ask(method, path, { key, ...(method === 'GET' ? {} : { body }) })
      const may = needs === 'operator' ? name === 'all' : allowed(manage, needs)
      assert.equal(status === 403, !may, `${name}: ${method} ${path} is ${status}`)
      assert.notEqual(status, 401, `${name}: ${method} ${path}`)
    }
  }
})

test('what the command line asks beside REST needs the right to read management', async t => {
  const rig = await openRig(t, { rateWindows: [] })
  for (const { name, scope, manage } of KEYS) {
    const key = await rig.addKey(`rpa_${name}`, { scope })
    for (const path of ['/ops/why', '/ops/why/nothing', '/ops/logs/nothing', '/ops/top']) {
      const { status } = await rig.ask('GET', path, { key })
      assert.equal(status === 403, !allowed(manage, 'read'), `${name}: ${path} is ${status}`)
      assert.equal((await rig.ask('GET', path, { key: null })).status, 401)
    }
  }
})

test('without a key, and with one that is unknown, each operation of REST is 401', async t => {
  const rig = await openRig(t)
  for (const key of [null, 'rpa_unknown']) {
    for (const { method, path } of managed()) {
      assert.equal((await rig.ask(method, path, { key })).status, 401, `${method} ${path}`)
    }
  }
})

test('of each operation on jobs a key without the right gets 403, for its endpoints alone', async t => {
  const rig = await openRig(t)
  const mine = await rig.endpoint({ workersMax: 0 })
  const other = await rig.endpoint({ workersMax: 0 })
  for (const { name, scope, jobs } of KEYS) {
    const key = await rig.addKey(`rpa_${name}`, { scope })
    await everyJobOperation(rig, mine, key, name, jobs)
  }
  for (const jobs of ['none', 'read', 'write'] as const) {
    const scope = { type: 'restricted', management: 'none', jobs: { [mine]: jobs } } as const
    const key = await rig.addKey(`rpa_one ${jobs}`, { scope })
    await everyJobOperation(rig, mine, key, `one ${jobs}`, jobs)
    await everyJobOperation(rig, other, key, `one ${jobs} elsewhere`, 'none')
  }
})

async function everyJobOperation(rig: Rig, endpoint: string, key: string, name: string, right: Right): Promise<void> {
  for (const [method, path, needs] of JOBS) {
    // There is no job x, so nothing is held but a runsync.
    const body = method === 'GET' ? {} : { body: path.startsWith('batch') ? [] : { input: {} } }
    const asked = rig.ask(method, `/v2/${endpoint}/${path}`, { key, ...body })
    await rig.clock.advance(path.startsWith('runsync') ? 1_000 : 0)
    const { status } = await asked
    assert.equal(status === 403, !allowed(right, needs), `${name}: ${method} ${path} is ${status}`)
  }
}

test('for the keys of another account nothing of this one exists', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(endpoint)
  const made = async (path: string, body: object) => (await rig.ask('POST', path, { body })).json.id
  const template = await made('/v2/templates', { name: 't', image: 'i' })
  const secret = await made('/v2/account/secrets', { name: 's', value: 'v' })
  const volume = await made('/v2/network-volumes', { name: 'v', size: 10, dataCenter: 'EU-RO-1' })
  const registry = await made('/v2/registries', { name: 'r', username: 'u', password: 'p' })
  const own = await made('/v2/account/keys', { name: 'k' })
  const key = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  for (const path of [
    ...[`serverless/${endpoint}`, `serverless/${endpoint}/workers`, `serverless/${endpoint}/releases`],
    `serverless/${endpoint}/releases/1`,
    ...[`templates/${template}`, `account/secrets/${secret}`, `network-volumes/${volume}`, `registries/${registry}`],
    ...[`account/keys/${own}`, `${endpoint}/status/${job}`, `${endpoint}/health`, `${endpoint}/explain`],
  ]) {
    assert.equal((await rig.ask('GET', `/v2/${path}`, { key })).status, 404, path)
    assert.equal((await rig.ask('GET', `/v2/${path}`)).status, 200, path)
  }
  for (const path of [
    `serverless/${endpoint}`,
    `templates/${template}`,
    `account/secrets/${secret}`,
    `account/keys/${own}`,
  ]) {
    assert.equal((await rig.ask('DELETE', `/v2/${path}`, { key })).status, 404, path)
    assert.equal((await rig.ask('PATCH', `/v2/${path}`, { key, body: {} })).status, 404, path)
  }
  const rollback = `/v2/serverless/${endpoint}/releases/1/rollback`
  assert.equal((await rig.ask('POST', rollback, { key })).status, 404)
  for (const [path, list] of [
    ['serverless', 'endpoints'],
    ['templates', 'templates'],
    ['account/secrets', 'secrets'],
    ['network-volumes', 'networkVolumes'],
    ['registries', 'registries'],
  ] as const) {
    assert.deepEqual((await rig.ask('GET', `/v2/${path}`, { key })).json[list], [], path)
  }
})

test('each mutation of GraphQL is refused with a message for a read-only key, and with 401 without a key', async t => {
  const rig = await openRig(t)
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const jobs = await rig.addKey('rpa_jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  const mutations = [
    'saveEndpoint(input: {name: "x"}) { id }',
    'deleteEndpoint(id: "x")',
    'updateEndpointTemplate(input: {endpointId: "x", templateId: "y"}) { id }',
    'saveTemplate(input: {name: "x"}) { id }',
    'deleteTemplate(templateName: "x")',
    'secretCreate(input: {name: "x", value: "y"}) { id }',
    'secretDelete(id: "x")',
    'saveRegistryAuth(input: {name: "x", username: "u", password: "p"}) { id }',
    'deleteRegistryAuth(registryAuthId: "x")',
    'createNetworkVolume(input: {name: "x", size: 10, dataCenterId: "EU-RO-1"}) { id }',
    'updateUserSettings(input: {pubKey: "x"}) { id }',
  ]
  for (const mutation of mutations) {
    const body = { query: `mutation { ${mutation} }` }
    for (const key of [reader, jobs]) {
      const { status, json } = await rig.ask('POST', '/graphql', { key, body })
      assert.deepEqual([status, /no write right/.test(json.errors?.[0]?.message)], [200, true], mutation)
    }
    assert.equal((await rig.ask('POST', '/graphql', { key: null, body })).status, 401, mutation)
  }
})

/** Calls of functions by app, environment and name: `/v2/flash/...`. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { CLOSED, GatewayAdmission } from '../../../src/gateway/entrance/admission.ts'
import { Apps } from '../../../src/services/apps/apps.ts'
import { createApp, createEnvironment, makeBuild, openAppRig, saveFunction, strangerKey } from '../../support/apps.ts'
import { KEY } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const place = (environment = 'default', endpoint = 'hello', app = 'one') => ({
  headers: { 'x-flash-app': app, 'x-flash-environment': environment, 'x-flash-endpoint': endpoint },
})
const BODY = { input: { x: 1 } }

async function openFunctions(t: TestContext) {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const buildId = await makeBuild(rig, app, {})
  const ids: Record<string, EndpointId> = {}
  for (const name of ['default', 'staging']) {
    const environmentId = await createEnvironment(rig, app, name)
    ids[name] = await saveFunction(rig, { name: 'hello', environmentId, buildId })
  }
  return { rig, ids }
}

test('the three headers name the endpoint of each call', async t => {
  const { rig, ids } = await openFunctions(t)
  for (const environment of ['default', 'staging']) {
    const { id, status } = (await rig.ask('POST', '/v2/flash/run', { ...place(environment), body: BODY })).json
    assert.equal(status, 'IN_QUEUE')
    assert.equal((await rig.status(ids[environment]!, id)).json.status, 'IN_QUEUE')
    const seen = await rig.ask('GET', `/v2/flash/status/${id}`, place(environment))
    assert.deepEqual([seen.status, seen.json.status], [200, 'IN_QUEUE'])
    const other = environment === 'default' ? 'staging' : 'default'
    const elsewhere = await rig.ask('GET', `/v2/flash/status/${id}`, place(other))
    assert.equal(elsewhere.status, 404, 'a job is that of the endpoint that the headers name')
  }
})

test('a job is cancelled, retried and streamed as at the address of its endpoint', async t => {
  const { rig, ids } = await openFunctions(t)
  const run = async () => (await rig.ask('POST', '/v2/flash/run', { ...place(), body: BODY })).json.id
  const id = await run()
  const cancelled = await rig.ask('POST', `/v2/flash/cancel/${id}`, place())
  assert.deepEqual([cancelled.status, cancelled.json.status], [200, 'CANCELLED'])
  const stream = await rig.ask('GET', `/v2/flash/stream/${id}`, place())
  assert.deepEqual([stream.status, stream.json.status], [200, 'CANCELLED'])
  assert.equal((await rig.ask('POST', `/v2/flash/retry/${id}`, place())).status, 409, 'only failed jobs are retried')
  const waiting = rig.ask('POST', '/v2/flash/runsync?wait=1000', { ...place(), body: BODY })
  await rig.clock.advance(2_000)
  assert.equal((await waiting).json.status, 'IN_QUEUE')
  const byId = await rig.ask('POST', '/v2/flash/run', { ...place('default', ids.default), body: BODY })
  assert.equal(byId.status, 200, 'an id stands for the name')
})

test('a place that does not exist is 404 in JSON, and a header that is missing 400', async t => {
  const { rig } = await openFunctions(t)
  for (const wrong of [place('other'), place('default', 'other'), place('default', 'hello', 'other')]) {
    const { status, json } = await rig.ask('POST', '/v2/flash/run', { ...wrong, body: BODY })
    assert.equal(status, 404)
    assert.match(json.error, /^app '.*', environment '.*': endpoint '.*' not found$/)
  }
  const { status, json } = await rig.ask('POST', '/v2/flash/run', { body: BODY, headers: { 'x-flash-app': 'one' } })
  assert.deepEqual(
    [status, json.error],
    [400, 'the header x-flash-environment is missing; it names the endpoint together with others'],
  )
})

test('rights are those of the endpoint, and another account finds nothing', async t => {
  const { rig, ids } = await openFunctions(t)
  const scope = { type: 'restricted', management: 'none', jobs: { [ids.staging!]: 'write' } } as const
  const key = await rig.addKey('rpa_staging', { scope: scope as never })
  const call = (environment: string, other: string | null) =>
    rig.ask('POST', '/v2/flash/run', { ...place(environment), body: BODY, key: other })
  assert.equal((await call('staging', key)).status, 200)
  assert.equal((await call('default', key)).status, 403)
  assert.equal((await call('default', null)).status, 401)
  assert.equal((await call('default', 'rpa_wrong')).status, 401)
  assert.equal((await call('default', await strangerKey(rig))).status, 404)
})

test('a cancel by headers is in the audit log with its endpoint', async t => {
  const { rig, ids } = await openFunctions(t)
  const { id } = (await rig.ask('POST', '/v2/flash/run', { ...place('staging'), body: BODY })).json
  await rig.ask('POST', `/v2/flash/cancel/${id}`, place('staging'))
  const { entries } = (await rig.ask('GET', '/v2/audit?limit=1000')).json
  const entry = entries.find(({ operation }: { operation: string }) => operation === 'cancelJob')
  assert.match(JSON.stringify(entry), new RegExp(ids.staging!))
})

test('a request to the host of all functions goes to the one that its headers name, by the rights of its key', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const buildId = await makeBuild(rig, app, {})
  const balanced = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 }
  const environmentId = await createEnvironment(rig, app, 'default')
  const id = await saveFunction(rig, { name: 'hello', environmentId, buildId }, balanced)
  const { access, quotas } = servicesOf(rig)
  const apps = new Apps(rig.ports, quotas)
  const findTarget = apps.target.bind(apps)
  const gate = new GatewayAdmission(rig.ports, access, CLOSED, queue => queue, findTarget)
  t.after(() => gate.close())
  const route = { endpointId: null, prefix: null, path: '/add', host: null }
  const request = { method: 'POST', peer: '203.0.113.7', host: 'flash.lb.example', route, requestId: 'one' }
  const admit = async (key: string | null, headers: Readonly<Record<string, string>>) => {
    const sent = [...Object.entries(headers).flat(), ...(key === null ? [] : ['Authorization', `Bearer ${key}`])]
    return gate.admit({ ...request, rawHeaders: sent })
  }
  const named = { 'X-Flash-App': 'one', 'X-Flash-Environment': 'default', 'X-Flash-Endpoint': 'hello' }
  const admitted = await admit(KEY, named)
  assert.ok('endpointId' in admitted)
  assert.deepEqual([admitted.endpointId, admitted.path, admitted.prefix], [id, '/add', null])
  assert.doesNotMatch(JSON.stringify(admitted.rawHeaders), new RegExp(KEY), 'no key reaches a worker')
  await assert.rejects(admit(null, named), { code: 'unauthorized' })
  await assert.rejects(admit('rpa_wrong', named), { code: 'unauthorized' })
  await assert.rejects(admit(KEY, {}), { code: 'invalid' })
  await assert.rejects(admit(KEY, { ...named, 'X-Flash-Endpoint': 'other' }), { code: 'not_found' })
  await assert.rejects(admit(await strangerKey(rig), named), { code: 'not_found' })
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  await assert.rejects(admit(reader, named), { code: 'forbidden' })
})

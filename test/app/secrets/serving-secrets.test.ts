/**
 * Variables about the serving of a worker may come from secrets: the used value, the times at
 * which it is read again, and the shown one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const reference = (name: string) => `{{ RUNPOD_SECRET_${name} }}`
const pairs = (env: Readonly<Record<string, string>>) => Object.entries(env).map(([key, value]) => ({ key, value }))

/** Saves a secret; gives what changes its value. */
async function secret(rig: Rig, name: string, value: string) {
  const { status, json } = await rig.ask('POST', '/v2/account/secrets', { body: { name, value } })
  assert.equal(status, 201)
  const path = `/v2/account/secrets/${json.id}`
  return {
    becomes: async (next: string) =>
      assert.equal((await rig.ask('PATCH', path, { body: { value: next } })).status, 200),
    goes: async () => assert.equal((await rig.ask('DELETE', path)).status, 204),
  }
}

const WRONG: readonly [variable: string, value: string, sentence: string][] = [
  ['PORT', 'hidden-1', 'the variable PORT must be a port from 1 to 65535'],
  ['PORT_HEALTH', '70000', 'the variable PORT_HEALTH must be a port from 1 to 65535'],
  [
    'HEALTH_CHECK_PATH',
    'hidden 2',
    'the variable HEALTH_CHECK_PATH must be a path that begins with a slash and has no blanks',
  ],
  ['RUNYARD_MAX_CONCURRENCY', '0x77', 'the variable RUNYARD_MAX_CONCURRENCY must be an integer from 1 to 1000000'],
  ['RUNPOD_INIT_TIMEOUT', '5 min', 'the variable RUNPOD_INIT_TIMEOUT must be a number of seconds from 1 to 86400'],
]

for (const [variable, value, sentence] of WRONG) {
  test(`no worker is started while the secret of ${variable} is wrong, why names the secret and not its value`, async t => {
    const { rig, gateway } = await openBalancedRig(t)
    const saved = await secret(rig, 'x', value)
    const id = await balancedEndpoint(rig, { template: { env: pairs({ [variable]: reference('x') }) } })
    gateway.wait(id, 1)
    await rig.clock.advance(60_000)
    assert.equal(rig.fleet.started.length, 0)
    const why = await rig.why(id)
    assert.equal(why.cause, 'settings_invalid')
    assert.ok(why.summary.includes(`${sentence}, which the value of the secret x is not`), why.summary)
    assert.ok(!JSON.stringify(why).includes(value))
    await saved.becomes(variable === 'HEALTH_CHECK_PATH' ? '/up' : '8000')
    await rig.clock.advance(5_000)
    assert.equal(rig.fleet.started.length, 1, 'a new value counts at once')
  })
}

test('a worker is started with the values, and asked at the path that it was started with until it ends', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const [port, path] = [await secret(rig, 'port', '8000'), await secret(rig, 'token', 'hidden-1')]
  const env = {
    PORT: reference('port'),
    HEALTH_CHECK_PATH: `/up?t=${reference('token')}`,
    RUNPOD_INIT_TIMEOUT: reference('port'),
  }
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 1, template: { env: pairs(env) } })
  await rig.clock.advance(1_000)
  const [first] = gateway.ready(id)
  const spec = rig.fleet.started[0]!
  assert.deepEqual([spec.env.PORT, spec.env.HEALTH_CHECK_PATH], ['8000', '/up?t=hidden-1'])
  const { serves } = (await rig.store.workers.find(first!))!
  assert.deepEqual([spec.serves?.port, serves?.port, serves?.initTimeoutMs], [8_000, 8_000, 8_000_000])
  assert.equal(rig.probes.paths.get(first!), '/up?t=hidden-1')
  await port.becomes('9000')
  await path.becomes('hidden-2')
  await rig.clock.advance(30_000)
  assert.deepEqual(gateway.ready(id), [first], 'it has the value that it was started with')
  assert.equal(rig.probes.paths.get(first!), '/up?t=hidden-1')
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${id}/workers/${first}`)).status, 204)
  await rig.clock.advance(10_000)
  const second = rig.fleet.started[1]!
  assert.deepEqual([second.serves?.port, second.env.HEALTH_CHECK_PATH], [9_000, '/up?t=hidden-2'])
  assert.equal(rig.probes.paths.get(second.workerId), '/up?t=hidden-2')
  await path.goes()
  await rig.clock.advance(30_000)
  assert.deepEqual(gateway.ready(id), [second.workerId])
  await rig.crash()
  await rig.start()
  await rig.clock.advance(5_000)
  assert.match((await rig.why(id)).summary, /secrets that do not exist: token|the secret of its path is gone/)
})

test('the path of the health check is kept and shown as it was saved, on every surface', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  await secret(rig, 'path', '/hidden-3')
  rig.probes.usual = { status: 503 }
  const env = pairs({ HEALTH_CHECK_PATH: reference('path') })
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 1, template: { env } })
  gateway.wait(id, 1)
  await rig.clock.advance(60_000)
  assert.equal([...rig.probes.paths.values()][0], '/hidden-3')
  const { json } = await rig.ask('GET', `/v2/serverless/${id}`)
  assert.equal(new URL(json.requestUrls.health).pathname, `/lb/${id}/%7B%7B%20RUNPOD_SECRET_path%20%7D%7D`)
  const workers = (await rig.ask('GET', `/v2/serverless/${id}/workers?ended=true`)).json
  const told = [json, workers, await rig.why(id), rig.events, await rig.store.workers.list(id)]
  assert.match(JSON.stringify(told), /it answers 503 at \{\{ RUNPOD_SECRET_path \}\}/)
  assert.ok(!JSON.stringify(told).includes('hidden-3'))
})

test('the limit of requests at a worker follows its secret, also where the notification is lost', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const limit = await secret(rig, 'limit', '3')
  const env = pairs({ RUNYARD_MAX_CONCURRENCY: reference('limit') })
  const id = await balancedEndpoint(rig, { scalerValue: 10, workersMin: 1, template: { env } })
  const told = () => gateway.endpoints.get(id)?.maxConcurrency
  await rig.clock.advance(1_000)
  assert.equal(told(), 3)
  await limit.becomes('5')
  await rig.clock.advance(1_000)
  assert.equal(told(), 5)
  rig.loses = topic => topic === 'endpoints'
  await limit.becomes('7')
  await rig.clock.advance(31_000)
  gateway.wait(id, 0)
  await rig.clock.advance(1_000)
  assert.equal(told(), 7)
})

test('RUNPOD_INIT_TIMEOUT of a queue may come from a secret', async t => {
  const rig = await openRig(t)
  await secret(rig, 'patience', '900')
  const { worker } = await rig.endpointWithWorker({
    env: pairs({ RUNPOD_INIT_TIMEOUT: reference('patience') }),
    workersMax: 1,
  })
  await rig.clock.advance(890_000)
  assert.ok(!rig.fleet.killed.has(worker.id))
  await rig.clock.advance(12_000)
  assert.ok(rig.fleet.killed.has(worker.id))
})

test('a secret of another account, and one that is far too long, are no value', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const { json: ada } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { key } = (await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: ada.id } })).json
  await rig.ask('POST', '/v2/account/secrets', { key, body: { name: 'hers', value: '3' } })
  await secret(rig, 'long', '3'.repeat(100_000))
  const told = async (name: string): Promise<EndpointId> => {
    const env = pairs({ RUNYARD_MAX_CONCURRENCY: reference(name) })
    const id = await balancedEndpoint(rig, { name, template: { env, name } })
    gateway.wait(id, 1)
    await rig.clock.advance(5_000)
    return id
  }
  const [hers, long] = [await told('hers'), await told('long')]
  assert.equal(rig.fleet.started.length, 0)
  assert.match((await rig.why(hers)).summary, /secrets that do not exist: hers/)
  assert.match((await rig.why(long)).summary, /which the value of the secret long is not/)
})

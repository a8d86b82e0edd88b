/** The network of an installation's containers, on a real engine and on ones that refuse. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import { containerReach } from '../../../src/core/workers/container-reach.ts'
import { connectEngine } from '../../../src/drivers/docker/engine/connection.ts'
import { RefusedCall } from '../../../src/drivers/docker/engine/engine-error.ts'
import { BridgeNetwork, listNetworks } from '../../../src/drivers/docker/network.ts'
import { engineEnv, probeSkip, engine as testEngine, testImage } from '../support/probe.ts'

/** An installation of this test alone, on the engine of the tests. */
function installation(t: { after(action: () => unknown): void }, given: string | null = null) {
  const { engine, local } = connectEngine('auto', engineEnv)!
  const name = `test${randomBytes(6).toString('hex')}`
  const network = new BridgeNetwork({ engine, local, installation: name, given })
  t.after(() => network.remove())
  return { engine, local, name, network }
}

test('it is made once, however many ask, and found again by another run', { skip: probeSkip }, async t => {
  const { engine, local, name, network } = installation(t)
  const [one, two] = await Promise.all([network.ensure(null), network.ensure(null)])
  assert.equal(one.id, two.id)
  const another = new BridgeNetwork({ engine, local, installation: name, given: null })
  assert.equal((await another.ensure(null)).id, one.id)
  const networks = await listNetworks(engine, name)
  assert.equal(networks.length, 1)
  assert.deepEqual([one.name, one.isolated, one.local], [`runyard-${name}`, true, true])
  assert.equal(containerReach(one, null).how, 'gateway')
})

test('one that is made again has its range, and any other where that is taken', { skip: probeSkip }, async t => {
  const { network } = installation(t)
  const first = await network.ensure(null)
  const range = { subnet: first.subnets[0]!, gateway: first.gateway! }
  assert.ok(await network.remove())
  const second = await network.ensure(range)
  assert.deepEqual([second.subnets, second.gateway], [first.subnets, first.gateway])
  const other = installation(t).network
  const elsewhere = await other.ensure(range)
  assert.notDeepEqual(elsewhere.subnets, first.subnets)
})

test('it stays while a container is in it', { skip: probeSkip }, async t => {
  const { network } = installation(t)
  const { name } = await network.ensure(null)
  const container = await testEngine.createContainer({
    Image: testImage,
    Cmd: ['sleep', '60'],
    HostConfig: { NetworkMode: name },
  })
  try {
    await container.start()
    assert.equal(await network.remove(), false)
  } finally {
    await container.remove({ force: true })
  }
  assert.equal(await network.remove(), true)
  assert.equal(await network.remove(), true)
})

test('a chosen network is used as it is, and those that workers must not be in are refused', {
  skip: probeSkip,
}, async t => {
  const { network } = installation(t, 'bridge')
  const found = await network.ensure(null)
  assert.deepEqual([found.name, found.isolated], ['bridge', false])
  for (const [name, wanted] of [
    ['host', /everything that listens/],
    ['none', /would not reach/],
    ['not-there', /no network/],
  ] as const) {
    await assert.rejects(installation(t, name).network.ensure(null), wanted)
  }
})

test('a cached network costs one call, and everything is read again when it was removed', async () => {
  const calls: string[] = []
  const networks = ['one']
  const inspect = async (id: string) => {
    calls.push(`inspect ${id}`)
    if (!networks.includes(id)) throw new RefusedCall('no such network', 404)
    const options = { 'com.docker.network.bridge.enable_icc': 'false' }
    return {
      Id: id,
      Name: 'runyard-abc',
      Options: options,
      IPAM: { Config: [{ Subnet: '127.0.0.0/8', Gateway: '127.0.0.1' }] },
    }
  }
  const answers: Readonly<Record<string, () => unknown>> = {
    '/info': () => ({ OperatingSystem: 'Debian' }),
    '/version': () => ({}),
    '/networks': () => networks.map(Id => ({ Id, Created: '' })),
  }
  const engine = {
    async call<Result>({ path }: { readonly path: string }): Promise<Result> {
      const answer = answers[path]
      if (answer === undefined) return (await inspect(path.slice('/networks/'.length))) as Result
      calls.push(path)
      return answer() as Result
    },
  }
  const network = new BridgeNetwork({ engine, installation: 'abc', given: null, local: true })
  const first = await network.ensure(null)
  assert.deepEqual(calls.splice(0), ['/networks', 'inspect one', '/info', '/version'])
  assert.deepEqual(await network.ensure(null), first)
  assert.deepEqual(calls.splice(0), ['inspect one'])
  networks[0] = 'two'
  assert.equal((await network.ensure(null)).id, 'two')
  assert.deepEqual(calls.splice(0), ['inspect one', '/networks', 'inspect two', '/info', '/version'])
})

/** An engine that has no networks and refuses to make one with this. */
function refusing(thrown: Error) {
  const engine = {
    async call<Result>({ method, path }: { readonly method: string; readonly path: string }): Promise<Result> {
      if (method === 'POST') throw thrown
      return (path === '/networks' ? [] : {}) as Result
    },
  }
  return new BridgeNetwork({ engine, installation: 'abc', given: null, local: true })
}

test('an engine without address ranges says what to do', async () => {
  const message =
    'could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network'
  await assert.rejects(refusing(new RefusedCall(message, 404)).ensure(null), (thrown: AppError) => {
    assert.ok(thrown instanceof AppError)
    assert.match(thrown.message, /no address range left .*docker network prune.*--docker-network/)
    return true
  })
})

test('an engine that is unavailable, or refuses, is reported with its message', async () => {
  await assert.rejects(
    refusing(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })).ensure(null),
    /engine cannot be reached: nobody listens there/,
  )
  await assert.rejects(
    refusing(new RefusedCall('plugin not found', 404)).ensure({ subnet: '10.0.0.0/24', gateway: '10.0.0.1' }),
    /makes no network for containers: plugin not found/,
  )
})

/** Ports of containers: those that are reported, those that are opened, and to whom. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { LABELS } from '../../../src/drivers/docker/container-spec.ts'
import { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { servedAddress } from '../../../src/drivers/docker/inspected-container.ts'
import { BridgeNetwork } from '../../../src/drivers/docker/network.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../../src/system/worker-logs/worker-logs.ts'
import { nextExit } from '../../contract/driver.ts'
import { statusAt } from '../../support/answers.ts'
import { type DockerMachine, noDocker, openDockerMachine } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { fastClock, playEngine } from '../../support/played-engine.ts'

const soon = () => new Promise<void>(resolve => fastClock.after(500, resolve))
const SERVER = 'cd /; for p in $PORT $PORT_HEALTH; do python3 -m http.server $p & done; wait'

describe('the ports of a container', { skip: noDocker, timeout: patient(120_000) }, () => {
  let machine: DockerMachine
  before(async () => {
    machine = await openDockerMachine()
  })
  after(() => machine.close())
  const inspect = (worker: WorkerId) => machine.engine.getContainer(`runyard-${worker}`).inspect()
  const published = () =>
    machine.driver({ connection: async () => ({ name: 'bridge', extraHosts: [], serving: 'published' }) })
  const start = async (driver: DockerDriver, changes: Parameters<DockerMachine['spec']>[1]) => {
    const spec = machine.spec(['sh', '-c', SERVER], changes)
    const handle = await driver.start(spec)
    return { worker: spec.workerId, handle }
  }

  test('are those that its user named, in its variables, and open to this machine alone', async () => {
    const driver = machine.driver()
    const serves = { port: 8000, healthPort: 8001 }
    const { worker } = await start(driver, { serves, env: { PORT: '1' }, ports: ['8000/http', '5000/udp', '22/tcp'] })
    const { Config, HostConfig, NetworkSettings } = await inspect(worker)
    assert.deepEqual(Object.keys(Config.ExposedPorts ?? {}).sort(), ['22/tcp', '5000/udp', '8000/tcp', '8001/tcp'])
    for (const variable of ['PORT=8000', 'PORT_HEALTH=8001']) assert.ok(Config.Env.includes(variable), variable)
    assert.deepEqual(Object.values(HostConfig.PortBindings ?? {}).filter(Boolean), [])
    const host = Object.values(NetworkSettings.Networks)[0]?.IPAddress
    assert.deepEqual(await driver.address(worker), { traffic: { host, port: 8000 }, health: { host, port: 8001 } })
    await driver.kill(worker)
  })

  test('are published on loopback, at ports that the engine chooses, where there is no way to the container', async () => {
    const driver = published()
    const { worker, handle } = await start(driver, { serves: { port: 80, healthPort: 81 }, ports: ['22/tcp'] })
    const { NetworkSettings } = await inspect(worker)
    const bound = Object.entries(NetworkSettings.Ports).map(([port, at]) => [
      port,
      (at ?? []).map(({ HostIp }) => HostIp),
    ])
    assert.deepEqual(Object.fromEntries(bound), { '22/tcp': [], '80/tcp': ['127.0.0.1'], '81/tcp': ['127.0.0.1'] })
    const served = await driver.address(worker)
    assert.ok(served !== null)
    assert.deepEqual([served.traffic.host, served.health.host], ['127.0.0.1', '127.0.0.1'])
    assert.deepEqual([await statusAt(served.traffic), await statusAt(served.health)], [200, 200])
    const other = await start(driver, { serves: { port: 80, healthPort: 80 } })
    const theirs = await driver.address(other.worker)
    assert.notDeepEqual(theirs?.traffic, served.traffic)
    assert.deepEqual(theirs?.traffic, theirs?.health)

    await driver.close()
    const next = machine.driver()
    assert.equal(await next.adopt(worker, handle), true)
    assert.deepEqual(await next.address(worker), served, 'whatever is found out about the engine by then')
    await Promise.all([next.kill(worker), machine.engine.getContainer(`runyard-${other.worker}`).kill()])
  })

  test('are out of reach for other workers, in the network that keeps them apart and through this machine', async () => {
    const network = new BridgeNetwork({
      engine: machine.engine.client,
      installation: machine.installation,
      given: null,
      local: true,
    })
    const { name, gateway } = await network.ensure(null)
    const drivers: DockerDriver[] = []
    try {
      const hosts: string[] = []
      for (const serving of ['direct', 'published'] as const) {
        const driver = machine.driver({ connection: async () => ({ name, extraHosts: [], serving }) })
        drivers.push(driver)
        const { worker } = await start(driver, { serves: { port: 80, healthPort: 80 } })
        const served = await driver.address(worker)
        assert.ok(served !== null)
        assert.equal(await statusAt(served.traffic), 200, 'this machine reaches it')
        const { NetworkSettings } = await inspect(worker)
        hosts.push(`${NetworkSettings.Networks[name]?.IPAddress}:80`)
        if (serving === 'published') hosts.push(`${gateway}:${served.traffic.port}`, `127.0.0.1:${served.traffic.port}`)
      }
      const tries = hosts.map(
        host => `python3 -c "import urllib.request as u; u.urlopen('http://${host}/', timeout=2)" && exit 9`,
      )
      const prober = machine.spec(['sh', '-c', `${tries.join('\n')}\nexit 0`])
      await drivers[0]!.start(prober)
      assert.equal((await nextExit(machine.notifier, drivers[0]!, prober.workerId)).code, 0, hosts.join(', '))
      const failed = (await machine.output(prober.workerId)).filter(line => /refused|timed out/.test(line))
      assert.ok(failed.length >= hosts.length, failed.join('\n'))
    } finally {
      for (const { Id } of await machine.own()) await machine.engine.getContainer(Id).remove({ force: true })
      await Promise.all(drivers.map(driver => driver.close()))
      await network.remove()
    }
  })

  test('of a queue worker are known to the engine and open to nobody, whatever their numbers', async () => {
    const driver = published()
    const { worker } = await start(driver, { ports: ['8000/http', '08000/tcp', '0/tcp', '65536/http', '65535/udp'] })
    const { Config, HostConfig } = await inspect(worker)
    assert.deepEqual(Object.keys(Config.ExposedPorts ?? {}).sort(), ['65535/udp', '8000/tcp'])
    assert.deepEqual(Object.values(HostConfig.PortBindings ?? {}).filter(Boolean), [])
    assert.ok(!Config.Env.some(variable => variable.startsWith('PORT=')))
    assert.equal(await driver.address(worker), null)
    await driver.kill(worker)
  })

  test('of an engine on another machine cannot be reached, so nothing is started that serves', async () => {
    const driver = machine.driver({ connection: async () => ({ name: 'bridge', extraHosts: [], serving: 'none' }) })
    await assert.rejects(start(driver, { serves: { port: 80, healthPort: 80 } }), {
      code: 'invalid',
      message: /load-balancing endpoint cannot be started: its engine is on another machine/,
    })
    const { worker } = await start(driver, {})
    await driver.kill(worker)
  })

  test('are known while the engine is away, once they were read', async () => {
    const driver = machine.driver()
    const { worker, handle } = await start(driver, { serves: { port: 80, healthPort: 80 } })
    const served = await driver.address(worker)
    const alone = machine.driver({ addresses: () => engineAddresses('unix:///nowhere.sock', {}) })
    assert.equal(await alone.adopt(worker, handle), true)
    assert.equal(await alone.address(worker), null, 'nobody can tell yet')
    assert.deepEqual(await driver.address(worker), served)
    await driver.kill(worker)
    await nextExit(machine.notifier, driver, worker)
    assert.equal(await driver.address(worker), null)
  })
})

test('a container that got another address while its engine was away is reached there', {
  timeout: patient(20_000),
}, async context => {
  const inspected = (address: string) => (response: ServerResponse) =>
    void response.end(
      JSON.stringify({
        Id: 'c',
        State: { Running: true },
        Config: { Labels: { [LABELS.worker]: 'w', [LABELS.installation]: 'i', [LABELS.serves]: '80,81' } },
        NetworkSettings: { Networks: { runyard: { IPAddress: address } } },
      }),
    )
  const list = [{ Id: 'c', State: 'running', Labels: { [LABELS.worker]: 'w' } }]
  const answers = new Map([
    ['/containers/json', (response: ServerResponse) => void response.end(JSON.stringify(list))],
    ['/containers/c/json', inspected('172.18.0.2')],
  ])
  const { url, folder, hangUp, listen } = await playEngine(context, { answers })
  const driver = new DockerDriver({
    clock: fastClock,
    installation: 'i',
    stateDir: folder,
    runtime: folder,
    maxWorkers: 1,
    bootId: '',
    addresses: () => engineAddresses(url, {}),
    notifier: createNotifier(),
    note: () => {},
    logs: createWorkerLogs({ folder: join(folder, 'logs'), clock: fastClock }),
    connection: async () => ({ name: 'runyard', extraHosts: [], serving: 'direct' }),
  })
  context.after(() => driver.close())
  const worker = 'w' as WorkerId
  assert.equal(await driver.adopt(worker, '{"container":"c","process":null}'), true)
  // Deadlines pass fifty times as fast here, so on a busy machine the engine is away at first.
  while ((await driver.address(worker))?.traffic.host !== '172.18.0.2') await soon()
  await hangUp()
  assert.equal((await driver.address(worker))?.traffic.host, '172.18.0.2', 'it may well go on there')
  answers.set('/containers/c/json', inspected('172.18.0.9'))
  await listen()
  while ((await driver.address(worker))?.health.host !== '172.18.0.9') await soon()
})

test('the address of a container comes from its label and its network', () => {
  const container = (serves: string | null, ports: object, networks: object) =>
    servedAddress({
      Id: 'c',
      State: { Running: true },
      Config: { Labels: serves === null ? {} : { 'dev.runyard.serves': serves } },
      NetworkSettings: { Ports: ports as never, Networks: networks as never },
    })
  const net = { runyard: { IPAddress: '172.18.0.2' } }
  const own = { host: '172.18.0.2', port: 80 }
  assert.deepEqual(container('80,81', { '80/tcp': null }, net), { traffic: own, health: { ...own, port: 81 } })
  assert.deepEqual(container('80,80', { '80/tcp': [{ HostIp: '0.0.0.0', HostPort: '49153' }] }, net)?.traffic, {
    host: '127.0.0.1',
    port: 49_153,
  })
  for (const [serves, networks] of [
    [null, net],
    ['', net],
    ['80', net],
    ['80,81', {}],
    ['80,81', { a: { IPAddress: '' } }],
  ] as const) {
    assert.equal(container(serves, {}, networks), null)
  }
})

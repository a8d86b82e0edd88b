/** The address for workers in containers: kept, moved and given up as their network and the relay come and go. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import type { AddressRange, WorkerNetwork } from '../../../src/ports/container-network.ts'
import { ContainerAddress } from '../../../src/server/container-address.ts'

const RELAY_PORT = 41_000

/** An engine with a network, a relay and a server, all of them made up. */
class World {
  readonly file: string
  readonly notes: string[] = []
  readonly wanted: (AddressRange | null)[] = []
  readonly bound: string[] = []
  readonly closed: string[] = []
  network: Partial<WorkerNetwork> = {}
  problem: string | null = null
  containers = 0
  relay: { port: number; outer: { host: string; port: number } | null; works: boolean } | null = {
    port: RELAY_PORT,
    outer: null,
    works: true,
  }
  readonly taken = new Set<number>()
  missing = false

  constructor(t: TestContext) {
    const folder = mkdtempSync(join(tmpdir(), 'runyard-containers-'))
    t.after(() => rmSync(folder, { recursive: true }))
    this.file = join(folder, 'container-address.json')
  }

  /** The address as a run of the server has it. */
  open(given: string | null = null): ContainerAddress {
    const { relay } = this
    return new ContainerAddress({
      given,
      file: this.file,
      network: {
        ensure: async wanted => {
          this.wanted.push(wanted)
          if (this.problem !== null) throw new AppError('unavailable', this.problem)
          return this.found()
        },
        remove: async () => this.containers === 0,
      },
      relay: async () =>
        relay === null
          ? null
          : {
              port: relay.port,
              get outer() {
                return relay.outer
              },
              listenToo: async wanted => {
                if (!relay.works) throw new Error('it answers 404')
                relay.outer = { host: wanted.host, port: this.bind(wanted.host, wanted.port) }
                return relay.outer.port
              },
            },
      listen: async (host, port) => {
        if (this.missing) throw Object.assign(new Error('no such address'), { code: 'EADDRNOTAVAIL' })
        const got = this.bind(host, port)
        return {
          url: `http://${host}:${got}`,
          port: got,
          makeRoom: () => {},
          take: () => {},
          close: async () => void this.closed.push(`${host}:${got}`),
        }
      },
      note: (what, fields) =>
        void this.notes.push(`${what} ${'url' in fields ? fields.url : Object.values(fields)[0]}`),
    })
  }

  found(): WorkerNetwork {
    return {
      id: 'n',
      name: 'runyard-abc',
      subnets: ['172.18.0.0/16'],
      isolated: true,
      platform: 'linux',
      product: 'docker',
      operatingSystem: 'Debian',
      rootless: false,
      local: true,
      gateway: '172.18.0.1',
      addresses: ['172.18.0.1', '172.19.0.1', '192.0.2.7'],
      ...this.network,
    }
  }

  bind(host: string, port: number): number {
    const got = port === 0 || this.taken.has(port) ? 50_000 + this.bound.length : port
    this.bound.push(`${host}:${got}`)
    return got
  }
}

test('the relay listens on the gateway, with its own port where that is free', async t => {
  const world = new World(t)
  const address = world.open()
  assert.equal(address.currentUrl, null)
  assert.equal(await address.url(), `http://172.18.0.1:${RELAY_PORT}`)
  assert.equal(await address.url(), `http://172.18.0.1:${RELAY_PORT}`)
  assert.deepEqual(world.bound, [`172.18.0.1:${RELAY_PORT}`])
  assert.equal(statSync(world.file).mode & 0o777, 0o600)
})

test('nothing is made for an installation that never had a container', async t => {
  const world = new World(t)
  const address = world.open()
  await address.resume()
  await address.close(0)
  assert.deepEqual([world.wanted, world.bound, existsSync(world.file)], [[], [], false])
})

test('containers are known by the addresses of their network, also before the engine answers', async t => {
  const world = new World(t)
  await world.open().attach()
  world.problem = 'the container engine cannot be reached: ENOENT'
  const later = world.open()
  await later.resume()
  assert.equal(later.currentUrl, `http://172.18.0.1:${RELAY_PORT}`)
  assert.ok(later.isContainer('172.18.3.4'))
  assert.ok(later.isContainer('::ffff:172.18.3.4'))
  assert.ok(!later.isContainer('172.19.0.1'))
  assert.ok(!later.isContainer(undefined))
})

test('the next run has the address of the last one, port and range of the network included', async t => {
  const world = new World(t)
  world.relay = null
  const first = await world.open().url()
  assert.equal(first, 'http://172.18.0.1:50000')
  const second = world.open()
  await second.resume()
  assert.equal(second.currentUrl, first)
  assert.deepEqual(world.wanted, [null, { subnet: '172.18.0.0/16', gateway: '172.18.0.1' }])
})

test('an engine that starts later is found, and its absence is logged once', async t => {
  const world = new World(t)
  const address = world.open()
  world.problem = 'the container engine cannot be reached: ENOENT'
  await assert.rejects(address.url(), /cannot be reached: ENOENT/)
  await assert.rejects(address.url(), AppError)
  world.problem = null
  await address.url()
  assert.deepEqual(world.notes, [
    'containers.unreachable the container engine cannot be reached: ENOENT',
    `containers.reachable http://172.18.0.1:${RELAY_PORT}`,
  ])
})

test('a network that comes back with another gateway gets a listener there', async t => {
  const world = new World(t)
  world.relay = null
  const address = world.open()
  await address.url()
  world.network = { gateway: '172.19.0.1', subnets: ['172.19.0.0/16'] }
  const { url } = await address.attach()
  assert.equal(url, 'http://172.19.0.1:50001')
  assert.deepEqual(world.closed, ['172.18.0.1:50000'])
  assert.ok(address.isContainer('172.19.0.2') && !address.isContainer('172.18.0.2'))
})

test('a port that another program has taken is replaced, and workers with the old one are replaced too', async t => {
  const world = new World(t)
  world.relay = null
  const first = await world.open().url()
  world.taken.add(50_000)
  const second = world.open()
  await second.resume()
  assert.notEqual(second.currentUrl, first)
})

test('without a relay that can do it the server listens there itself', async t => {
  const world = new World(t)
  world.relay!.works = false
  const address = world.open()
  assert.equal(await address.url(), `http://172.18.0.1:${RELAY_PORT}`)
  await address.close(0)
  assert.deepEqual(world.closed, [`172.18.0.1:${RELAY_PORT}`])
})

test('an address that disappears before it is bound is named in the error', async t => {
  const world = new World(t)
  world.relay = null
  world.missing = true
  await assert.rejects(world.open().url(), /cannot listen on 172\.18\.0\.1, .*EADDRNOTAVAIL/)
})

test('a container is connected as its address was found, without another look', async t => {
  const world = new World(t)
  const address = world.open()
  const attached = await address.attach()
  assert.deepEqual(await address.connection(), attached)
  assert.equal(world.wanted.length, 1)
  world.problem = 'the container engine cannot be reached: ENOENT'
  await assert.rejects(address.url(), AppError)
  await assert.rejects(address.connection(), /ENOENT/, 'what was found before holds no longer')
  world.problem = null
  assert.equal((await address.connection()).network, 'runyard-abc')
})

test('in a virtual machine containers call the loopback address of the relay by a name', async t => {
  const world = new World(t)
  world.network = { operatingSystem: 'Docker Desktop', gateway: '172.30.0.1' }
  const attached = await world.open().attach()
  assert.deepEqual(attached, {
    network: 'runyard-abc',
    url: `http://host.docker.internal:${RELAY_PORT}`,
    extraHosts: ['host.docker.internal:host-gateway'],
    serving: 'published',
  })
  assert.deepEqual(world.bound, [])
})

test('a stop takes the network away, unless containers are left in it', async t => {
  const world = new World(t)
  const first = world.open()
  await first.attach()
  world.containers = 1
  await first.close(0)
  assert.ok(existsSync(world.file))
  world.containers = 0
  const second = world.open()
  await second.close(0)
  assert.ok(!existsSync(world.file))
})

test('an unreadable file is treated as missing', async t => {
  const world = new World(t)
  for (const text of ['', '{', '{"url":7}', '[]']) {
    writeFileSync(world.file, text)
    assert.equal(world.open().currentUrl, null, text)
  }
  await world.open().attach()
  assert.equal(JSON.parse(readFileSync(world.file, 'utf8')).port, RELAY_PORT)
})

/** Address by which containers reach the server, as a table of engines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containerReach, type EngineFacts, isWithin } from '../../../src/core/workers/container-reach.ts'

const debian: EngineFacts = {
  platform: 'linux',
  product: 'docker',
  operatingSystem: 'Debian GNU/Linux 12 (bookworm)',
  rootless: false,
  local: true,
  gateway: '172.18.0.1',
  addresses: ['127.0.0.1', '192.0.2.7', '172.17.0.1', '172.18.0.1'],
}
const elsewhere = { gateway: '172.20.0.1' }

const ways: [name: string, facts: Partial<EngineFacts>, given: string | null, way: string][] = [
  ['an engine on this machine', {}, null, 'gateway 172.18.0.1 as 172.18.0.1'],
  [
    'Docker Desktop on Linux',
    { ...elsewhere, operatingSystem: 'Docker Desktop' },
    null,
    'virtual_machine 127.0.0.1 as host.docker.internal, published, host.docker.internal:host-gateway',
  ],
  [
    'OrbStack',
    { ...elsewhere, platform: 'darwin', operatingSystem: 'OrbStack' },
    null,
    'virtual_machine 127.0.0.1 as host.docker.internal, published, host.docker.internal:host-gateway',
  ],
  [
    'any engine on a Mac',
    { ...elsewhere, platform: 'darwin' },
    null,
    'virtual_machine 127.0.0.1 as host.docker.internal, published, host.docker.internal:host-gateway',
  ],
  [
    'Podman in its machine',
    { ...elsewhere, platform: 'darwin', product: 'podman' },
    null,
    'virtual_machine 127.0.0.1 as host.containers.internal, published',
  ],
  [
    'a virtual machine whose network has an address that is here too',
    { operatingSystem: 'Docker Desktop' },
    null,
    'virtual_machine 127.0.0.1 as host.docker.internal, published, host.docker.internal:host-gateway',
  ],
  ['Podman with a container in the network', { product: 'podman' }, null, 'gateway 172.18.0.1 as 172.18.0.1'],
  ['Podman without one', { ...elsewhere, product: 'podman' }, null, 'none: Podman makes the address'],
  ['rootless', { ...elsewhere, rootless: true }, null, 'none: the engine runs without root'],
  [
    'rootless, with an address',
    { ...elsewhere, rootless: true },
    '192.0.2.7',
    'given 192.0.2.7 as 192.0.2.7, published',
  ],
  ['over TCP', { local: false }, null, 'none: the engine is on another machine'],
  [
    'over TCP, with an address',
    { ...elsewhere, local: false },
    '192.0.2.7',
    'given 192.0.2.7 as 192.0.2.7, serves nothing',
  ],
  [
    'a server in a container of its own',
    elsewhere,
    null,
    "none: the network's gateway 172.20.0.1 is not on this machine",
  ],
  ['a network without gateway', { gateway: null }, null, 'none: the network has no gateway'],
  ['an address of this machine is chosen', {}, '192.0.2.7', 'given 192.0.2.7 as 192.0.2.7'],
  [
    'an address of another machine is chosen',
    {},
    '192.0.2.8',
    'none: --docker-worker-address 192.0.2.8 is not an address',
  ],
  ['loopback is chosen', {}, '127.0.0.1', 'none: --docker-worker-address 127.0.0.1 leads containers to themselves'],
  ['a name is chosen', {}, 'host.lima.internal', 'virtual_machine 127.0.0.1 as host.lima.internal, published'],
]

const SERVING = { published: 'published', none: 'serves nothing' }

for (const [name, facts, given, wanted] of ways) {
  test(`${name}: ${wanted}`, () => {
    const reach = containerReach({ ...debian, ...facts }, given)
    const said =
      reach.how === 'none'
        ? `none: ${reach.problem}; ${reach.action}`.slice(0, wanted.length)
        : `${reach.how} ${[`${reach.listenOn} as ${reach.host}`, ...(reach.serving === 'direct' ? [] : [SERVING[reach.serving]]), ...reach.extraHosts].join(', ')}`
    assert.equal(said, wanted)
  })
}

test('a way that is not there says what to do', () => {
  for (const [, facts, given] of ways) {
    const reach = containerReach({ ...debian, ...facts }, given)
    if (reach.how === 'none') assert.match(`${reach.problem}; ${reach.action}`, /--docker-worker-address/)
  }
})

test('an address lies in a network when its first bits are those of the network', () => {
  const networks = ['172.18.0.0/16', '10.1.2.128/25']
  for (const inside of ['172.18.0.2', '172.18.255.255', '::ffff:172.18.3.4', '10.1.2.128', '10.1.2.255']) {
    assert.ok(isWithin(inside, networks), inside)
  }
  for (const outside of [
    '172.19.0.2',
    '172.17.255.255',
    '10.1.2.127',
    '127.0.0.1',
    '::1',
    'fe80::1',
    '',
    '172.18.0',
    '999.18.0.1',
  ]) {
    assert.ok(!isWithin(outside, networks), outside)
  }
  assert.ok(isWithin('255.255.255.255', ['0.0.0.0/0']))
  assert.ok(!isWithin('172.18.0.2', ['fd00::/64', 'nonsense', '172.18.0.0/x']))
})

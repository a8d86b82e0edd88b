/** Registries that accounts other than the operator's may make a container engine call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createImageRegistries } from '../../src/system/http/image-registries.ts'

const found = (...addresses: string[]) => addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
const interfaces = () => ['203.0.113.7']

test('a registry that is private by its name or address is refused, in each notation', () => {
  const { isAllowed } = createImageRegistries({ allowed: [], interfaces })
  const refused = [
    ...[
      'localhost',
      'LOCALHOST:5000',
      'localhost.:5000',
      'a.localhost',
      '127.0.0.1:5000',
      '127.1:5000',
      '2130706433:5000',
    ],
    ...['0x7f000001:5000', '0177.0.0.1:5000', '0x7f.1', '0.0.0.0', '[::1]:5000', '[::]:5000', '[::ffff:7f00:1]:5000'],
    ...[
      '[::ffff:a00:1]',
      '10.0.0.1',
      '172.16.0.1:443',
      '192.168.1.2',
      '169.254.169.254',
      '100.100.100.200',
      '[fe80::1]',
    ],
    ...[
      '[fd00::1]:5000',
      '203.0.113.7:5000',
      'registry:5000',
      'registry',
      'nas.local',
      'r.internal:5000',
      'r.lan',
      'r.home.arpa',
    ],
    ...['r.default.svc', 'host.docker.internal:5000', '', ':5000', '999.1.1.1'],
  ]
  for (const registry of refused) assert.equal(isAllowed(registry), false, registry)
  const allowed = [
    'docker.io',
    'ghcr.io',
    'registry.example.com:5000',
    '1.1.1.1:5000',
    '[2606:4700::1111]:5000',
    'LOCAL.example',
  ]
  for (const registry of allowed) assert.equal(isAllowed(registry), true, registry)
})

test('a name is resolved when the engine is about to call it, and all its addresses have to be public', async () => {
  const answers: Record<string, string[]> = {
    'public.example': ['1.1.1.1', '2606:4700::1111'],
    'inside.example': ['10.1.2.3'],
    'mixed.example': ['1.1.1.1', '127.0.0.1'],
    'own.example': ['203.0.113.7'],
    'mapped.example': ['::ffff:127.0.0.1'],
    'none.example': [],
  }
  const resolve = async (name: string) => {
    const addresses = answers[name]
    if (addresses === undefined) throw new Error('ENOTFOUND')
    return found(...addresses)
  }
  const registries = createImageRegistries({ allowed: ['inside.example:5000'], interfaces, resolve })
  const reached: Record<string, string> = {}
  for (const name of [...Object.keys(answers), 'unknown.example']) reached[name] = await registries.reach(`${name}:443`)
  assert.deepEqual(reached, {
    'public.example': 'allowed',
    'inside.example': 'refused',
    'mixed.example': 'refused',
    'own.example': 'refused',
    'mapped.example': 'refused',
    'none.example': 'unresolved',
    'unknown.example': 'unresolved',
  })
  assert.equal(await registries.reach('inside.example:5000'), 'allowed')
  // An engine may have a mirror for it.
  assert.equal(await registries.reach('docker.io'), 'allowed')
  assert.equal(await registries.reach('127.0.0.1:5000'), 'refused')
})

test('the operator allows registries by host, for one port or for all', () => {
  const { isAllowed } = createImageRegistries({ allowed: ['Registry.lan', '10.0.0.5:5000', '[fd00::5]'], interfaces })
  for (const registry of ['registry.lan', 'registry.lan:5000', '10.0.0.5:5000', '[fd00::5]:443']) {
    assert.equal(isAllowed(registry), true, registry)
  }
  for (const registry of ['x.registry.lan', '10.0.0.5', '10.0.0.5:5001', '[fd00::6]:443']) {
    assert.equal(isAllowed(registry), false, registry)
  }
})

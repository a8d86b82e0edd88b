/** Addresses that the server calls for those who name them. */
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { addressProblem } from '../../src/system/http/addresses.ts'
import { createOutbound } from '../../src/system/http/outbound.ts'

const anybody = { publicOnly: false, notThisMachine: false }
const publicOnly = { publicOnly: true, notThisMachine: false }

const forbidden = [
  ...['169.254.169.254', '169.254.0.1', '100.100.100.200', '168.63.129.16', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  ...['fd00:ec2::254', '::ffff:169.254.169.254', '::ffff:a9fe:1', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::'],
]
const local = [
  ...['127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '100.64.0.1', '0.0.0.0', '::1', '::', 'fd12::1'],
  ...['::ffff:127.0.0.1', '::ffff:10.0.0.1', '224.0.0.1', '64:ff9b::7f00:1'],
]
const open = ['1.1.1.1', '169.253.255.255', '172.32.0.1', '2606:4700::1111', '::ffff:1.1.1.1']

test('private and public addresses are recognized in each notation', () => {
  for (const address of forbidden) assert.match(addressProblem(address, anybody) ?? '', /link-local/, address)
  for (const address of local) {
    assert.equal(addressProblem(address, anybody), null, address)
    assert.match(addressProblem(address, publicOnly) ?? '', /not public/, address)
  }
  for (const address of open) assert.equal(addressProblem(address, publicOnly), null, address)
  assert.equal(addressProblem('example.com', anybody), 'is not an address')
})

test('this machine is recognized at loopback and at its interfaces, in each notation', () => {
  const rules = { publicOnly: false, notThisMachine: true, interfaces: () => ['203.0.113.7', '2001:db8::7'] }
  const own = [
    ...[
      '127.0.0.1',
      '127.255.0.1',
      '0.0.0.0',
      '0.1.2.3',
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::127.0.0.1',
    ],
    ...[
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '203.0.113.7',
      '::ffff:203.0.113.7',
      '64:ff9b::cb00:7107',
      '2002:cb00:7107::1',
    ],
    ...['2001:db8::7', '2001:db8:0:0::7'],
  ]
  for (const address of own) assert.match(addressProblem(address, rules) ?? '', /one of this machine/, address)
  for (const address of ['10.0.0.1', '203.0.113.8', '2001:db8::8', '::ffff:10.0.0.1']) {
    assert.equal(addressProblem(address, rules), null, address)
  }
  for (const address of Object.values(networkInterfaces()).flatMap(found => (found ?? []).map(one => one.address))) {
    assert.notEqual(addressProblem(address, { publicOnly: false, notThisMachine: true }), null, address)
  }
})

test('a call that may not go to this machine reaches it by no name or notation', async () => {
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const outbound = createOutbound({ publicOnly: false, resolve })
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    'name.example',
  ]
  for (const host of hosts) {
    const { signal } = new AbortController()
    const call = { url: `http://${host}:9/`, headers: {}, body: '', signal, notThisMachine: true }
    assert.match(JSON.stringify(await outbound.post(call)), /one of this machine/, host)
  }
})

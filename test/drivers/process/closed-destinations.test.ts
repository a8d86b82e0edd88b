/** Addresses that workers with networks of their own cannot reach, from the output of `ip` on the machine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closedDestinations, closingCommands } from '../../../src/drivers/cage/closed-destinations.ts'

const LOCAL = `local 10.0.0.5 dev eth0 proto kernel scope host src 10.0.0.5
local 127.0.0.0/8 dev lo proto kernel scope host src 127.0.0.1
local 127.0.0.1 dev lo proto kernel scope host src 127.0.0.1
local 172.17.0.1 dev docker0 proto kernel scope host src 172.17.0.1
local 192.0.2.0/28 dev lo scope host
broadcast 10.0.0.255 dev eth0 proto kernel scope link src 10.0.0.5
`
const MAIN = `default via 10.0.0.1 dev eth0
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5
10.9.0.0/24 via 10.0.0.9 dev eth0
172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 linkdown
192.168.1.0/24 dev br0 proto kernel scope link src 192.168.1.2
`
const closed = closedDestinations(LOCAL, MAIN, device => device === 'docker0')

test('metadata and link-local addresses are closed everywhere', () => {
  for (const network of ['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32'])
    assert.ok(closed.includes(network))
  assert.deepEqual(closedDestinations('', '', () => false).includes('169.254.0.0/16'), true)
})

test('all addresses of the machine are closed, and those of networks that lie on it alone', () => {
  for (const network of ['10.0.0.5/32', '172.17.0.1/32', '192.0.2.0/28', '172.17.0.0/16']) {
    assert.ok(closed.includes(network), network)
  }
})

test('other machines stay open, also behind a bridge with a card, and loopback is left to the network itself', () => {
  for (const network of ['10.0.0.0/24', '10.9.0.0/24', '192.168.1.0/24', '127.0.0.0/8']) {
    assert.ok(!closed.includes(network), network)
  }
})

test('what is closed once can be closed again', () => {
  assert.equal(closingCommands(['10.0.0.5/32']), 'route replace unreachable 10.0.0.5/32\n')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import type { Events } from '../../../src/events.ts'
import { CLOSED, GatewayAdmission } from '../../../src/gateway/entrance/admission.ts'
import { Access } from '../../../src/services/accounts/access.ts'
import { addressBlock, FailedKeys, InvalidKeyError } from '../../../src/services/accounts/failed-keys.ts'
import { portsWith } from '../../support/ports.ts'
import { KEY, openRig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const GUESSER = '203.0.113.7'

function openFailedKeys(maxAddresses?: number) {
  const clock = new VirtualClock()
  const emitted: Events['key.failed'][] = []
  const failed = new FailedKeys(
    portsWith({ clock, emit: (_, fields) => void emitted.push(fields as Events['key.failed']) }),
    maxAddresses,
  )
  const fails = (address: string, times = 1) => {
    let error = failed.refusal(address, new InvalidKeyError('unknown'))
    for (let more = 1; more < times; more += 1) error = failed.refusal(address, new InvalidKeyError('unknown'))
    return error
  }
  return { clock, emitted, failed, fails }
}

test('after 20 failed keys in a minute further ones of that address are 429 for a minute, with the rest of it to wait', async () => {
  const { clock, fails } = openFailedKeys()
  assert.equal(fails(GUESSER, 20).status, 401)
  assert.deepEqual([fails(GUESSER).status, fails(GUESSER).retryAfterSeconds], [429, 60])
  assert.equal(fails('203.0.113.8').status, 401, 'others are not slowed down')
  await clock.advance(45_500)
  assert.equal(fails(GUESSER).retryAfterSeconds, 15)
  await clock.advance(14_500)
  assert.equal(fails(GUESSER, 20).status, 401, 'tries while it was slowed down do not count')
  assert.equal(fails(GUESSER).status, 429)
})

test('a few failed keys slow no address down', async () => {
  const { clock, fails } = openFailedKeys()
  for (let minute = 0; minute < 3; minute += 1) {
    assert.equal(fails(GUESSER, 19).status, 401)
    await clock.advance(60_000)
  }
})

test('each failure is reported with its address, reason and number of keys, and several keys of a request count as several guesses', () => {
  const { emitted, failed, fails } = openFailedKeys()
  assert.equal(failed.refusal('2001:db8::1', new InvalidKeyError('disabled'), 4).status, 401)
  assert.deepEqual(emitted, [{ address: '2001:db8:0:0::/64', reason: 'disabled', count: 4 }])
  assert.equal(fails('2001:db8::2', 16).status, 401)
  assert.equal(fails('2001:db8::3').status, 429)
  assert.equal(emitted.length, 18)
})

test('the addresses of a whole network of IPv6 are one sender', () => {
  assert.equal(addressBlock('2001:DB8:1:2:aaaa::1'), '2001:db8:1:2::/64')
  assert.equal(addressBlock('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
  assert.equal(addressBlock('fe80::1%eth0'), 'fe80:0:0:0::/64')
  assert.equal(addressBlock('::1'), '0:0:0:0::/64')
  assert.equal(addressBlock('1:2:3::4:5:192.0.2.1'), '1:2:3:0::/64')
  assert.equal(addressBlock('::ffff:192.0.2.1'), '192.0.2.1')
  assert.equal(addressBlock('192.0.2.1'), '192.0.2.1')
  assert.equal(addressBlock(''), '')
})

test('no more addresses are remembered than there is room for: those that failed longest ago are forgotten', () => {
  const { fails } = openFailedKeys(3)
  for (const address of ['a', 'b', 'c']) fails(address, 20)
  assert.equal(fails('a').status, 429, 'it is the latest now')
  fails('d')
  assert.deepEqual([fails('a').status, fails('c').status], [429, 429])
  assert.equal(fails('b').status, 401)
})

test('a valid key of an address that is slowed down works at once, and a missing key is no guess', async t => {
  const rig = await openRig(t)
  const access = new Access(rig.ports, [])
  const from = () => GUESSER
  for (let guess = 0; guess < 20; guess += 1) {
    await assert.rejects(access.authenticate(null, from), { code: 'unauthorized' })
    await assert.rejects(access.authenticate(`rpa_${guess}`), { code: 'unauthorized' }, 'no address is no guess')
  }
  for (let guess = 0; guess < 20; guess += 1) {
    await assert.rejects(access.authenticate(`rpa_${guess}`, from), { code: 'unauthorized' })
  }
  await assert.rejects(access.authenticate('rpa_more', from), { code: 'rate_limited' })
  await assert.rejects(access.authenticate(null, from), { code: 'unauthorized' })
  assert.equal((await access.authenticate(KEY, from)).exempt, false)
})

test('keys that are disabled or expired count with their reason', async t => {
  const rig = await openRig(t)
  const emitted: unknown[] = []
  const access = new Access({ ...rig.ports, emit: (...event) => void emitted.push(event) }, [])
  const keys = [
    await rig.addKey('rpa_disabled', { disabled: true }),
    await rig.addKey('rpa_expired', { expiresAtMs: rig.clock.now() }),
  ]
  for (const key of keys)
    await assert.rejects(
      access.authenticate(key, () => GUESSER),
      { code: 'unauthorized' },
    )
  assert.deepEqual(
    emitted,
    ['disabled', 'expired'].map(reason => ['key.failed', { address: GUESSER, reason, count: 1 }]),
  )
})

test('tokens of an application beside a valid key, or for an endpoint without keys, are not guesses', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 })
  const closed = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4, name: 'closed' })
  const { access } = servicesOf(rig)
  const gate = new GatewayAdmission(rig.ports, access, { ...CLOSED, open: [id] }, () => '')
  t.after(() => gate.close())
  const admit = async (endpointId: EndpointId, path: string, keys: readonly string[]) => {
    const rawHeaders = keys.flatMap(key => ['Authorization', `Bearer ${key}`])
    const route = { endpointId, prefix: null, path, host: null }
    return gate.admit({ method: 'GET', peer: GUESSER, host: 'x:8080', rawHeaders, route, requestId: 'r' })
  }
  for (let call = 0; call < 20; call += 1) {
    await admit(id, '/', [`of-the-application-${call}`])
    await admit(closed, `/?api_key=of-the-application-${call}`, [KEY])
  }
  for (let guess = 0; guess < 5; guess += 1) {
    await assert.rejects(admit(closed, '/?api_key=a&api_key=b&api_key=c', [`guess-${guess}`]), { code: 'unauthorized' })
  }
  await assert.rejects(admit(closed, '/', ['guess']), { code: 'rate_limited' })
  await admit(closed, '/', [KEY])
})

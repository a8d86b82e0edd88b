/** Address of the console of a server, by its settings and by the address of management. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { consoleUrlFor, isReadableOnItsWay } from '../../src/main/listening/addresses.ts'

const SETTINGS = { consoleUrl: null, adminPort: null, adminHost: '127.0.0.1', host: '127.0.0.1' }

test('a console that this machine can reach is below localhost, at the port of management', () => {
  for (const host of ['127.0.0.1', 'localhost', '::1', '0.0.0.0', '::']) {
    assert.equal(consoleUrlFor({ ...SETTINGS, host }, 'http://127.0.0.1:8080'), 'http://console.localhost:8080', host)
  }
  const besides = { ...SETTINGS, host: '192.0.2.1', adminPort: 8081 }
  assert.equal(consoleUrlFor(besides, 'http://127.0.0.1:8081'), 'http://console.localhost:8081')
  assert.equal(consoleUrlFor(SETTINGS, 'http://127.0.0.1'), 'http://console.localhost')
})

test('an unreachable address is left out unless it is set, and a disabled console has no address', () => {
  assert.equal(consoleUrlFor({ ...SETTINGS, host: '192.0.2.1' }, 'http://192.0.2.1:8080'), null)
  const given = { ...SETTINGS, host: '192.0.2.1', consoleUrl: 'https://console.example' }
  assert.equal(consoleUrlFor(given, 'http://192.0.2.1:8080'), 'https://console.example')
  assert.equal(consoleUrlFor({ ...SETTINGS, consoleUrl: 'off' }, 'http://127.0.0.1:8080'), null)
})

test('what is typed into it can be read on its way without TLS, except on the machine itself', () => {
  assert.equal(isReadableOnItsWay('http://console.example'), true)
  assert.equal(isReadableOnItsWay('https://console.example'), false)
  assert.equal(isReadableOnItsWay('http://console.localhost:8080'), false)
})

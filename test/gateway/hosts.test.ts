import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NamingSettings, serverHosts } from '../../src/main/listening/addresses.ts'
import { hostCheck } from '../../src/server/hosts.ts'
import { machineNames } from '../../src/system/hardware/machine-names.ts'

const SETTINGS: NamingSettings = {
  host: '127.0.0.1',
  adminHost: '127.0.0.1',
  publicUrl: null,
  queueUrl: null,
  consoleUrl: null,
  lbDomain: null,
  dockerWorkerAddress: null,
  allowedHosts: [],
}

/** The status with which a request is refused; null for one that may go on. */
function statusOf(host: string | undefined, settings: Partial<NamingSettings> = {}, url = '/'): number | null {
  const check = hostCheck(
    serverHosts(
      { ...SETTINGS, ...settings },
      machineNames('My-Server', () => ''),
    ),
  )
  return check({ url, headers: host === undefined ? {} : { host } })?.status ?? null
}

test('each setting with a name of the server adds it, without case, port and a dot at its end', () => {
  const named: readonly [Partial<NamingSettings>, string][] = [
    [{ host: 'inside.example' }, 'inside.example:8080'],
    [{ adminHost: 'admin.example' }, 'admin.example:8081'],
    [{ publicUrl: 'https://api.example' }, 'API.example.'],
    [{ queueUrl: 'http://queue.example:99' }, 'queue.example'],
    [{ lbDomain: 'lb.example' }, 'e1.lb.example'],
    [{ lbDomain: 'lb.example' }, 'lb.example'],
    [{ consoleUrl: 'https://console.example:8443' }, 'console.example'],
    [{ dockerWorkerAddress: 'workers.example' }, 'workers.example:4000'],
    [{ allowedHosts: ['other.example'] }, 'other.example'],
  ]
  for (const [settings, host] of named) {
    assert.equal(statusOf(host, settings), null, host)
    assert.equal(statusOf(host), 421, host)
  }
  assert.equal(statusOf('evil-lb.example', { lbDomain: 'lb.example' }), 421)
})

test('the name of the machine reaches the server, also below the domains of its network', () => {
  for (const host of ['my-server:8080', 'MY-SERVER', 'my-server.local']) assert.equal(statusOf(host), null, host)
  assert.equal(statusOf('my-server.evil.example'), 421)
  const files: Record<string, string> = {
    '/etc/resolv.conf': '# domain none\nsearch Lan corp.example .\nnameserver 192.0.2.1\n',
    '/etc/hosts': '127.0.0.1 localhost\n192.0.2.7 box.corp.example box shop # till\n192.0.2.8 printer\n',
  }
  const names = machineNames('Box', file => files[file] ?? '')
  assert.deepEqual(new Set(names), new Set(['box', 'box.local', 'box.lan', 'box.corp.example', 'shop']))
  assert.ok(machineNames('mac.local', () => '').includes('mac'))
})

test('the authority of an absolute target is judged, whatever the Host field says', () => {
  assert.equal(statusOf('localhost', {}, 'http://evil.example/graphql'), 421)
  assert.equal(statusOf('evil.example', {}, 'http://localhost/graphql'), null)
  for (const url of ['http:///x', 'http://localhost@evil.example/', 'http://localhost\\@evil.example/']) {
    assert.equal(statusOf('localhost', {}, url), 400, url)
  }
})

test('an invalid host is refused with 400, and a name that only looks like an address with 421', () => {
  for (const host of ['', 'a b', 'localhost:99999', '[1::2::3]', '[::1', '-a', 'a,b'])
    assert.equal(statusOf(host), 400, host)
  for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', 'evillocalhost']) {
    assert.equal(statusOf(host), 421, host)
  }
  for (const host of ['127.0.0.1:80', '[::1]:80', 'e1.lb.localhost:8080', undefined]) assert.equal(statusOf(host), null)
})

test('a domain of an endpoint is accepted while an endpoint has it', () => {
  const known = new Set(['chat.example.org'])
  const check = hostCheck({ names: [], domains: [], also: name => known.has(name) })
  const status = (host: string) => check({ url: '/', headers: { host } })?.status ?? null
  assert.deepEqual([status('Chat.example.org.:8080'), status('other.example.org')], [null, 421])
  known.clear()
  assert.equal(status('Chat.example.org.:8080'), 421)
  known.add('other.example.org')
  assert.equal(status('other.example.org'), null)
  assert.equal(status('other.example.org/x'), 400)
})

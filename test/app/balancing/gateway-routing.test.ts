import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { routing } from '../../../src/server/mount.ts'

const OPTIONS = { domain: 'lb.example', ownHosts: ['api.lb.example'], closedHosts: ['ui.lb.example'] }

/** Endpoint, prefix and path; null where the request is for the rest of the server. */
function routeOf(host: string | undefined, url: string, options: Parameters<typeof routing>[0] = OPTIONS) {
  const route = routing(options)({ url, headers: host === undefined ? {} : { host } })
  return route === null ? null : [route.endpointId, route.prefix, route.path]
}

test('an endpoint is the first label of a host below localhost or the domain, in any spelling', () => {
  for (const host of ['e1.localhost', 'e1.localhost:8080', 'E1.LocalHost.', 'e1.localhost.:80', 'e1.lb.example:443']) {
    assert.deepEqual(routeOf(host, '/v2/serverless?a=1'), ['e1', null, '/v2/serverless?a=1'], host)
  }
  for (const host of ['localhost', '.localhost', 'a.b.localhost', 'e-1.localhost', 'docs.localhost', 'e1localhost']) {
    assert.equal(routeOf(host, '/'), null, host)
  }
  assert.equal(routeOf('e1.other.example', '/'), null)
  assert.equal(routeOf('e1.lb.example', '/', { domain: null, ownHosts: [], closedHosts: [] }), null)
  assert.equal(routeOf(undefined, '/'), null)
  assert.equal(routeOf('[::1]:8080', '/'), null)
})

test('paths of one endpoint after another lead to each, also where one id begins like another', () => {
  const paths = [
    ['/lb/e1/a', 'e1', '/a'],
    ['/lb/e1', 'e1', '/'],
    ['/lb/e1?a=1', 'e1', '/?a=1'],
    ['/lb/e12/a', 'e12', '/a'],
    ['/lb/e1//b', 'e1', '//b'],
    ['//lb//e1/c', 'e1', '/c'],
  ] as const
  for (const [url, id, path] of paths) assert.deepEqual(routeOf('localhost', url), [id, `/lb/${id}`, path], url)
  for (const url of ['/lb/e1-2/a', '/lb/e1%2f', '/lb/e1.x']) assert.equal(routeOf('localhost', url), null, url)
})

test('the host flash is that of all functions, which headers name', () => {
  for (const host of ['flash.localhost:8080', 'Flash.LB.localhost.', 'flash.lb.example']) {
    assert.deepEqual(routeOf(host, '/add?a=1'), [null, null, '/add?a=1'], host)
  }
  assert.equal(routeOf('flash.other.example', '/'), null)
  assert.equal(routeOf('localhost', '/lb/flash/add'), null)
})

test('where one domain is below the other, the longest that fits counts', () => {
  const options = { domain: 'x.localhost', ownHosts: [], closedHosts: [] }
  assert.deepEqual(routeOf('e1.x.localhost:8080', '/a', options), ['e1', null, '/a'])
  assert.deepEqual(routeOf('e1.localhost:8080', '/a', options), ['e1', null, '/a'])
  assert.deepEqual(routeOf('E1.X.localhost.', '/a', { ...options, domain: 'X.Localhost' }), ['e1', null, '/a'])
  assert.equal(routeOf('x.localhost:8080', '/a', options), null, 'the domain itself is no endpoint')
  assert.equal(routeOf('e1.e2.x.localhost', '/a', options), null)
})

test('a domain of its own leads to its endpoint in any spelling, from the moment at which it has it', () => {
  const known = new Map([['chat.example.org', 'e2' as EndpointId]])
  const route = routing({ ...OPTIONS, findEndpoint: name => known.get(name) ?? null })
  const at = (host: string, url = '/lb/e1/a?b') => {
    const found = route({ url, headers: { host } })
    return found === null ? null : [found.endpointId, found.prefix, found.path]
  }
  for (const host of ['chat.example.org', 'Chat.Example.ORG.:8443', 'chat.example.org:80']) {
    assert.deepEqual(at(host), ['e2', null, '/lb/e1/a?b'], host)
  }
  assert.deepEqual(at('elsewhere', 'http://chat.example.org/x'), ['e2', null, '/x'])
  assert.equal(at('sub.chat.example.org', '/x'), null)
  known.clear()
  assert.equal(at('chat.example.org', '/x'), null)
  known.set('api.lb.example', 'e2' as EndpointId).set('ui.lb.example', 'e2' as EndpointId)
  for (const own of ['api.lb.example', 'ui.lb.example']) assert.equal(at(own, '/x'), null, 'a name of the server wins')
})

test("the server's own hosts are never endpoints", () => {
  assert.equal(routeOf('API.lb.example:8080', '/v2/serverless'), null)
  assert.deepEqual(routeOf('api.lb.example', '/lb/e1/a'), ['e1', '/lb/e1', '/a'])
})

test('the hosts of the console have no endpoint, by name or below a path', () => {
  for (const host of ['ui.lb.example', 'UI.lb.example.:8443', 'console.localhost', 'Console.LocalHost.:8080']) {
    for (const path of ['/', '/lb/e1/a', '//lb//e1/a', '/lb/console'])
      assert.equal(routeOf(host, path), null, `${host} ${path}`)
    assert.equal(routeOf('localhost', `http://${host}/lb/e1/a`), null)
  }
  assert.equal(routeOf('console.lb.example', '/'), null)
  assert.deepEqual(routeOf('console.lb.example', '/lb/e1/a'), ['e1', '/lb/e1', '/a'])
})

test('an endpoint is the segment after /lb/, and all that follows is its path byte for byte', () => {
  const cases: readonly [string, string][] = [
    ['/lb/e1', '/'],
    ['/lb/e1/', '/'],
    ['/lb/e1?a=%2F', '/?a=%2F'],
    ['/lb/e1//a/../b%20?x=/lb/e2', '//a/../b%20?x=/lb/e2'],
  ]
  for (const [url, path] of cases) assert.deepEqual(routeOf('127.0.0.1:8080', url), ['e1', '/lb/e1', path], url)
  for (const url of ['//lb/e1//a//b', '/lb//e1//a//b', '///lb///e1//a//b', 'http://x//lb//e1//a//b']) {
    assert.deepEqual(routeOf('127.0.0.1:8080', url), ['e1', '/lb/e1', '//a//b'], url)
  }
  assert.deepEqual(routeOf('e1.localhost', '//a//b'), ['e1', null, '//a//b'])
  for (const url of [
    '/lb',
    '/lb/',
    '/lb//x-',
    '/lb/?/e1/',
    ' /lb/e1',
    '/lb/./e1',
    '/lb\\/e1',
    '/lb/E1/',
    '/lb/e-1/',
    '/lb/%65/',
    '/LB/e1/',
    '/v2/lb/e1',
    '*',
    '',
  ]) {
    assert.equal(routeOf('127.0.0.1:8080', url), null, url)
  }
})

test('a host takes precedence over the path, and the authority of an absolute target over the host', () => {
  assert.deepEqual(routeOf('e1.localhost', '/lb/e2/a'), ['e1', null, '/lb/e2/a'])
  assert.deepEqual(routeOf('e1.localhost', 'http://e2.localhost:8080/a?b'), ['e2', null, '/a?b'])
  assert.deepEqual(routeOf('e1.localhost', 'HTTP://127.0.0.1/lb/e2/a'), ['e2', '/lb/e2', '/a'])
  assert.deepEqual(routeOf('other', 'http://e2.localhost'), ['e2', null, '/'])
  assert.deepEqual(routeOf('other', 'http://e2.localhost?q'), ['e2', null, '/?q'])
  assert.equal(routeOf('e1.localhost', 'http://127.0.0.1/v2/serverless'), null)
})

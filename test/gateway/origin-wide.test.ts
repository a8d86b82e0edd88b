/** Headers of a load-balancing endpoint about an origin or a domain stay within the endpoint. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../src/core/ids.ts'
import type { ResponseHead } from '../../src/gateway/http1/response-head.ts'
import { type SeenAt, withinEndpoint } from '../../src/gateway/proxy/origin-wide.ts'

function headOf(headers: string[]): ResponseHead {
  return {
    status: 200,
    reason: 'OK',
    headers,
    framing: 0,
    keepAlive: true,
    idleSeconds: null,
    upgrade: null,
    requestId: null,
  }
}

/** The endpoint e1 as a client sees it. */
function seenAt(prefix: string | null, more: Partial<SeenAt> = {}): SeenAt {
  return { endpointId: 'e1' as EndpointId, prefix, host: 'runyard.example:8080', protocol: 'http', ...more }
}

function within(head: ResponseHead, prefix: string | null): ResponseHead {
  return withinEndpoint(head, seenAt(prefix))
}

function locationWithin(value: string, more: Partial<SeenAt> = {}, name = 'Location'): string {
  return withinEndpoint(headOf([name, value]), seenAt('/lb/e1', more)).headers[1]!
}

function cookieWithin(cookie: string, prefix: string | null): string | undefined {
  return within(headOf(['Set-Cookie', cookie]), prefix).headers[1]
}

test('an answer that says nothing about its origin is passed on as it is, without a copy', () => {
  const head = headOf(['Content-Type', 'text/html', 'X-Frame-Options', 'DENY'])
  assert.equal(within(head, '/lb/e1'), head)
  assert.equal(within(head, null), head)
})

test('below /lb/ fields that hold for the whole origin are taken out; a host of its own keeps them', () => {
  const named = ['Service-Worker-Allowed', 'Strict-Transport-Security', 'NEL', 'Alt-Svc', 'accept-ch', 'Expect-CT']
  for (const name of named) {
    const head = headOf(['A', '1', name, 'x', 'B', '2'])
    assert.deepEqual(within(head, '/lb/e1').headers, ['A', '1', 'B', '2'])
    assert.deepEqual(within(head, null).headers, head.headers)
  }
})

test('what reaches beyond an origin, or to a proxy in front of the server, is taken out below a host too', () => {
  for (const name of [
    'Clear-Site-Data',
    'clear-site-data',
    'X-Accel-Redirect',
    'X-Sendfile',
    'Sec-Session-Registration',
  ]) {
    for (const prefix of ['/lb/e1', null]) {
      const head = headOf(['A', '1', name, '"cookies"', 'X-Accel-Buffering', 'no'])
      assert.deepEqual(within(head, prefix).headers, ['A', '1', 'X-Accel-Buffering', 'no'])
    }
  }
})

test('below /lb/ a cookie is narrowed to the path of its endpoint, whatever it asks for', () => {
  for (const wide of [
    'a=1',
    'a=1; Path=/',
    'a=1; path = /',
    'a=1; Path=/lb',
    'a=1; Path=/lb/e10',
    'a=1;Path=/lb/e1;Path=/',
  ]) {
    assert.equal(cookieWithin(wide, '/lb/e1'), 'a=1; Path=/lb/e1', wide)
  }
  assert.equal(cookieWithin('a=1; Path=/lb/e1/x; Secure', '/lb/e1'), 'a=1; Secure; Path=/lb/e1/x')
  assert.equal(cookieWithin('a=1; Domain=localhost; HttpOnly', '/lb/e1'), 'a=1; HttpOnly; Path=/lb/e1')
})

test('below a host a cookie loses its domain, with which it would reach other endpoints', () => {
  assert.equal(cookieWithin('a=1; Path=/; Domain=lb.example', null), 'a=1; Path=/')
})

test('each cookie of an answer is narrowed', () => {
  const head = headOf(['Set-Cookie', 'a=1; Path=/', 'X', 'y', 'set-cookie', 'b=2'])
  assert.deepEqual(within(head, '/lb/e1').headers, [
    ...['Set-Cookie', 'a=1; Path=/lb/e1', 'X', 'y', 'set-cookie', 'b=2; Path=/lb/e1'],
  ])
})

test('an endpoint sets no cookie of the console, below a host or a path', () => {
  for (const name of ['runyard-console', 'runyard-console-8080', '__Host-runyard-console', '=Runyard-Console-1']) {
    const head = headOf(['A', '1', 'Set-Cookie', `${name}=x; Path=/`, 'set-cookie', 'b=2'])
    assert.deepEqual(within(head, null).headers, ['A', '1', 'set-cookie', 'b=2'])
    assert.deepEqual(within(head, '/lb/e1').headers, ['A', '1', 'set-cookie', 'b=2; Path=/lb/e1'])
  }
})

test('below /lb/ a redirect to a path, or to the host of the request, stays below the endpoint', () => {
  for (const [given, expected] of [
    ['/items/?q=1#x', '/lb/e1/items/?q=1#x'],
    ['/', '/lb/e1/'],
    ['/lb', '/lb/e1/lb'],
    ['/lb/e10/x', '/lb/e1/lb/e10/x'],
    ['//runyard.example:8080/a', '//runyard.example:8080/lb/e1/a'],
    ['http://runyard.example:8080/items/', 'http://runyard.example:8080/lb/e1/items/'],
    ['HTTP://Runyard.Example.:8080/items/', 'HTTP://Runyard.Example.:8080/lb/e1/items/'],
    ['http://runyard.example:8080', 'http://runyard.example:8080/lb/e1/'],
    ['http://runyard.example:8080?a=1', 'http://runyard.example:8080/lb/e1/?a=1'],
    // To HTTPS where the application wants it.
    ['https://runyard.example:8080/a', 'https://runyard.example:8080/lb/e1/a'],
    // Out of no path above its own.
    ['/../a/./b/..', '/lb/e1/a/'],
    ['/%2E%2e/a?b=/../c', '/lb/e1/a?b=/../c'],
    [String.raw`/\evil.example/x`, String.raw`/lb/e1/\evil.example/x`],
  ] as const) {
    assert.equal(locationWithin(given), expected, given)
  }
})

test('below /lb/ a redirect that names its prefix, another host, or a place beside the request is left as it is', () => {
  for (const kept of [
    ...['/lb/e1', '/lb/e1/', '/lb/e1?a', '/lb/e1/items/', 'http://runyard.example:8080/lb/e1/items'],
    ...['https://other.example/x', '//other.example/x', 'http://runyard.example/x', 'http://runyard.example:8081/x'],
    ...['http://me@runyard.example:8080/x', 'http://runyard.example:8080.evil.example/x', 'mailto:ada@runyard.example'],
    ...['items/', '../items', '?page=2', '#top', '', 'http:items', '*'],
  ]) {
    assert.equal(locationWithin(kept), kept, kept)
  }
})

test('the standard port of a scheme is the same as no port', () => {
  const host = 'runyard.example'
  assert.equal(locationWithin('http://runyard.example:80/x', { host }), 'http://runyard.example:80/lb/e1/x')
  assert.equal(locationWithin('http://runyard.example/x', { host: `${host}:80` }), 'http://runyard.example/lb/e1/x')
  assert.equal(locationWithin('http://[::1]:9/x', { host: '[::1]:9' }), 'http://[::1]:9/lb/e1/x')
})

test('a client of HTTPS is not led to plain HTTP at its own host', () => {
  const seen = { host: 'runyard.example', protocol: 'https' } as const
  assert.equal(locationWithin('http://runyard.example/x', seen), 'https://runyard.example/lb/e1/x')
  assert.equal(locationWithin('http://runyard.example:80/x', seen), 'https://runyard.example/lb/e1/x')
  assert.equal(locationWithin('//runyard.example/x', seen), '//runyard.example/lb/e1/x')
  assert.equal(locationWithin('http://other.example/x', seen), 'http://other.example/x')
})

test('a client that named no host is led to a path', () => {
  assert.equal(locationWithin('http:///items/', { host: '' }), '/lb/e1/items/')
})

test('the prefix of a proxy comes before that of the endpoint, once', () => {
  const seen = { prefix: '/api/lb/e1' }
  assert.equal(locationWithin('/x', seen), '/api/lb/e1/x')
  assert.equal(locationWithin('/api/lb/e1/x', seen), '/api/lb/e1/x')
  assert.equal(locationWithin('/lb/e1/x', seen), '/api/lb/e1/x')
  assert.equal(locationWithin('/x', { prefix: '/api' }), '/api/x', 'an endpoint with a host of its own behind it')
})

test('the place of a representation and a refresh are led back as a redirect is', () => {
  assert.equal(locationWithin('/x', {}, 'content-location'), '/lb/e1/x')
  for (const [given, expected] of [
    ['5; url=/x', '5; url=/lb/e1/x'],
    ["0;URL = '/x'", "0;URL = '/lb/e1/x'"],
    ['0, http://runyard.example:8080/x', '0, http://runyard.example:8080/lb/e1/x'],
    ['5', '5'],
    ['5; url=x', '5; url=x'],
    ['soon; url=/x', 'soon; url=/x'],
  ] as const) {
    assert.equal(locationWithin(given, {}, 'Refresh'), expected)
  }
})

test('below a host of its own an endpoint redirects as it likes', () => {
  const head = headOf(['Location', '/x', 'Refresh', '5; url=/y'])
  assert.equal(within(head, null), head)
})

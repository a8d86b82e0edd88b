/** What a load-balancing endpoint says about an origin or a domain stays within the endpoint. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResponseHead } from '../../src/gateway/http1/response-head.ts'
import { withinEndpoint } from '../../src/gateway/proxy/origin-wide.ts'

function headOf(headers: string[]): ResponseHead {
  return { status: 200, reason: 'OK', headers, framing: 0, keepAlive: true, idleSeconds: null, upgrade: null }
}

function cookieWithin(cookie: string, prefix: string | null): string | undefined {
  return withinEndpoint(headOf(['Set-Cookie', cookie]), prefix).headers[1]
}

test('an answer that says nothing about its origin is passed on as it is, without a copy', () => {
  const head = headOf(['Content-Type', 'text/html', 'X-Frame-Options', 'DENY'])
  assert.equal(withinEndpoint(head, '/lb/e1'), head)
  assert.equal(withinEndpoint(head, null), head)
})

test('below /lb/ fields that hold for the whole origin are taken out; a host of its own keeps them', () => {
  const named = ['Service-Worker-Allowed', 'Strict-Transport-Security', 'NEL', 'Alt-Svc', 'accept-ch', 'Expect-CT']
  for (const name of named) {
    const head = headOf(['A', '1', name, 'x', 'B', '2'])
    assert.deepEqual(withinEndpoint(head, '/lb/e1').headers, ['A', '1', 'B', '2'])
    assert.deepEqual(withinEndpoint(head, null).headers, head.headers)
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
      assert.deepEqual(withinEndpoint(head, prefix).headers, ['A', '1', 'X-Accel-Buffering', 'no'])
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
  assert.deepEqual(withinEndpoint(head, '/lb/e1').headers, [
    ...['Set-Cookie', 'a=1; Path=/lb/e1', 'X', 'y', 'set-cookie', 'b=2; Path=/lb/e1'],
  ])
})

test('an endpoint sets no cookie of the console, below a host or a path', () => {
  for (const name of ['runyard-console', 'runyard-console-8080', '__Host-runyard-console', '=Runyard-Console-1']) {
    const head = headOf(['A', '1', 'Set-Cookie', `${name}=x; Path=/`, 'set-cookie', 'b=2'])
    assert.deepEqual(withinEndpoint(head, null).headers, ['A', '1', 'set-cookie', 'b=2'])
    assert.deepEqual(withinEndpoint(head, '/lb/e1').headers, ['A', '1', 'set-cookie', 'b=2; Path=/lb/e1'])
  }
})

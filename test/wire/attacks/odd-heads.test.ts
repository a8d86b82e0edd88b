/** Heads of requests that a worker could read in another way than the gateway. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../../src/config/config.ts'
import { allowedTrailers } from '../../../src/gateway/http1/fields.ts'
import { requestHead } from '../../../src/gateway/http1/request-head.ts'
import { MalformedResponse, parseResponseHead } from '../../../src/gateway/http1/response-head.ts'

const CALL = {
  endpointId: 'e1',
  path: '/',
  prefix: null,
  toHealth: false,
  client: '10.0.0.1',
  protocol: 'http',
} as const

function headOf(rawHeaders: readonly string[]): string {
  const call = { ...CALL, rawHeaders, host: 'here' } as unknown as Parameters<typeof requestHead>[1]
  return requestHead({ method: 'POST', version: '1.1', upgrade: false }, call).text
}

test('a name with underscores does not pass for a field that the gateway sets or leaves out', () => {
  const twins = ['X_Forwarded_For', 'x-forwarded_proto', 'X_Runpod_Worker_Id', 'Content_Length', 'Transfer_Encoding']
  for (const name of twins) assert.doesNotMatch(headOf([name, '7']), new RegExp(`^${name}:`, 'm'))
  assert.match(headOf(['my_field', '7']), /^my_field: 7\r$/m)
})

test('a Content-Length with leading zeros is refused', () => {
  for (const length of ['007', '00']) assert.throws(() => headOf(['Content-Length', length]), /begins with 0/)
  assert.match(headOf(['Content-Length', '7']), /^Content-Length: 7\r$/m)
})

test('trailers about the framing, the sender or the request are dropped, others go on', () => {
  const dropped = [
    ...[
      'X-Request-Id',
      'x_request_id',
      'X-Runpod-Worker-Id',
      'X-Forwarded-For',
      'X_Forwarded_Proto',
      'X-Real-Ip',
      'Forwarded',
      'Via',
    ],
    ...[
      'Host',
      'Authorization',
      'Cookie',
      'Set-Cookie',
      'Content-Length',
      'Transfer-Encoding',
      'Content-Type',
      'Location',
      'Traceparent',
    ],
    ...[
      'WWW-Authenticate',
      'Clear-Site-Data',
      'Access-Control-Allow-Origin',
      'Strict-Transport-Security',
      'Vary',
      'If-Match',
      'Range',
    ],
  ]
  for (const name of dropped) assert.deepEqual(allowedTrailers([name, 'x', 'X-Sum', '1']), ['X-Sum', '1'], name)
  const kept = ['Grpc-Status', '0', 'Server-Timing', 'a', 'Digest', 'b', 'ETag', '"c"', 'x-amz-checksum-crc32', 'd']
  assert.deepEqual(allowedTrailers(kept), kept)
})

test('a Content-Length of a worker with leading zeros is refused', () => {
  for (const length of ['010', '00', '+1', '1, 1', '']) {
    for (const toHead of [true, false]) {
      const text = `HTTP/1.1 200 OK\r\nContent-Length: ${length}`
      assert.throws(() => parseResponseHead(text, toHead), MalformedResponse, length)
    }
  }
})

test('the password of the database is refused in arguments, and taken from the environment', () => {
  const url = 'postgres://me:hidden@host/name'
  const read = (option?: string, DATABASE?: string) =>
    readConfig({
      options: { database: option },
      env: DATABASE === undefined ? {} : { RUNYARD_DATABASE: DATABASE },
      absolute: path => path,
    })
  for (const given of [url, 'postgres://me@host/name?password=hidden']) {
    const refused = JSON.stringify(read(given))
    assert.match(refused, /--database must have no password.*RUNYARD_DATABASE/)
    assert.doesNotMatch(refused, /hidden/)
  }
  assert.ok('config' in read('postgres://me@host/name'))
  assert.ok('config' in read(undefined, url))
})

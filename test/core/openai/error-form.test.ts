import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anthropicText, errorForm, errorText } from '../../../src/core/openai/error-form.ts'
import { EventWriter } from '../../../src/core/openai/openai-stream.ts'

test('the operations of Anthropic have its form, at any address', () => {
  for (const path of [
    '/v1/messages',
    '/openai/v1/messages?beta=true',
    '/v2/abc/openai/v1/messages/count_tokens',
    '/v1/m%65ssages',
  ])
    assert.equal(errorForm(path), 'anthropic', path)
  for (const path of ['/v1/chat/completions', '/v1/models', '/v1/messagesx', '/openai/v1', ''])
    assert.equal(errorForm(path), 'openai', path)
})

test('an error has the members and the types of its form', () => {
  const error = { message: 'a', type: 'server_error', code: 'unavailable' }
  assert.deepEqual(JSON.parse(errorText('openai', 503, error)), { error: { ...error, param: null } })
  const typeOf = (status: number, type = 'x') =>
    JSON.parse(errorText('anthropic', status, { message: 'a', type })).error.type
  assert.deepEqual(
    [400, 401, 403, 404, 409, 413, 429, 499, 500, 502, 503, 504].map(status => typeOf(status)),
    [
      ...['invalid_request_error', 'authentication_error', 'permission_error', 'not_found_error'],
      ...['invalid_request_error', 'request_too_large', 'rate_limit_error', 'invalid_request_error'],
      ...['api_error', 'api_error', 'overloaded_error', 'timeout_error'],
    ],
  )
  assert.equal(typeOf(500, 'overloaded_error'), 'overloaded_error')
  for (const value of [null, 'a', [], {}, { error: 'a' }, { error: { message: 1 } }])
    assert.equal(anthropicText(500, value), null)
})

test('a stream of Anthropic has the names of its events, and no end that it does not know', () => {
  const writer = new EventWriter('anthropic')
  const start = { type: 'message_start', message: { type: 'message' } }
  assert.equal(
    writer.write({ kind: 'json', json: JSON.stringify(start) }),
    `event: message_start\ndata: ${JSON.stringify(start)}\n\n`,
  )
  assert.equal(writer.write({ kind: 'json', json: '{"type":"a b"}' }), 'data: {"type":"a b"}\n\n')
  assert.equal(writer.write({ kind: 'json', json: '[1]' }), 'data: [1]\n\n')
  assert.equal(writer.isDone, false)
  assert.equal(writer.done(), '')
  writer.write({ kind: 'text', text: 'event: message_stop\ndata: {"type":"message_stop"}\n\n' })
  assert.equal(writer.isDone, true)
})

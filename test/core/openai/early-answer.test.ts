import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerEvents, failureEvent } from '../../../src/core/openai/early-answer.ts'

/** The events of an answer: parsed data, and texts that are not JSON. */
function events(status: number, text: string | null, contentType = 'application/json') {
  return eventsOf(answerEvents('openai', { status, contentType, text }))
}

function eventsOf(text: string): ({ error: { message: string; type: string } } | string)[] {
  assert.ok(text.endsWith('\n\n'))
  return text
    .trim()
    .split('\n\n')
    .map(event => {
      assert.match(event, /^data: [^\n]+$/)
      const data = event.slice(6)
      return data === '[DONE]' ? data : JSON.parse(data)
    })
}

function errorOf([event]: ReturnType<typeof eventsOf>) {
  assert.ok(typeof event === 'object')
  return event.error
}

test('an error of a worker keeps its members, whatever the form', () => {
  const error = { message: 'too long', type: 'BadRequestError', param: 'messages', code: 400 }
  const events400 = (value: unknown) => events(400, typeof value === 'string' ? value : JSON.stringify(value, null, 2))
  const plain = { ...error, type: 'invalid_request_error', param: null }
  assert.deepEqual(events400({ error }), [{ error }])
  assert.deepEqual(events400({ object: 'error', ...error }), [{ error }])
  assert.deepEqual(events400({ error: { message: 'too long' } }), [{ error: plain }])
  for (const value of [{ error: 'too long' }, { detail: 'too long' }, { message: 'too long' }, 'too long'])
    assert.deepEqual(events400(value), [{ error: plain }], JSON.stringify(value))
  assert.deepEqual(events(503, ''), [
    { error: { message: 'the worker answered with 503', type: 'server_error', param: null, code: 503 } },
  ])
})

test('JSON of a worker that does not stream is one event, and another answer is an error', () => {
  const whole = { object: 'chat.completion', choices: [] }
  assert.deepEqual(events(200, JSON.stringify(whole, null, 2)), [whole, '[DONE]'])
  const messageOf = (text: string | null, type: string) => errorOf(events(200, text, type)).message
  assert.match(messageOf('RIFF', 'audio/wav'), /has the type audio\/wav/)
  assert.match(messageOf(null, 'application/json'), /is too long/)
  assert.match(messageOf('', ''), /has no type/)
})

test('an error of the server has the type of its status', () => {
  const typeOf = (status: number) => errorOf(eventsOf(failureEvent('openai', status, 'a\nb'))).type
  assert.deepEqual([404, 429, 400, 502].map(typeOf), [
    'not_found_error',
    'rate_limit_error',
    'invalid_request_error',
    'server_error',
  ])
})

test('clients of Anthropic get errors by their name, and an error in place of a message that is no stream', () => {
  const errorIn = (status: number, text: string) => {
    const [name, data] = answerEvents('anthropic', { status, contentType: 'application/json', text }).trim().split('\n')
    assert.equal(name, 'event: error')
    const { type, error } = JSON.parse(data!.slice('data: '.length))
    assert.equal(type, 'error')
    return [error.type, error.message]
  }
  const own = { type: 'error', error: { type: 'overloaded_error', message: 'full' }, request_id: 'r' }
  assert.deepEqual(errorIn(500, JSON.stringify(own)), ['overloaded_error', 'full'])
  assert.deepEqual(errorIn(404, '{"object":"error","message":"none","code":404}'), ['not_found_error', 'none'])
  assert.deepEqual(errorIn(400, '{"detail":"too long"}'), ['invalid_request_error', 'too long'])
  assert.deepEqual(errorIn(200, '{"type":"message"}'), [
    'api_error',
    'the worker sent no stream: its answer has the type application/json',
  ])
})

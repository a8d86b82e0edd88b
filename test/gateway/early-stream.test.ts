import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import type { ErrorForm } from '../../src/core/openai/error-form.ts'
import { EarlyStream } from '../../src/gateway/proxy/early-stream.ts'

const EVENTS = ['Content-Type', 'text/event-stream; charset=utf-8']
const JSON_TYPE = ['Content-Type', 'application/json']
const COMMENT = ': waiting for a worker\n\n'

/** A stream that began at 0, and what the client has of it. */
function begun(form: ErrorForm = 'openai') {
  const sent = { status: 0, headers: [] as string[], text: '', ended: false }
  const outgoing = {
    get writableEnded() {
      return sent.ended
    },
    writeHead: (status: number, headers: string[]) => Object.assign(sent, { status, headers }),
    write(text: string) {
      sent.text += text
    },
    end(text: string) {
      sent.text += text
      sent.ended = true
    },
  }
  const stream = new EarlyStream(outgoing as unknown as ServerResponse, 0, {
    waitsFor: 'about_to_start',
    fields: ['X-Request-Id', 'r1'],
    form,
  })
  return { sent, stream }
}

test('the client has the head with the cause at once, and a comment every 10 s until its worker streams', () => {
  const { sent, stream } = begun()
  assert.equal(sent.status, 200)
  assert.match(sent.headers.join(' '), /text\/event-stream.* X-Runyard-Wait about_to_start X-Request-Id r1$/)
  stream.tick(9_999)
  assert.equal(sent.text, COMMENT)
  for (const ms of [10_000, 19_000, 20_000]) stream.tick(ms)
  assert.equal(sent.text, COMMENT.repeat(3))
  stream.answered({ status: 200, headers: EVENTS })
  assert.equal(stream.gathers, false)
  stream.tick(60_000)
  assert.equal(sent.text, COMMENT.repeat(3), 'nothing comes between the events of the worker')
})

test('an answer that is no stream becomes one event at its end, with comments until then', () => {
  const { sent, stream } = begun()
  stream.answered({ status: 400, headers: JSON_TYPE })
  assert.equal(stream.gathers, true)
  stream.gather(Buffer.from('{"error":{"mess'))
  stream.tick(10_000)
  stream.gather(Buffer.from('age":"too long"}}'))
  stream.end()
  assert.match(sent.text, /^(: waiting for a worker\n\n){2}data: \{"error":\{"message":"too long".*\}\}\n\n$/)
  assert.equal(sent.ended, true)
})

test('an answer that is too long is not held', () => {
  const { sent, stream } = begun()
  stream.answered({ status: 200, headers: JSON_TYPE })
  for (let at = 0; at < 20; at += 1) stream.gather(Buffer.alloc(100_000, 0x20))
  stream.end()
  assert.match(sent.text, /is too long/)
})

test('a refusal of the gateway is an event', () => {
  const { sent, stream } = begun()
  stream.fail(400, 'no workers available')
  assert.match(
    sent.text,
    /\n\ndata: \{"error":\{"message":"no workers available","type":"invalid_request_error".*\n\n$/,
  )
  stream.tick(60_000)
  assert.equal(sent.ended, true)
})

test('clients of Anthropic get errors in their form', () => {
  const refused = begun('anthropic')
  refused.stream.fail(503, 'the server is stopping')
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'the server is stopping' } }
  assert.equal(refused.sent.text, `${COMMENT}event: error\ndata: ${JSON.stringify(error)}\n\n`)
  const answered = begun('anthropic')
  answered.stream.answered({ status: 400, headers: JSON_TYPE })
  answered.stream.gather(Buffer.from('{"error":{"message":"too long","type":"BadRequestError"}}'))
  answered.stream.end()
  assert.match(
    answered.sent.text,
    /event: error\ndata: \{"type":"error","error":\{"type":"invalid_request_error","message":"too long"\}\}\n\n$/,
  )
})

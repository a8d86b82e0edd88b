import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MemberScan } from '../../../src/core/openai/member-scan.ts'
import {
  leavesUsageOut,
  STREAM_MEMBERS,
  UsageEventFilter,
  withUsage,
} from '../../../src/core/openai/usage-in-streams.ts'

const encoder = new TextEncoder()

/** The pieces of a text, each of at most so many bytes. */
function pieces(text: string, size: number): Uint8Array[] {
  const bytes = encoder.encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.slice(at * size, (at + 1) * size))
}

function changed(text: string, size = 5): string | null {
  const given = asked(pieces(text, size))
  const result = Buffer.concat(given.pieces).toString()
  return result === text ? null : result
}

function asked(body: readonly Uint8Array[]) {
  const scan = new MemberScan(STREAM_MEMBERS)
  for (const piece of body) scan.push(piece)
  return withUsage(body, Object.fromEntries(scan.places))
}

test('a stream is asked for its usage, and keeps its other options; any other request stays as it is', () => {
  assert.equal(
    changed(' { "model":"m", "stream": true }'),
    ' {"stream_options":{"include_usage":true}, "model":"m", "stream": true }',
  )
  assert.deepEqual(JSON.parse(changed('{"stream":true,"stream_options":{"continuous":1,"include_usage":false}}')!), {
    stream: true,
    stream_options: { continuous: 1, include_usage: true },
  })
  assert.equal(
    changed('{"stream_options":null,"stream":true}'),
    '{"stream_options":{"include_usage":true},"stream":true}',
  )
  for (const text of [
    '{"model":"m"}',
    '{"stream":false}',
    '{"messages":[{"stream":true}]}',
    '{"stream":true,"stream_options":{"include_usage":true}}',
    '{"stream":null}',
  ]) {
    assert.equal(changed(text), null, text)
  }
})

test('no way of writing a request keeps its stream from being asked, where its worker reads one', () => {
  const room = ' '.repeat(2_000)
  for (const text of [
    '{"stream":false,"stream":true}',
    '{"stre\\u0061m":true}',
    '{"\\u0073\\u0074\\u0072\\u0065\\u0061\\u006d":true,"stream_options":null}',
    '{"stream_options":{"include_usage":true},"stream":true,"stream_options":{"include_usage":false}}',
    '{"stream":true,"stream\\u005foptions":{"include_usage":false}}',
    `{"stream":true,"stream_options":{${room}"include_usage":false}}`,
  ]) {
    for (const size of [1, 5, 4_000]) {
      const { stream, stream_options: options } = JSON.parse(changed(text, size) ?? text)
      assert.deepEqual({ stream, options }, { stream: true, options: { include_usage: true } }, text.slice(0, 100))
    }
  }
  assert.equal(changed('{"stream":true,"stream":false}'), null)
})

test('a value that servers convert is a stream, or none, and a value that they read in several ways is refused', () => {
  for (const value of ['"true"', '1', '1.0', '"1"', '" Yes"', '"ON"', '"t"', '"y"']) {
    const given = JSON.parse(changed(`{"stream":${value},"n":1}`)!)
    assert.deepEqual(given, { stream_options: { include_usage: true }, stream: true, n: 1 }, value)
  }
  for (const value of ['"false"', '0', '"off"', '"N"', '"no"'])
    assert.equal(changed(`{"stream":${value},"n":1}`), '{"stream":false,"n":1}')
  for (const value of ['"stream"', '2', '{}', '[]', '[true]', '""', `"${'x'.repeat(2_000)}"`, 'tru'])
    assert.throws(() => changed(`{"stream":${value}}`), /the member stream of the body must be true or false/, value)
  const options = (given: string) => {
    const body = pieces(`{"stream":true,"stream_options":${given}}`, 9)
    const { pieces: sent, hidesUsage } = asked(body)
    return [JSON.parse(Buffer.concat(sent).toString()).stream_options, hidesUsage]
  }
  assert.deepEqual(options('{"include_usage":true}'), [{ include_usage: true }, false])
  assert.deepEqual(options('{"include_usage":"true"}'), [{ include_usage: true }, false])
  for (const given of ['"all"', '{"include_usage":"no"}', '[]', 'null'])
    assert.deepEqual(options(given), [{ include_usage: true }, true], given)
})

test('bytes that only some servers read as an object are refused', () => {
  const text = '{"stream":true}'
  for (const body of [
    Buffer.from(text, 'utf16le'),
    Buffer.from(text, 'utf16le').swap16(),
    Buffer.from(`\ufeff${text}`),
    Buffer.from(`[${text}]`),
    Buffer.alloc(0),
  ])
    assert.throws(() => asked([body.subarray(0, 1), body.subarray(1)]), /must be a JSON object in UTF-8/)
})

test('only operations whose streams leave usage out are changed', () => {
  for (const path of ['/v1/chat/completions', '/v1/completions?x=1', '/v1/completions', '/v1//chat/c%6fmpletions/']) {
    assert.equal(leavesUsageOut('POST', path), true, path)
    assert.equal(leavesUsageOut('GET', path), false, path)
  }
  for (const path of ['/v1/responses', '/v1/messages', '/v1/embeddings'])
    assert.equal(leavesUsageOut('POST', path), false)
})

const chunk = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const USAGE = chunk({ id: 'c', choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } })
const KEPT = [
  chunk({ choices: [{ delta: { content: '"usage":{}' } }], usage: null }),
  chunk({ choices: [], prompt_filter_results: [], usage: null }),
  chunk({ choices: [{ delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 1 } }),
  chunk({ choices: [{ delta: { content: 'x'.repeat(20_000) } }] }),
  ': ping\n\n',
  'event: error\ndata: {"choices":[],\ndata: "usage":1}\n\n',
  'data: {"choices":[],"usage"\n\n',
  '\n',
  'data: [DONE]\n\n',
]

test('the event of usage alone is removed, and all others pass byte for byte, however they are cut', () => {
  const events = fc.array(fc.constantFrom(...KEPT, USAGE), { maxLength: 12 })
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 700 }), fc.boolean(), (sent, size, isCrlf) => {
      const form = (list: readonly string[]) => (isCrlf ? list.join('').replaceAll('\n', '\r\n') : list.join(''))
      const filter = new UsageEventFilter()
      const out: Uint8Array[] = []
      for (const piece of pieces(form(sent), size)) {
        out.push(...filter.push(piece).map(part => part.slice()))
        piece.fill(0)
      }
      out.push(filter.end())
      assert.equal(Buffer.concat(out).toString(), form(sent.filter(event => event !== USAGE)))
    }),
  )
})

test('an event passes as soon as it is complete, and the rest of a stream that is cut passes', () => {
  const filter = new UsageEventFilter()
  const passed = (text: string) => Buffer.concat(filter.push(encoder.encode(text))).toString()
  assert.equal(passed('data: {"choices":[1]}\n\ndata: {'), 'data: {"choices":[1]}\n\n')
  assert.equal(passed('"choices":[]'), '')
  assert.equal(Buffer.from(filter.end()).toString(), 'data: {"choices":[]')
})

/** Responses of workers are parsed alike in whatever pieces they arrive, and invalid ones are refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MalformedResponse, type ResponseHead } from '../../src/gateway/http1/response-head.ts'
import { ResponseParser } from '../../src/gateway/http1/response-parser.ts'
import { randomSeed } from '../support/random-seed.ts'

interface Read {
  readonly heads: ResponseHead[]
  readonly body: string
  readonly trailers: readonly string[]
  readonly done: boolean
  readonly rest: string
}

function read(pieces: readonly Buffer[], toHead = false): Read {
  const parser = new ResponseParser()
  const heads: ResponseHead[] = []
  let body = ''
  let rest = ''
  const onHead = (head: ResponseHead) => void heads.push(head)
  const onBody = (piece: Buffer) => {
    body += piece.toString('latin1')
  }
  parser.begin({ onHead, onBody }, toHead)
  for (const piece of pieces) rest += parser.take(piece).toString('latin1')
  const done = parser.end()
  return { heads, body, trailers: parser.trailers, done, rest }
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set([0, ...at.map(place => place % bytes.length), bytes.length])].sort((a, b) => a - b)
  return places.slice(1).map((end, n) => bytes.subarray(places[n], end))
}

const RESPONSES: [what: string, response: string, body: string][] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello', 'hello'],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n',
    'abc0123456789',
  ],
  ['trailers', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\nX-A: 1\r\nX-B: 2\r\n\r\n', 'x'],
  ['interim responses', 'HTTP/1.1 103 Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 204 None\r\n\r\n', ''],
  ['no length', 'HTTP/1.1 200 OK\r\n\r\nuntil the end\r\n\r\n', 'until the end\r\n\r\n'],
]

for (const [what, response, body] of RESPONSES) {
  test(`a response with ${what} is the same in all pieces`, () => {
    const bytes = Buffer.from(response, 'latin1')
    const whole = read([bytes])
    assert.deepEqual([whole.body, whole.done, whole.rest], [body, true, ''])
    assert.deepEqual(read([...bytes].map(byte => Buffer.from([byte]))), whole)
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 8 }), at => assert.deepEqual(read(cut(bytes, at)), whole)),
      { seed: randomSeed },
    )
  })

  test(`a response with ${what} is whole at its end only`, () => {
    if (what === 'no length') return
    const bytes = Buffer.from(response, 'latin1')
    for (let end = 0; end < bytes.length; end += 1) assert.equal(read([bytes.subarray(0, end)]).done, false)
  })
}

test('a response keeps its length, whatever its Connection field names', () => {
  const { heads } = read([
    Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nConnection: content-length, x-a\r\n\r\nhi'),
  ])
  assert.deepEqual(heads[0]?.headers, ['Content-Length', '2'])
})

test('bytes after a response are not part of it', () => {
  const { rest, done } = read([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1')])
  assert.deepEqual([rest, done], ['HTTP/1.1', true])
})

test('a response to HEAD has no body, whatever its head says', () => {
  for (const framing of ['Content-Length: 5', 'Transfer-Encoding: chunked', 'X-A: 1']) {
    const { done, rest } = read([Buffer.from(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n`)], true)
    assert.deepEqual([done, rest], [true, ''], framing)
  }
})

for (const [what, response, problem] of [
  ['lines that end with LF alone', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', /bare LF/],
  ['trailers whose lines do', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: b\n\n', /bare LF/],
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', /status line/],
  ['an alert of TLS', '\x15\x03\x01\x00\x02\x02\x46', /status line/],
] as const) {
  test(`an invalid response ends at once: ${what}`, () => {
    const bytes = Buffer.from(response, 'latin1')
    assert.throws(() => read([bytes]), problem)
    assert.throws(() => read(cut(bytes, [...bytes.keys()])), problem)
  })
}

test('any bytes are a response, a part of one, or refused as invalid', () => {
  const words = fc.constantFrom(
    ...[
      'HTTP/1.1 ',
      '200',
      ' OK',
      '\r\n',
      '\n',
      '\r',
      ' ',
      ':',
      'Content-Length',
      'Transfer-Encoding',
      'chunked',
      '5',
      '0',
    ],
    ...['\0', 'X', 'ffffffffffffffff', ';', ',', '-1', 'Connection', 'close', 'Upgrade', '101'],
  )
  fc.assert(
    fc.property(fc.array(words, { maxLength: 24 }), fc.array(fc.nat(), { maxLength: 4 }), (parts, at) => {
      const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${parts.join('')}\r\n\r\n0\r\n\r\n`, 'latin1')
      const outcome = (pieces: Buffer[]) => {
        try {
          return read(pieces)
        } catch (thrown) {
          assert.ok(thrown instanceof MalformedResponse, String(thrown))
          return 'malformed'
        }
      }
      assert.deepEqual(outcome(cut(bytes, at)), outcome([bytes]))
    }),
    { seed: randomSeed, numRuns: 2_000 },
  )
})

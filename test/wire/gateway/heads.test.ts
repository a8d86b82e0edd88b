/** Heads of requests that pass the gateway, byte by byte, and the gateway's own answers. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import {
  answering,
  bodyOf,
  get,
  linesOf,
  PLAIN,
  rawClient,
  startGateway,
  startRawServer,
  through,
} from '../support/gateway.ts'

/** The head without what we set. */
function passedOn(text: string): string[] {
  return linesOf(text).filter(line => !/^(?:host|forwarded|x-forwarded-\w+|x-request-id|via):/i.test(line))
}

describe('the head of a request', () => {
  const rows: [what: string, sent: string, passed: string[]][] = [
    ['goes on with its names and values as they came', get(['X-A: b  c', 'x-a: B']), ['X-A: b  c', 'x-a: B']],
    ['keeps values that are not ASCII', get(['X-A: \xe4\xff']), ['X-A: \xe4\xff']],
    ['keeps empty values', get(['X-A:']), ['X-A: ']],
    [
      'keeps cookies and the application’s own authorization',
      get(['Cookie: a=b', 'Authorization: Basic x']),
      [...['Cookie: a=b', 'Authorization: Basic x']],
    ],
    ['loses Keep-Alive and Proxy-Connection', get(['Keep-Alive: timeout=5', 'Proxy-Connection: keep-alive']), []],
    ['loses Proxy-Authorization', get(['Proxy-Authorization: Basic x']), []],
    ['loses what Connection names', get(['Connection: X-Secret, keep-alive', 'X-Secret: 1', 'X-B: 2']), ['X-B: 2']],
    [
      'loses what a second Connection names',
      get(['Connection: x-one', 'Connection: X-Two', 'X-One: 1', 'X-Two: 2']),
      [],
    ],
    [
      'keeps a length that Connection names',
      get(['Connection: content-length', 'Content-Length: 0']),
      ['Content-Length: 0'],
    ],
    ['loses an Upgrade without its Connection', get(['Upgrade: h2c', 'HTTP2-Settings: AAMA']), []],
    ['loses TE but for trailers', get(['TE: gzip']), []],
    [
      'says that trailers are welcome when the client does',
      get(['TE: gzip, trailers']),
      [...['TE: trailers', 'Connection: TE']],
    ],
    ['loses Expect, which was answered', get(['Expect: 100-continue']), []],
    ['loses the worker that it wants', get(['X-Runpod-Worker-Id: w1']), []],
    ['counts the hops of OPTIONS', get(['Max-Forwards: 3'], 'OPTIONS /a HTTP/1.1'), ['Max-Forwards: 2']],
    ['does not count the hops of others', get(['Max-Forwards: 3']), ['Max-Forwards: 3']],
  ]
  for (const [what, sent, passed] of rows) {
    test(`${what}`, async () => {
      const { seen } = await through(sent, PLAIN)
      assert.equal(seen.length, 1)
      assert.deepEqual(passedOn(seen[0]!).slice(1), passed)
    })
  }

  const lines: [sent: string, seen: string][] = [
    ['GET /a?b=c&d=%20%2F HTTP/1.1', 'GET /a?b=c&d=%20%2F HTTP/1.1'],
    ['PROPFIND /x HTTP/1.1', 'PROPFIND /x HTTP/1.1'],
    ['OPTIONS * HTTP/1.1', 'OPTIONS * HTTP/1.1'],
    ['GET //a/../b HTTP/1.1', 'GET //a/../b HTTP/1.1'],
    ['GET /a HTTP/1.0', 'GET /a HTTP/1.1'],
  ]
  for (const [sent, expected] of lines) {
    test(`${sent} goes on as ${expected}`, async () => {
      const { seen } = await through(get([], sent), PLAIN)
      assert.equal(linesOf(seen[0]!)[0], expected)
    })
  }

  test('has the address and host of the client, and forwarded headers of clients are removed', async () => {
    const claims = [
      'X-Forwarded-For: 6.6.6.6',
      'X-Forwarded-Proto: https',
      'Forwarded: for=6.6.6.6',
      'X-Forwarded-Host: evil',
    ]
    const { seen } = await through(get([...claims, 'X-Forwarded-Prefix: /evil']), PLAIN, {
      call: call => ({ ...call, prefix: '/lb/balanced', client: '10.1.1.1, 2001:db8::1', host: 'here:8080' }),
    })
    const ours = linesOf(seen[0]!).filter(line => /^(?:host|forwarded|x-forwarded-\w+|x-request-id|via):/i.test(line))
    assert.deepEqual(ours, [
      'Host: here:8080',
      'X-Request-Id: request-1',
      'X-Forwarded-For: 10.1.1.1, 2001:db8::1',
      'X-Forwarded-Host: here:8080',
      'X-Forwarded-Proto: http',
      'X-Forwarded-Prefix: /lb/balanced',
      'Forwarded: for=10.1.1.1, for="[2001:db8::1]";host="here:8080";proto=http',
      'Via: 1.1 runyard',
    ])
  })

  test('has the context of the trace of the client, as it was sent', async () => {
    const context = ['traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 'tracestate: vendor=1']
    const { seen } = await through(get(context), PLAIN)
    assert.deepEqual(
      linesOf(seen[0]!).filter(line => line.startsWith('trace')),
      context,
    )
  })

  test('says that it came through us, behind the proxies before', async () => {
    const { seen } = await through(get(['Via: 1.0 fred, 1.1 p.example']), PLAIN)
    const via = linesOf(seen[0]!).filter(line => line.startsWith('Via:'))
    assert.deepEqual(via, ['Via: 1.0 fred, 1.1 p.example', 'Via: 1.1 runyard'])
  })

  test('gets a Host if HTTP/1.0 had no Host', async () => {
    const { seen } = await through('GET /a HTTP/1.0\r\n\r\n', PLAIN)
    assert.equal(linesOf(seen[0]!)[1], 'Host: nowhere')
  })

  test('may be as large as the listener allows', async () => {
    const value = 'v'.repeat(14_000)
    const { seen, got } = await through(get([`X-Large: ${value}`]), PLAIN)
    assert.ok(seen[0]!.includes(`X-Large: ${value}\r\n`))
    assert.match(got, /^HTTP\/1.1 200 /)
  })

  test('is refused with 431 when it is larger', async () => {
    const { seen, got } = await through(get([`X-Large: ${'v'.repeat(17_000)}`]), PLAIN)
    assert.deepEqual([seen.length, got.slice(0, 12)], [0, 'HTTP/1.1 431'])
  })

  test('goes to the health port where the call is for it', async () => {
    const gateway = await startGateway({ call: call => ({ ...call, toHealth: true }) })
    const traffic = await startRawServer(answering('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'))
    const health = await startRawServer(answering('HTTP/1.1 204 Soon\r\n\r\n'))
    gateway.reservations.add('w1', traffic.port, health.port)
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 204 Soon/)
  })
})

describe('the worker that a request wants', () => {
  const rows: [value: string, kind: string, worker: string][] = [
    ['w7', 'soft', 'w7'],
    ['strict w7', 'strict', 'w7'],
    ['strict-resume  w7', 'strict-resume', 'w7'],
  ]
  for (const [value, kind, worker] of rows) {
    test(`${value} is ${kind}`, async () => {
      const gateway = await startGateway()
      const server = await startRawServer(answering(PLAIN))
      gateway.reservations.add('w1', server.port)
      await rawClient(gateway.port)
        .send(get([`X-Runpod-Worker-Id: ${value}`]))
        .untilEnd()
      assert.deepEqual(gateway.reservations.wanted[0]?.affinity, { kind, workerId: worker })
    })
  }

  test('is nobody in particular without the header', async () => {
    const gateway = await startGateway()
    const server = await startRawServer(answering(PLAIN))
    gateway.reservations.add('w1', server.port)
    await rawClient(gateway.port).send(get([])).untilEnd()
    assert.equal(gateway.reservations.wanted[0]?.affinity, null)
  })

  for (const value of ['', 'strict', 'strict-resume', 'loose w7', 'strict w7 w8', 'a/b', 'w7,w8', 'x'.repeat(129)]) {
    test(`${JSON.stringify(value.slice(0, 20))} is 400 with a sentence`, async () => {
      const { got, seen } = await through(get([`X-Runpod-Worker-Id: ${value}`]), PLAIN)
      assert.match(got, /^HTTP\/1.1 400 [\s\S]*"the header X-Runpod-Worker-Id must be /)
      assert.equal(seen.length, 0)
    })
  }
})

describe('an answer of our own', () => {
  test('has the status, the message and the Retry-After of the refusal', async () => {
    const gateway = await startGateway()
    gateway.reservations.refusal = new AppError('rate_limited', 'the line is full', { retryAfterSeconds: 7 })
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 429 [\s\S]*\r\nRetry-After: 7\r\n[\s\S]*\{"error":"the line is full"\}$/)
    const { status, tries, workerId, complete, waitMs, totalMs, connectMs } = await next
    assert.deepEqual(
      { status, tries, workerId, complete, connectMs },
      { status: 429, tries: 0, workerId: null, complete: false, connectMs: null },
    )
    assert.ok(waitMs >= 0 && waitMs <= totalMs, `${waitMs} ms of ${totalMs} ms`)
  })

  test('of a store that is away or full says when to call again', async () => {
    const gateway = await startGateway()
    gateway.reservations.refusal = new AppError('unavailable', 'the store cannot do this now: its disk is full')
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 503 [\s\S]*\r\nRetry-After: 5\r\n[\s\S]*its disk is full"\}$/)
  })

  test('can be read by a page of another origin, with its Retry-After', async () => {
    const gateway = await startGateway()
    gateway.reservations.refusal = new AppError('rate_limited', 'the line is full', { retryAfterSeconds: 7 })
    const ask = async (lines: string[]) => linesOf(await rawClient(gateway.port).send(get(lines)).untilEnd())
    const ofCors = (line: string) => /^(?:access-control|vary)/i.test(line)
    assert.deepEqual((await ask(['Origin: null'])).filter(ofCors), [
      'Access-Control-Allow-Origin: null',
      'Access-Control-Allow-Credentials: true',
      'Access-Control-Expose-Headers: Retry-After, X-Request-Id',
      'Vary: Origin',
    ])
    assert.deepEqual((await ask([])).filter(ofCors), [])
  })

  test('says nothing of what went wrong inside', async () => {
    const gateway = await startGateway()
    gateway.reservations.refusal = new TypeError('secret') as AppError
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 500 /)
    assert.doesNotMatch(got, /secret/)
  })

  test('has no body for HEAD', async () => {
    const gateway = await startGateway()
    const got = await rawClient(gateway.port).send(get([], 'HEAD /a HTTP/1.1')).untilEnd()
    assert.match(got, /^HTTP\/1.1 400 /)
    assert.equal(bodyOf(got), '')
  })

  test('leaves the connection for the next request', async () => {
    const gateway = await startGateway()
    const client = rawClient(gateway.port).send('GET /a HTTP/1.1\r\nHost: here\r\n\r\n')
    await client.until('}')
    const server = await startRawServer(answering(PLAIN))
    gateway.reservations.add('w1', server.port)
    await client.send('GET /a HTTP/1.1\r\nHost: here\r\n\r\n').until('hi')
  })

  test('is given to OPTIONS and TRACE that may go no further', async () => {
    const options = await through(get(['Max-Forwards: 0'], 'OPTIONS /a HTTP/1.1'), PLAIN)
    const trace = await through(get(['Max-Forwards: 0'], 'TRACE /a HTTP/1.1'), PLAIN)
    assert.match(options.got, /^HTTP\/1.1 200 [\s\S]*Content-Length: 0/)
    assert.match(trace.got, /^HTTP\/1.1 405 [\s\S]*\r\nAllow: GET/)
    assert.deepEqual([...options.seen, ...trace.seen], [])
  })
})

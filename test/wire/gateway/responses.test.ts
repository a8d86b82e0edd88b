/** Heads of answers that pass the gateway, byte by byte, and answers that do not pass. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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

describe('the head of an answer', () => {
  const kept = (got: string) =>
    linesOf(got).filter(line => !/^(?:date|connection|keep-alive|x-runpod-worker-id|x-request-id):/i.test(line))
  const rows: [what: string, answer: string, passed: string[], body: string][] = [
    [
      'goes on as it came',
      'HTTP/1.1 418 Tea pot\r\nX-A: b  c\r\nx-a: d\r\nContent-Length: 2\r\n\r\nhi',
      [...['HTTP/1.1 418 Tea pot', 'X-A: b  c', 'x-a: d', 'Content-Length: 2']],
      'hi',
    ],
    [
      'keeps several cookies apart',
      'HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 200 OK', 'Set-Cookie: a', 'Set-Cookie: b', 'Content-Length: 0']],
      '',
    ],
    ['may have no reason', 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n', ['HTTP/1.1 200 ', 'Content-Length: 0'], ''],
    [
      'may have a status of its own',
      'HTTP/1.1 799 Own\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 799 Own', 'Content-Length: 0']],
      '',
    ],
    [
      'loses the space before a colon',
      'HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 200 OK', 'X-A: b', 'Content-Length: 0']],
      '',
    ],
    [
      'loses what is of one hop',
      'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nProxy-Connection: a\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 200 OK', 'Content-Length: 0']],
      '',
    ],
    [
      'loses what Connection names',
      'HTTP/1.1 200 OK\r\nConnection: X-A\r\nX-A: 1\r\nX-B: 2\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 200 OK', 'X-B: 2', 'Content-Length: 0']],
      '',
    ],
    [
      'loses an Upgrade that nobody asked for',
      'HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n',
      [...['HTTP/1.1 200 OK', 'Content-Length: 0']],
      '',
    ],
    [
      'has no body with 204, whatever its length',
      'HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n',
      ['HTTP/1.1 204 None'],
      '',
    ],
    [
      'keeps the length of a 304, which has no body',
      'HTTP/1.1 304 Same\r\nContent-Length: 5\r\nETag: "a"\r\n\r\n',
      [...['HTTP/1.1 304 Same', 'ETag: "a"', 'Content-Length: 5']],
      '',
    ],
    [
      'gets chunks where it has neither length nor chunks',
      'HTTP/1.0 200 OK\r\n\r\nhello',
      [...['HTTP/1.1 200 OK', 'Transfer-Encoding: chunked']],
      '5\r\nhello\r\n0\r\n\r\n',
    ],
  ]
  for (const [what, answer, passed, body] of rows) {
    test(what, async () => {
      const gateway = await startGateway()
      const endless = answer.startsWith('HTTP/1.0')
      const worker = await startRawServer(socket => {
        answering(answer)(socket)
        if (endless) socket.once('data', () => socket.end())
      })
      gateway.reservations.add('w1', worker.port)
      const got = await rawClient(gateway.port).send(get([])).untilEnd()
      assert.deepEqual(kept(got), passed)
      assert.equal(bodyOf(got), body)
    })
  }

  test('keeps the Date and Server of the worker', async () => {
    const { got } = await through(get([]), 'HTTP/1.1 200 OK\r\nDate: Then\r\nServer: x/1\r\nContent-Length: 0\r\n\r\n')
    assert.deepEqual(
      got.match(/^(?:Date|Server): .*$/gm),
      ['Date: Then\r', 'Server: x/1\r'].map(line => line.trim()),
    )
  })

  test('gets a Date if the worker gave no Date', async () => {
    const { got } = await through(get([]), PLAIN)
    assert.match(got, /\r\nDate: \w{3}, \d\d \w{3} \d{4} /)
  })

  test('names the worker, whatever the worker says', async () => {
    const { got } = await through(get([]), 'HTTP/1.1 200 OK\r\nx-runpod-worker-id: evil\r\nContent-Length: 0\r\n\r\n')
    assert.deepEqual(got.match(/x-runpod-worker-id: \S+/gi), ['X-Runpod-Worker-Id: w1'])
  })

  test('may be large', async () => {
    const value = 'v'.repeat(60_000)
    const { got } = await through(get([]), `HTTP/1.1 200 OK\r\nX-Large: ${value}\r\nContent-Length: 2\r\n\r\nhi`)
    assert.ok(got.includes(`X-Large: ${value}\r\n`))
    assert.equal(bodyOf(got), 'hi')
  })

  test('goes on before there is any body', async () => {
    const gateway = await startGateway()
    const worker = await startRawServer(answering('HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n'))
    gateway.reservations.add('w1', worker.port)
    await rawClient(gateway.port).send(get([])).until('X-A: 1')
  })

  test('to HEAD keeps its length and has no body', async () => {
    const gateway = await startGateway()
    const worker = await startRawServer(answering('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n'))
    gateway.reservations.add('w1', worker.port)
    const client = rawClient(gateway.port).send('HEAD /a HTTP/1.1\r\nHost: here\r\n\r\n')
    await client.until('\r\n\r\n')
    client.send(get([], 'HEAD /b HTTP/1.1'))
    const got = await client.untilEnd()
    assert.equal(got.match(/Content-Length: 1000/g)?.length, 2)
    assert.equal(bodyOf(bodyOf(got)), '')
    assert.equal(worker.sockets.length, 1, 'the connection is used again')
  })

  test('to HEAD may promise chunks, which never come', async () => {
    const { got } = await through(get([], 'HEAD /a HTTP/1.1'), 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    assert.match(got, /^HTTP\/1.1 200 OK\r\n/)
    assert.equal(bodyOf(got), '')
  })

  test('to HTTP/1.0 has no chunks: its end is the end of the connection', async () => {
    const chunked =
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n'
    const { got } = await through('GET /a HTTP/1.0\r\nHost: here\r\n\r\n', chunked)
    assert.doesNotMatch(got, /chunked|trailer/i)
    assert.equal(bodyOf(got), 'hi')
  })

  test('that says 426 keeps its Upgrade', async () => {
    const answer = 'HTTP/1.1 426 Upgrade Required\r\nUpgrade: x/2\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n'
    const { got } = await through(get([]), answer)
    assert.match(got, /^Upgrade: x\/2\r$/m)
  })
})

describe('interim answers', () => {
  const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'

  test('103 goes on before the answer', async () => {
    const { got } = await through(get([]), `${hints}${PLAIN}`)
    assert.match(got, /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a.css>; rel=preload\r\n\r\nHTTP\/1.1 200 OK\r\n/)
  })

  test('102 goes on, too, several times', async () => {
    const { got } = await through(get([]), `${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(3)}${PLAIN}`)
    assert.equal(got.match(/HTTP\/1.1 102 Processing\r\n\r\n/g)?.length, 3)
    assert.match(got, /200 OK/)
  })

  test('100 does not: it was given here', async () => {
    const { got } = await through(get([]), `HTTP/1.1 100 Continue\r\n\r\n${PLAIN}`)
    assert.match(got, /^HTTP\/1.1 200 OK\r\n/)
  })

  test('never go to HTTP/1.0', async () => {
    const { got } = await through('GET /a HTTP/1.0\r\nHost: here\r\n\r\n', `${hints}${PLAIN}`)
    assert.match(got, /^HTTP\/1.1 200 OK\r\n/)
  })

  test('101 without an upgrade request is 502', async () => {
    const { got } = await through(get([]), 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
    assert.match(got, /^HTTP\/1.1 502 [\s\S]*without being asked/)
  })
})

describe('an answer that could be read in two ways', () => {
  const ok = (...lines: string[]) => ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')
  const rows: [what: string, answer: string, problem: RegExp][] = [
    ['a length and chunks', `${ok('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`, /Content-Length and/],
    ['two lengths', `${ok('Content-Length: 1', 'Content-Length: 2')}ab`, /more than one Content-Length/],
    ['a list of lengths', `${ok('Content-Length: 1, 1')}a`, /not a number/],
    ['a negative length', `${ok('Content-Length: -1')}a`, /not a number/],
    ['another coding', `${ok('Transfer-Encoding: gzip')}a`, /not chunked/],
    ['a coding before chunks', `${ok('Transfer-Encoding: gzip, chunked')}a`, /not chunked/],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', /HTTP\/1.0/],
    ['a folded line', `${ok('X-A: b', ' c', 'Content-Length: 0')}`, /folded/],
    ['a bare LF', 'HTTP/1.1 200 OK\r\nX-A: b\nX-B: c\r\n\r\n', /bare/],
    ['a NUL', ok('X-A: b\0', 'Content-Length: 0'), /not a header/],
    ['a line without a colon', ok('X-A', 'Content-Length: 0'), /not a header/],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n', /status line/],
    ['something else', 'hello\r\n\r\n', /status line/],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', /status line/],
    ['an endless head', `HTTP/1.1 200 OK\r\nX-A: ${'v'.repeat(70_000)}`, /larger than 64 KiB/],
  ]
  for (const [what, answer, problem] of rows) {
    test(`${what}: 502 that says what is wrong`, async () => {
      const gateway = await startGateway()
      const worker = await startRawServer(answering(answer))
      gateway.reservations.add('w1', worker.port)
      const next = gateway.next()
      const got = await rawClient(gateway.port).send(get([])).untilEnd()
      assert.match(got, /^HTTP\/1.1 502 Bad Gateway\r\nContent-Type: application\/json\r\n/)
      const { error } = JSON.parse(bodyOf(got)) as { error: string }
      assert.match(error, problem)
      assert.match(error, /^worker w1 /)
      assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
      assert.equal((await next).status, 502)
    })
  }

  test('bytes after an answer are never the next answer', async () => {
    const gateway = await startGateway()
    const worker = await startRawServer(answering(`${PLAIN}${PLAIN.replace('hi', 'no')}`))
    gateway.reservations.add('w1', worker.port)
    const client = rawClient(gateway.port).send('GET /a HTTP/1.1\r\nHost: here\r\n\r\n')
    await client.until('hi')
    const got = await client.send(get([])).untilEnd()
    assert.ok(!got.includes('no'), got)
    assert.equal(worker.sockets.length, 2)
  })
})

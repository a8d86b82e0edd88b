/** Requests that the gateway and a worker could read in two ways are refused. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bodyOf, get, linesOf, PLAIN, rawClient, startGateway, startRawServer } from '../support/gateway.ts'

describe('a request that could be read in two ways', () => {
  const chunk = '1\r\na\r\n0\r\n\r\n'
  const post = (lines: string[], body: string, version = '1.1') =>
    `${[`POST /a HTTP/${version}`, 'Host: here', ...lines].join('\r\n')}\r\n\r\n${body}`
  const rows: [what: string, sent: string][] = [
    ['a length and chunks', post(['Content-Length: 5', 'Transfer-Encoding: chunked'], chunk)],
    ['chunks and a length', post(['Transfer-Encoding: chunked', 'Content-Length: 5'], chunk)],
    ['two lengths', post(['Content-Length: 1', 'Content-Length: 2'], 'ab')],
    ['the same length twice', post(['Content-Length: 1', 'Content-Length: 1'], 'a')],
    ['a list of lengths', post(['Content-Length: 1, 1'], 'a')],
    ['a negative length', post(['Content-Length: -1'], 'a')],
    ['a length with a sign', post(['Content-Length: +1'], 'a')],
    ['a length in hexadecimal', post(['Content-Length: 0x1'], 'a')],
    ['an endless length', post(['Content-Length: 99999999999999999999999'], 'a')],
    ['an empty length', post(['Content-Length: '], 'a')],
    ['another coding than chunks', post(['Transfer-Encoding: gzip'], 'a')],
    ['chunks before another coding', post(['Transfer-Encoding: chunked, gzip'], chunk)],
    ['another coding before chunks', post(['Transfer-Encoding: gzip, chunked'], chunk)],
    ['chunks twice', post(['Transfer-Encoding: chunked, chunked'], chunk)],
    ['two Transfer-Encoding lines', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunk)],
    ['a coding in quotes', post(['Transfer-Encoding: "chunked"'], chunk)],
    ['xchunked', post(['Transfer-Encoding: xchunked'], chunk)],
    ['a vertical tab before chunked', post(['Transfer-Encoding: \x0bchunked'], chunk)],
    ['chunks in HTTP/1.0', post(['Transfer-Encoding: chunked'], chunk, '1.0')],
    ['a folded header', post(['X-A: b', ' c', 'Content-Length: 0'], '')],
    ['a folded coding', post(['Transfer-Encoding:', ' chunked'], chunk)],
    ['a space before the colon', post(['Transfer-Encoding : chunked'], chunk)],
    ['a space before the first name', post([' X-A: b', 'Content-Length: 0'], '')],
    ['a bare LF between headers', 'POST /a HTTP/1.1\r\nHost: here\nContent-Length: 0\r\n\r\n'],
    ['a bare LF in a value', post(['X-A: b\nTransfer-Encoding: chunked', 'Content-Length: 0'], '')],
    ['a bare CR in a value', post(['X-A: b\rTransfer-Encoding: chunked', 'Content-Length: 0'], '')],
    ['a NUL in a value', post(['X-A: b\0c', 'Content-Length: 0'], '')],
    ['a header without a colon', post(['X-A', 'Content-Length: 0'], '')],
    ['a header without a name', post([': a', 'Content-Length: 0'], '')],
    ['a name with a space', post(['X A: b', 'Content-Length: 0'], '')],
    ['two Hosts', 'GET /a HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n'],
    ['no Host', 'GET /a HTTP/1.1\r\n\r\n'],
    ['a space in the path', 'GET /a b HTTP/1.1\r\nHost: here\r\n\r\n'],
    ['a control character in the path', 'GET /a\x01b HTTP/1.1\r\nHost: here\r\n\r\n'],
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['HTTP/2 without a word', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a version of its own', 'GET /a HTTP/1.9\r\nHost: here\r\n\r\n'],
    ['two workers', 'GET /a HTTP/1.1\r\nHost: here\r\nX-Runpod-Worker-Id: a\r\nX-Runpod-Worker-Id: b\r\n\r\n'],
    ['a body with an Upgrade', post(['Connection: Upgrade', 'Upgrade: x', 'Content-Length: 5'], 'hello')],
    ['chunks with an Upgrade', post(['Connection: Upgrade', 'Upgrade: x', 'Transfer-Encoding: chunked'], chunk)],
  ]
  for (const [what, sent] of rows) {
    test(`${what}: 400, and no worker receives it`, async () => {
      const gateway = await startGateway()
      const worker = await startRawServer(() => {})
      gateway.reservations.add('w1', worker.port)
      const client = rawClient(gateway.port).send(sent)
      const got = await client.until('\r\n\r\n')
      assert.match(got, /^HTTP\/1.1 400 /)
      assert.equal(worker.sockets.length, 0)
    })
  }

  const chunks: [what: string, body: string][] = [
    ['a size that is no number', 'zz\r\na\r\n0\r\n\r\n'],
    ['a size with a sign', '+1\r\na\r\n0\r\n\r\n'],
    ['a size like 0x1', '0x1\r\na\r\n0\r\n\r\n'],
    ['a size that is too small', '1\r\nabc\r\n0\r\n\r\n'],
    ['a bare LF after the size', '1\na\r\n0\r\n\r\n'],
    ['a bare LF after the chunk', '1\r\na\n0\r\n\r\n'],
    ['an endless size', 'fffffffffffffffff\r\na\r\n0\r\n\r\n'],
  ]
  for (const [what, body] of chunks) {
    test(`chunks with ${what} never reach a worker as a whole body`, async () => {
      const gateway = await startGateway()
      let seen = ''
      const worker = await startRawServer(socket => void socket.on('data', bytes => (seen += bytes.toString('latin1'))))
      gateway.reservations.add('w1', worker.port)
      const client = rawClient(gateway.port)
      const next = gateway.next()
      client.send(post(['Transfer-Encoding: chunked'], body))
      await client.untilEnd()
      assert.equal((await next).complete, false)
      assert.ok(!bodyOf(seen).includes('0\r\n\r\n') || seen === '', seen)
    })
  }

  test('what follows a body in a connection is another request, never a part of the first', async () => {
    const sent = `${post(['Content-Length: 3'], 'abc')}${get([], 'GET /second HTTP/1.1')}`
    const gateway = await startGateway()
    const seen: string[] = []
    const worker = await startRawServer(socket => {
      socket.on('data', bytes => {
        seen.push(bytes.toString('latin1'))
        socket.write(PLAIN)
      })
    })
    gateway.reservations.add('w1', worker.port)
    const got = await rawClient(gateway.port).send(sent).untilEnd()
    assert.deepEqual([seen.length, bodyOf(seen[0]!), linesOf(seen[1]!)[0]], [2, 'abc', 'GET /second HTTP/1.1'])
    assert.equal(got.split('HTTP/1.1 200 OK').length, 3)
  })
})

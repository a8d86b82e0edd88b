import assert from 'node:assert/strict'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { ServerClient } from '../../src/relay/server-client.ts'

/** A server and a client of it; `connections` counts those that were opened. */
async function opened(t: TestContext, answer: RequestListener) {
  const seen = { connections: 0 }
  const server = createServer(answer).on('connection', () => {
    seen.connections += 1
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = new ServerClient({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
  t.after(() => {
    client.close()
    server.closeAllConnections()
    server.close()
  })
  const get = { head: 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n', body: null, signal: null }
  const post = (bytes: number) => `POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`
  return { client, seen, server, get, post }
}

async function bodyOf(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = []
  for await (const piece of pieces) all.push(piece)
  return Buffer.concat(all)
}

test('a body goes there and another comes back whole, in one piece or in many', async t => {
  const { client, post } = await opened(t, async (request, response) => {
    const received = await buffer(request)
    response.setHeader('x-request-id', 'an-id')
    // In chunks where it is large.
    if (received.byteLength > 1_000_000) for (let at = 0; at < 3; at += 1) response.write(received)
    response.end(received)
  })
  for (const bytes of [0, 10, 100_000, 3_000_000]) {
    const sent = Buffer.alloc(bytes, 'abcdefg')
    for (const body of [sent, Readable.from([sent.subarray(0, 5), sent.subarray(5)].filter(part => part.length > 0))]) {
      const { status, headers, body: pieces } = await client.send({ head: post(bytes), body, signal: null })
      const received = await bodyOf(pieces)
      assert.deepEqual([status, headers[headers.indexOf('x-request-id') + 1]], [200, 'an-id'])
      assert.equal(received.byteLength, bytes > 1_000_000 ? 4 * bytes : bytes)
      assert.ok(received.subarray(0, bytes).equals(sent))
    }
  }
})

test('requests after one another share a connection, those at the same time do not', async t => {
  const { client, seen, get } = await opened(t, (_, response) => void response.writeHead(204).end())
  for (let n = 0; n < 3; n += 1) assert.equal((await client.send(get)).status, 204)
  assert.equal(seen.connections, 1)
  await Promise.all([client.send(get), client.send(get)])
  assert.equal(seen.connections, 2)
})

test('a server that ends before its response does fails the request, or the body of the response', async t => {
  const { client, get } = await opened(t, (request, response) => {
    const end = () => request.socket.destroy()
    if (request.headers['x-half'] === undefined) end()
    else response.writeHead(200, { 'content-length': '10' }).write('half!', end)
  })
  await assert.rejects(client.send(get), /did not answer/)
  const half = await client.send({ ...get, head: get.head.replace('\r\n\r\n', '\r\nX-Half: 1\r\n\r\n') })
  await assert.rejects(bodyOf(half.body), /did not answer/)
})

test('a body in a file is sent again after a server that ended in the middle of it', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'runyard-client-'))
  const file = await open(join(folder, 'body'), 'w+')
  t.after(async () => {
    await file.close()
    await rm(folder, { recursive: true })
  })
  await file.writeFile(Buffer.alloc(20_000_000, 'abc'))
  let ends = 2
  const { client, post } = await opened(t, async (request, response) => {
    let bytes = 0
    for await (const piece of request) {
      bytes += piece.byteLength
      if (bytes < 5_000_000 || ends === 0) continue
      ends -= 1
      request.socket.destroy()
      return
    }
    response.end(String(bytes))
  })
  const send = () =>
    client.send({
      head: post(20_000_000),
      body: file.createReadStream({ start: 0, autoClose: false }),
      signal: null,
    })
  await assert.rejects(send(), /did not answer/)
  await assert.rejects(send(), /did not answer/)
  assert.equal(String(await bodyOf((await send()).body)), '20000000')
})

test('a request that nobody waits for any more is ended at the server', async t => {
  const ended = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const { client, get } = await opened(t, (_, response) => {
    begun.resolve()
    response.once('close', ended.resolve)
  })
  const leaving = new AbortController()
  const request = client.send({ ...get, signal: leaving.signal })
  await begun.promise
  leaving.abort()
  await assert.rejects(request, /was ended/)
  await ended.promise
  await assert.rejects(client.send({ ...get, signal: leaving.signal }), /was ended/)
})

test('the refusal of a body comes before its end', async t => {
  const { client, post } = await opened(t, (_, response) => void response.writeHead(413).end('too large'))
  const endless = new Readable({ read: () => {} })
  endless.push(Buffer.alloc(100))
  const answer = await client.send({ head: post(1_000_000), body: endless, signal: null })
  assert.deepEqual([answer.status, String(await bodyOf(answer.body))], [413, 'too large'])
})

test('no more of a response is read than its reader takes', async t => {
  let written = 0
  const { client, get } = await opened(t, (_, response) => {
    const piece = Buffer.alloc(1_048_576)
    const more = () => {
      while (written < 64 * piece.byteLength) {
        written += piece.byteLength
        if (!response.write(piece)) return void response.once('drain', more)
      }
      response.end()
    }
    more()
  })
  const { body } = await client.send(get)
  const pieces = body as AsyncIterable<Buffer>
  const first = await pieces[Symbol.asyncIterator]().next()
  assert.ok(first.done === false)
  // Until the buffers of the system are full.
  for (let before = -1; before !== written; ) {
    before = written
    for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate)
  }
  assert.ok(written < 32 * 1_048_576, `the server has written ${written} bytes`)
})

/** Connections that change their protocol: WebSockets, and whatever else is asked for with `Upgrade`. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { WebSocket } from 'undici'
import {
  answering,
  bodyOf,
  type Gateway,
  PLAIN,
  pumped,
  rawClient,
  startGateway,
  startRawServer,
} from '../support/gateway.ts'
import { sleep, until } from '../support/until.ts'
import { agreed, readFrame, writeFrame } from '../support/websocket.ts'

const MiB = 1_048_576
const ASK = 'GET /s?x=1 HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo/1\r\nX-A: 1\r\n\r\n'
const AGREE = 'HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: echo/1\r\nX-B: 2\r\n\r\n'

interface Side {
  socket: Socket | null
  head: string
  text: string
  ended: boolean
  closed: boolean
  error: string | undefined
}

/** A worker that answers each head so, and keeps what comes after it. */
async function worker(gateway: Gateway, answer: string | null = AGREE, id = 'w1'): Promise<Side> {
  const side: Side = { socket: null, head: '', text: '', ended: false, closed: false, error: undefined }
  const server = await startRawServer(socket => {
    side.socket = socket
    let all = ''
    socket.on('data', bytes => {
      const before = all.includes('\r\n\r\n')
      all += bytes.toString('latin1')
      side.head = all.slice(0, all.indexOf('\r\n\r\n'))
      side.text = bodyOf(all)
      if (!before && all.includes('\r\n\r\n') && answer !== null) socket.write(answer)
    })
    socket.on('end', () => {
      side.ended = true
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      side.error = error.code
    })
    socket.on('close', () => {
      side.closed = true
    })
  }, true)
  gateway.reservations.add(id, server.port)
  return side
}

describe('a connection that is upgraded', () => {
  test('is asked for at the worker with its protocol, and what else was said', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const got = await rawClient(gateway.port).send(ASK).until('\r\n\r\n')
    const [line, ...fields] = side.head.split('\r\n')
    assert.equal(line, 'GET /s?x=1 HTTP/1.1')
    for (const field of ['Host: here', 'X-A: 1', 'Connection: Upgrade', 'Upgrade: echo/1', 'X-Forwarded-Proto: http']) {
      assert.ok(fields.includes(field), field)
    }
    assert.deepEqual(got.split('\r\n'), [
      ...['HTTP/1.1 101 Go', 'X-B: 2', 'Connection: Upgrade', 'Upgrade: echo/1'],
      ...['X-Runpod-Worker-Id: w1', 'X-Request-Id: request-1', '', ''],
    ])
  })

  test('carries bytes both ways as they come', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    for (let n = 0; n < 50; n += 1) {
      client.send(`<${n}>`)
      await until('the worker', () => side.text.endsWith(`<${n}>`), 15_000, 1)
      side.socket!.write(`(${n})`)
      await client.until(`(${n})`)
    }
    client.socket.end()
    await until('the end', () => side.ended)
    const next = gateway.next()
    side.socket!.end()
    const { kind, status, complete, bytesIn, bytesOut, workerId, path } = await next
    assert.deepEqual(
      { kind, status, complete, bytesIn, bytesOut, workerId, path },
      {
        kind: 'socket',
        status: 101,
        complete: true,
        bytesIn: 190,
        bytesOut: 190,
        workerId: 'w1',
        path: '/s',
      },
    )
    assert.deepEqual(gateway.reservations.released, [['w1', 'answered']])
  })

  test('keeps what the worker sends with its head', async () => {
    const gateway = await startGateway()
    await worker(gateway, `${AGREE}first`)
    await rawClient(gateway.port).send(ASK).until('\r\n\r\nfirst')
  })

  test('keeps what the client sends with its head, and holds it back until the worker agrees', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway, null)
    const client = rawClient(gateway.port).send(`${ASK}GET /smuggled HTTP/1.1\r\n\r\n`)
    await until('the head', () => side.head !== '')
    client.send('more')
    await sleep(100)
    assert.equal(side.text, '')
    side.socket!.write(AGREE)
    await until('the rest', () => side.text === 'GET /smuggled HTTP/1.1\r\n\r\nmore')
  })

  test('is in flight until both sides have ended', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    client.socket.end()
    await until('the end', () => side.ended)
    assert.deepEqual([gateway.reservations.released.length, gateway.forwarder.liveCount], [0, 1])
    side.socket!.end()
    await until('the release', () => gateway.reservations.released.length === 1)
    assert.equal(gateway.forwarder.liveCount, 0)
  })

  test('goes on towards a client that has said all it wanted to', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    client.send('question').socket.end()
    await until('the end', () => side.ended && side.text === 'question')
    side.socket!.write('answer')
    await client.until('answer')
    side.socket!.end()
    await client.untilEnd()
  })

  test('goes on towards a worker that has said all it wanted to', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    side.socket!.end('bye')
    assert.match(await client.untilEnd(), /bye$/)
    client.send('still here')
    await until('the bytes', () => side.text === 'still here')
    client.socket.end()
    await until('the end', () => side.ended)
  })

  test('that a client breaks off breaks off at the worker', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    const next = gateway.next()
    client.socket.resetAndDestroy()
    await until('the end', () => side.closed)
    assert.equal(side.error, 'ECONNRESET')
    assert.deepEqual([(await next).complete, gateway.reservations.released], [false, [['w1', 'aborted']]])
  })

  test('that a worker breaks off breaks off at the client', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    const next = gateway.next()
    side.socket!.resetAndDestroy()
    await until('the end', () => client.closed)
    assert.equal(client.error?.code, 'ECONNRESET')
    assert.deepEqual([(await next).complete, gateway.reservations.released], [false, [['w1', 'broken']]])
  })

  test('waits at the client while the worker does not read, and the other way round', async () => {
    for (const reader of ['worker', 'client'] as const) {
      const gateway = await startGateway()
      const side = await worker(gateway)
      const client = rawClient(gateway.port).send(ASK)
      await client.until('\r\n\r\n')
      const [from, to] = reader === 'worker' ? [client.socket, side.socket!] : [side.socket!, client.socket]
      to.pause()
      const sent = await pumped(from)
      assert.ok(sent < 24 * MiB, `${sent} bytes went in`)
      let got = 0
      to.on('data', bytes => {
        got += bytes.length
      })
      to.resume()
      from.end()
      await until('all of it', () => got >= sent)
      to.destroy()
    }
  })

  test('on which nothing moves for too long is ended', async () => {
    const gateway = await startGateway({ limits: { socketIdleMs: 1_000 } })
    const side = await worker(gateway)
    const client = rawClient(gateway.port).send(ASK)
    await client.until('\r\n\r\n')
    for (let n = 0; n < 8; n += 1) {
      client.send('x')
      await sleep(200)
    }
    assert.equal(client.closed || client.ended, false)
    await client.untilEnd()
    await until('the end', () => side.ended || side.closed)
    await until('the release', () => gateway.reservations.released.length === 1)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']], 'it is not held against the worker')
  })

  test('may ask for several protocols, with any method', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway)
    const ask = ASK.replace('GET', 'OPTIONS').replace('echo/1', 'echo/2, echo/1')
    await rawClient(gateway.port).send(ask).until('101 Go')
    assert.match(side.head, /^OPTIONS [\s\S]*\r\nUpgrade: echo\/2, echo\/1$/)
  })
})

describe('a worker that does not agree', () => {
  const rows: [what: string, answer: string, body: RegExp][] = [
    ['with a length', 'HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno', /\r\n\r\nno$/],
    ['in chunks', 'HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n', /no\r\n0\r\n\r\n$/],
    ['without a body', 'HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n', /\r\n\r\n$/],
  ]
  for (const [what, answer, body] of rows) {
    test(`gives its answer, ${what}, and the connection ends`, async () => {
      const gateway = await startGateway()
      const side = await worker(gateway, answer)
      const next = gateway.next()
      const got = await rawClient(gateway.port).send(`${ASK}GET /smuggled HTTP/1.1\r\n\r\n`).untilEnd()
      assert.match(got, /^HTTP\/1.1 403 No\r\n[\s\S]*X-Runpod-Worker-Id: w1\r\n/)
      assert.match(got, /\r\nConnection: close\r\n/)
      assert.match(got, body)
      assert.equal(side.text, '')
      const { status, complete, kind } = await next
      assert.deepEqual([status, complete, kind], [403, true, 'socket'])
    })
  }

  test('may give a large answer to a client that reads slowly', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway, null)
    const client = rawClient(gateway.port).send(ASK)
    await until('the head', () => side.head !== '')
    client.socket.pause()
    side.socket!.write(`HTTP/1.1 403 No\r\nContent-Length: ${16 * MiB}\r\n\r\n`)
    side.socket!.write(Buffer.alloc(16 * MiB))
    await sleep(300)
    client.socket.resume()
    assert.equal(bodyOf(await client.untilEnd()).length, 16 * MiB)
  })

  test('gives a large answer to a client that reads nothing: the connection is given up', async () => {
    const gateway = await startGateway({ limits: { streamIdleMs: 200 } })
    const side = await worker(gateway, null)
    const client = rawClient(gateway.port).send(ASK)
    await until('the head', () => side.head !== '')
    client.socket.pause()
    side.socket!.write(`HTTP/1.1 403 No\r\nContent-Length: ${16 * MiB}\r\n\r\n`)
    side.socket!.write(Buffer.alloc(16 * MiB))
    await until('its end', () => gateway.forwarder.liveCount === 0)
    assert.equal(gateway.passed[0]?.complete, false)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('says 101 without a protocol: 502', async () => {
    const gateway = await startGateway()
    await worker(gateway, 'HTTP/1.1 101 Go\r\n\r\n')
    const got = await rawClient(gateway.port).send(ASK).untilEnd()
    assert.match(got, /^HTTP\/1.1 502 /)
    assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
  })

  test('goes before it says anything: another one is asked', async () => {
    const gateway = await startGateway()
    const gone = await startRawServer(socket => void socket.once('data', () => socket.destroy()))
    gateway.reservations.add('w1', gone.port)
    await worker(gateway, AGREE, 'w2')
    const client = rawClient(gateway.port).send(ASK)
    await client.until('X-Runpod-Worker-Id: w2')
  })

  test('cannot be reached, nor another one: 502, and the connection ends', async () => {
    const gateway = await startGateway()
    const gone = await startRawServer(() => {})
    await gone.close()
    gateway.reservations.add('w1', gone.port)
    const got = await rawClient(gateway.port).send(ASK).untilEnd()
    assert.match(got, /^HTTP\/1.1 502 [\s\S]*cannot be reached/)
  })

  test('is not even asked when the request is refused', async () => {
    const gateway = await startGateway()
    const got = await rawClient(gateway.port).send(ASK).untilEnd()
    assert.match(got, /^HTTP\/1.1 400 [\s\S]*no workers available/)
    assert.equal(gateway.forwarder.liveCount, 0)
  })

  test('is not asked by HTTP/1.0, which has no upgrades: it gets a plain request', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway, PLAIN)
    const got = await rawClient(gateway.port).send(ASK.replace('HTTP/1.1', 'HTTP/1.0')).untilEnd()
    assert.match(got, /hi$/)
    assert.doesNotMatch(side.head, /upgrade/i)
  })
})

describe('a client that goes before its worker agreed', () => {
  test('while it waits leaves the line', async () => {
    const gateway = await startGateway()
    gateway.reservations.gate = new Promise(() => {})
    const next = gateway.next()
    const client = rawClient(gateway.port).send(ASK)
    await until('the claim', () => gateway.reservations.wanted.length === 1)
    client.socket.destroy()
    assert.equal((await next).status, 499)
    assert.equal(gateway.forwarder.liveCount, 0)
  })

  test('is noticed by the worker', async () => {
    const gateway = await startGateway()
    const side = await worker(gateway, null)
    const client = rawClient(gateway.port).send(ASK)
    await until('the head', () => side.head !== '')
    const next = gateway.next()
    client.socket.destroy()
    await until('the end', () => side.ended || side.closed)
    assert.deepEqual([(await next).status, gateway.reservations.released], [499, [['w1', 'aborted']]])
  })

  test('may send a lot, of which only a part is taken', async () => {
    const gateway = await startGateway()
    await worker(gateway, null)
    const client = rawClient(gateway.port).send(ASK)
    const sent = await pumped(client.socket)
    assert.ok(sent < 24 * MiB, `${sent} bytes went in`)
  })
})

describe('a WebSocket', () => {
  /** A server that echoes text, and closes with the requested code. */
  async function echo(gateway: Gateway): Promise<{ closed: Buffer[] }> {
    const closed: Buffer[] = []
    const server = await startRawServer(socket => {
      let bytes: Buffer = Buffer.alloc(0)
      let open = false
      socket.on('data', (more: Buffer) => {
        bytes = Buffer.concat([bytes, more])
        if (!open) {
          const end = bytes.indexOf('\r\n\r\n')
          if (end < 0) return
          open = true
          socket.write(agreed(bytes.toString('latin1', 0, end)))
          bytes = bytes.subarray(end + 4)
        }
        for (let frame = readFrame(bytes); frame !== null; frame = readFrame(bytes)) {
          bytes = bytes.subarray(frame.size)
          if (frame.opcode === 8) {
            closed.push(frame.payload)
            socket.end(writeFrame(8, frame.payload))
          } else if (frame.payload.toString() === 'vanish') socket.resetAndDestroy()
          else if (frame.payload.toString().startsWith('close ')) {
            const code = Buffer.alloc(2)
            code.writeUInt16BE(Number(frame.payload.toString().slice(6)))
            socket.write(writeFrame(8, Buffer.concat([code, Buffer.from('told so')])))
          } else socket.write(writeFrame(frame.opcode, frame.payload))
        }
      })
    })
    gateway.reservations.add('w1', server.port)
    return { closed }
  }

  async function open(gateway: Gateway, protocols: string[] = []): Promise<WebSocket> {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/ws`, protocols)
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve)
      socket.addEventListener('error', reject)
    })
    return socket
  }

  const message = (socket: WebSocket) =>
    new Promise<unknown>(resolve => socket.addEventListener('message', event => resolve(event.data), { once: true }))
  const end = (socket: WebSocket) =>
    new Promise<[number, string, boolean]>(resolve =>
      socket.addEventListener('close', ({ code, reason, wasClean }) => resolve([code, reason, wasClean])),
    )

  test('echoes text, large and small, through the gateway', async () => {
    const gateway = await startGateway()
    await echo(gateway)
    const socket = await open(gateway, ['chat', 'other'])
    assert.equal(socket.protocol, 'chat')
    for (const text of ['a', 'ä'.repeat(1_000), 'x'.repeat(3 * MiB)]) {
      socket.send(text)
      assert.equal(await message(socket), text)
    }
    socket.close()
  })

  for (const [code, reason] of [
    [1000, 'done'],
    [3001, 'own'],
    [4999, 'last'],
  ] as const) {
    test(`closed with ${code} by the client reaches the worker with its reason`, async () => {
      const gateway = await startGateway()
      const { closed } = await echo(gateway)
      const socket = await open(gateway)
      const ended = end(socket)
      const next = gateway.next()
      socket.close(code, reason)
      assert.deepEqual(await ended, [code, reason, true])
      assert.deepEqual([closed[0]!.readUInt16BE(), closed[0]!.toString('utf8', 2)], [code, reason])
      assert.equal((await next).status, 101)
    })
  }

  for (const code of [1000, 1001, 1008, 1011, 1012, 4000]) {
    test(`closed with ${code} by the worker reaches the client with its reason`, async () => {
      const gateway = await startGateway()
      await echo(gateway)
      const socket = await open(gateway)
      const ended = end(socket)
      socket.send(`close ${code}`)
      assert.deepEqual(await ended, [code, 'told so', true])
    })
  }

  test('whose worker vanishes is closed as 1006, and not cleanly', async () => {
    const gateway = await startGateway()
    await echo(gateway)
    const socket = await open(gateway)
    const ended = end(socket)
    socket.send('vanish')
    assert.deepEqual(await ended, [1006, '', false])
  })

  test('that the worker refuses fails', async () => {
    const gateway = await startGateway()
    const server = await startRawServer(answering('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n'))
    gateway.reservations.add('w1', server.port)
    await assert.rejects(open(gateway))
  })

  test('does not mind two hundred others', async () => {
    const gateway = await startGateway()
    await echo(gateway)
    const sockets = await Promise.all(Array.from({ length: 200 }, () => open(gateway)))
    await Promise.all(
      sockets.map(async (socket, n) => {
        socket.send(`hello ${n}`)
        assert.equal(await message(socket), `hello ${n}`)
      }),
    )
    assert.equal(gateway.forwarder.liveCount, 200)
    const ends = await Promise.all(
      sockets.map(socket => {
        const ended = end(socket)
        socket.close(1000)
        return ended
      }),
    )
    assert.ok(ends.every(([code]) => code === 1000))
    await until('all of them', () => gateway.forwarder.liveCount === 0)
  })
})

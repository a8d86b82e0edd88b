/** Bodies, streams, and what comes of them when one side goes: through the gateway in both directions. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import {
  bodyOf,
  type Gateway,
  get,
  PLAIN,
  pumped,
  rawClient,
  startGateway,
  startHttpServer,
  startRawServer,
} from '../support/gateway.ts'
import { parseAnswer } from '../support/raw-http.ts'
import { sleep, until } from '../support/until.ts'

const MiB = 1_048_576
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/** A worker that does not answer: its input and its connections. */
async function silentWorker(gateway: Gateway, id = 'w1', onData: (text: string, socket: Socket) => void = () => {}) {
  const state = { text: '', ended: 0, closed: 0, socket: null as Socket | null, sockets: 0 }
  const worker = await startRawServer(socket => {
    state.socket = socket
    state.sockets += 1
    let text = ''
    socket.on('data', bytes => {
      text += bytes.toString('latin1')
      state.text += bytes.toString('latin1')
      onData(text, socket)
    })
    socket.on('end', () => {
      state.ended += 1
    })
    socket.on('close', () => {
      state.closed += 1
    })
  })
  gateway.reservations.add(id, worker.port)
  return { ...worker, state }
}

const post = (lines: string[], body = '', method = 'POST') =>
  `${[`${method} /a HTTP/1.1`, 'Host: here', ...lines].join('\r\n')}\r\n\r\n${body}`

describe('the body of a request', () => {
  test('with a length goes on with that length', async () => {
    const gateway = await startGateway()
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.endsWith('hello')) socket.write(PLAIN)
    })
    const next = gateway.next()
    await rawClient(gateway.port)
      .send(post(['Content-Length: 5', 'Connection: close'], 'hello'))
      .untilEnd()
    assert.match(state.text, /\r\nContent-Length: 5\r\n\r\nhello$/)
    assert.equal((await next).bytesIn, 5)
  })

  test('in chunks goes on in chunks, with its trailers, but for those that could mislead', async () => {
    const gateway = await startGateway()
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (/\r\n0\r\n[\s\S]*\r\n\r\n$/.test(text)) socket.write(PLAIN)
    })
    const body = '3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 7\r\nCookie: evil\r\nHost: evil\r\n\r\n'
    const head = ['Transfer-Encoding: chunked', 'Trailer: X-Sum', 'Connection: close']
    await rawClient(gateway.port).send(post(head, body)).untilEnd()
    assert.match(state.text, /\r\nTransfer-Encoding: chunked\r\n/)
    assert.match(state.text, /\r\nTrailer: X-Sum\r\n/)
    assert.equal(bodyOf(state.text), '3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 7\r\n\r\n')
  })

  test('goes on as it comes, before it is whole', async () => {
    const gateway = await startGateway()
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.endsWith('0\r\n\r\n')) socket.write(PLAIN)
    })
    const client = rawClient(gateway.port).send(post(['Transfer-Encoding: chunked']))
    for (const word of ['one', 'two', 'six']) {
      client.send(`3\r\n${word}\r\n`)
      await until(word, () => state.text.includes(word))
    }
    await client.send('0\r\n\r\n').until('hi')
  })

  test('is asked for here, once there is a worker, and not before', async () => {
    const gateway = await startGateway()
    let open = () => {}
    gateway.reservations.gate = new Promise(resolve => {
      open = resolve
    })
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.endsWith('hello')) socket.write(PLAIN)
    })
    const client = rawClient(gateway.port).send(post(['Content-Length: 5', 'Expect: 100-continue']))
    await until('the claim', () => gateway.reservations.wanted.length === 1)
    assert.equal(client.text, '')
    open()
    await client.until('HTTP/1.1 100 Continue\r\n\r\n')
    await client.send('hello').until('hi')
    assert.doesNotMatch(state.text, /expect/i)
    assert.equal(client.text.match(/100 Continue/g)?.length, 1)
  })

  test('is not asked for when the request is refused, and the connection ends', async () => {
    const gateway = await startGateway()
    const got = await rawClient(gateway.port)
      .send(post(['Content-Length: 5', 'Expect: 100-continue']))
      .untilEnd()
    assert.match(got, /^HTTP\/1.1 400 [\s\S]*\r\nConnection: close\r\n/)
  })

  test('that is too large is refused before a worker is claimed, and not asked for', async () => {
    const gateway = await startGateway({ bodyBytes: 10 })
    for (const more of [[], ['Expect: 100-continue']]) {
      const got = await rawClient(gateway.port)
        .send(post(['Content-Length: 11', 'Connection: close', ...more]))
        .untilEnd()
      assert.match(
        got,
        /^HTTP\/1.1 413 Payload Too Large\r\n[\s\S]*"the request body is too large: the limit is 10 bytes/,
      )
    }
    assert.equal(gateway.reservations.wanted.length, 0)
  })

  test('may be as large as the limit, and is cut off at its worker when it turns out to be larger', async () => {
    const gateway = await startGateway({ bodyBytes: 10 })
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (/0123456789$|0\r\n\r\n$/.test(text)) socket.write(PLAIN)
    })
    await rawClient(gateway.port)
      .send(post(['Content-Length: 10'], '0123456789'))
      .until('hi')
    const chunked = () => rawClient(gateway.port).send(post(['Transfer-Encoding: chunked'], 'a\r\n0123456789\r\n'))
    await chunked().send('0\r\n\r\n').until('hi')
    const next = gateway.next()
    const client = chunked().send('1\r\nx\r\n')
    await client.until('"the request body is too large: the limit is 10 bytes')
    assert.match(client.text, /^HTTP\/1.1 413 /)
    // The rest of the body is discarded, so that the connection stays open.
    await client
      .send('3\r\nyyy\r\n0\r\n\r\n')
      .send(post(['Content-Length: 10'], '0123456789'))
      .until('hi')
    assert.equal((await next).status, 413)
    assert.doesNotMatch(state.text, /x|yyy/)
    assert.deepEqual(
      gateway.reservations.released.map(([, outcome]) => outcome),
      ['answered', 'answered', 'aborted', 'answered'],
    )
  })

  test('that turns out to be too large breaks off the answer that has begun', async () => {
    const gateway = await startGateway({ bodyBytes: 10 })
    await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.endsWith('0123456789\r\n')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun')
    })
    const client = rawClient(gateway.port).send(post(['Transfer-Encoding: chunked'], 'a\r\n0123456789\r\n'))
    await client.until('begun')
    assert.match(await client.send('1\r\nx\r\n').untilEnd(), /begun$/)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('that ends too early never looks whole to the worker', async () => {
    for (const head of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
      const gateway = await startGateway()
      const { state } = await silentWorker(gateway)
      const next = gateway.next()
      const client = rawClient(gateway.port).send(post([head], head.startsWith('C') ? 'hello' : '5\r\nhello\r\n'))
      await until('the first bytes', () => state.text.includes('hello'))
      client.socket.destroy()
      await until('the end at the worker', () => state.closed === 1)
      assert.doesNotMatch(bodyOf(state.text), /0\r\n\r\n/)
      const { status, complete } = await next
      assert.deepEqual([status, complete, gateway.reservations.released], [499, false, [['w1', 'aborted']]])
    }
  })

  test('need not be read by a worker that answers before', async () => {
    const gateway = await startGateway()
    const { state } = await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.includes('first')) socket.write('HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno')
    })
    const client = rawClient(gateway.port).send(post(['Content-Length: 30', 'Connection: close'], 'first'))
    await client.until('no')
    await until('the end at the worker', () => state.closed === 1)
    client.send('x'.repeat(25))
    await client.untilEnd()
    assert.match(client.text, /^HTTP\/1.1 413 Too Much/)
  })

  test('of a worker that answers before does not spoil the next request of the client', async () => {
    const gateway = await startGateway()
    await silentWorker(gateway, 'w1', (text, socket) => {
      if (text.includes('first')) socket.write('HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno')
      else if (text.startsWith('GET')) socket.write(PLAIN)
    })
    const client = rawClient(gateway.port).send(post(['Content-Length: 30'], 'first'))
    await client.until('no')
    client.send('x'.repeat(25)).send('GET /b HTTP/1.1\r\nHost: here\r\n\r\n')
    await client.until('hi')
  })

  test('of 30 MB is answered by a worker that refuses it and hangs up, as often as it is tried', async () => {
    const gateway = await startGateway()
    const worker = await startRawServer(socket => {
      socket.once('data', () => {
        socket.end('HTTP/1.1 413 Too Much\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno')
        setTimeout(() => socket.destroy(), 20)
      })
    })
    gateway.reservations.add('w1', worker.port)
    const statuses: number[] = []
    for (let n = 0; n < 40; n += 1) statuses.push(await upload(gateway.port, 3 * MiB))
    assert.deepEqual([...new Set(statuses)], [413])
  })

  test('and the answer may go on at once, like an echo', async () => {
    const gateway = await startGateway()
    const { port } = await startHttpServer((incoming, outgoing) => void incoming.pipe(outgoing))
    gateway.reservations.add('w1', port)
    const client = rawClient(gateway.port).send(post(['Transfer-Encoding: chunked']))
    for (const word of ['one', 'two', 'six']) {
      client.send(`3\r\n${word}\r\n`)
      await client.until(word)
    }
    const next = gateway.next()
    await client.send('0\r\n\r\n').until('0\r\n\r\n')
    const { bytesIn, bytesOut, complete } = await next
    assert.deepEqual([bytesIn, bytesOut, complete], [9, 9, true])
  })

  test('waits at its client while the worker does not read', async () => {
    const gateway = await startGateway({ bodyBytes: 200 * MiB })
    const worker = await startRawServer(socket => void socket.pause())
    gateway.reservations.add('w1', worker.port)
    const client = rawClient(gateway.port).send(post([`Content-Length: ${200 * MiB}`]))
    const sent = await pumped(client.socket)
    assert.ok(sent < 24 * MiB, `${sent} bytes went in`)
  })
})

function upload(port: number, bytes: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': bytes } })
    let status = 0
    outgoing.on('response', incoming => {
      status = incoming.statusCode ?? 0
      incoming.resume().on('end', () => {
        outgoing.destroy()
        resolve(status)
      })
    })
    outgoing.on('error', error => (status === 0 ? reject(error) : undefined))
    outgoing.end(Buffer.alloc(bytes))
  })
}

describe('the body of an answer', () => {
  test('in chunks goes on in chunks, with its trailers, but for those that could mislead', async () => {
    const gateway = await startGateway()
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n'
    const body = '3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 7\r\nContent-Length: 3\r\nX-Runpod-Worker-Id: evil\r\n\r\n'
    await silentWorker(gateway, 'w1', (_, socket) => void socket.write(head + body))
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /\r\nTrailer: X-Sum\r\n/)
    assert.match(bodyOf(got), /\r\n0\r\nX-Sum: 7\r\n\r\n$/)
    assert.equal(parseAnswer(Buffer.from(got, 'latin1')).body, 'abcde')
  })

  test('comes through in whatever pieces it arrives', async () => {
    const gateway = await startGateway()
    const answer = `${CHUNKED}3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 7\r\n\r\n`
    await silentWorker(gateway, 'w1', async (_, socket) => {
      for (const letter of answer) {
        socket.write(letter)
        await sleep(1)
      }
    })
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(bodyOf(got), /\r\n0\r\nX-Sum: 7\r\n\r\n$/)
    assert.equal(parseAnswer(Buffer.from(got, 'latin1')).body, 'abcde')
    assert.equal((await next).complete, true)
  })

  test('is forwarded event by event: no event waits for the next, ten thousand times in order', async () => {
    const gateway = await startGateway()
    let worker: Socket | null = null
    await silentWorker(gateway, 'w1', (_, socket) => {
      worker = socket
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n')
    })
    const client = rawClient(gateway.port).send(get([]))
    await client.until('text/event-stream')
    const event = (n: number) => {
      const text = `data: ${n}\n\n`
      return `${text.length.toString(16)}\r\n${text}\r\n`
    }
    for (let n = 0; n < 500; n += 1) {
      worker!.write(event(n))
      await client.until(`data: ${n}\n\n`)
    }
    for (let n = 500; n < 10_000; n += 1) worker!.write(event(n))
    worker!.write('0\r\n\r\n')
    const got = await client.untilEnd()
    assert.deepEqual(
      parseAnswer(Buffer.from(got, 'latin1'))
        .body.match(/(?<=data: )\d+/g)
        ?.map(Number),
      Array.from({ length: 10_000 }, (_, n) => n),
    )
  })

  test('waits at its worker while the client does not read', async () => {
    const gateway = await startGateway()
    let sent: Promise<number> | null = null
    await silentWorker(gateway, 'w1', (_, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${200 * MiB}\r\n\r\n`)
      sent = pumped(socket)
    })
    const client = rawClient(gateway.port)
    client.socket.pause()
    client.send(get([]))
    await until('the request', () => sent !== null)
    const bytes = await (sent as unknown as Promise<number>)
    assert.ok(bytes < 24 * MiB, `${bytes} bytes went in`)
  })

  test('comes wholly to a client that reads slowly', async () => {
    const gateway = await startGateway()
    await silentWorker(gateway, 'w1', (_, socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${8 * MiB}\r\n\r\n`)
      socket.write(Buffer.alloc(8 * MiB, 'x'))
    })
    const client = rawClient(gateway.port).send(get([]))
    for (let n = 0; n < 20; n += 1) {
      client.socket.pause()
      await sleep(20)
      client.socket.resume()
      await sleep(2)
    }
    assert.equal(bodyOf(await client.untilEnd()).length, 8 * MiB)
  })
})

describe('memory', () => {
  const ONE_GB = 1_000_000_000
  const MOST_GROWTH = 256 * MiB

  async function growth(run: () => Promise<void>): Promise<number> {
    const before = process.memoryUsage()
    let most = 0
    const watch = setInterval(() => {
      const { rss, external } = process.memoryUsage()
      most = Math.max(most, rss - before.rss, external - before.external)
    }, 20)
    await run()
    clearInterval(watch)
    return most
  }

  test('stays flat through a download of 1 GB', async () => {
    const gateway = await startGateway()
    const piece = Buffer.alloc(MiB)
    const { port } = await startHttpServer((_, outgoing) => {
      outgoing.setHeader('Content-Length', ONE_GB)
      let left = ONE_GB
      const more = () => {
        for (let free = true; free && left > 0; ) {
          const part = left < MiB ? piece.subarray(0, left) : piece
          left -= part.length
          free = outgoing.write(part)
        }
        if (left === 0) outgoing.end()
      }
      outgoing.on('drain', more)
      more()
    })
    gateway.reservations.add('w1', port)
    let bytes = 0
    const grown = await growth(async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.port}/`)
      for await (const part of response.body ?? []) bytes += (part as Uint8Array).length
    })
    assert.equal(bytes, ONE_GB)
    assert.ok(grown < MOST_GROWTH, `grew by ${grown} bytes`)
  })

  test('stays flat through uploads of 30 MB, one after another', async () => {
    const gateway = await startGateway()
    const { port } = await startHttpServer((incoming, outgoing) => {
      let bytes = 0
      incoming.on('data', (part: Buffer) => {
        bytes += part.length
      })
      incoming.on('end', () => outgoing.end(String(bytes)))
    })
    gateway.reservations.add('w1', port)
    // One piece again and again, since a copy for each upload would be most of what there is to collect.
    const piece = Buffer.alloc(MiB)
    const upload = async () => {
      const sending = request({ port: gateway.port, method: 'POST', headers: { 'content-length': 30 * MiB } })
      const answered = once(sending, 'response') as Promise<[IncomingMessage]>
      for (let sent = 0; sent < 30; sent += 1) if (!sending.write(piece)) await once(sending, 'drain')
      sending.end()
      const [response] = await answered
      assert.equal(await text(response), String(30 * MiB))
    }
    const uploads = async (count: number) => {
      for (let n = 0; n < count; n += 1) await upload()
    }
    await uploads(5)
    const grown = await growth(() => uploads(20))
    assert.ok(grown < MOST_GROWTH, `grew by ${grown} bytes`)
  })
})

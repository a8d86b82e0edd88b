/** End of a request whose worker or client disappears: repeated, refused, or visibly broken off. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import {
  answering,
  bodyOf,
  type Gateway,
  get,
  PLAIN,
  rawClient,
  startGateway,
  startRawServer,
} from '../support/gateway.ts'
import { sleep, until } from '../support/until.ts'

const request = (method: string, lines: string[] = [], body = '') =>
  `${[`${method} /a HTTP/1.1`, 'Host: here', ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`

async function add(gateway: Gateway, id: string, serve: (socket: Socket, number: number) => void) {
  const worker = await startRawServer(serve)
  gateway.reservations.add(id, worker.port)
  return worker
}

/** A port at which nobody listens. */
async function deadPort(): Promise<number> {
  const server = await startRawServer(() => {})
  await server.close()
  return server.port
}

/** Disconnects as soon as a request arrives. */
const hangUp = (socket: Socket) => void socket.once('data', () => socket.destroy())
const reset = (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy())

describe('a worker that goes before the first byte of its answer', () => {
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']) {
    test(`${method} is sent to another one`, async () => {
      const gateway = await startGateway()
      await add(gateway, 'w1', method === 'GET' ? reset : hangUp)
      await add(gateway, 'w2', answering(PLAIN))
      const next = gateway.next()
      const got = await rawClient(gateway.port).send(request(method)).untilEnd()
      assert.match(got, /^HTTP\/1.1 200 OK[\s\S]*X-Runpod-Worker-Id: w2/)
      const { tries, workerId, complete } = await next
      assert.deepEqual([tries, workerId, complete], [2, 'w2', true])
      assert.deepEqual(gateway.reservations.released, [...[['w1', 'broken'] as const, ['w2', 'answered'] as const]])
      assert.deepEqual(gateway.reservations.wanted[1]?.avoid, ['w1'])
    })
  }

  for (const method of ['POST', 'PATCH', 'LOCK']) {
    test(`${method} is not: it may have been done`, async () => {
      const gateway = await startGateway()
      await add(gateway, 'w1', hangUp)
      await add(gateway, 'w2', answering(PLAIN))
      const got = await rawClient(gateway.port).send(request(method)).untilEnd()
      assert.match(got, /^HTTP\/1.1 502 [\s\S]*\{"error":"worker w1 gave no answer: it closed the connection"\}$/)
      assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
    })
  }

  test('PUT whose body was begun is not', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', hangUp)
    const other = await add(gateway, 'w2', answering(PLAIN))
    const got = await rawClient(gateway.port)
      .send(request('PUT', ['Content-Length: 5'], 'hello'))
      .untilEnd()
    assert.match(got, /^HTTP\/1.1 502 /)
    assert.equal(other.sockets.length, 0)
  })

  test('PUT whose body has not come yet is', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', hangUp)
    let seen = ''
    await add(gateway, 'w2', socket => {
      socket.on('data', bytes => {
        seen += bytes.toString('latin1')
        if (seen.endsWith('hello')) socket.write(PLAIN)
      })
    })
    const client = rawClient(gateway.port).send(request('PUT', ['Content-Length: 5']))
    await until('the second worker', () => seen !== '')
    assert.match(await client.send('hello').untilEnd(), /^HTTP\/1.1 200 /)
  })

  test('is tried once only', async () => {
    const gateway = await startGateway()
    for (const id of ['w1', 'w2', 'w3']) await add(gateway, id, hangUp)
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 502 [\s\S]*worker w2/)
    assert.equal((await next).tries, 2)
  })

  test('after an interim answer is 502: its first byte was there', async () => {
    const gateway = await startGateway()
    await add(
      gateway,
      'w1',
      socket => void socket.once('data', () => socket.end('HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 2')),
    )
    const other = await add(gateway, 'w2', answering(PLAIN))
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /HTTP\/1.1 502 /)
    assert.equal(other.sockets.length, 0)
  })

  test('leaves a client that waits for the second worker free to go', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', hangUp)
    const second = await add(gateway, 'w2', () => {})
    const next = gateway.next()
    const client = rawClient(gateway.port).send(get([]))
    await until('the second worker', () => second.sockets.length === 1)
    client.socket.destroy()
    assert.equal((await next).status, 499)
    assert.deepEqual(gateway.reservations.released, [...[['w1', 'broken'] as const, ['w2', 'aborted'] as const]])
  })
})

describe('a worker that cannot be reached', () => {
  for (const method of ['GET', 'POST', 'PATCH']) {
    test(`${method} is sent to another one, with its body: nothing was sent`, async () => {
      const gateway = await startGateway()
      gateway.reservations.add('w1', await deadPort())
      let seen = ''
      await add(gateway, 'w2', socket => {
        socket.on('data', bytes => {
          seen += bytes.toString('latin1')
          if (seen.endsWith('hello')) socket.write(PLAIN)
        })
      })
      const next = gateway.next()
      const got = await rawClient(gateway.port)
        .send(request(method, ['Content-Length: 5'], 'hello'))
        .untilEnd()
      assert.match(got, /^HTTP\/1.1 200 OK/)
      assert.equal((await next).tries, 2)
      assert.deepEqual(gateway.reservations.released[0], ['w1', 'refused'])
    })
  }

  test('is left for the next one as often as it takes, and a POST gets through once', async () => {
    const gateway = await startGateway()
    for (const id of ['w1', 'w2', 'w3']) gateway.reservations.add(id, await deadPort())
    const last = await add(gateway, 'w4', answering(PLAIN))
    const next = gateway.next()
    assert.match(await rawClient(gateway.port).send(request('POST')).untilEnd(), /^HTTP\/1.1 200 OK/)
    assert.equal((await next).tries, 4)
    assert.equal(last.sockets.length, 1)
    assert.deepEqual(gateway.reservations.wanted.at(-1)?.avoid, ['w1', 'w2', 'w3'])
  })

  test('is tried again as long as the request has to wait for it', async () => {
    const gateway = await startGateway()
    gateway.reservations.waitedMs = 30
    gateway.reservations.add('w1', await deadPort())
    const client = rawClient(gateway.port).send(request('POST'))
    await until('three tries', () => gateway.reservations.wanted.length > 3)
    assert.ok((gateway.reservations.wanted[3]?.waitedMs ?? 0) >= 90, 'its waits are counted together')
    const worker = await startRawServer(answering(PLAIN))
    gateway.reservations.workers.length = 0
    gateway.reservations.add('w1', worker.port)
    assert.match(await client.untilEnd(), /^HTTP\/1.1 200 OK/)
  })

  test('does not use up the one retry of a request whose worker has gone', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', hangUp)
    gateway.reservations.add('w2', await deadPort())
    await add(gateway, 'w3', answering(PLAIN))
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 200 OK[\s\S]*X-Runpod-Worker-Id: w3/)
  })

  test('is 502 with a message when there is no other', async () => {
    const gateway = await startGateway()
    gateway.reservations.add('w1', await deadPort())
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 502 [\s\S]*"worker w1 gave no answer: it cannot be reached \(ECONNREFUSED\)"/)
    const { status, tries, connectMs, firstByteMs } = await next
    assert.deepEqual(
      { status, tries, connectMs, firstByteMs },
      { status: 502, tries: 2, connectMs: null, firstByteMs: null },
    )
  })
})

describe('a connection that a worker has closed since', () => {
  /** The first request of a connection is answered, a second one finds it closed. */
  const answersOnce = (socket: Socket, number: number) => {
    let count = 0
    socket.on('data', () => {
      count += 1
      if (number === 1 && count === 2) socket.resetAndDestroy()
      else socket.write(PLAIN)
    })
  }

  test('is opened again, to the same worker', async () => {
    const gateway = await startGateway()
    const worker = await add(gateway, 'w1', answersOnce)
    await rawClient(gateway.port).send(get([])).untilEnd()
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 200 OK/)
    assert.deepEqual([worker.sockets.length, (await next).tries], [2, 1])
    assert.deepEqual(gateway.reservations.released, [...[['w1', 'answered'] as const, ['w1', 'answered'] as const]])
  })

  test('is not for POST, which may have been done', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', answersOnce)
    await rawClient(gateway.port).send(get([])).untilEnd()
    const got = await rawClient(gateway.port).send(request('POST')).untilEnd()
    assert.match(got, /^HTTP\/1.1 502 /)
  })

  test('is not used at all once it is known to be closed', async () => {
    const gateway = await startGateway()
    const worker = await add(gateway, 'w1', answering(PLAIN))
    await rawClient(gateway.port).send(get([])).untilEnd()
    assert.equal(gateway.forwarder.idleCount, 1)
    worker.sockets[0]!.end()
    await until('the end', () => gateway.forwarder.idleCount === 0)
    assert.match(await rawClient(gateway.port).send(request('POST')).untilEnd(), /^HTTP\/1.1 200 OK/)
  })

  for (const method of ['GET', 'POST']) {
    test(`is not written to, and a ${method} that waited for the end of its turn is sent once`, async () => {
      const turns: (() => void)[] = []
      const endTurn = () => {
        for (const run of turns.splice(0)) run()
      }
      const gateway = await startGateway({ nextTurn: callback => turns.push(callback) })
      const heads: string[] = []
      const worker = await add(gateway, 'w1', socket => {
        let text = ''
        socket.on('data', bytes => {
          text += bytes.toString('latin1')
          if (!text.endsWith('\r\n\r\n')) return
          heads.push(text)
          if (!text.startsWith('GET /held')) socket.write(PLAIN)
          text = ''
        })
      })
      const turnsUntil = (condition: string, holds: () => boolean) =>
        until(condition, () => {
          endTurn()
          return holds()
        })
      // So many that writes wait for the end of the turn.
      for (let n = 0; n < 8; n += 1) rawClient(gateway.port).send(get([], 'GET /held HTTP/1.1'))
      await turnsUntil('all of them', () => heads.length === 8)
      const first = rawClient(gateway.port).send(get([]))
      await turnsUntil('the first response', () => first.text.includes('200 OK'))
      assert.equal(gateway.forwarder.idleCount, 1)
      const second = rawClient(gateway.port).send(request(method))
      await until('a write that waits', () => turns.length > 0)
      assert.equal(heads.length, 9)
      const [kept, connections] = [worker.sockets.at(-1)!, worker.sockets.length]
      kept.end()
      await until('the end of the kept connection', () => kept.destroyed)
      await turnsUntil('the second response', () => second.text.includes('200 OK'))
      assert.equal(heads.length, 10)
      assert.equal(heads.at(-1)!.match(/HTTP\/1\.1/g)!.length, 1, 'it came once')
      assert.equal(worker.sockets.length, connections + 1)
    })
  }

  test('is not used when it sends what nobody asked for', async () => {
    const gateway = await startGateway()
    const worker = await add(gateway, 'w1', answering(PLAIN))
    await rawClient(gateway.port).send(get([])).untilEnd()
    worker.sockets[0]!.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n')
    await until('the end', () => gateway.forwarder.idleCount === 0)
    assert.match(await rawClient(gateway.port).send(request('POST')).untilEnd(), /^HTTP\/1.1 200 OK/)
  })

  test('is kept for a short time only, or for as long as the worker says', async () => {
    const gateway = await startGateway({ kept: { idleMs: 1 } })
    const worker = await add(gateway, 'w1', answering(PLAIN))
    await rawClient(gateway.port).send(get([])).untilEnd()
    await until('the end', () => gateway.forwarder.idleCount === 0)
    const polite = await startRawServer(answering(PLAIN.replace('\r\n', '\r\nKeep-Alive: timeout=60\r\n')))
    gateway.reservations.workers.length = 0
    gateway.reservations.add('w2', polite.port)
    await rawClient(gateway.port).send(get([])).untilEnd()
    await rawClient(gateway.port).send(get([])).untilEnd()
    assert.deepEqual([worker.sockets.length, polite.sockets.length, gateway.forwarder.idleCount], [1, 1, 1])
  })

  for (const [what, answer] of [
    ['says so', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi'],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi'],
  ] as const) {
    test(`is not kept at all when the worker ${what}`, async () => {
      const gateway = await startGateway()
      const worker = await add(gateway, 'w1', answering(answer))
      for (let n = 0; n < 2; n += 1) await rawClient(gateway.port).send(get([])).untilEnd()
      assert.deepEqual([worker.sockets.length, gateway.forwarder.idleCount], [2, 0])
    })
  }
})

describe('an answer that breaks off', () => {
  const heads: [what: string, head: string][] = [
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n'],
    ['within a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\npart'],
    ['before its last chunk’s end', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n'],
  ]
  for (const [what, head] of heads) {
    for (const how of ['an end', 'a reset'] as const) {
      test(`${what}, by ${how}, never looks whole to the client`, async () => {
        const gateway = await startGateway()
        let worker: Socket | null = null
        await add(gateway, 'w1', socket => {
          worker = socket
          socket.once('data', () => socket.write(head))
        })
        const next = gateway.next()
        const client = rawClient(gateway.port).send('GET /a HTTP/1.1\r\nHost: here\r\n\r\n')
        await client.until('part')
        if (how === 'an end') worker!.end()
        else worker!.resetAndDestroy()
        const got = await client.untilEnd()
        assert.ok(!got.endsWith('0\r\n\r\n'), got)
        const { status, complete } = await next
        assert.deepEqual([status, complete, gateway.reservations.released], [200, false, [['w1', 'broken']]])
      })
    }
  }

  const untilClose = 'HTTP/1.1 200 OK\r\n\r\npart'

  test('without length by a reset never looks whole', async () => {
    const gateway = await startGateway()
    let worker: Socket | null = null
    await add(gateway, 'w1', socket => {
      worker = socket
      socket.once('data', () => socket.write(untilClose))
    })
    const client = rawClient(gateway.port).send('GET /a HTTP/1.1\r\nHost: here\r\n\r\n')
    await client.until('part')
    worker!.resetAndDestroy()
    assert.ok(!(await client.untilEnd()).endsWith('0\r\n\r\n'))
  })

  test('without length by an end is whole', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', socket => void socket.once('data', () => socket.end(untilClose)))
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.ok(bodyOf(got).endsWith('4\r\npart\r\n0\r\n\r\n'))
    assert.equal((await next).complete, true)
  })

  test('to HTTP/1.0 ends by a reset, since an end would look whole', async () => {
    const gateway = await startGateway()
    let worker: Socket | null = null
    await add(gateway, 'w1', socket => {
      worker = socket
      socket.once('data', () => socket.write(untilClose))
    })
    const client = rawClient(gateway.port).send('GET /a HTTP/1.0\r\nHost: here\r\n\r\n')
    await client.until('part')
    worker!.resetAndDestroy()
    await until('the end', () => client.closed || client.ended)
    assert.equal(client.error?.code, 'ECONNRESET')
  })

  test('because its chunks are invalid never looks whole', async () => {
    const gateway = await startGateway()
    let worker: Socket | null = null
    await add(gateway, 'w1', socket => {
      worker = socket
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n'))
    })
    const client = rawClient(gateway.port).send(get([]))
    await client.until('part')
    worker!.write('nonsense\r\n')
    assert.ok(!(await client.untilEnd()).endsWith('0\r\n\r\n'))
    assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
  })
})

describe('an answer that breaks off just as it begins', () => {
  test('is there as far as it came', async () => {
    const gateway = await startGateway()
    await add(gateway, 'w1', socket => {
      const start = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
      socket.once('data', () => socket.write(`${start}4\r\npart\r\nnonsense\r\n`))
    })
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n4\r\npart\r\n$/)
  })
})

describe('a line that is asked for a worker', () => {
  for (const isOpen of [true, false]) {
    test(`is told that ${isOpen ? 'anybody may ask' : 'who asks is known'}`, async () => {
      const gateway = await startGateway({ call: call => ({ ...call, isOpen }) })
      await add(gateway, 'w1', answering(PLAIN))
      await rawClient(gateway.port).send(get([])).untilEnd()
      assert.deepEqual(
        gateway.reservations.wanted.map(({ isAnonymous }) => isAnonymous),
        [isOpen],
      )
    })
  }
})

describe('the wait of a request that was never served', () => {
  test('is reported when it is refused', async () => {
    const gateway = await startGateway()
    gateway.reservations.refusal = new AppError('invalid', 'no workers available')
    let refuse = () => {}
    gateway.reservations.gate = new Promise(resolve => {
      refuse = resolve
    })
    const next = gateway.next()
    const client = rawClient(gateway.port).send(get([]))
    await until('the claim', () => gateway.reservations.wanted.length === 1)
    await sleep(60)
    refuse()
    assert.match(await client.untilEnd(), /^HTTP\/1.1 400 /)
    const { waitMs, totalMs } = await next
    assert.ok(waitMs >= 50 && waitMs <= totalMs, `${waitMs} of ${totalMs} ms`)
  })

  test('is reported when its client disconnects', async () => {
    const gateway = await startGateway()
    gateway.reservations.gate = new Promise(() => {})
    const next = gateway.next()
    const client = rawClient(gateway.port).send(get([]))
    await until('the claim', () => gateway.reservations.wanted.length === 1)
    await sleep(60)
    client.socket.destroy()
    const { waitMs, totalMs } = await next
    assert.ok(waitMs >= 50 && waitMs <= totalMs, `${waitMs} of ${totalMs} ms`)
  })
})

describe('a client that goes', () => {
  test('while it waits leaves the line', async () => {
    const gateway = await startGateway()
    gateway.reservations.gate = new Promise(() => {})
    const next = gateway.next()
    const client = rawClient(gateway.port).send(get([]))
    await until('the claim', () => gateway.reservations.wanted.length === 1)
    client.socket.destroy()
    const { status, tries } = await next
    assert.deepEqual([status, tries, gateway.reservations.wanted[0]?.signal.aborted], [499, 0, true])
    assert.equal(gateway.forwarder.liveCount, 0)
  })

  for (const [what, answer] of [
    ['before the answer', ''],
    ['in the middle of the answer', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart'],
  ] as const) {
    test(`${what} is noticed by the worker`, async () => {
      const gateway = await startGateway()
      let closed = false
      const worker = await add(gateway, 'w1', socket => {
        socket.once('data', () => void socket.write(answer))
        socket.on('close', () => {
          closed = true
        })
      })
      const next = gateway.next()
      const client = rawClient(gateway.port).send(get([]))
      if (answer === '') await until('the request', () => worker.sockets.length === 1)
      else await client.until('part')
      client.socket.destroy()
      await until('the end', () => closed)
      const { status, complete } = await next
      assert.deepEqual([status, complete], [answer === '' ? 499 : 200, false])
      assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
      assert.deepEqual([gateway.forwarder.liveCount, gateway.forwarder.idleCount], [0, 0])
    })
  }
})

describe('too long', () => {
  const limits = { connectMs: 5_000, headersMs: 300, streamIdleMs: 300, socketIdleMs: 300 }

  test('without the head of an answer is 504', async () => {
    const gateway = await startGateway({ limits })
    await add(gateway, 'w1', () => {})
    const next = gateway.next()
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /^HTTP\/1.1 504 [\s\S]*"worker w1 gave no answer within 0.3 s"/)
    assert.equal((await next).status, 504)
    assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
  })

  test('without more of the body of the request is 408', async () => {
    const gateway = await startGateway({ limits })
    await add(gateway, 'w1', () => {})
    const got = await rawClient(gateway.port)
      .send(request('POST', ['Content-Length: 9'], 'part'))
      .until('}')
    assert.match(got, /^HTTP\/1.1 408 /)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('without more of the answer breaks it off', async () => {
    const gateway = await startGateway({ limits })
    await add(gateway, 'w1', socket => void socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\npart')))
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.match(got, /part/)
    assert.ok(!got.endsWith('0\r\n\r\n'))
    assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
  })

  for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8', 'application/x-ndjson']) {
    test(`without another event breaks off ${type}, and is not held against the worker`, async () => {
      const gateway = await startGateway({ limits })
      const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`
      await add(gateway, 'w1', socket => void socket.once('data', () => socket.write(`${head}8\r\ndata: 1\n\r\n`)))
      const next = gateway.next()
      const got = await rawClient(gateway.port).send(get([])).untilEnd()
      assert.match(got, /data: 1/)
      assert.ok(!got.endsWith('0\r\n\r\n'), 'nobody takes it for whole')
      assert.equal((await next).complete, false)
      assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
    })
  }

  test('is not what a worker that breaks off its event stream took', async () => {
    const gateway = await startGateway({ limits: { ...limits, streamIdleMs: 60_000 } })
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
    await add(gateway, 'w1', socket => {
      socket.once('data', () => socket.write(`${head}8\r\ndata: 1\n\r\n`, () => socket.destroySoon()))
    })
    await rawClient(gateway.port).send(get([])).untilEnd()
    assert.deepEqual(gateway.reservations.released, [['w1', 'broken']])
  })

  const MUCH = `HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n${'x'.repeat(16_000_000)}`

  test('until a client takes more of the answer is not held against the worker', async () => {
    const gateway = await startGateway({ limits })
    await add(gateway, 'w1', socket => void socket.once('data', () => socket.write(MUCH)))
    const next = gateway.next()
    const client = rawClient(gateway.port)
    client.socket.pause()
    client.send(get([]))
    assert.equal((await next).complete, false)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('for a worker that gives up a client which took nothing is not held against it', async () => {
    const gateway = await startGateway({ limits: { ...limits, streamIdleMs: 60_000 } })
    let worker: Socket | null = null
    await add(gateway, 'w1', socket => {
      worker = socket
      socket.once('data', () => socket.write(MUCH))
    })
    const next = gateway.next()
    const client = rawClient(gateway.port)
    client.socket.pause()
    client.send(get([]))
    await until('the worker', () => worker !== null)
    await sleep(500)
    worker!.resetAndDestroy()
    client.socket.resume()
    assert.equal((await next).complete, false)
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('until the rest of a body comes whose answer has begun is not held against the worker', async () => {
    const gateway = await startGateway({ limits })
    await add(gateway, 'w1', socket => {
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n'))
    })
    const got = await rawClient(gateway.port)
      .send(request('POST', ['Content-Length: 9'], 'part'))
      .untilEnd()
    assert.ok(!got.endsWith('0\r\n\r\n'))
    assert.deepEqual(gateway.reservations.released, [['w1', 'aborted']])
  })

  test('is never what moves, however long it lasts', async () => {
    // Ten times a pause of the worker, so that a machine that stops for a second makes no silence.
    const gateway = await startGateway({ limits: { ...limits, headersMs: 2_000, streamIdleMs: 2_000 } })
    await add(gateway, 'w1', socket => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        let left = 12
        const drip = setInterval(() => {
          left -= 1
          if (left > 0) socket.write('x')
          else {
            clearInterval(drip)
            socket.end('end')
          }
        }, 200)
      })
    })
    const got = await rawClient(gateway.port).send(get([])).untilEnd()
    assert.ok(got.endsWith('3\r\nend\r\n0\r\n\r\n'), got.slice(-50))
  })
})

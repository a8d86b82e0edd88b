/** A listener that speaks HTTPS, and clients that are malicious or broken. */
import assert from 'node:assert/strict'
import { get } from 'node:https'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { type ConnectionOptions, connect as connectSecurely, type TLSSocket } from 'node:tls'
import type { Fetch } from '../../../src/api/surface.ts'
import { type Listener, type ListenOptions, listen } from '../../../src/server/listener.ts'
import type { KeyAndCertificate, ListenerTls } from '../../../src/server/tls.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { until } from '../support/until.ts'

const FIRST = makeCertificate()
const SECOND = makeCertificate()
const REQUEST = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
/** The head of a record with a first message of a client, of which the rest never comes. */
const BEGUN = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1])

/** A certificate that is changed by hand. */
class SettableTls implements ListenerTls {
  current: KeyAndCertificate = FIRST
  readonly #watchers = new Set<(pair: KeyAndCertificate) => void>()

  watch(changed: (pair: KeyAndCertificate) => void): () => void {
    this.#watchers.add(changed)
    return () => this.#watchers.delete(changed)
  }

  change(pair: KeyAndCertificate): void {
    this.current = pair
    for (const changed of this.#watchers) changed(pair)
  }
}

const answer: Fetch = async request => new Response(`answered ${new URL(request.url).pathname}`)

async function open(options: Partial<ListenOptions> = {}, surface = answer): Promise<Listener & { tls: SettableTls }> {
  const tls = new SettableTls()
  const own = { host: '127.0.0.1', port: 0, maxConnections: 100, hosts: { names: [], domains: [] }, tls }
  const listener = await listen(surface, { ...own, ...options })
  after(() => listener.close(0))
  return { ...listener, tls }
}

function plainly({ port }: Listener): { socket: Socket; received: () => string; closed: Promise<string> } {
  const socket = connect({ port, host: '127.0.0.1' })
  after(() => socket.destroy())
  let received = ''
  socket.on('error', () => {})
  socket.on('data', bytes => (received += bytes.toString('latin1')))
  return {
    socket,
    received: () => received,
    closed: new Promise(resolve => socket.on('close', () => resolve(received))),
  }
}

/** Resolves once the handshake is over. */
function securely({ port }: Listener, options: ConnectionOptions = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const ca = [FIRST.cert, SECOND.cert]
    const socket = connectSecurely({ port, host: '127.0.0.1', servername: 'localhost', ca, ...options }, () =>
      resolve(socket),
    )
    socket.on('error', reject)
    after(() => socket.destroy())
  })
}

/**
 * The same, again and again: other connections may be on their way out, and a short time for
 * handshakes is too short under load.
 */
function retried(listener: Listener): Promise<TLSSocket> {
  return until('a connection', () => securely(listener).catch(() => null))
}

/** The answer to one request on a connection. */
function asked(socket: TLSSocket, request = REQUEST): Promise<string> {
  socket.removeAllListeners('data')
  let received = ''
  socket.on('data', bytes => (received += bytes.toString('latin1')))
  socket.write(request)
  return until('an answer', () => (/\r\n\r\n[\s\S]*(?:answered|\{)/.test(received) ? received : undefined))
}

describe('a handshake', () => {
  test('that does not end in time loses its connection, whatever was sent of it', async () => {
    const listener = await open({ handshakeMs: 200 })
    const silent = plainly(listener)
    const begun = plainly(listener)
    begun.socket.write(BEGUN)
    assert.deepEqual([await silent.closed, await begun.closed], ['', ''])
    assert.match(await asked(await retried(listener)), /^HTTP\/1\.1 200 /)
  })

  test('counts for its address before it is finished, and no more once it is over', async () => {
    const listener = await open({ handshakeMs: 60_000, limits: { perAddress: 2, isShared: () => false } })
    const [one, two] = [plainly(listener), plainly(listener)]
    for (const { socket } of [one, two]) await new Promise(resolve => socket.write(BEGUN, resolve))
    await assert.rejects(securely(listener))
    for (const { socket } of [one, two]) socket.destroy()
    const [first, second] = [await retried(listener), await retried(listener)]
    await assert.rejects(securely(listener), 'a finished one counts, too, and once')
    assert.match(await asked(first), / 200 /)
    assert.match(await asked(second), / 200 /)
  })

  test('that is not finished makes room for others when there are too many', async () => {
    const listener = await open({ handshakeMs: 60_000, limits: { maxConnections: 4, reserved: 0 } })
    const held = Array.from({ length: 8 }, () => plainly(listener))
    for (const { socket } of held) socket.write(BEGUN)
    await Promise.all(held.slice(0, 4).map(({ closed }) => closed))
    assert.match(await asked(await securely(listener)), / 200 /)
  })

  test('of other protocols and of garbage ends its connection alone', async () => {
    const listener = await open({ handshakeMs: 300 })
    const kept = await retried(listener)
    for (const bytes of [
      '\x16\x03\x01\x00\x05hello',
      '\x80\x2e\x01\x00\x02',
      '\x00\x00\x00\x00',
      '\xff'.repeat(5_000),
    ]) {
      const { socket, closed } = plainly(listener)
      socket.end(Buffer.from(bytes, 'latin1'))
      const received = await closed
      assert.ok(!received.startsWith('HTTP/'), received)
    }
    assert.match(await asked(kept), / 200 /)
  })

  test('with TLS 1.1 is refused, with 1.2 and 1.3 it is not, whatever name is asked for', async () => {
    const listener = await open()
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    await assert.rejects(securely(listener, old))
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const socket = await securely(listener, { minVersion: version, maxVersion: version })
      assert.equal(socket.getProtocol(), version)
    }
    const other = await securely(listener, { servername: 'other.example', checkServerIdentity: () => undefined })
    assert.equal(other.getPeerX509Certificate()?.fingerprint256, FIRST.fingerprint)
  })

  test('agrees on HTTP/1.1 with a client that offers HTTP/2 as well, and not with one that has nothing else', async () => {
    const listener = await open()
    assert.equal((await securely(listener, { ALPNProtocols: ['h2', 'http/1.1'] })).alpnProtocol, 'http/1.1')
    await assert.rejects(securely(listener, { ALPNProtocols: ['h2'] }))
  })

  test('is not done again in the middle of a connection, where its client asks for that', async () => {
    const listener = await open()
    const socket = await securely(listener, { maxVersion: 'TLSv1.2' })
    assert.match(await asked(socket), / 200 /)
    const problem = await new Promise<Error | null>(resolve => {
      socket.on('error', resolve)
      socket.renegotiate({}, resolve)
    })
    assert.match(`${problem}`, /renegotiation/i)
  })

  test('gets the certificate of its time; a connection that is open goes on with its own', async () => {
    const listener = await open()
    const before = await securely(listener)
    listener.tls.change(SECOND)
    const afterwards = await securely(listener)
    assert.match(await asked(before), / 200 /)
    assert.deepEqual(
      [before, afterwards].map(socket => socket.getPeerX509Certificate()?.fingerprint256),
      [FIRST.fingerprint, SECOND.fingerprint],
    )
  })

  test('that goes on does not keep the listener from ending', async () => {
    const listener = await open()
    const { socket, closed } = plainly(listener)
    socket.write(BEGUN)
    const idle = await securely(listener)
    await asked(idle)
    await listener.close(300)
    await closed
    assert.ok(idle.closed || idle.destroyed || (await new Promise(resolve => idle.on('close', () => resolve(true)))))
  })
})

describe('plain HTTP at the port of HTTPS', () => {
  const sent = [
    REQUEST,
    'HEAD / HTTP/1.0\r\n\r\n',
    `POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n${'x'.repeat(300_000)}`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  ]
  for (const request of sent)
    test(`is told in words what is wrong: ${request.slice(0, request.indexOf('\r'))}`, async () => {
      let asked = 0
      const listener = await open({}, async () => {
        asked += 1
        return new Response('answered')
      })
      const { socket, closed } = plainly(listener)
      socket.write(request)
      const received = await closed
      assert.match(received, /^HTTP\/1\.1 400 Bad Request\r\ncontent-type: text\/plain/)
      const words = `This port speaks HTTPS, and the request came in plain HTTP. Use ${listener.url}\n`
      assert.equal(received.endsWith(words), !request.startsWith('HEAD'))
      assert.equal(asked, 0)
    })
})

describe('a response over TLS', () => {
  const BYTES = 8 * 1_048_576
  const big: Fetch = async () => new Response(Buffer.alloc(BYTES, 'x'))

  test('that its client reads slowly comes whole, and one that is left unread is cut off', async () => {
    const limits = { unreadMs: 2_000 }
    const settled: boolean[] = []
    const listener = await open({ limits }, async (request, env) => {
      env.delivery.onSettled(delivered => settled.push(delivered))
      return await big(request, env)
    })
    const received = await new Promise<number>((resolve, reject) => {
      const options = { port: listener.port, host: '127.0.0.1', path: '/', ca: FIRST.cert, agent: false }
      get(options, response => {
        let bytes = 0
        response.on('data', (piece: Buffer) => {
          bytes += piece.length
          response.pause()
          setImmediate(() => response.resume())
        })
        response.on('end', () => resolve(bytes)).on('error', reject)
      }).on('error', reject)
    })
    assert.equal(received, BYTES)
    await until('the delivery', () => settled.length === 1)
    const unread = await securely(listener)
    unread.pause()
    unread.on('error', () => {})
    unread.write(REQUEST)
    await until('the end of the other', () => settled.length === 2)
    assert.deepEqual(settled, [true, false])
  })

  test('is of the address in HTTPS, and has the field that was given, also where it refuses', async () => {
    const field = ['strict-transport-security', 'max-age=60'] as const
    const listener = await open({ field }, async request => new Response(`answered ${request.url}`))
    assert.match(listener.url, /^https:/)
    const fine = await asked(await securely(listener))
    assert.match(fine, /answered https:\/\/localhost\/healthz/)
    const refused = await asked(await securely(listener), 'GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')
    assert.match(refused, /^HTTP\/1\.1 421 /)
    for (const received of [fine, refused]) assert.match(received, /\r\nstrict-transport-security: max-age=60\r\n/i)
  })
})

test('the body of a request over TLS may not come too slowly', async () => {
  const limits = { bodyGraceMs: 100, bodyBytesPerSecond: 100_000 }
  const listener = await open({ limits }, async (_request, env) => {
    const pieces = env.body?.()?.pieces()
    for await (const _ of pieces ?? []);
    return new Response('answered')
  })
  const socket = await securely(listener)
  const closed = new Promise(resolve => socket.on('close', resolve))
  socket.on('error', () => {})
  socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx')
  await closed
  assert.match(await asked(await securely(listener)), / 200 /)
})

test('a request over TLS that cannot be read is answered 400', async () => {
  const listener = await open()
  const socket = await securely(listener)
  socket.end('nonsense\r\n\r\n')
  assert.match(await text(socket), /^HTTP\/1\.1 400 [\s\S]*cannot be read as HTTP\/1\.1/)
})

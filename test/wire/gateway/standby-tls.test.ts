/**
 * A server that stands by passes requests on to an active one over TLS, where that shows a
 * certificate that it believes.
 */
import assert from 'node:assert/strict'
import { get as getPlainly } from 'node:http'
import { createServer, get, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { connect } from 'node:tls'
import { type Listener, listen } from '../../../src/server/listener.ts'
import { Standby } from '../../../src/server/standby.ts'
import type { KeyAndCertificate, ListenerTls } from '../../../src/server/tls.ts'
import { makeCertificate, trustHere } from '../../support/certificates.ts'

const OWN = makeCertificate()

/** Answer of a server with this certificate to a client that trusts it. Nothing else in this process does. */
function asked({ url }: Listener, path: string, ca = OWN.cert): Promise<{ status: number; json: Said }> {
  return new Promise((resolve, reject) => {
    const options = { ca, agent: false, servername: 'localhost' }
    const sent = url.startsWith('https:') ? get(`${url}${path}`, options) : getPlainly(`${url}${path}`)
    sent.on('error', reject)
    sent.on('response', answer =>
      json(answer).then(said => resolve({ status: answer.statusCode ?? 0, json: said as Said }), reject),
    )
  })
}

interface Said {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly error: string
}

/** An active server that returns its requests, and sends the bytes of an upgrade back. */
async function activeServer(pair: KeyAndCertificate): Promise<{ url: string; server: Server }> {
  const server = createServer(pair, (incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.end(JSON.stringify({ url: incoming.url, headers: incoming.headers })))
  })
  server.on('upgrade', (_incoming, socket, head) => {
    socket.on('error', () => {})
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    socket.write(head)
    socket.pipe(socket)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

/** A standby server, and the change of its certificate; without one it speaks plain HTTP. */
async function standBy(active: string, own: KeyAndCertificate | null = OWN) {
  const watchers = new Set<(pair: KeyAndCertificate) => void>()
  let current = own
  const tls: ListenerTls | null = own && {
    get current() {
      return current!
    },
    watch(changed) {
      watchers.add(changed)
      return () => watchers.delete(changed)
    },
  }
  const url = new URL(active)
  const standby = new Standby({
    active: () => ({ open: url, management: url, workers: null }),
    forwards: true,
    trusts: () => false,
    tls,
    keys: () => [],
    status: async () => '{}',
    metrics: null,
  })
  const standIn = standby.for('all')
  const listener: Listener = await listen(() => assert.fail('no surface answers'), {
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
    standIn: () => standIn,
    mount: {
      entrance: { handle: () => assert.fail(), upgrade: () => assert.fail() },
      domain: null,
      ownHosts: [],
      closedHosts: [],
    },
    ...(tls === null ? {} : { tls }),
  })
  after(async () => {
    await listener.close(0)
    standby.close()
  })
  const change = (pair: KeyAndCertificate) => {
    current = pair
    for (const changed of watchers) changed(pair)
  }
  return { ...listener, change }
}

describe('a server that stands by and passes requests on over TLS', () => {
  test('believes a server with its own certificate, and says that the client spoke HTTPS', async () => {
    const standby = await standBy((await activeServer(OWN)).url)
    for (const path of ['/v2/e/run', '/again']) {
      const { status, json } = await asked(standby, path)
      assert.deepEqual([status, json.url, json.headers['x-forwarded-proto']], [200, path, 'https'])
    }
  })

  test('an upgrade becomes a tunnel', async () => {
    const { port } = await standBy((await activeServer(OWN)).url)
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca: OWN.cert }).setEncoding('utf8')
    socket.write('GET /lb/abcdefgh/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly,')
    let text = ''
    socket.on('data', piece => {
      text += piece
      if (text.endsWith('early,')) socket.write('late.')
      if (text.endsWith('late.')) socket.end()
    })
    await new Promise(resolve => socket.once('close', resolve))
    assert.match(text, /^HTTP\/1\.1 101 [\s\S]*early,late\.$/)
  })

  test('believes no other certificate, not even one for the same names, and says so in one sentence', async () => {
    const active = await activeServer(makeCertificate())
    for (const own of [OWN, null]) {
      const { status, json } = await asked(await standBy(active.url, own), '/v2/e/run')
      assert.equal(status, 503)
      assert.match(
        json.error,
        /^this server stands by, and does not believe the certificate of the active server at https:/,
      )
    }
  })

  test('believes one that an authority known to Node has signed, for the address or for a name that it has, too', async () => {
    const [address, name, other] = [['127.0.0.1'], ['localhost'], ['other.example']].map(names =>
      makeCertificate({ names }),
    )
    // Each is its own authority here.
    for (const { cert } of [address!, name!, other!]) trustHere(cert)
    for (const [pair, status] of [
      [address!, 200],
      [name!, 200],
      [other!, 503],
    ] as const) {
      const standby = await standBy((await activeServer(pair)).url)
      assert.equal((await asked(standby, '/x')).status, status)
    }
  })

  test('follows its own certificate, which both get when it is renewed', async () => {
    const { url: at, server } = await activeServer(OWN)
    const standby = await standBy(at)
    assert.equal((await asked(standby, '/x')).status, 200)
    const renewed = makeCertificate()
    server.setSecureContext(renewed)
    server.closeIdleConnections()
    standby.change(renewed)
    assert.equal((await asked(standby, '/x', renewed.cert)).status, 200)
  })
})

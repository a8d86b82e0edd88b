/** Ids of requests that no surface answers: load-balanced requests, and refusals of the listener. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Entrance } from '../../../src/gateway/entrance/route.ts'
import { listen } from '../../../src/server/listener.ts'
import { Standby } from '../../../src/server/standby.ts'
import { get, PLAIN, rawClient, startRawServer, through } from '../support/gateway.ts'

const MADE = /^x-request-id: [\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}\r$/im
const ENTRANCE: Entrance = { handle: () => assert.fail(), upgrade: () => assert.fail() }
const MOUNT = { entrance: ENTRANCE, domain: null, ownHosts: [], closedHosts: [] }
const ADDRESS = { host: '127.0.0.1', port: 0 }

describe('a load-balanced request', () => {
  const id = (text: string) => text.match(/^x-request-id: .*$/gim)?.map(line => line.trimEnd())

  test('goes to the worker with one id, whatever its client calls itself and its twin', async () => {
    const sent = get(['X-Request-Id: of the client', 'X_Request_Id: twin'])
    const { seen, got } = await through(sent, PLAIN)
    assert.deepEqual(id(seen[0]!), ['X-Request-Id: request-1'])
    assert.doesNotMatch(seen[0]!, /twin/)
    assert.deepEqual(id(got), ['X-Request-Id: request-1'])
  })

  test('has the same id in its response where the worker says another', async () => {
    const { got } = await through(get([]), 'HTTP/1.1 200 OK\r\nx-request-id: own\r\nContent-Length: 0\r\n\r\n')
    assert.deepEqual(id(got), ['X-Request-Id: request-1'])
  })
})

describe('a listener', () => {
  const refusals: [what: string, status: number, text: string][] = [
    ['a host that is none', 400, 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'],
    ['a name that it does not have', 421, 'GET / HTTP/1.1\r\nHost: other.example\r\n\r\n'],
    ['what is not HTTP', 400, 'hello\r\n\r\n'],
    ['CONNECT', 405, 'CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a request without a host', 400, 'GET / HTTP/1.0\r\n\r\n'],
  ]
  for (const [what, status, text] of refusals) {
    test(`refuses ${what} with an id`, async () => {
      const hosts = { names: ['localhost'], domains: [] }
      const surface = async () => new Response('{}')
      const listener = await listen(surface, { ...ADDRESS, maxConnections: 10, mount: MOUNT, hosts })
      after(() => listener.close(0))
      const got = await rawClient(listener.port).send(text).untilEnd()
      assert.match(got, new RegExp(`^HTTP/1\\.1 ${status} `))
      assert.match(got, MADE)
    })
  }

  test('that is full refuses with an id', async () => {
    const listener = await listen(async () => new Response('{}'), { ...ADDRESS, maxConnections: 0 })
    after(() => listener.close(0))
    const got = await rawClient(listener.port).send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').untilEnd()
    assert.match(got, /^HTTP\/1\.1 503 /)
    assert.match(got, MADE)
  })

  test('gives surfaces the id of the client, or one of its own', async () => {
    const listener = await listen(async (_, { requestId }) => new Response(requestId), {
      ...ADDRESS,
      maxConnections: 9,
    })
    after(() => listener.close(0))
    const ask = async (id: string) => (await fetch(listener.url, { headers: { 'x-request-id': id } })).text()
    assert.equal(await ask('client-1'), 'client-1')
    assert.match(`x-request-id: ${await ask('two words')}\r\n`, MADE)
  })
})

describe('a server that stands by', () => {
  const begin = async (active: URL | null) => {
    const parts = { forwards: active !== null, trusts: () => false, keys: () => ['k'], metrics: null, tls: null }
    const standby = new Standby({
      ...parts,
      active: () => ({ open: active, management: active, workers: null }),
      status: async () => '',
    })
    const standIn = standby.for('all')
    const options = { ...ADDRESS, maxConnections: 10, standIn: () => standIn, mount: MOUNT }
    const listener = await listen(() => assert.fail(), options)
    after(async () => {
      await listener.close(0)
      standby.close()
    })
    return listener
  }

  test('answers, and refuses, with an id', async () => {
    const { url } = await begin(null)
    for (const path of ['healthz', 'v2/x/run', 'ops/status']) {
      const { headers } = await fetch(`${url}/${path}`, { headers: { 'x-request-id': 'mine' } })
      assert.equal(headers.get('x-request-id'), 'mine', path)
    }
  })

  test('passes the id on, and the answer has it once', async () => {
    const seen: string[] = []
    const active = await startRawServer(socket => {
      socket.once('data', bytes => {
        seen.push(bytes.toString('latin1'))
        const id = /x-request-id: (\S+)/i.exec(seen[0]!)?.[1]
        socket.end(`HTTP/1.1 200 OK\r\nx-request-id: ${id}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
      })
    })
    const { url } = await begin(new URL(`http://127.0.0.1:${active.port}`))
    const { headers } = await fetch(`${url}/v2/x/run`, { headers: { 'x-request-id': 'two words' } })
    const ids = seen[0]!.match(/^x-request-id: .*$/gim)
    assert.equal(ids?.length, 1)
    assert.match(`${ids[0]?.trim()}\r`, MADE)
    assert.equal(headers.get('x-request-id'), ids[0]!.trim().split(' ')[1])
  })
})

/** Answers of a server while another server is active. */
import assert from 'node:assert/strict'
import { createServer, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, describe, test } from 'node:test'
import type { Entrance } from '../../../src/gateway/entrance/route.ts'
import type { ServerHosts } from '../../../src/server/hosts.ts'
import { type Listener, listen } from '../../../src/server/listener.ts'
import { Standby, type StandbyParts } from '../../../src/server/standby.ts'
import { rawClient } from '../support/gateway.ts'

const KEY = 'rpa_own'
const METRICS_KEY = 'rpa_metrics'
const ENTRANCE: Entrance = { handle: () => assert.fail(), upgrade: () => assert.fail() }

interface Given extends Partial<Omit<StandbyParts, 'active'>> {
  readonly active?: string | null
  readonly workers?: string | null
  readonly kind?: Parameters<Standby['for']>[0]
  /** The names of the server; all are accepted unless given. */
  readonly hosts?: ServerHosts
}

async function standBy({ active = null, workers = null, kind = 'all', hosts, ...more }: Given = {}): Promise<Listener> {
  const url = active === null ? null : new URL(active)
  const standby = new Standby({
    active: () => ({ open: url, management: url, workers: workers === null ? null : new URL(workers) }),
    forwards: false,
    trusts: () => false,
    keys: () => [KEY, METRICS_KEY],
    status: async () => '{"role":"standby"}',
    metrics: null,
    tls: null,
    ...more,
  })
  const standIn = standby.for(kind)
  const listener = await listen(() => assert.fail('no surface answers'), {
    host: '127.0.0.1',
    port: 0,
    maxConnections: 100,
    standIn: () => standIn,
    mount: { entrance: ENTRANCE, domain: null, ownHosts: [], closedHosts: [] },
    ...(hosts === undefined ? {} : { hosts }),
  })
  after(async () => {
    await listener.close(0)
    standby.close()
  })
  return listener
}

/** An active server that returns its requests. */
async function activeServer(change: (server: Server) => void = () => {}): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    let body = ''
    incoming.setEncoding('utf8').on('data', text => (body += text))
    incoming.on('end', () => {
      const { method, url, headers } = incoming
      outgoing.writeHead(207, { 'x-answered': 'yes', 'content-type': 'application/json' })
      outgoing.end(JSON.stringify({ method, url, headers, body }))
    })
  })
  change(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a server that stands by', () => {
  test('is alive, is not ready, and refuses all else with the address of the active one', async () => {
    const { url } = await standBy({ active: 'http://10.0.0.7:8080' })
    const alive = await fetch(`${url}/healthz`)
    assert.deepEqual([alive.status, await alive.json()], [200, { status: 'ok', role: 'standby' }])
    assert.equal((await fetch(`${url}/readyz`)).status, 503)
    for (const path of ['/v2/endpoints', '/v2/e/run', '/graphql', '/v2/e/job-take/w', '/lb/abcdefgh/x', '/metrics']) {
      const refused = await fetch(`${url}${path}`, { method: path.endsWith('run') ? 'POST' : 'GET' })
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'], path)
      assert.deepEqual(await refused.json(), {
        error: 'this server stands by; the active server is at http://10.0.0.7:8080',
        active: 'http://10.0.0.7:8080',
      })
    }
  })

  test('refuses an upgrade as it refuses a request', async () => {
    const { port } = await standBy()
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /lb/abcdefgh/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    let text = ''
    for await (const piece of socket.setEncoding('utf8')) text += piece
    assert.match(text, /^HTTP\/1\.1 503 Service Unavailable\r\n/)
    assert.match(text, /retry-after: 2\r\n/)
    assert.match(text, /this server stands by; no active server is known/)
  })

  test('reports its status to the keys that it was started with alone', async () => {
    const { url } = await standBy()
    for (const key of [KEY, METRICS_KEY]) {
      const told = await fetch(`${url}/ops/status`, { headers: { authorization: `Bearer ${key}` } })
      assert.deepEqual([told.status, await told.json()], [200, { role: 'standby' }])
    }
    assert.equal((await fetch(`${url}/ops/status`, { headers: { authorization: 'Bearer rpa_other' } })).status, 401)
    assert.equal((await fetch(`${url}/ops/status`)).status, 401)
  })
})

describe('a server that stands by and passes requests on', () => {
  test('passes on method, path, body and headers, and the response with its status', async () => {
    const { url } = await standBy({ active: await activeServer(), forwards: true })
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    const answer = await fetch(`${url}/v2/e/run?a=1`, {
      method: 'POST',
      body: '{"input":1}',
      headers: { authorization: 'Bearer k' },
    })
    assert.deepEqual([answer.status, answer.headers.get('x-answered')], [207, 'yes'])
    const asked = await answer.json()
    assert.deepEqual([asked.method, asked.url, asked.body], ['POST', '/v2/e/run?a=1', '{"input":1}'])
    assert.equal(asked.headers.authorization, 'Bearer k')
    assert.equal(asked.headers.host, new URL(url).host, 'the host is what endpoints and the console are found by')
    assert.equal(asked.headers['x-forwarded-for'], '127.0.0.1')
  })

  test('forwards unknown names, which may be domains of endpoints, and never answers them itself', async () => {
    const seen: string[] = []
    const active = await activeServer(server => {
      server.on('upgrade', ({ headers }, socket) => {
        socket.end(`HTTP/1.1 421 Misdirected Request\r\nX-Host: ${headers.host}\r\n\r\n`)
      })
      server.on('request', ({ url, headers }) => seen.push(`${headers.host}${url}`))
    })
    const hosts = { names: [], domains: [] }
    const metrics = async () => ({ contentType: 'text/plain', text: 'own' })
    const { port } = await standBy({ active, forwards: true, hosts, metrics })
    const asked = (to: number, path: string, more = '') =>
      rawClient(to)
        .send(`GET ${path} HTTP/1.1\r\nHost: chat.example.org\r\nConnection: close\r\n${more}\r\n`)
        .untilEnd()
    for (const path of ['/x', '/healthz', '/metrics', '/ops/status']) {
      assert.match(await asked(port, path), /^HTTP\/1.1 207 /, path)
      assert.equal(seen.at(-1), `chat.example.org${path}`)
    }
    const upgrade = 'GET /ws HTTP/1.1\r\nHost: chat.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    assert.match(await rawClient(port).send(upgrade).untilEnd(), /^HTTP\/1.1 421 [\s\S]*X-Host: chat\.example\.org/)
    const malformed = await asked(port, '/x', 'Content-Length: 0x1\r\n')
    assert.match(malformed, /^HTTP\/1.1 400 /)
    for (const alone of [{ forwards: false, active }, { forwards: true }]) {
      const { port: at } = await standBy({ ...alone, hosts, metrics })
      assert.match(await asked(at, '/metrics'), /^HTTP\/1.1 421 /)
      assert.match(await rawClient(at).send(upgrade).untilEnd(), /^HTTP\/1.1 421 /)
    }
    const management = await standBy({ active, forwards: true, hosts, kind: 'workers' })
    assert.match(await asked(management.port, '/x'), /^HTTP\/1.1 421 /)
  })

  test('keeps the client that a trusted proxy names, and not the one that a client invents', async () => {
    const active = await activeServer()
    const headers = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https' }
    const trusting = await standBy({ active, forwards: true, trusts: () => true })
    const named = await (await fetch(trusting.url, { headers })).json()
    assert.equal(named.headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1')
    assert.equal(named.headers['x-forwarded-proto'], 'https')
    const other = await standBy({ active, forwards: true })
    const invented = await (await fetch(other.url, { headers })).json()
    assert.equal(invented.headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(invented.headers['x-forwarded-proto'], 'http')
  })

  test('a body and a response pass in pieces, as they come', async () => {
    const active = await activeServer(server => {
      server.removeAllListeners('request')
      server.on('request', (incoming, outgoing) => {
        outgoing.writeHead(200)
        incoming.on('data', piece => outgoing.write(piece)).on('end', () => outgoing.end())
      })
    })
    const { port } = await standBy({ active, forwards: true })
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path: '/stream' })
    sent.write('one')
    const answer = await new Promise<import('node:http').IncomingMessage>(resolve => sent.once('response', resolve))
    const next = () => new Promise<string>(resolve => answer.once('data', piece => resolve(String(piece))))
    assert.equal(await next(), 'one')
    sent.write('two')
    assert.equal(await next(), 'two')
    sent.end()
    assert.equal(await new Promise(resolve => answer.once('end', () => resolve('ended'))), 'ended')
  })

  test('a client that leaves ends its request at the active server', async () => {
    const left = Promise.withResolvers<void>()
    const active = await activeServer(server => {
      server.removeAllListeners('request')
      server.on('request', (_incoming, outgoing) => {
        outgoing.on('close', () => left.resolve())
        outgoing.writeHead(200)
        outgoing.write('held')
      })
    })
    const { url } = await standBy({ active, forwards: true })
    const leaving = new AbortController()
    await fetch(`${url}/v2/e/stream/j`, { signal: leaving.signal })
    leaving.abort()
    await left.promise
  })

  test('a client that waits before it sends its body gets 100 Continue', async () => {
    const { port } = await standBy({ active: await activeServer(), forwards: true })
    const headers = { expect: '100-continue', 'content-length': '4' }
    const sent = request({ host: '127.0.0.1', port, method: 'POST', path: '/lb/abcdefgh/x', headers })
    sent.on('continue', () => sent.end('body'))
    sent.flushHeaders()
    const answer = await new Promise<import('node:http').IncomingMessage>(resolve => sent.once('response', resolve))
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    assert.equal(JSON.parse(text).body, 'body')
  })

  test('an upgrade becomes a tunnel', async () => {
    const active = await activeServer(server => {
      server.on('upgrade', (_incoming, socket, head) => {
        socket.on('error', () => {})
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nfirst,')
        socket.write(head)
        socket.pipe(socket)
      })
    })
    const { port } = await standBy({ active, forwards: true })
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    const head = 'GET /lb/abcdefgh/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'
    socket.write(`${head}early,`)
    let text = ''
    socket.on('data', piece => {
      text += piece
      if (text.endsWith('early,')) socket.write('late.')
      if (text.endsWith('late.')) socket.end()
    })
    await new Promise(resolve => socket.once('close', resolve))
    assert.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n/)
    assert.equal(text.slice(text.indexOf('\r\n\r\n') + 4), 'first,early,late.')
  })

  test('an active server that does not answer is a refusal that says when to try again', async () => {
    const gone = await standBy()
    await gone.close(0)
    const { url } = await standBy({ active: gone.url, forwards: true })
    const refused = await fetch(`${url}/v2/endpoints`)
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'])
    assert.match((await refused.json()).error, /the active server at http:\/\/127\.0\.0\.1:\d+ does not answer/)
  })

  test('calls of workers go from their port to that of the active server, and nowhere else', async () => {
    const active = await activeServer(server => {
      server.removeAllListeners('request')
      server.on('request', () => assert.fail('the port of clients was called'))
    })
    const { url } = await standBy({ active, workers: await activeServer(), forwards: true, kind: 'workers' })
    const passed = await fetch(`${url}/v2/e/job-done/w/j`, { method: 'POST', body: '{"output":1}' })
    assert.equal(passed.status, 207)
    const { method, url: path, body } = await passed.json()
    assert.deepEqual([method, path, body], ['POST', '/v2/e/job-done/w/j', '{"output":1}'])
    const gone = await standBy()
    await gone.close(0)
    const away = await standBy({ active, workers: gone.url, forwards: true, kind: 'workers' })
    const refused = await fetch(`${away.url}/v2/e/job-take/w`)
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'])
    assert.doesNotMatch(await refused.text(), /127\.0\.0\.1/, 'workers learn no address')
  })

  test('calls of workers are refused where the active server has no port for them, and learn no address', async () => {
    const { url } = await standBy({ active: await activeServer(), forwards: true, kind: 'workers' })
    for (const path of ['/v2/e/job-take/w', '/graphql', '/ops/status', '/healthz']) {
      const refused = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${KEY}` } })
      assert.deepEqual([refused.status, await refused.json()], [503, { error: 'this server stands by' }], path)
    }
  })

  test('what another one has passed on is not passed on again: two that stand by make no loop', async () => {
    const second = await standBy({ active: 'http://10.0.0.7:8080', forwards: true })
    const first = await standBy({ active: second.url, forwards: true })
    const refused = await fetch(`${first.url}/v2/endpoints`)
    assert.equal(refused.status, 503)
    assert.match((await refused.json()).error, /this server stands by/)
  })
})

/**
 * A page of a stranger does not act in the name of this server, nor does one that a load-balancing endpoint serves.
 */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { before, describe, test } from 'node:test'
import { type Balanced, balancedEndpoint, call, inNode } from '../support/balanced.ts'
import { rawClient } from '../support/gateway.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const FIELDS = {
  'Service-Worker-Allowed': '/',
  'Clear-Site-Data': '"*"',
  'Strict-Transport-Security': 'max-age=1',
  'Set-Cookie': ['a=1; Path=/', 'b=2; Domain=localhost'],
}

describe('origins', () => {
  let server: ProbedServer
  let endpoint: Balanced

  before(async () => {
    server = await startProbedServer({ args: ['--allowed-host', 'Runyard.Example'] })
    endpoint = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
    await asked('localhost')
    server.forgetHolds()
  })

  /** The status line and body of a request that names a host. */
  async function asked(host: string, line = 'GET /healthz', headers = ''): Promise<string> {
    const client = rawClient(server.port)
    client.send(`${line} HTTP/1.1\r\nHost: ${host}\r\n${headers}Connection: close\r\n\r\n`)
    return client.until(/^HTTP\/1.1 \d+[\s\S]*\r\n\r\n./)
  }

  test('an unknown host is refused, on every surface, with the option that allows it', async () => {
    const paths = [
      '/healthz',
      '/graphql',
      '/v2/serverless',
      `/v2/${endpoint.id}/health`,
      `/lb/${endpoint.id}/`,
      '/metrics',
    ]
    const key = `Authorization: Bearer ${server.apiKey}\r\n`
    for (const path of paths) {
      const refused = await asked('evil.example', `GET ${path}`, key)
      assert.match(refused, /^HTTP\/1.1 421 /, path)
      assert.match(refused, /--allowed-host evil\.example/)
    }
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
    assert.match(await asked('evil.example', `GET /lb/${endpoint.id}/`, key + upgrade), /^HTTP\/1.1 421 /)
  })

  test('names of loopback, addresses as numbers, names of the machine and allowed hosts are answered', async () => {
    const { port } = server
    const names = [
      'localhost',
      `LOCALHOST.:${port}`,
      '127.0.0.1',
      '[::1]:80',
      '192.0.2.7',
      hostname(),
      'runyard.example',
    ]
    for (const name of [...names, 'host.docker.internal']) assert.match(await asked(name), /^HTTP\/1.1 200 /, name)
  })

  test('an invalid Host, and a request without a path, are refused with 400', async () => {
    for (const host of ['a b', 'a/b', 'user@localhost', '[::1', '%00', 'localhost:x']) {
      assert.match(await asked(host), /^HTTP\/1.1 400 /, host)
    }
    for (const host of [
      '[',
      '[]',
      ':',
      ':80',
      'localhost:99999',
      'localhost:-1',
      'a:b@localhost',
      'local%68ost',
      'l\xf6calhost',
      '.',
      'a'.repeat(5_000),
    ]) {
      assert.match(await asked(host), /^HTTP\/1.1 4(?:00|21) /, host)
    }
    assert.match(await asked('localhost', 'OPTIONS *'), /^HTTP\/1.1 400 /)
    assert.match(await asked('localhost', 'GET /a\\b'), /^HTTP\/1.1 400 /)
  })

  test('other ways to write a name of the server are answered, too', async () => {
    const ways = [
      '[::ffff:127.0.0.1]',
      '[::ffff:127.0.0.1]:80',
      'localhost:',
      'LOCALHOST',
      'localhost.',
      '127.0.0.1.',
      '[0::1]',
      'localhost:0080',
    ]
    for (const host of ways) {
      for (const line of ['GET /healthz', 'GET /v2/serverless'])
        assert.match(await asked(host, line), /^HTTP\/1.1 (?:200|401) /, `${line} ${host}`)
    }
  })

  test('a Content-Length that can be read in two ways is refused on every surface', async () => {
    for (const path of [
      '/graphql',
      `/v2/${endpoint.id}/run`,
      `/v2/${endpoint.id}/job-done/w/j`,
      `/lb/${endpoint.id}/ping`,
      '/healthz',
      '/nowhere',
    ]) {
      for (const length of ['010', '00', '+1', '0x1', '1, 1', '1 1', '-1', '1.0', '']) {
        const client = rawClient(server.port)
        client.send(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n1234567890`)
        assert.match(await client.untilEnd(), /^HTTP\/1.1 400 /, `${path} ${length}`)
      }
    }
  })

  test('a client of HTTP/1.0 without a host reaches an endpoint, and is refused by the API with a message', async () => {
    const send = (path: string, expected: RegExp) => {
      const client = rawClient(server.port)
      client.send(`GET ${path} HTTP/1.0\r\nAuthorization: Bearer ${server.apiKey}\r\n\r\n`)
      return client.until(expected)
    }
    await send(`/lb/${endpoint.id}/ping`, /^HTTP\/1.1 200 OK\r\n/)
    await send('/healthz', /^HTTP\/1.1 400 [\s\S]*names no host/)
  })

  test('an endpoint is given out to browsers with a host of its own, where it says what it likes about its origin', async () => {
    assert.equal(endpoint.browserUrl, `http://${endpoint.id}.lb.localhost:${server.port}`)
    const path = `/fields?fields=${encodeURIComponent(JSON.stringify(FIELDS))}`
    const { status, headers } = await call(endpoint, path, { byHost: true })
    assert.equal(status, 200)
    assert.equal(headers['service-worker-allowed'], '/')
    assert.deepEqual(headers['set-cookie'], ['a=1; Path=/', 'b=2'])
  })

  test('below /lb/ it says nothing about the origin that it shares, and its cookies stay below its path', async () => {
    const { status, headers } = await call(endpoint, `/fields?fields=${encodeURIComponent(JSON.stringify(FIELDS))}`)
    assert.equal(status, 200)
    for (const name of ['service-worker-allowed', 'clear-site-data', 'strict-transport-security']) {
      assert.equal(headers[name], undefined, name)
    }
    const path = `/lb/${endpoint.id}`
    assert.deepEqual(headers['set-cookie'], [`a=1; Path=${path}`, `b=2; Path=${path}`])
  })

  test('no attempt holds the event loop', () => server.assertNeverHeld())
})

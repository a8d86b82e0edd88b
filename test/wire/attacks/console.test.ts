/**
 * Nobody else acts in the name of a person who is signed in to the console: no page of an endpoint, no stranger,
 * no worker on another port.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import { type Balanced, balancedEndpoint, call, inNode } from '../support/balanced.ts'
import { ask } from '../support/client.ts'
import { rawClient } from '../support/gateway.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'

/** Response to a request of a browser. */
interface Seen {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Other parts of a browser's request. */
interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly host?: string
}

describe('the console', () => {
  let server: Server
  let endpoint: Balanced
  let origin: string
  let signedIn: { readonly cookie: string; readonly token: string }

  before(async () => {
    server = await startServer({ args: ['--cors-origin', '*', '--trusted-proxy', '127.0.0.1'] })
    origin = `http://console.localhost:${server.port}`
    endpoint = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
    signedIn = await signIn({ key: server.apiKey })
  })

  /** Sends as a browser does that found the console's host at this machine. */
  async function send(line: string, { headers = {}, body, host }: Sent = {}): Promise<Seen> {
    const [method = '', path = ''] = line.split(' ')
    const sent = { host: host ?? new URL(origin).host, ...(body === undefined ? {} : JSON_BODY), ...headers }
    const opened = request({ host: '127.0.0.1', port: server.port, method, path, headers: sent })
    opened.end(body === undefined ? undefined : JSON.stringify(body))
    const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) =>
      opened.on('response', resolve).on('error', reject),
    )
    return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) }
  }

  /** Headers that the page of the console sends. */
  const asPage = () => ({ origin, 'sec-fetch-site': 'same-origin', cookie: signedIn.cookie, [TOKEN]: signedIn.token })

  async function signIn(body: object): Promise<{ cookie: string; token: string }> {
    const headers = { origin, 'sec-fetch-site': 'same-origin', [TOKEN]: '1' }
    const answer = await send('POST /console/session', { headers, body })
    assert.equal(answer.status, 200, answer.text)
    const [cookie = ''] = (answer.headers['set-cookie']?.[0] ?? '').split(';')
    return { cookie, token: (JSON.parse(answer.text) as { token: string }).token }
  }

  test('its page reads and writes with both halves of the session', async () => {
    assert.equal((await send('GET /v2/serverless', { headers: asPage() })).status, 200)
    const body = { name: 'from-the-console', value: 'v' }
    const made = await send('POST /v2/account/secrets', { headers: asPage(), body })
    assert.ok(made.status === 200 || made.status === 201, made.text)
  })

  test('a link of the command line signs in once, and is in no log', async () => {
    const { code, stdout, stderr } = await runCommand(['console', '--data-dir', server.dataDir])
    assert.equal(code, 0, stderr)
    const link = new RegExp(`^${origin}/#link=([\\w-]{43})\\n$`).exec(stdout)?.[1] ?? assert.fail(stdout)
    await signIn({ link })
    const headers = { origin, [TOKEN]: '1' }
    assert.equal((await send('POST /console/session', { headers, body: { link } })).status, 401)
    assert.ok(!server.lines.some(line => line.includes(link)))
  })

  test('neither half is in a log or in the database', async () => {
    const names = readdirSync(server.dataDir).filter(name => name.startsWith('runyard.sqlite'))
    assert.ok(names.length > 0)
    const file = names.map(name => readFileSync(join(server.dataDir, name), 'latin1')).join('')
    assert.ok(file.includes('console_sessions'))
    for (const half of [signedIn.token, signedIn.cookie.split('=')[1]!]) {
      assert.ok(!server.lines.some(line => line.includes(half)))
      assert.ok(!file.includes(half))
    }
  })

  test('a page of another origin that the browser sends the cookie for gets nothing, even with the token', async () => {
    const base = new URL(endpoint.base).origin
    for (const from of [
      base,
      server.url,
      `http://console.localhost:${server.port + 1}`,
      'http://evil.example',
      'null',
    ]) {
      for (const line of ['GET /v2/serverless', 'POST /graphql', 'DELETE /v2/serverless/x', 'OPTIONS /graphql']) {
        const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': TOKEN }
        const { status, headers } = await send(line, { headers: { ...asPage(), ...asked, origin: from } })
        assert.equal(status, 403, `${from} ${line}`)
        const cors = Object.keys(headers).filter(name => name.startsWith('access-control-'))
        assert.deepEqual(cors, [])
      }
    }
    const navigated = { cookie: signedIn.cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    assert.equal((await send('GET /v2/serverless', { headers: navigated })).status, 403)
    const form = { cookie: signedIn.cookie, origin, 'content-type': 'application/x-www-form-urlencoded' }
    assert.equal((await send('POST /graphql', { headers: form })).status, 401)
  })

  test('the cookie alone, and the token alone, open nothing', async () => {
    const { cookie, [TOKEN]: token, ...rest } = asPage()
    assert.equal((await send('GET /v2/serverless', { headers: { ...rest, cookie } })).status, 401)
    assert.equal((await send('GET /v2/serverless', { headers: { ...rest, [TOKEN]: token } })).status, 401)
    assert.equal(
      (await send('GET /v2/serverless', { headers: { authorization: `Bearer ${server.apiKey}` } })).status,
      401,
    )
  })

  test('other hosts take no session, and name no other host as the console', async () => {
    const hosts = ['localhost', '127.0.0.1', `${endpoint.id}.localhost`, 'x.console.localhost', 'console.lb.localhost']
    for (const host of hosts) {
      const { status } = await send('GET /v2/serverless', { headers: asPage(), host: `${host}:${server.port}` })
      assert.ok(status === 401 || status === 404, `${host} ${status}`)
    }
    const forwarded = { 'x-forwarded-host': new URL(origin).host, 'x-forwarded-proto': 'http' }
    const { status } = await send('GET /v2/serverless', { headers: { ...asPage(), ...forwarded }, host: 'localhost' })
    assert.equal(status, 401)
    const elsewhere = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    const own = await send('GET /console/session', { headers: { ...asPage(), ...elsewhere } })
    assert.equal(own.status, 200)
    assert.ok(!own.text.includes('evil.example'))
  })

  test('the host is the console however it is written, and has no endpoint below any path', async () => {
    const key = { authorization: `Bearer ${server.apiKey}` }
    const { port } = server
    const hosts = [
      `console.localhost:${port}`,
      `CONSOLE.LOCALHOST:${port}`,
      `console.localhost.:${port}`,
      'console.localhost',
    ]
    for (const host of hosts) {
      for (const path of [`/lb/${endpoint.id}/seen`, `//lb/${endpoint.id}/seen`, `/x/../lb/${endpoint.id}/seen`]) {
        const { status, text: body } = await send(`GET ${path}`, { headers: { ...key, ...asPage() }, host })
        assert.equal(status, 404, `${host} ${path} ${body}`)
        assert.ok(!body.includes('worker'), body)
      }
      assert.equal((await send('GET /v2/serverless', { headers: key, host })).status, 401, host)
    }
    const client = rawClient(port)
    const target = `GET http://console.localhost:${port}/lb/${endpoint.id}/seen HTTP/1.1\r\nHost: localhost:${port}\r\n`
    client.send(`${target}Authorization: Bearer ${server.apiKey}\r\nConnection: close\r\n\r\n`)
    assert.match(await client.until(/^HTTP\/1.1 \d+/), /^HTTP\/1.1 404 /)
  })

  test('a WebSocket finds nothing at the host', async () => {
    const client = rawClient(server.port)
    const head = `GET /lb/${endpoint.id}/ HTTP/1.1\r\nHost: console.localhost:${server.port}\r\n`
    const upgrade =
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
    client.send(`${head}${upgrade}Authorization: Bearer ${server.apiKey}\r\n\r\n`)
    assert.match(await client.until(/^HTTP\/1.1 \d+/), /^HTTP\/1.1 404 /)
  })

  test('no endpoint can be called console', async () => {
    const headers = { authorization: `Bearer ${server.apiKey}` }
    const { status } = await send('GET /seen', { host: 'console.lb.localhost', headers })
    assert.equal(status, 404)
    const page = await send('GET /seen', { host: 'console.localhost', headers })
    assert.deepEqual([page.status, page.text.slice(0, 15)], [200, '<!doctype html>'])
    assert.equal((await ask(server, '/lb/console/')).status, 404)
    assert.equal((await ask(server, '/v2/console/health')).status, 404)
  })

  test('a worker gets no cookie of the console, and cannot set one', async () => {
    const others = { cookie: `theme=dark; ${signedIn.cookie}; runyard-consoles=1; __Host-runyard-console=x` }
    for (const byHost of [true, false]) {
      const { json } = await call(endpoint, '/seen', { byHost, headers: others })
      assert.equal(json.headers.cookie, 'theme=dark; runyard-consoles=1')
      const alone = await call(endpoint, '/seen', { byHost, headers: { cookie: signedIn.cookie } })
      assert.equal(alone.json.headers.cookie, undefined)
      const cookies = [
        `${signedIn.cookie}; Path=/`,
        'theme=dark',
        '=runyard-console=x',
        '__HOST-Runyard-Console-8080=x',
      ]
      const path = `/fields?fields=${encodeURIComponent(JSON.stringify({ 'set-cookie': cookies }))}`
      const { headers } = await call(endpoint, path, { byHost })
      assert.equal(headers['set-cookie']?.length, 1)
      assert.match(String(headers['set-cookie']), /^theme=dark/)
    }
  })

  test('a session survives the kill of the server, and not its sign-out', async () => {
    const { dataDir, port } = server
    await server.kill9()
    server = await startServer({ dataDir, port, args: ['--trusted-proxy', '127.0.0.1'] })
    assert.equal((await send('GET /console/session', { headers: asPage() })).status, 200)
    assert.equal((await send('DELETE /console/session', { headers: asPage() })).status, 204)
    assert.equal((await send('GET /console/session', { headers: asPage() })).status, 401)
  })
})

describe('the console beside a public listener', () => {
  test('it is with management, at the address that was given, and nowhere else', async () => {
    const args = [
      '--admin-port',
      '0',
      '--console-url',
      'https://console.example',
      '--public-url',
      'https://api.example',
    ]
    const server = await startServer({ args })
    const ask = (url: string, host: string, path = '/') =>
      new Promise<number>((resolve, reject) =>
        request(`${url}${path}`, { headers: { host } }, answer => {
          answer.resume()
          resolve(answer.statusCode ?? 0)
        })
          .on('error', reject)
          .end(),
      )
    assert.equal(await ask(server.managementUrl, 'console.example', '/console/session'), 401)
    assert.equal(await ask(server.url, 'console.example', '/console/session'), 404)
    assert.equal(await ask(server.url, 'console.localhost', '/v2/e1/health'), 404)
    const { stdout } = await runCommand(['console', '--data-dir', server.dataDir, '--json'])
    assert.match((JSON.parse(stdout) as { url: string }).url, /^https:\/\/console\.example\/#link=/)
  })

  test('a host that something else has is refused at the start, with the reason', async () => {
    const given = ['serve', '--port', '0', '--console-url', 'https://api.example']
    const { code, stderr } = await runCommand([...given, '--public-url', 'https://api.example:8443'])
    assert.equal(code, 64)
    assert.match(stderr, /--console-url has the host of --public-url, api\.example; give the console a host of its own/)
  })
})

const TOKEN = 'x-runyard-console'
const JSON_BODY = { 'content-type': 'application/json' }

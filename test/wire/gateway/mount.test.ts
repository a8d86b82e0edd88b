/**
 * Admission to load-balancing endpoints over real sockets: the listener of a server, and workers
 * that return their requests.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { type AdmissionRules, CLOSED } from '../../../src/gateway/entrance/admission.ts'
import { Gateway } from '../../../src/gateway/gateway.ts'
import { Forwarder } from '../../../src/gateway/proxy/forwarder.ts'
import { RequestQueues } from '../../../src/gateway/queue/request-queues.ts'
import { type Listener, type ListenOptions, listen } from '../../../src/server/listener.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'
import { answering, PLAIN, type RawClient, type RawServer, rawClient, startRawServer } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const BEARER = `Authorization: Bearer ${KEY}\r\n`
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'

/** A listener with one load-balancing endpoint, and a worker that answers with what it was asked. */
interface World {
  readonly rig: Rig
  readonly id: EndpointId
  readonly listener: Listener
  readonly worker: RawServer
  readonly lines: RequestQueues
  readonly stopping: AbortController
  /** Connects, and sends a head with these lines. */
  ask(line: string, headers?: string): RawClient
}

interface Choice {
  readonly rules?: Partial<AdmissionRules>
  readonly listening?: Partial<ListenOptions>
  readonly lbDomain?: string
  /** The domain that the endpoint has for itself at this moment. */
  readonly ownDomain?: () => string | null
  /** Answer of each worker, given the head of the request. */
  readonly serve?: (head: string) => string
}

async function openWorld(
  t: TestContext,
  { rules, listening, lbDomain, ownDomain = () => null, serve = echo }: Choice = {},
): Promise<World> {
  const rig = await openRig(t)
  const id = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 })
  const worker = await startRawServer(answering(serve))
  const lines = new RequestQueues(rig.ports)
  const endpoint = (await rig.store.endpoints.find(id))!
  const traffic = { host: '127.0.0.1', port: worker.port }
  lines.keep({ ...endpoint, requestCount: 4, maxConcurrency: null, paused: false }, [
    { workerId: 'w1' as WorkerId, version: 1, state: 'ready', servedAt: { traffic, health: traffic } },
  ])
  const stopping = new AbortController()
  const forwarding = new Forwarder({ clock: systemClock, reservations: lines, nextTurn: setImmediate })
  const { access } = servicesOf(rig)
  const queueAddress = (queue: string) => `http://x/v2/${queue}`
  const signal = stopping.signal
  const given = { access, forwarding, traffic: lines, stopping: signal, rules: { ...CLOSED, ...rules } }
  const parts = { ...given, queueAddress }
  const gateway = new Gateway(rig.ports, parts)
  const surface = async (request: Request) => new Response(`the rest: ${new URL(request.url).pathname}`)
  const findEndpoint = (name: string) => (name === ownDomain() ? id : null)
  const mount = { entrance: gateway, findEndpoint, domain: lbDomain ?? null, ownHosts: [], closedHosts: [] }
  const listener = await listen(surface, { host: '127.0.0.1', port: 0, maxConnections: 100, mount, ...listening })
  t.after(async () => {
    gateway.close()
    forwarding.close()
    await listener.close(0)
  })
  const ask = (line: string, headers = '') => {
    const host = /^host:/im.test(headers) ? '' : `Host: ${id}.localhost:${listener.port}\r\n`
    return rawClient(listener.port).send(`${line} HTTP/1.1\r\n${host}${headers}\r\n`)
  }
  return { rig, id, listener, worker, lines, stopping, ask }
}

/** The head of the request as the body of the answer, or as a socket's first bytes. */
function echo(head: string): string {
  return /^upgrade:/im.test(head)
    ? `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${head}\r\n.`
    : `HTTP/1.1 200 OK\r\nContent-Length: ${head.length + 3}\r\n\r\n${head}\r\n.`
}

/** The answer to a request, whole. */
function whole(client: RawClient): Promise<string> {
  return client.until(/\r\n\.$|"\}$|the rest: .*$/)
}

/** The status of an answer and its error. */
function refusal(text: string): [status: number, error: string] {
  const status = Number(text.split(' ')[1])
  return [status, JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).error]
}

test('an endpoint answers as a host below localhost, below the domain, and below /lb/, each with its prefix', async t => {
  const { ask, id } = await openWorld(t, { lbDomain: 'lb.example' })
  for (const host of [`${id}.localhost`, `${id.toUpperCase()}.LocalHost.:80`, `${id}.lb.example`]) {
    const text = await whole(ask('GET /v2/serverless?a=%20', `Host: ${host}\r\n${BEARER}`))
    assert.match(text, /^HTTP\/1.1 200 OK/)
    assert.match(text, /^GET \/v2\/serverless\?a=%20 HTTP\/1\.1\r$/m)
    assert.match(text, /^X-Runpod-Worker-Id: w1\r$/m)
    assert.doesNotMatch(text, /x-forwarded-prefix/i)
  }
  for (const [path, expected] of [
    [`/lb/${id}/a//b?c`, '/a//b?c'],
    [`/lb/${id}`, '/'],
    [`/lb/${id}?q=1`, '/?q=1'],
    [`//lb///${id}//a//b`, '//a//b'],
  ]) {
    const text = await whole(ask(`GET ${path}`, `Host: 127.0.0.1\r\n${BEARER}`))
    assert.match(text, new RegExp(`^GET ${expected?.replace('?', '\\?')} HTTP`, 'm'))
    assert.match(text, new RegExp(`^X-Forwarded-Prefix: /lb/${id}\\r$`, 'm'))
  }
})

test('a domain below localhost has its endpoints as hosts, beside those directly below localhost', async t => {
  const { ask, id } = await openWorld(t, { lbDomain: 'x.localhost' })
  for (const host of [`${id}.x.localhost:8080`, `${id}.localhost:8080`]) {
    const text = await whole(ask('GET /v2/serverless', `Host: ${host}\r\n${BEARER}`))
    assert.match(text, /^HTTP\/1.1 200 OK/, host)
    assert.match(text, /^X-Runpod-Worker-Id: w1\r$/m)
  }
  assert.match(await whole(ask('GET /v2/serverless', 'Host: x.localhost:8080\r\n')), /the rest: \/v2\/serverless$/)
})

test('a domain of its own reaches an endpoint with requests and upgrades, and nothing else of the server', async t => {
  let domain: string | null = 'chat.example.org'
  const hosts = { names: [], domains: [], also: (name: string) => name === domain }
  const { ask, id } = await openWorld(t, { ownDomain: () => domain, listening: { hosts } })
  const host = 'Host: Chat.Example.org:8080\r\n'
  const text = await whole(ask('GET /v2/serverless?a', host + BEARER))
  assert.match(text, /^HTTP\/1.1 200 OK[\s\S]*^GET \/v2\/serverless\?a HTTP\/1\.1\r$/m)
  assert.match(text, /^Host: Chat\.Example\.org:8080\r$/m)
  assert.doesNotMatch(text, /x-forwarded-prefix/i)
  assert.match(await whole(ask(`GET /lb/${id}/a`, host + BEARER)), new RegExp(`^GET /lb/${id}/a HTTP`, 'm'))
  const socket = ask('GET /socket', host + BEARER + UPGRADE)
  assert.match(await whole(socket), /^HTTP\/1.1 101 [\s\S]*^GET \/socket HTTP\/1\.1\r$/m)
  assert.deepEqual(refusal(await whole(ask('GET /v2/serverless', host))), [401, 'the API key is missing'])
  const unknown = async (name: string, more = '') =>
    assert.match(await ask('GET /graphql', `Host: ${name}\r\n${more}`).untilEnd(), /^HTTP\/1.1 421 /, name)
  for (const other of ['other.example.org', 'sub.chat.example.org']) await unknown(other, BEARER)
  domain = null
  for (const more of ['', UPGRADE]) await unknown('chat.example.org', more)
})

test('the host of an absolute target counts, whatever the Host field says', async t => {
  const { ask, id } = await openWorld(t)
  const text = await whole(ask(`GET http://${id}.localhost/a`, `Host: elsewhere\r\n${BEARER}`))
  assert.match(text, /^GET \/a HTTP\/1\.1\r$/m)
  assert.match(text, new RegExp(`^Host: ${id}.localhost\\r$`, 'm'))
  assert.doesNotMatch(text, /elsewhere/)
})

test('everything else is passed to the rest of the server, also requests for another protocol', async t => {
  const { ask } = await openWorld(t)
  const host = 'Host: 127.0.0.1\r\n'
  for (const more of ['', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n', UPGRADE]) {
    assert.match(await whole(ask('GET /v2/x/run', `${host}${more}`)), /^HTTP\/1.1 200 OK[\s\S]*the rest: \/v2\/x\/run$/)
  }
  assert.match(await whole(ask('GET /lb/not-one/a', host)), /the rest: \/lb\/not-one\/a$/)
  assert.match(await whole(ask('GET //v2///x//run//?a=//b', host)), /the rest: \/v2\/x\/run\/$/)
  assert.match(await whole(ask('GET http://127.0.0.1//v2//x', host)), /the rest: \/v2\/x$/)
  const waiting = ask('POST /graphql', `${host}Expect: 100-continue\r\nContent-Length: 2\r\n`)
  await waiting.until('HTTP/1.1 100 Continue\r\n\r\n')
  await waiting.send('{}').until(/the rest: \/graphql$/)
})

test('a body for an endpoint may come in as slowly as its client likes, unlike others', async t => {
  // The body looks like another head to this worker, and is what it answers.
  const serve = (head: string) => (head.startsWith('POST') ? '' : 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
  const limits = { bodyGraceMs: 0, bodyBytesPerSecond: 1_000_000, bodyMs: 500 }
  const { ask } = await openWorld(t, { serve, listening: { limits } })
  const slow = ask('POST /upload', `${BEARER}Content-Length: 8\r\n`)
  const other = ask('POST /graphql', 'Host: 127.0.0.1\r\nContent-Length: 8\r\n')
  await other.untilEnd()
  await setTimeout(1_000)
  assert.match(await slow.send('slow\r\n\r\n').until(/done$/), /^HTTP\/1.1 200 OK/)
})

test('an offer of HTTP/2 keeps no request from an endpoint', async t => {
  const { ask } = await openWorld(t)
  const text = await whole(ask('GET /a', `${BEARER}Connection: Upgrade\r\nUpgrade: h2c\r\n`))
  assert.match(text, /^HTTP\/1.1 200 OK/)
  assert.doesNotMatch(text, /h2c/)
})

test('a socket that is asked for before the answer to an earlier request is out is answered in its turn, as a request', async t => {
  const serve = (head: string) => (head.includes('/slow') ? '' : echo(head))
  const { ask, worker, id } = await openWorld(t, { serve })
  const upgrade = `GET /socket HTTP/1.1\r\nHost: ${id}.localhost\r\n${BEARER}${UPGRADE}\r\n`
  const client = ask('GET /slow', BEARER).send(upgrade)
  await until('the second request', () => worker.sockets.length === 2)
  worker.sockets[0]!.write(PLAIN)
  const text = await client.until(/GET \/socket[\s\S]*\r\n\.$/)
  assert.match(text, /^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\nhiHTTP\/1.1 200 OK\r\n/)
})

test('CONNECT is refused, wherever it goes', async t => {
  const { ask, id } = await openWorld(t)
  for (const line of ['CONNECT example.com:443', `CONNECT ${id}.localhost:80`]) {
    const client = ask(line, BEARER)
    assert.equal(refusal(await client.untilEnd())[0], 405)
  }
})

test('a refusal is JSON, is not kept, and says when to come again', async t => {
  const { ask, id, stopping, rig } = await openWorld(t)
  const text = await whole(ask('GET /a'))
  assert.deepEqual(refusal(text), [401, 'the API key is missing'])
  for (const field of ['content-type: application/json', 'cache-control: no-store', 'www-authenticate: Bearer']) {
    assert.ok(text.includes(`${field}\r\n`), text)
  }
  const queue = await rig.endpoint()
  const notForQueue = `not allowed for QB API: endpoint ${queue} takes jobs, not requests; jobs go to http://x/v2/${queue}/run, calls of OpenAI clients to http://x/v2/${queue}/openai/v1`
  const elsewhere = (endpoint: string) => `Host: ${endpoint}.localhost\r\n${BEARER}`
  assert.deepEqual(refusal(await whole(ask('GET /', elsewhere(queue)))), [400, notForQueue])
  assert.deepEqual(refusal(await whole(ask('GET /', elsewhere('nobody')))), [404, 'endpoint nobody not found'])
  assert.deepEqual(refusal(await ask('GET /', elsewhere(queue) + UPGRADE).untilEnd()), [400, notForQueue])
  assert.deepEqual(refusal(await ask('GET /', UPGRADE).untilEnd()), [401, 'the API key is missing'])
  stopping.abort()
  const late = await whole(ask(`GET /lb/${id}/a`, `Host: x\r\n${BEARER}`))
  assert.deepEqual(refusal(late), [503, 'the server is stopping'])
  assert.match(late, /^retry-after: 5\r$/m)
  assert.deepEqual(refusal(await ask('GET /', BEARER + UPGRADE).untilEnd()), [503, 'the server is stopping'])
})

test('an unreadable request is refused with a message, unless a response on its connection has begun', async t => {
  const { ask, id } = await openWorld(t, {
    serve: () => 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun',
  })
  const large = `X-Large: ${'a'.repeat(17_000)}\r\n`
  const many = 'A:\r\n'.repeat(3_000)
  for (const [line, headers, status, error] of [
    ['GET /', large, 431, /more than 16 KB, or are too many$/],
    ['GET /', many, 431, /more than 16 KB, or are too many$/],
    ['FROB /', '', 400, /cannot be read as HTTP\/1.1 \(Invalid method/],
    ['GET /', 'no field\r\n', 400, /cannot be read as HTTP\/1.1 \(/],
    ['POST /', `${BEARER}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n`, 400, /cannot be read/],
  ] as const) {
    const text = await ask(line, headers).untilEnd()
    assert.match(text, /\r\nconnection: close\r\n/)
    assert.deepEqual([refusal(text)[0], error.test(refusal(text)[1])], [status, true], text)
  }
  const begun = ask(`GET /lb/${id}/`, BEARER)
  await begun.until('begun')
  assert.match(await begun.send('nonsense\r\n\r\n').untilEnd(), /begun$/)
})

test('a body that is refused need not be sent, and one that is wanted is asked for once', async t => {
  const { ask } = await openWorld(t)
  const expects = 'Expect: 100-continue\r\nContent-Length: 2\r\n'
  const refused = await ask('POST /a', expects).untilEnd()
  assert.equal(refusal(refused)[0], 401)
  assert.doesNotMatch(refused, /100 Continue/)
  const wanted = ask('POST /a', BEARER + expects)
  await wanted.until('HTTP/1.1 100 Continue\r\n\r\n')
  const text = await whole(wanted.send('{}'))
  assert.equal(text.split('100 Continue').length, 2)
  assert.match(text, /HTTP\/1.1 200 OK/)
})

test('no form of a key reaches a worker, with a request and with a socket', async t => {
  const { ask } = await openWorld(t)
  const forms: readonly [path: string, headers: string][] = [
    ['/a?b=1', BEARER],
    ['/a?b=1', `authorization: ${KEY}\r\n`],
    [`/a?api_key=${KEY}&b=1`, ''],
    [`/a?b=1&api_key=${encodeURIComponent(KEY)}`, BEARER],
    ['/a?b=1', `Sec-WebSocket-Protocol: runyard.key.${KEY}, chat\r\n`],
    ['/a?b=1', `${BEARER}Referer: http://x/?api_key=${KEY}\r\n`],
  ]
  for (const [path, headers] of forms) {
    for (const more of ['', UPGRADE]) {
      const text = await whole(ask(`GET ${path}`, headers + more))
      assert.match(text, more === '' ? /^HTTP\/1.1 200/ : /^HTTP\/1.1 101/, headers)
      assert.ok(!text.includes(KEY), text)
      assert.match(text, /^GET \/a\?b=1 HTTP\/1\.1\r$/m)
    }
  }
})

test('a browser whose only subprotocol is its key gets it named in the answer, and another one is up to the worker', async t => {
  const { ask } = await openWorld(t)
  const named = (text: string) =>
    /^sec-websocket-protocol: (.*)\r$/im.exec(text.slice(0, text.indexOf('\r\n\r\n')))?.[1]
  const ours = `runyard.key.${KEY}`
  assert.equal(named(await whole(ask('GET /', `${UPGRADE}Sec-WebSocket-Protocol: ${ours}\r\n`))), ours)
  assert.equal(named(await whole(ask('GET /', `${UPGRADE}Sec-WebSocket-Protocol: ${ours}, chat\r\n`))), undefined)
})

test('a public endpoint needs no key, and the token of its application is forwarded', async t => {
  const { ask, id, rig } = await openWorld(t, { rules: { open: ['open'] } })
  await rig.change(id, { name: 'open', type: 'LB' })
  const own = 'Authorization: Bearer of-the-application\r\n'
  for (const more of ['', UPGRADE]) {
    assert.match(await whole(ask('GET /', more)), /^HTTP\/1.1 (200|101)/)
    assert.match(await whole(ask('GET /', own + more)), /^Authorization: Bearer of-the-application\r$/m)
    assert.ok(!(await whole(ask('GET /', BEARER + more))).includes(KEY))
  }
})

test('the sender of a request is the peer of its connection, unless a trusted proxy names another', async t => {
  const said = 'X-Forwarded-For: 198.51.100.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: chat.example\r\n'
  const mistrusting = await openWorld(t)
  const plain = await whole(mistrusting.ask('GET /', BEARER + said))
  assert.match(plain, /^X-Forwarded-For: 127\.0\.0\.1\r$/m)
  assert.match(plain, /^X-Forwarded-Proto: http\r$/m)
  assert.ok(!plain.includes('198.51.100.4') && !plain.includes('chat.example'))
  const trusting = await openWorld(t, { rules: { trustedProxies: ['127.0.0.0/8'] } })
  const text = await whole(trusting.ask('GET /', BEARER + said))
  assert.match(text, /^X-Forwarded-For: 198\.51\.100\.4, 127\.0\.0\.1\r$/m)
  assert.match(text, /^X-Forwarded-Proto: https\r$/m)
  assert.match(text, /^X-Forwarded-Host: chat\.example\r$/m)
})

test('a preflight without a key is answered, and no worker receives it', async t => {
  const { ask, worker } = await openWorld(t)
  const asks = 'Origin: https://page.example\r\nAccess-Control-Request-Method: PUT\r\n'
  const text = await ask('OPTIONS /a', asks).until('\r\n\r\n')
  assert.match(text, /^HTTP\/1.1 204 No Content/)
  assert.match(text, /^access-control-allow-origin: https:\/\/page\.example\r$/m)
  assert.equal(worker.sockets.length, 0)
})

test('a page of another origin gets to read why it is refused, and what a worker says is left to the worker', async t => {
  const serve = (head: string) => (head.startsWith('GET /broken') ? 'no HTTP\r\n\r\n' : echo(head))
  const { ask, id, rig, stopping } = await openWorld(t, { serve })
  const queue = await rig.endpoint()
  const from = 'Origin: https://page.example\r\n'
  const fields = (text: string) =>
    [...text.matchAll(/^(access-control-[^:]*|vary): (.*)\r$/gim)].map(([, name, value]) =>
      `${name}: ${value}`.toLowerCase(),
    )
  const readable = [
    ...['access-control-allow-origin: https://page.example', 'access-control-allow-credentials: true'],
    ...['access-control-expose-headers: retry-after, x-request-id', 'vary: origin'],
  ]
  const at = (endpoint: string) => `Host: ${endpoint}.localhost\r\n${BEARER}${from}`
  const rows: [status: number, headers: string][] = [
    [401, from],
    [404, at('nobody')],
    [400, at(queue)],
  ]
  for (const [status, headers] of rows) {
    const text = await whole(ask('GET /a', headers))
    assert.deepEqual([refusal(text)[0], fields(text)], [status, readable])
  }
  assert.deepEqual(fields(await whole(ask('GET /a'))), [], 'who is of no page is told nothing of that')
  const answered = await whole(ask('GET /a', BEARER + from))
  assert.match(answered, /^HTTP\/1.1 200/)
  assert.deepEqual(fields(answered), [])
  const broken = await whole(ask('GET /broken', BEARER + from))
  assert.deepEqual([refusal(broken)[0], fields(broken)], [502, readable])
  stopping.abort()
  const late = await whole(ask('GET /a', BEARER + from))
  assert.deepEqual([refusal(late)[0], fields(late)], [503, readable])
  const asks = `${from}Access-Control-Request-Method: PUT\r\n`
  assert.match(await ask(`OPTIONS /lb/${id}/a`, asks).until('\r\n\r\n'), /^HTTP\/1.1 204/)
})

test('repeated slashes lead past no key and no host', async t => {
  const { ask, id, worker } = await openWorld(t, { listening: { hosts: { names: [], domains: [] } } })
  const statusOf = async (path: string, headers: string) =>
    (await ask(`GET ${path}`, headers).until('\r\n\r\n')).split(' ')[1]
  for (const path of [`//lb/${id}/a`, `/lb//${id}//a`, `///lb///${id}`]) {
    assert.equal(await statusOf(path, 'Host: 127.0.0.1\r\n'), '401', path)
    assert.equal(await statusOf(path, `Host: evil.example\r\n${BEARER}`), '421', path)
  }
  assert.equal(await statusOf('//v2/x/run', 'Host: evil.example\r\n'), '421')
  assert.equal(await statusOf(`//evil.example/lb/${id}/a`, 'Host: evil.example\r\n'), '421')
  assert.equal(worker.sockets.length, 0)
})

test('whom the listener refuses gets to no endpoint either', async t => {
  const { ask } = await openWorld(t, { listening: { refuses: () => true } })
  for (const more of ['', UPGRADE, 'Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}']) {
    assert.match(await ask('GET /', BEARER + more).untilEnd(), /^HTTP\/1.1 (100 Continue\r\n\r\nHTTP\/1.1 )?403 /)
  }
})

test('whom the listener refuses gets to the S3 door alone, however its path is written', async t => {
  const { ask, id } = await openWorld(t, { listening: { refuses: () => true } })
  for (const path of ['/s3/a?b', '//s3//a', '/v2/../s3/a']) {
    for (const host of ['127.0.0.1', `${id}.localhost`]) {
      assert.match(await whole(ask(`GET ${path}`, `Host: ${host}\r\n${BEARER}`)), /the rest: \/s3\/a$/, path)
    }
  }
  const others = ['/v2/serverless', '/s3/../v2/serverless', '/s3/%2e%2e/v2/serverless', '/s3%2fa', '/S3/a', '/s3x']
  for (const path of [...others, `/lb/${id}/s3/a`, 'http://127.0.0.1/s3/a']) {
    assert.match(await ask(`GET ${path}`, 'Host: 127.0.0.1\r\n').untilEnd(), /^HTTP\/1.1 403 /, path)
  }
})

test('a socket counts as a connection, is never ended to make room, and ends with its listener', async t => {
  const { ask, listener, id } = await openWorld(t, { listening: { maxConnections: 2 } })
  const socket = ask('GET /', BEARER + UPGRADE)
  await whole(socket)
  const busy = ask('GET /', BEARER + UPGRADE)
  await whole(busy)
  const over = ask(`GET /lb/${id}/`, BEARER)
  assert.match(await over.untilEnd(), /^HTTP\/1.1 503/)
  assert.ok(!socket.closed && !busy.closed)
  await listener.close(50)
  await Promise.all([socket.untilEnd(), busy.untilEnd()])
})

test('a finished request is logged once, without its query, and a refused one with its response', async t => {
  const { ask, rig, id } = await openWorld(t)
  await whole(ask(`GET /a?api_key=${KEY}`))
  await whole(ask('GET /a?secret=1'))
  const [passed] = rig.happened('gateway.request_finished')
  assert.deepEqual(
    [passed?.endpointId, passed?.path, passed?.status, passed?.workerId, passed?.complete],
    [id, '/a', 200, 'w1', true],
  )
  assert.equal(rig.happened('gateway.request_finished').length, 1)
  const told = rig.happened('request.answered').filter(({ surface }) => surface === 'gateway')
  assert.deepEqual(
    told.map(({ status }) => status),
    [401],
  )
})

test('a client that shuts its writing side gets its answer, and one that has gone ends its request at the worker', async t => {
  const world = await openWorld(t)
  const client = world.ask('GET /', BEARER)
  client.socket.end()
  assert.match(await client.untilEnd(), /^HTTP\/1\.1 200 OK\r\n/)
  const silent = await openWorld(t, { serve: () => '' })
  const gone = silent.ask('GET /', BEARER)
  const [socket] = await until('the request', () => silent.worker.sockets.length > 0 && silent.worker.sockets)
  gone.socket.destroy()
  await until('the end of the request', () => socket!.destroyed)
})

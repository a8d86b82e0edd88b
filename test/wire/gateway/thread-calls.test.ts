/** Job operations that one listener sends to another as messages, as threads that read HTTP do. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { CallSender, isCall } from '../../../src/server/call-messages.ts'
import { ownTotals } from '../../../src/server/connection-totals.ts'
import { type Listener, type ListenOptions, listen } from '../../../src/server/listener.ts'
import { PassedRequests } from '../../../src/server/passed-requests.ts'
import { CallReceiver } from '../../../src/server/received-calls.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { rawClient } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const BEARER = { authorization: `Bearer ${KEY}` }
const none = async () => Promise.reject(new Error('the thread has no surfaces'))

interface Pair {
  readonly rig: Rig
  /** The listener for clients. */
  readonly listener: Listener
  /** Requests that run at the deciding side. */
  readonly running: () => number
}

/** A listener for clients that sends all job operations on, and answers nothing else. */
async function openPair(t: TestContext, options: Partial<ListenOptions> = {}): Promise<Pair> {
  const rig = await openRig(t)
  const at = { host: '127.0.0.1', port: 0, maxConnections: 100 }
  const totals = ownTotals()
  const passed = new PassedRequests('secret')
  const own = { ...at, totals, passed, ...options }
  const deciding = await listen((request, env) => rig.surface(request, env), own)
  const receiver = new CallReceiver(systemClock, packet => sender.receive(structuredClone(packet)), deciding.take)
  const sender: CallSender = new CallSender(systemClock, packet => receiver.receive(structuredClone(packet)))
  const listener = await listen(none, { ...at, calls: sender })
  t.after(() => Promise.all([listener.close(0), deciding.close(0)]))
  return { rig, listener, running: () => totals.places.add(0) }
}

const url = ({ port }: Listener, path: string) => `http://127.0.0.1:${port}${path}`

function post({ listener }: Pair, path: string, body: string | object, headers: Record<string, string> = BEARER) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(url(listener, path), { method: 'POST', headers, body: text })
}

test('a job is kept, read and cancelled by messages, with its text as it was sent', async t => {
  const pair = await openPair(t)
  const { rig, listener } = pair
  const { endpoint, worker } = await rig.endpointWithWorker()
  const input = { text: 'Käse 🧀 \u0000', long: 'x'.repeat(60_000) }
  const response = await post(pair, `/v2/${endpoint}/run`, { input }, { ...BEARER, 'x-request-id': 'mine-1' })
  assert.deepEqual([response.status, response.headers.get('x-request-id')], [200, 'mine-1'])
  const { id } = (await response.json()) as { id: JobId }
  const taken = await worker.take()
  assert.deepEqual([taken.json.id, taken.json.input], [id, input])
  const output = { text: 'größer 🧀', long: 'ü'.repeat(3_000_000) }
  await worker.done(id, { output })
  const read = await fetch(url(listener, `/v2/${endpoint}/status/${id}`), { headers: BEARER })
  assert.deepEqual(((await read.json()) as { output: object }).output, output, 'in pieces')
  const other = (await (await post(pair, `/v2/${endpoint}/run`, { input: {} })).json()) as { id: string }
  const cancelled = await post(pair, `/v2/${endpoint}/cancel/${other.id}`, '')
  assert.equal(((await cancelled.json()) as { status: string }).status, 'CANCELLED')
  await until('no request to run', () => pair.running() === 0)
})

test('errors are those of a server without threads', async t => {
  const pair = await openPair(t)
  const id = await pair.rig.endpoint()
  const answers = await Promise.all([
    post(pair, `/v2/${id}/run`, '{"input":'),
    post(pair, `/v2/${id}/run`, { input: {} }, {}),
    fetch(url(pair.listener, `/v2/${id}/status/none`), { headers: BEARER }),
    fetch(url(pair.listener, `/v2/${id}/run`), { headers: BEARER }),
  ])
  const [broken, anonymous, unknown, wrongMethod] = answers
  assert.deepEqual(
    [broken, anonymous, unknown, wrongMethod].map(answer => answer?.status),
    [400, 401, 404, 405],
  )
  assert.ok(anonymous?.headers.has('x-request-id'))
})

test('a client that leaves ends its call, and one that only sends no more gets its answer', async t => {
  const pair = await openPair(t)
  const { rig, listener } = pair
  const { endpoint, worker } = await rig.endpointWithWorker()
  const body = '{"input":{}}'
  const fields = `Host: localhost\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const line = `POST /v2/${endpoint}/runsync HTTP/1.1\r\n${fields}`
  const gone = rawClient(listener.port).send(line)
  await until('its call', () => pair.running() === 1)
  gone.socket.destroy()
  await until('its end', () => pair.running() === 0)
  await worker.done(await worker.takeJob())
  const waits = rawClient(listener.port)
  waits.socket.end(line, 'latin1')
  await until('the other call', () => pair.running() === 1)
  await worker.done(await worker.takeJob(), { output: 'late' })
  await rig.clock.advance(100)
  assert.match(await waits.untilEnd(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*"output":"late"/)
})

test('calls of one connection are answered in their order', async t => {
  const pair = await openPair(t)
  const id = await pair.rig.endpoint()
  const ask = (path: string) =>
    `GET /v2/${id}/${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${KEY}\r\n\r\n`
  const client = rawClient(pair.listener.port)
  client.socket.end(ask('health') + ask('status/none') + ask('health'), 'latin1')
  const statuses = (await client.untilEnd()).match(/HTTP\/1\.1 \d+/g)
  assert.deepEqual(statuses, ['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 200'])
})

test('the limits of the deciding side hold for messages', async t => {
  const pair = await openPair(t, { maxConnections: 1, limits: { reserved: 0 } })
  const { endpoint } = await pair.rig.endpointWithWorker()
  const waits = post(pair, `/v2/${endpoint}/runsync`, { input: {} }).catch(() => null)
  await until('the first', () => pair.running() === 1)
  const refused = await fetch(url(pair.listener, `/v2/${endpoint}/health`), { headers: BEARER })
  assert.deepEqual([refused.status, refused.headers.get('connection')], [503, 'close'])
  await pair.listener.close(0)
  await waits
})

test('bodies without a known, small length, streams and other surfaces are no messages', () => {
  const is = (target: string, headers = {}, method = 'POST') =>
    isCall({ url: target, headers, method } as Parameters<typeof isCall>[0])
  const run = '/v2/abcdefghij1234/run'
  assert.deepEqual(
    [
      is(run),
      is(`${run}?a=/stream`),
      is(run, { 'content-length': '65536' }),
      is('/v2/abcdefghij1234/status/x', {}, 'GET'),
    ],
    [true, true, true, true],
  )
  const others = [
    is(run, { 'content-length': '65537' }),
    is(run, { 'transfer-encoding': 'chunked' }),
    is(run, { upgrade: 'websocket' }),
    is(run, {}, 'OPTIONS'),
    is('/v2/abcdefghij1234/stream/x', {}, 'GET'),
    is('/v2/serverless', {}, 'GET'),
    is(`/${run}`),
    is('/graphql'),
  ]
  assert.ok(others.every(other => !other))
})

/** Load-balancing endpoints as users have them: real servers behind a real one, from zero to its stop. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { ask, makeEndpoint } from '../support/client.ts'
import { rawAsk } from '../support/raw-http.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const BALANCED = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 }

/** Request as a worker reports it. */
interface Told {
  readonly url: string
  readonly method: string
  readonly rawHeaders: readonly string[]
}

function serve(server: Server, more: { env?: Record<string, string>; settings?: object } = {}): Promise<string> {
  const settings = { ...BALANCED, ...more.settings }
  return makeEndpoint(server, { folder: fixture('server-node'), ...(more.env && { env: more.env }), settings })
}

/** The first message of a WebSocket, and the subprotocol that was agreed upon. */
async function socketTold(url: string, protocols: string[]): Promise<{ told: Told; protocol: string }> {
  const socket = new WebSocket(url, protocols)
  const failed = once(socket, 'error').then(([event]) => assert.fail(String((event as ErrorEvent).message)))
  const [{ data }] = (await Promise.race([once(socket, 'message'), failed])) as [MessageEvent]
  const { protocol } = socket
  socket.close()
  return { told: JSON.parse(String(data)), protocol }
}

function headerOf({ rawHeaders }: Told, name: string): string | undefined {
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name)
  return at < 0 ? undefined : rawHeaders[at + 1]
}

describe('a load-balancing endpoint', { timeout: patient(240_000) }, () => {
  let server: Server
  let id: string

  before(async () => {
    server = await startServer({
      args: ['--lb-domain', 'lb.example', '--lb-public', 'open', '--trusted-proxy', '127.0.0.1'],
    })
    id = await serve(server)
  })

  test('is not there for jobs, and queues are not for it', async () => {
    const refused = await ask(server, `/v2/${id}/run`, { body: { input: {} } })
    assert.equal(refused.status, 400)
    assert.match(refused.json.error, /^not allowed for LB API: .* its address is http:\/\/\w+\.lb\.example:\d+$/)
    const queue = await makeEndpoint(server, { folder: fixture('node-everyday') })
    const other = await ask(server, `/lb/${queue}/run`, { body: {} })
    assert.equal(other.status, 400)
    assert.match(other.json.error, new RegExp(`^not allowed for QB API: .*/v2/${queue}`))
  })

  test('shows its addresses, whose health one wakes a worker, which the health of the jobs never does', async () => {
    const { requestUrls } = (await ask(server, `/v2/serverless/${id}`)).json
    const base = `http://${id}.lb.example:${server.port}`
    assert.deepEqual(requestUrls, { base, health: `${base}/ping` })
    assert.equal((await ask(server, `/v2/${id}/health`)).json.workers.ready, 0)
    assert.equal(server.events('worker.created').length, 0)
    const healthy = await rawAsk(server.port, 'GET /ping', {
      headers: { Host: `${id}.lb.example`, Authorization: `Bearer ${server.apiKey}` },
    })
    assert.equal(healthy.statusLine, 'HTTP/1.1 200 OK')
    assert.equal(server.events('worker.created').length, 1)
  })

  test('gets every form of request, and of no key in any of them', async () => {
    const key = server.apiKey
    const bearer = { authorization: `Bearer ${key}` }
    const none = { authorization: null }
    const asked = await Promise.all([
      ask(server, `/lb/${id}/a?b=%20`, {}),
      ask(server, `/lb/${id}/a?b=%20`, { headers: { authorization: key } }),
      ask(server, `/lb/${id}/a?b=%20&api_key=${key}`, { headers: none }),
      ask(server, `/lb/${id}/a?api_key=${key}&b=%20`, { headers: { ...bearer, referer: `http://x/?api_key=${key}` } }),
    ])
    for (const { text, headers, json } of asked) {
      assert.ok(!text.includes(key), text)
      assert.deepEqual([json.url, headerOf(json, 'x-forwarded-prefix')], ['/a?b=%20', `/lb/${id}`])
      assert.match(headers.get('x-runpod-worker-id') ?? '', /^\w+$/)
    }
    const forwarded = { 'x-forwarded-for': '198.51.100.4', 'x-forwarded-proto': 'https' }
    const behind = (await ask(server, `/lb/${id}/`, { headers: forwarded })).json
    assert.equal(headerOf(behind, 'x-forwarded-for'), '198.51.100.4, 127.0.0.1')
    assert.equal(headerOf(behind, 'x-forwarded-proto'), 'https')
  })

  test('gets WebSockets of browsers, with the key in the query or in a subprotocol', async () => {
    const url = `ws://127.0.0.1:${server.port}/lb/${id}/socket?b=1`
    const ours = `runyard.key.${server.apiKey}`
    const query = await socketTold(`${url}&api_key=${server.apiKey}`, [])
    const subprotocol = await socketTold(url, [ours])
    assert.deepEqual([query.protocol, subprotocol.protocol], ['', ours])
    for (const { told } of [query, subprotocol]) {
      assert.equal(told.url, '/socket?b=1')
      assert.ok(!JSON.stringify(told).includes(server.apiKey))
    }
    const refused = new WebSocket(url, ['runyard.key.wrong'])
    await once(refused, 'error')
  })

  test('that was opened takes anybody, and its application its own token', async () => {
    const open = (await ask(server, '/v2/serverless', { body: await definition(server, id, 'open') })).json.id
    const own = (await ask(server, `/lb/${open}/`, { headers: { authorization: 'Bearer own' } })).json
    assert.equal(headerOf(own, 'authorization'), 'Bearer own')
    const ours = (await ask(server, `/lb/${open}/`)).text
    assert.ok(!ours.includes(server.apiKey))
    const closed = await ask(server, `/lb/${id}/`, { headers: { authorization: 'Bearer own' } })
    assert.deepEqual([closed.status, closed.json], [401, { error: 'the API key is invalid or has expired' }])
  })

  test('has the path of its health check and its limits from secrets, which are never shown', async () => {
    const values = { path: '/ping?t=planted', limit: '1', patience: '120' }
    for (const [name, value] of Object.entries(values))
      assert.equal((await ask(server, '/v2/account/secrets', { body: { name, value } })).status, 201)
    const env = {
      HEALTH_CHECK_PATH: '{{ RUNPOD_SECRET_path }}',
      RUNYARD_MAX_CONCURRENCY: '{{ RUNPOD_SECRET_limit }}',
      RUNPOD_INIT_TIMEOUT: '{{ RUNPOD_SECRET_patience }}',
    }
    const sealed = await serve(server, { env, settings: { name: 'sealed', workersMax: 1 } })
    const { status, headers } = await ask(server, `/lb/${sealed}/ping`)
    assert.equal(status, 200)
    const worker = headers.get('x-runpod-worker-id')
    const shown = [
      (await ask(server, `/v2/serverless/${sealed}`)).text,
      (await ask(server, `/v2/serverless/${sealed}/workers/${worker}`)).text,
      ...server.lines,
    ]
    assert.ok(!shown.join('\n').includes('planted'))
  })

  test('reports each request in the log and in the metrics, and never a key or a query', async () => {
    await ask(server, `/lb/${id}/told?secret=1`)
    const told = await until('the log to tell', () =>
      server.events('gateway.request_finished').find(({ path }) => path === '/told'),
    )
    assert.deepEqual([told?.status, told?.complete, told?.kind], [200, true, 'request'])
    const metrics = (await ask(server, '/metrics')).text
    assert.match(metrics, new RegExp(`runyard_gateway_requests_total\\{endpoint="${id}",status="2xx"\\} \\d+`))
    const log = server.lines.join('\n')
    assert.ok(!log.includes(server.apiKey) && !log.includes('secret=1'))
  })

  test('says the same number of ended requests in its health and its metrics', async () => {
    const { jobs } = (await ask(server, `/v2/${id}/health`)).json
    const { points } = (await ask(server, `/v2/serverless/${id}/metrics`)).json
    const sum = (result: string) =>
      points.reduce((all: number, { requests }: { requests: Record<string, number> }) => all + requests[result]!, 0)
    assert.ok(jobs.completed > 0)
    assert.deepEqual([jobs.completed, jobs.failed], [sum('completed'), sum('failed')])
  })
})

/** The definition of an endpoint like this one. */
async function definition(server: Server, id: string, name: string) {
  const { type, image, args, env, cpu, scaling } = (await ask(server, `/v2/serverless/${id}`)).json
  const flavors = cpu.map(({ id: flavor, vcpuCount }: { id: string; vcpuCount: number }) => ({ id: flavor, vcpuCount }))
  return { name, type, image, args, env, scaling, cpu: flavors }
}

describe('the stop of a server', { timeout: patient(120_000) }, () => {
  let server: Server
  after(() => server.kill9())

  test('lets requests end, refuses those that come and those that wait, and ends sockets after the drain time', async () => {
    server = await startServer({ args: ['--drain-timeout', '4'] })
    const id = await serve(server)
    const never = await serve(server, { env: { NEVER_READY: '1' } })
    assert.equal((await ask(server, `/lb/${id}/`)).status, 200)
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/lb/${id}/?api_key=${server.apiKey}`)
    await once(socket, 'message')
    const closed = once(socket, 'close')
    const slow = ask(server, `/lb/${id}/slow?ms=1500`)
    const waiting = ask(server, `/lb/${never}/`)
    const atWorker = async () => (await ask(server, '/metrics')).text.includes(`endpoint="${never}",state="waiting"} 1`)
    await until('the request to wait', atWorker, 20_000, 300)
    const stopped = server.stop()
    const refused = await waiting
    assert.deepEqual([refused.status, refused.json], [503, { error: 'the server is stopping' }])
    assert.equal(refused.headers.get('retry-after'), '5')
    const late = await ask(server, `/lb/${id}/`)
    assert.deepEqual([late.status, late.json], [503, { error: 'the server is stopping' }])
    assert.match((await slow).text, /done\n$/)
    assert.equal(socket.readyState, WebSocket.OPEN)
    const [{ wasClean }] = (await closed) as [CloseEvent]
    assert.equal(wasClean, false)
    assert.equal((await stopped).code, 0)
  })
})

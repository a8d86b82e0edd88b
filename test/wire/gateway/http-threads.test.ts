/** A server with several threads that read HTTP. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { patient } from '../../support/patience.ts'
import { type Balanced, balancedEndpoint, call, inNode } from '../support/balanced.ts'
import { ask, makeEndpoint, submit } from '../support/client.ts'
import { openWires } from '../support/flood.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const THREADS = 2
const MOST = 64

describe('threads that read HTTP', { timeout: patient(120_000) }, () => {
  let server: Server
  let node: Balanced

  before(async () => {
    const args = ['--http-threads', `${THREADS}`, '--max-connections', `${MOST}`, '--trusted-proxy', '127.0.0.1']
    server = await startServer({ args })
    node = await balancedEndpoint(server, {
      ...inNode,
      env: { RUNYARD_MAX_CONCURRENCY: '1' },
      workers: { min: 1, max: 1 },
    })
    assert.equal((await call(node, '/')).status, 200)
  })

  after(async () => {
    const { code } = await server.stop()
    assert.equal(code, 0)
  })

  test('a worker for one request gets one at a time, whichever threads the requests come to', async () => {
    const answers = await Promise.all(Array.from({ length: 24 }, () => call(node, '/wait?ms=20')))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    const { text } = await ask(server, '/metrics')
    const done = new RegExp(`^runyard_gateway_requests_total\\{endpoint="${node.id}",status="2xx"\\} (\\d+)$`, 'm')
    assert.equal(Number(done.exec(text)?.[1]), 25, 'each counts once, as soon as it is answered')
    assert.match(text, new RegExp(`^runyard_gateway_passing\\{endpoint="${node.id}",state="requests"\\} 0$`, 'm'))
  })

  test('a key is dead in all threads once its removal is answered', async () => {
    const { json } = await ask(server, '/v2/account/keys', { body: { name: 'short' } })
    const asked = () =>
      Promise.all(
        Array.from({ length: 8 }, async () => {
          const response = await fetch(`${node.base}/`, {
            headers: { authorization: `Bearer ${json.key}`, connection: 'close' },
          })
          await response.text()
          return response.status
        }),
      )
    assert.deepEqual(new Set(await asked()), new Set([200]))
    assert.equal((await ask(server, `/v2/account/keys/${json.id}`, { method: 'DELETE' })).status, 204)
    assert.deepEqual(new Set(await asked()), new Set([401]))
  })

  test('other requests keep the address of their client and their id, and no client speaks for a thread', async () => {
    const headers = { 'x-request-id': 'mine-1', 'x-runyard-thread': 'guess 10.9.9.9', 'x-forwarded-for': '10.1.2.3' }
    const response = await fetch(`${server.url}/v2/serverless`, {
      headers: { ...headers, authorization: 'Bearer wrong' },
    })
    assert.deepEqual([response.status, response.headers.get('x-request-id')], [401, 'mine-1'])
    const isHeard = () => server.events('key.failed').some(({ address }) => address === '10.1.2.3')
    await until('the failed key of the client', isHeard, 5_000)
  })

  test('a limit of connections is one for all threads', async () => {
    const slow = `GET /lb/${node.id}/wait?ms=5000 HTTP/1.1\r\nhost: localhost\r\nauthorization: ${server.apiKey}\r\n\r\n`
    const wires = await openWires(server, MOST, slow)
    const isRefused = ({ received, isClosed }: (typeof wires)[number]) => isClosed() || received().includes(' 503 ')
    await until('those above half of all', () => wires.filter(isRefused).length >= MOST / 2, 10_000)
    assert.equal(wires.filter(isRefused).length, MOST / 2)
    assert.equal((await ask(server, '/healthz')).status, 200)
    for (const { socket } of wires) socket.destroy()
    await Promise.all(wires.map(({ closed }) => closed))
  })

  test('jobs go through them to the deciding thread', async () => {
    const folder = `${root}/examples/hello-node`
    const id = await makeEndpoint(server, { folder, settings: { workersMax: 0 } })
    assert.ok(await submit(server, id, { text: 'x'.repeat(200_000) }))
  })
})

test('a server whose connections cannot be shared has one thread, and says why', async () => {
  const server = await startServer({ args: ['--http-threads', '2', '--tls-self-signed'] })
  assert.equal(server.events('http_threads.one')[0]?.reason, 'the server speaks HTTPS')
  await server.stop()
})

test('all threads have one monotonic clock, so that one of them measures what another began', async () => {
  const url = new URL(
    `data:text/javascript,${encodeURIComponent(
      "import { parentPort } from 'node:worker_threads'\nparentPort.postMessage(performance.now())",
    )}`,
  )
  const before = performance.now()
  const [seen] = await once(new Worker(url), 'message')
  assert.ok(before <= seen && seen <= performance.now(), `${before} ${seen} ${performance.now()}`)
})

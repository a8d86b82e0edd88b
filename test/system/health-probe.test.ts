/** Health checks over real sockets. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { SocketAddress } from '../../src/core/workers/socket-address.ts'
import { createHealthProbes } from '../../src/system/http/health-probe.ts'
import { patient } from '../support/patience.ts'

async function listening(context: TestContext, server: Server): Promise<SocketAddress> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket))
  context.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

const answering = (context: TestContext, listener: RequestListener) => listening(context, createServer(listener))
const saying = (context: TestContext, say: (socket: Socket) => void) =>
  listening(
    context,
    createSocketServer(socket => {
      socket.on('error', () => {})
      say(socket)
    }),
  )

test('a health check is one GET on a connection of its own, and its answer is the status', async t => {
  const seen: string[] = []
  const connections = new Set<unknown>()
  const address = await answering(t, (request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.host} ${request.headers.connection}`)
    connections.add(request.socket)
    response.writeHead(seen.length === 1 ? 204 : 200).end()
  })
  const { probe } = createHealthProbes()
  assert.deepEqual(await probe(address, '/well?deep=1', 5_000), { status: 204 })
  assert.deepEqual(await probe(address, '/well', 5_000), { status: 200 })
  const host = `127.0.0.1:${address.port}`
  assert.deepEqual(seen, [`GET /well?deep=1 ${host} close`, `GET /well ${host} close`])
  assert.equal(connections.size, 2)
})

test('a request to sleep or to wake is one POST without a body, and follows no redirect', async t => {
  const seen: string[] = []
  const address = await answering(t, (request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers['content-length']}`)
    response.writeHead(307, { location: '/other' }).end()
  })
  assert.deepEqual(await createHealthProbes().post(address, '/sleep?level=1', 5_000), { status: 307 })
  assert.deepEqual(seen, ['POST /sleep?level=1 0'])
})

test('a redirect is not followed', async t => {
  const address = await answering(t, (_request, response) => response.writeHead(302, { location: '/other' }).end())
  assert.deepEqual(await createHealthProbes().probe(address, '/ping', 5_000), { status: 302 })
})

test('a port without a listener is reported', async t => {
  const server = createSocketServer()
  const address = await listening(t, server)
  await new Promise(resolve => server.close(resolve))
  const answer = await createHealthProbes().probe(address, '/ping', 5_000)
  assert.deepEqual(answer, { problem: 'nothing listens there', refused: true })
})

test('a connection that is cut, closed or that says something else than HTTP is a problem and no refusal', async t => {
  const cut = await saying(t, socket => socket.resetAndDestroy())
  const closed = await saying(t, socket => socket.end())
  const other = await saying(t, socket => socket.write('220 mail.example ready\r\n'))
  for (const address of [cut, closed, other]) {
    const answer = await createHealthProbes().probe(address, '/ping', 5_000)
    assert.ok('problem' in answer && !answer.refused && answer.problem !== '', JSON.stringify(answer))
  }
})

test('a server that accepts and says nothing is given up after the time', async t => {
  const address = await saying(t, () => {})
  const answer = await createHealthProbes().probe(address, '/ping', 50)
  assert.deepEqual(answer, { problem: 'no answer within 0.05 s', refused: false })
})

test('a body without an end neither delays the response nor is read without end', {
  timeout: patient(20_000),
}, async t => {
  let closed = () => {}
  const over = new Promise<void>(resolve => (closed = resolve))
  const address = await answering(t, (_request, response) => {
    response.on('close', closed)
    response.on('error', () => {})
    response.writeHead(200)
    const more = () => {
      while (response.writable && response.write(Buffer.alloc(16_384))) {}
    }
    response.on('drain', more)
    more()
  })
  assert.deepEqual(await createHealthProbes().probe(address, '/ping', 5_000), { status: 200 })
  await over
})

/** Clients that shut their writing side after their request get its answer, and disconnected ones are noticed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { type Listener, type ListenOptions, listen } from '../../../src/server/listener.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { patient } from '../../support/patience.ts'
import { KEY, openRig, type Rig, type RigWorker } from '../../support/rig.ts'
import { type RawClient, rawClient } from '../support/gateway.ts'
import { parseAnswer } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const BEARER = `Authorization: Bearer ${KEY}\r\n`

async function open(t: TestContext, options: Partial<ListenOptions> = {}): Promise<{ rig: Rig; listener: Listener }> {
  const rig = await openRig(t)
  const own = { host: '127.0.0.1', port: 0, maxConnections: 100 }
  const listener = await listen((request, env) => rig.surface(request, env), { ...own, ...options })
  t.after(() => listener.close(0))
  return { rig, listener }
}

function requestText(line: string, body?: object | string, fields = BEARER): string {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  const length = body === undefined ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`
  return `${line} HTTP/1.1\r\nHost: localhost\r\n${fields}${length}\r\n${text}`
}

/** Sends a request and shuts the writing side. */
function halfClosed({ port }: Listener, text: string): RawClient {
  const client = rawClient(port)
  client.socket.end(text, 'latin1')
  return client
}

function bearer(worker: RigWorker): string {
  return `Authorization: ${worker.spec.protocolEnv.RUNPOD_AI_API_KEY}\r\n`
}

test('short calls of each API are answered wholly, and the connection is closed', async t => {
  const { rig, listener } = await open(t)
  const id = await rig.endpoint()
  const asked = [
    [requestText(`POST /v2/${id}/run`, { input: {} }), /"status":"IN_QUEUE"/],
    [requestText('GET /v2/serverless'), new RegExp(id)],
    [requestText('POST /graphql', { query: '{ myself { id } }' }), /"myself"/],
    [requestText('GET /healthz'), /"ok"/],
    [requestText('GET /nowhere'), /nothing at this path/],
  ] as const
  for (const [text, expected] of asked) {
    const got = await halfClosed(listener, text).untilEnd()
    assert.match(got, /^HTTP\/1\.1 \d+ /)
    assert.match(got, expected)
    assert.equal(got.match(/HTTP\/1\.1/g)?.length, 1)
  }
})

test('a call that waits for a job has its answer when the job ends', async t => {
  const { rig, listener } = await open(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const client = halfClosed(listener, requestText(`POST /v2/${endpoint}/runsync`, { input: {} }))
  const id = await until('the job', async () => {
    await rig.clock.advance(10)
    const listed = await rig.ask('GET', `/v2/${endpoint}/requests`)
    return listed.json.requests?.[0]?.id
  })
  await until('the first characters of the answer', () => client.text === 'HT')
  await worker.takeJob()
  await worker.done(id, { output: 'late' })
  await rig.clock.advance(100)
  assert.match(await client.untilEnd(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*"output":"late"/)
})

test('a pipeline of requests is answered to its last one', async t => {
  const { listener } = await open(t)
  const got = await halfClosed(listener, requestText('GET /healthz').repeat(3)).untilEnd()
  assert.equal(got.match(/HTTP\/1\.1 200 OK/g)?.length, 3)
})

test('a request that is not whole is refused at once', async t => {
  const { rig, listener } = await open(t)
  const id = await rig.endpoint()
  const text = requestText(`POST /v2/${id}/run`, { input: {} })
  assert.match(await halfClosed(listener, text.slice(0, -3)).untilEnd(), /^HTTP\/1\.1 400 /)
  assert.match(await halfClosed(listener, text.slice(0, 20)).untilEnd(), /^HTTP\/1\.1 400 /)
})

test('a client that has gone is noticed while its call waits', { timeout: patient(20_000) }, async t => {
  const [asked, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const listener = await listen(
    async ({ signal }) => {
      signal.addEventListener('abort', () => gone.resolve())
      asked.resolve()
      return new Promise(() => {})
    },
    { host: '127.0.0.1', port: 0, maxConnections: 10 },
  )
  t.after(() => listener.close(0))
  const client = rawClient(listener.port).send(requestText('GET /a'))
  await asked.promise
  client.socket.destroy()
  await gone.promise
})

test('an answer in chunks that has begun goes on, and ends for a client that has gone', {
  timeout: patient(20_000),
}, async t => {
  const gone = Promise.withResolvers<void>()
  const next = Promise.withResolvers<void>()
  const listener = await listen(
    async ({ signal, url }) => {
      if (url.endsWith('/gone')) signal.addEventListener('abort', () => gone.resolve())
      return new Response(
        new ReadableStream({
          async start(controller) {
            controller.enqueue(Buffer.from('first'))
            await (url.endsWith('/gone') ? new Promise(() => {}) : next.promise)
            controller.enqueue(Buffer.from('second, which is longer'))
            controller.close()
          },
        }),
      )
    },
    { host: '127.0.0.1', port: 0, maxConnections: 10 },
  )
  t.after(() => listener.close(0))
  const [client, leaving] = [rawClient(listener.port), rawClient(listener.port)]
  client.send(requestText('GET /half'))
  leaving.send(requestText('GET /gone'))
  await Promise.all([client.until('first'), leaving.until('first')])
  client.socket.end()
  leaving.socket.destroy()
  await gone.promise
  next.resolve()
  const { body } = parseAnswer(Buffer.from(await client.untilEnd(), 'latin1'))
  assert.equal(body, 'firstsecond, which is longer')
})

test('what comes for a client just after it has gone is kept for the next one', async t => {
  const { rig, listener } = await open(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const client = rawClient(listener.port).send(requestText(`GET /v2/${endpoint}/stream/${id}`))
  await setTimeout(50)
  client.socket.destroy()
  await setTimeout(10)
  await worker.chunk(id, { output: 'kept' })
  await setTimeout(100)
  assert.deepEqual((await rig.ask('GET', `/v2/${endpoint}/stream/${id}`)).json.stream, [{ output: 'kept' }])
})

test('a worker that sends no more gets no job that could be lost, and its take ends', async t => {
  const { rig, listener } = await open(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const take = halfClosed(listener, requestText(`GET /v2/${endpoint}/job-take/${worker.id}`, undefined, bearer(worker)))
  assert.match(await take.untilEnd(), /^HTTP\/1\.1 204 /)
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  const path = `/v2/${endpoint}/job-done/${worker.id}/${id}`
  const done = halfClosed(listener, requestText(`POST ${path}`, { output: 1 }, bearer(worker)))
  assert.match(await done.untilEnd(), /^HTTP\/1\.1 200 /)
  assert.equal((await rig.job(endpoint, id)).output, '1')
})

test('the same over TLS', async t => {
  const pair = makeCertificate()
  const { rig, listener } = await open(t, { tls: { current: pair, watch: () => () => {} } })
  const id = await rig.endpoint()
  const socket = connectSecurely({ port: listener.port, host: '127.0.0.1', ca: pair.cert, servername: 'localhost' })
  t.after(() => socket.destroy())
  socket.allowHalfOpen = true
  let got = ''
  socket.on('data', bytes => (got += bytes.toString('latin1')))
  socket.end(requestText(`POST /v2/${id}/run`, { input: {} }), 'latin1')
  await new Promise(resolve => socket.on('close', resolve))
  assert.match(got, /^HTTP\/1\.1 200 OK\r\n[\s\S]*"status":"IN_QUEUE"/)
})

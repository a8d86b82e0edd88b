/** The client of the API against a server on loopback: deadlines, limits, tokens, and what refusals become. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { ClusterAccess } from '../../../src/drivers/kubernetes/access.ts'
import { KubernetesError } from '../../../src/drivers/kubernetes/api.ts'
import { HttpsApi } from '../../../src/drivers/kubernetes/https-api.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

async function serving(context: TestContext, answer: Answer, token: ClusterAccess['token'] = () => null) {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', chunk => {
      body += chunk
    })
    request.on('end', () => answer(request, response, body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const clock = new VirtualClock()
  const access = { server: `http://127.0.0.1:${port}/k8s`, namespace: 'n', tls: {}, token, isInside: false }
  const api = new HttpsApi(access, clock)
  context.after(() => {
    api.close()
    server.closeAllConnections()
    server.close()
  })
  return { api, clock, server }
}

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(value))
}

const refusal = (run: Promise<unknown>) =>
  run.then(
    () => assert.fail('it succeeded'),
    thrown => (thrown instanceof KubernetesError ? thrown : assert.fail(String(thrown))),
  )

test('a call has its path, query, body and type, and gives what the API answers', async context => {
  const seen: string[] = []
  const { api } = await serving(context, (request, response, body) => {
    seen.push(`${request.method} ${request.url} ${request.headers['content-type'] ?? '-'} ${body}`)
    json(response, 200, { ok: true })
  })
  assert.deepEqual(await api.call({ method: 'GET', path: '/api/v1/pods', query: { a: 'b=c', limit: '5' } }), {
    ok: true,
  })
  await api.call({ method: 'PATCH', path: '/p', body: { x: 1 } })
  await api.call({ method: 'POST', path: '/p', body: {} })
  assert.deepEqual(seen, [
    'GET /k8s/api/v1/pods?a=b%3Dc&limit=5 - ',
    'PATCH /k8s/p application/merge-patch+json {"x":1}',
    'POST /k8s/p application/json {}',
  ])
})

test('the API gives the metadata of one object in another form than those of a list', async context => {
  const seen: (string | undefined)[] = []
  const { api } = await serving(context, (request, response) => {
    seen.push(request.headers.accept)
    json(response, 200, {})
  })
  for (const metadataOnly of ['one', 'list'] as const) await api.call({ method: 'GET', path: '/p', metadataOnly })
  assert.deepEqual(seen, [
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
    'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
  ])
})

test('a refusal has the words of the API, and nothing of a token', async context => {
  const { api } = await serving(
    context,
    (_, response) => json(response, 403, { kind: 'Status', message: 'pods is forbidden', reason: 'Forbidden' }),
    () => 'secret-token',
  )
  const error = await refusal(api.call({ method: 'GET', path: '/p' }))
  assert.deepEqual(
    [error.status, error.reason, error.message, error.isPassing],
    [403, 'Forbidden', 'pods is forbidden', false],
  )
  assert.doesNotMatch(JSON.stringify(error), /secret-token/)
})

test('a token that is refused is read again, once', async context => {
  let calls = 0
  const { api } = await serving(
    context,
    (request, response) => {
      calls += 1
      json(response, request.headers.authorization === 'Bearer new' ? 200 : 401, { message: 'Unauthorized' })
    },
    how => (how === 'fresh' ? 'new' : 'old'),
  )
  assert.deepEqual(await api.call({ method: 'GET', path: '/p' }), { message: 'Unauthorized' })
  assert.equal(calls, 2)
})

test('an API that asks for patience gets no call before', async context => {
  let calls = 0
  const { api, clock } = await serving(context, (_, response) => {
    calls += 1
    json(response, calls === 1 ? 429 : 200, { message: 'too many' }, { 'retry-after': '3' })
  })
  assert.equal((await refusal(api.call({ method: 'GET', path: '/p' }))).retryAfterMs, 3_000)
  const early = await refusal(api.call({ method: 'POST', path: '/p' }))
  assert.deepEqual([early.status, early.isPassing, calls], [429, true, 1])
  await clock.advance(3_000)
  await api.call({ method: 'GET', path: '/p' })
  assert.equal(calls, 2)
})

test('a call that changes something is over within seconds, whatever the API does', async context => {
  const arrived = Promise.withResolvers<void>()
  const { api, clock } = await serving(context, () => arrived.resolve())
  const call = refusal(api.call({ method: 'DELETE', path: '/p' }))
  await arrived.promise
  await clock.advance(4_000)
  const error = await call
  assert.deepEqual([error.status, error.message, error.isPassing], [null, 'no answer within 4 s', true])
})

test('an answer that is too large is not read', async context => {
  const { api } = await serving(context, (_, response) => {
    const chunk = 'x'.repeat(1024 * 1024)
    const write = () => {
      while (!response.destroyed && response.write(chunk));
      if (!response.destroyed) response.once('drain', write)
    }
    write()
  })
  assert.match((await refusal(api.call({ method: 'GET', path: '/p' }))).message, /larger than 64 MB/)
})

test('a connection on which nobody listens is a passing problem with a sentence', async context => {
  const { api, server } = await serving(context, () => {})
  server.close()
  server.closeAllConnections()
  const error = await refusal(api.call({ method: 'GET', path: '/p' }))
  assert.deepEqual([error.message, error.isPassing], ['nobody listens at its address', true])
})

test('a stream gives what comes until its signal', async context => {
  const { api } = await serving(context, (_, response) => {
    response.write('one\n')
  })
  const stop = new AbortController()
  const stream = await api.stream({ method: 'GET', path: '/log', signal: stop.signal })
  const read: string[] = []
  await assert.rejects(async () => {
    for await (const chunk of stream) {
      read.push(Buffer.from(chunk).toString())
      stop.abort()
    }
  })
  assert.deepEqual(read, ['one\n'])
})

test('a connection that the API closes between two calls costs nothing', async context => {
  const { api, server } = await serving(context, (_, response) => json(response, 200, {}))
  for (let round = 0; round < 20; round += 1) {
    await api.call({ method: 'POST', path: '/p', body: {} })
    server.closeIdleConnections()
  }
})

/** Documents and methods that strangers send to the API without any key. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

let server: ProbedServer
before(async () => {
  server = await startProbedServer()
  await ask('{ __typename }')
  server.forgetHolds()
})

function ask(query: string): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${server.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
}

test('a document of brackets within brackets is refused in words, and leaves no stack trace in the log', async () => {
  const documents = [
    '{a'.repeat(9_000),
    `query ($a: ${'['.repeat(19_000)}`,
    `{ a(b: ${'['.repeat(19_000)}`,
    `{ a(b: ${'{c:'.repeat(6_000)}`,
  ]
  for (const document of documents) {
    const answer = await ask(document)
    const { errors } = (await answer.json()) as { errors: { message: string }[] }
    assert.match(errors[0]!.message, /brackets within brackets/, document.slice(0, 20))
  }
  assert.deepEqual(server.events('request.failed'), [])
  assert.ok(!server.lines.some(line => line.includes('RangeError')))
})

test('what people and clients write stays allowed', async () => {
  const answer = await ask(`{ gpuTypes(input: { id: "${'{['.repeat(500)}" }) { id } }`)
  assert.ok(!(await answer.text()).includes('brackets'))
})

test('a worker route takes its own method only, and says which', async () => {
  for (const [call, method, allowed] of [
    ['job-take', 'POST', 'GET'],
    ['job-take-batch', 'DELETE', 'GET'],
    ['job-stop', 'POST', 'GET'],
    ['ping', 'PUT', 'GET'],
    ['job-done', 'GET', 'POST'],
    ['job-stream', 'PATCH', 'POST'],
  ] as const) {
    const answer = await fetch(`${server.url}/v2/ep/${call}/w`, { method })
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allowed], call)
  }
})

test('no response of the API is cached or sniffed as another type', async () => {
  const headers = { authorization: `Bearer ${server.apiKey}` }
  for (const path of [
    '/v2/serverless',
    '/v2/ep/health',
    '/v2/ep/job-take/w',
    '/ops/top',
    '/graphql',
    '/v1/x',
    '/none',
  ]) {
    const answer = await fetch(`${server.url}${path}`, { headers })
    await answer.text()
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', path)
    assert.match(answer.headers.get('cache-control') ?? '', /no-store|no-cache|max-age/, path)
  }
  server.assertNeverHeld()
})

/** Documents, methods and long texts that strangers send without any key, and what workers print. */
import assert from 'node:assert/strict'
import { before, beforeEach, test } from 'node:test'
import { ask, changeEndpoint, healthOf, makeEndpoint, runJob } from '../support/client.ts'
import { rawAsk } from '../support/raw-http.ts'
import { fixture } from '../support/server.ts'
import { until } from '../support/until.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

let server: ProbedServer
before(async () => {
  server = await startProbedServer({ args: ['--trusted-proxy', '127.0.0.1'] })
  await send('{ __typename }')
})
beforeEach(() => server.forgetHolds())

function send(query: string): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${server.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) })
}

/** The answer to a body without a key. */
async function anonymous(body: string): Promise<string> {
  return (await ask(server, '/graphql', { body, headers: { authorization: null } })).text
}

test('a document of brackets within brackets is refused in words, and leaves no stack trace in the log', async () => {
  const documents = [
    '{a'.repeat(9_000),
    `query ($a: ${'['.repeat(19_000)}`,
    `{ a(b: ${'['.repeat(19_000)}`,
    `{ a(b: ${'{c:'.repeat(6_000)}`,
  ]
  for (const document of documents) {
    const answer = await send(document)
    const { errors } = (await answer.json()) as { errors: { message: string }[] }
    assert.match(errors[0]!.message, /brackets within brackets/, document.slice(0, 20))
  }
  assert.deepEqual(server.events('request.failed'), [])
  assert.ok(!server.lines.some(line => line.includes('RangeError')))
})

test('a document that would take long to validate is refused before', async () => {
  const times = (count: number, word: string) => word.repeat(count)
  const documents = [
    `{ ${times(9_000, '__typename ')} }`,
    `{ ${times(1_500, 'gpuTypes(input: { id: "x" }) { id } ')} }`,
    `{ ...f0 } ${Array.from({ length: 2_200 }, (_, n) => `fragment f${n} on Query { ...f${n + 1} }`).join(' ')}`,
    `{ ${Array.from({ length: 49 }, (_, n) => `a${n}: __schema { types { name fields { name } } }`).join(' ')} }`,
    `{ ${times(100, `x${'\n'.repeat(500)} `)} }`,
    `{ ${Array.from({ length: 8_000 }, (_, n) => `gpuTypeX${n}`).join(' ')} }`,
  ]
  for (const document of documents) {
    const answer = await send(document)
    assert.equal(answer.status, 200)
    assert.ok((await answer.text()).length < 50_000)
  }
  server.assertNeverHeld()
})

test('many requests at once that each take a while are read in turns', async () => {
  const body = JSON.stringify({ query: `{ gpuTypes(input: { ${'id: "x" '.repeat(4_900)} }) { id } }` })
  for (let round = 0; round < 3; round += 1) await anonymous(body)
  server.forgetHolds()
  await Promise.all(Array.from({ length: 60 }, () => anonymous(body)))
  server.assertNeverHeld()
})

test('what people and clients write stays allowed', async () => {
  const answer = await send(`{ gpuTypes(input: { id: "${'{['.repeat(500)}" }) { id } }`)
  assert.ok(!(await answer.text()).includes('brackets'))
})

test('a worker route takes its own method only, and says which', async () => {
  for (const [call, method, allowed] of [
    ['job-take', 'POST', 'GET'],
    ['job-take-batch', 'DELETE', 'GET'],
    ['job-stop', 'POST', 'GET'],
    ['ping', 'PUT', 'GET'],
    ['job-done', 'GET', 'POST'],
    ['job-done-batch', 'GET', 'POST'],
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

test('a document of megabytes is refused without a look at its words', async () => {
  const { json } = await ask(server, '/graphql', { body: { query: '#\n'.repeat(8_000_000) } })
  assert.match(json.errors[0].message, /send long values as variables/)
  server.assertNeverHeld()
})

test('a long run of one word in a request of GraphQL holds nobody up', async () => {
  const texts = [`value:x${'"'.repeat(40_000)}y`, 'value:'.repeat(20_000), 'value:"""'.repeat(10_000)]
  for (const text of texts) {
    assert.match(await anonymous(text), /Unparsable JSON body/)
    assert.match(await anonymous(JSON.stringify({ query: `{ myself(${text}` })), /Syntax Error/)
  }
  server.assertNeverHeld()
})

const RUNS = ['/', ' ', '"', ',', ';', '=', ':', '-', '%', 'a,', 'a=', ', ', 'W/"a", ', '127.0.0.1,', '/a']
const FIELDS = [
  ...['X-Forwarded-Prefix', 'X-Forwarded-For', 'X-Forwarded-Host', 'Forwarded', 'Authorization', 'Cookie', 'Origin'],
  ...['Accept', 'Accept-Encoding', 'Content-Type', 'If-None-Match', 'Range', 'traceparent', 'Idempotency-Key'],
]

for (const field of FIELDS) {
  test(`a long run of one word in the field ${field} holds nobody up`, async () => {
    for (const run of RUNS) {
      const value = `${field === 'X-Forwarded-Prefix' ? '/' : ''}${run.repeat(15_000 / run.length)}x`
      const paths = ['/graphql?query={__typename}', '/v2/serverless', '/v2/x/run', '/console/', '/healthz']
      await Promise.all(paths.map(path => rawAsk(server.port, `GET ${path}`, { headers: { [field]: value } })))
    }
    server.assertNeverHeld()
  })
}

test('long runs of one word that a worker prints hold nobody up', async () => {
  const endpoint = await makeEndpoint(server, {
    folder: fixture('node-printing'),
    settings: { workersMin: 1, workersMax: 1 },
  })
  await runJob(server, endpoint, { from: 0, count: 1, wide: 0 })
  server.forgetHolds()
  for (const fill of ['\r', '\u001b[31m', '\u001b[', ' ', '"', 'File "a/', '{"a":']) {
    const wide = Math.floor(60_000 / fill.length)
    const job = await runJob(server, endpoint, { from: 0, count: 5, wide, fill, end: 'x' })
    assert.equal(job.status, 'COMPLETED')
  }
  const { text } = await ask(server, `/v2/serverless/${endpoint}/logs?follow=false&tail=50`)
  assert.match(text, /File/)
  await changeEndpoint(server, endpoint, { workersMin: 0, workersMax: 0 })
  await until('the worker to end', async () => {
    const { workers } = await healthOf(server, endpoint)
    return Object.values(workers).every(count => count === 0)
  })
  server.assertNeverHeld()
})

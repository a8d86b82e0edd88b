/**
 * Each line of the job operations in docs/reference/jobs.md, request by request, as it stands on the wire: status
 * line, headers, members and types of the body, and nothing beside them.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask } from '../support/client.ts'
import { type RawAnswer, rawAsk } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { timed, until } from '../support/until.ts'
import { CANCEL, HEALTH, PURGE, RETRY, WEBHOOKS } from './transcript/changing.ts'
import { mismatch } from './transcript/pattern.ts'
import { STATUS, STATUS_SYNC } from './transcript/reading.ts'
import type { Row } from './transcript/row.ts'
import { Stage } from './transcript/situations.ts'
import { STREAM } from './transcript/streaming.ts'
import { RUN, RUNSYNC } from './transcript/submitting.ts'

const OPERATIONS: readonly (readonly [name: string, rows: readonly Row[]])[] = [
  ['run', RUN],
  ['runsync', RUNSYNC],
  ['status', STATUS],
  ['status-sync', STATUS_SYNC],
  ['stream', STREAM],
  ['cancel', CANCEL],
  ['retry', RETRY],
  ['purge-queue', PURGE],
  ['webhooks', WEBHOOKS],
  ['health and what is no operation', HEALTH],
]

let stage: Stage

before(async () => {
  stage = new Stage(await startServer())
  await stage.build()
})

for (const [name, rows] of OPERATIONS) {
  describe(name, () => {
    for (const row of rows) test(`${row.says}: ${row.ask} -> ${row.answers}`, () => hold(row))
  })
}

describe('what takes more than one request', () => {
  const run = (headers: Record<string, string> = {}) =>
    rawAsk(stage.server.port, `POST /v2/${stage.queue}/run`, {
      headers: { Authorization: stage.server.apiKey, ...headers },
      body: '{"input": {}}',
    })

  test('the same Idempotency-Key is answered with the first job, and 409 once that has expired', async () => {
    const headers = { 'Idempotency-Key': 'order 7' }
    const [first, second] = [await run(headers), await run(headers)]
    assert.equal(first.body, second.body)
    const { id } = JSON.parse(first.body) as { id: string }
    await ask(stage.server, `/v2/${stage.queue}/status/${id}?ttl=1000`)
    await until('the job to expire', async () => (await run(headers)).statusLine === 'HTTP/1.1 409 Conflict', 4_000)
    const error = `the job ${id} of this Idempotency-Key has expired; use another key for a new job`
    assert.deepEqual(JSON.parse((await run(headers)).body), { error })
    await stage.clear()
  })

  test('a retried job has its input, and neither its output nor its error, and its chunks begin afresh', async () => {
    const id = await stage.job('chunk, failed')
    const get = (path: string) =>
      rawAsk(stage.server.port, `GET /v2/${stage.queue}/${path}`, { headers: { Authorization: stage.server.apiKey } })
    await ask(stage.server, `/v2/${stage.queue}/retry/${id}`, { method: 'POST' })
    const view = `{"delayTime": <int>, "id": "${id}", "status": "IN_QUEUE"}`
    assert.equal(mismatch(view, (await get(`status/${id}`)).body), null)
    const empty = `{"id": "${id}", "status": "IN_QUEUE", "stream": []}`
    assert.equal(mismatch(empty, (await get(`stream/${id}?wait=0`)).body), null)
    await stage.clear()
  })

  test('a server that stops takes no new job: 503, with when to try again', async () => {
    await stage.job('running')
    stage.server.signal('SIGTERM')
    const refused = async () => {
      const answer = await run()
      return answer.statusLine.includes(' 503 ') && answer
    }
    const { statusLine, headers, body } = await until('the server to refuse', refused, 5_000, 10)
    assert.equal(statusLine, 'HTTP/1.1 503 Service Unavailable')
    assert.deepEqual(Object.fromEntries(headers)['retry-after'], '5')
    assert.deepEqual(JSON.parse(body), { error: 'the server is stopping' })
  })
})

async function hold(row: Row): Promise<void> {
  const { server } = stage
  const job = row.job === undefined ? '' : await stage.job(row.job)
  const at = row.at === 'balancer' ? stage.balancer : row.at === 'nowhere' ? 'nosuch' : stage.queue
  const words = { '{job}': job, '{endpoint}': at, '{key}': server.apiKey }
  const filled = (text: string) =>
    Object.entries(words).reduce((all, [word, value]) => all.replaceAll(word, value), text)
  const [method = '', path = ''] = filled(row.ask).split(' ')
  const given = Object.entries(row.headers ?? {}).map(([header, value]) => [header, filled(value)])
  const key: Record<string, string> = row.anonymous === true ? {} : { Authorization: `Bearer ${server.apiKey}` }
  const headers = { ...key, ...Object.fromEntries(given) }
  const body = row.send === undefined ? {} : { body: row.send }
  const asked = timed(() => rawAsk(server.port, `${method} /v2/${at}${path}`, { headers, ...body }))
  if (row.meanwhile !== undefined) await stage.meanwhile(row.meanwhile, job)
  const { value, ms } = await asked
  await stage.clear()
  assert.equal(value.statusLine, `HTTP/1.1 ${row.answers}`, value.body)
  assertHeaders(value, row)
  if (typeof row.body === 'string') assert.equal(mismatch(filled(row.body), value.body), null)
  else assert.match(value.body, new RegExp(filled(row.body.source.replaceAll('\\{job\\}', '{job}'))))
  const [min, max] = row.held ?? [0, 5_000]
  assert.ok(ms >= min && ms <= max, `it took ${ms} ms`)
}

/** Exactly those headers that are promised, each once. */
function assertHeaders({ headers }: RawAnswer, row: Row): void {
  const always = ['x-content-type-options', 'x-request-id']
  const own = new Set(['date', 'connection', 'content-length', 'transfer-encoding', ...always])
  const promised = headers.filter(([name]) => !own.has(name)).map(([name, value]) => `${name}: ${value}`)
  const wanted = Object.entries({ 'content-type': 'application/json', 'cache-control': 'no-store', ...row.with })
  assert.deepEqual(promised.sort(), wanted.map(([name, value]) => `${name}: ${value}`).sort())
  for (const name of always) assert.equal(headers.filter(header => header[0] === name).length, 1, name)
  const framing = headers.filter(([name]) => name === 'content-length' || name === 'transfer-encoding')
  assert.equal(framing.length, 1, 'the answer must be framed in one way')
}

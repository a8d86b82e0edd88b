/**
 * Batches over real sockets: their whole life with the official Python worker, and a server
 * that is killed in the middle.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noPostgres, testSchema } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob } from '../support/client.ts'
import { python, skip } from '../support/python.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Starting the SDK takes seconds of computing. */
const START_MS = 60_000

interface Listed {
  readonly id: string
  readonly status: string
  // biome-ignore lint/suspicious/noExplicitAny: it is whatever the worker returned
  readonly output?: any
  readonly error?: string
  readonly startedAt: number | null
  readonly completedAt: number | null
}

const inputs = (count: number, input: object = {}) =>
  Array.from({ length: count }, (_, n) => ({ input: { n, ...input } }))

async function call(server: Server, path: string, request: Parameters<typeof ask>[2] = {}) {
  const { status, json, text } = await ask(server, path, request)
  assert.equal(status, 200, text)
  return json
}

async function allRequests(server: Server, batch: string): Promise<Listed[]> {
  const all: Listed[] = []
  for (;;) {
    const page = await call(server, `${batch}/requests?offset=${all.length}&limit=1000`)
    all.push(...page.requests)
    if (!page.hasMore) return all
  }
}

function whenDone(server: Server, batch: string, forMs = START_MS) {
  return until(
    `${batch} to be done`,
    async () => {
      const seen = await call(server, batch)
      return seen.requestCompleted + seen.requestFailed === seen.requestTotal && seen
    },
    forMs,
  )
}

describe('batches with the official Python worker', { skip }, () => {
  test('a batch is drafted, filled, finalized, processed, read and listed; other jobs run in between', async () => {
    const server = await startServer()
    const endpoint = await makeEndpoint(server, {
      folder: fixture('python-worker'),
      args: `"${python}" handler.py`,
      env: { WIRE_FOLDER: temporaryFolder() },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    const base = `/v2/${endpoint}/batch`
    const { id, status } = await call(server, base, { body: [] })
    assert.equal(status, 'DRAFT')
    const batch = `${base}/${id}`
    const requests = [...inputs(30, { sleep: 0.1 }), { input: { raise: 'no' } }, { input: { never: true } }]
    const added = await call(server, `${batch}/requests`, { body: { requests } })
    assert.deepEqual(added, { id, status: 'DRAFT', requestTotal: 32 })
    await call(server, batch, { method: 'PUT', body: { name: 'night run' } })
    const draft = await allRequests(server, batch)
    await call(server, `${batch}/requests/${draft.at(-1)!.id}`, { method: 'DELETE' })
    const refused = await ask(server, `${batch}/requests`, { body: { requests: [{ input: 1 }] } })
    assert.equal(refused.status, 400)
    const finalized = await call(server, `${batch}/finalize`, { method: 'POST' })
    assert.deepEqual(finalized, { id, status: 'FINALIZED', requestTotal: 31 })
    await until('the first result', async () => (await call(server, batch)).requestCompleted > 0, START_MS)
    const single = await runJob(server, endpoint, { single: true })
    const done = await whenDone(server, batch)
    const completed = server.events('job.moved').filter(({ to }) => to === 'COMPLETED')
    const position = completed.findIndex(({ jobId }) => jobId === single.id)
    assert.ok(position >= 0 && position < 30, 'the job did not wait for the batch')
    assert.deepEqual([done.name, done.status, done.requestTotal], ['night run', 'FINALIZED', 31])
    assert.deepEqual([done.requestInProgress, done.requestCompleted, done.requestFailed], [0, 30, 1])
    const results = await allRequests(server, batch)
    assert.deepEqual(
      results.map(result => result.id),
      draft.slice(0, -1).map(request => request.id),
    )
    assert.deepEqual(
      results.slice(0, 30).map(({ output }) => output.input.n),
      Array.from({ length: 30 }, (_, n) => n),
    )
    assert.match(results[30]!.error!, /no/)
    assert.ok(results.every(({ startedAt, completedAt }) => startedAt! <= completedAt! && startedAt! > done.createdAt))
    assert.deepEqual(
      (await call(server, base)).batches.map((listed: Listed) => listed.id),
      [id],
    )
    assert.equal((await ask(server, `${batch}/cancel`, { method: 'POST' })).status, 409)
    await server.stop()
  })

  test('cancelling a batch lets the running request finish and drops the others', async () => {
    const server = await startServer()
    const endpoint = await makeEndpoint(server, {
      folder: fixture('python-worker'),
      args: `"${python}" handler.py`,
      env: { WIRE_FOLDER: temporaryFolder() },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    const base = `/v2/${endpoint}/batch`
    const { id } = await call(server, base, { body: inputs(20, { sleep: 2 }) })
    await call(server, `${base}/${id}/finalize`, { method: 'POST' })
    await until('one to run', async () => (await call(server, `${base}/${id}`)).requestInProgress > 0, START_MS)
    const cancelled = await call(server, `${base}/${id}/cancel`, { method: 'POST' })
    assert.equal(cancelled.status, 'CANCELLED')
    const done = await whenDone(server, `${base}/${id}`)
    assert.ok(done.requestCompleted >= 1 && done.requestCompleted <= 2, `${done.requestCompleted}`)
    const results = await allRequests(server, `${base}/${id}`)
    assert.equal(results.filter(({ status }) => status === 'CANCELLED').length, done.requestFailed)
    await server.stop()
  })
})

/**
 * Kills the server while it finalizes a batch of 5000; afterwards each request exists once, and all are run.
 */
async function killedWhileFinalizing(env: Readonly<Record<string, string>>): Promise<void> {
  const dataDir = temporaryFolder()
  const first = await startServer({ dataDir, env })
  const endpoint = await makeEndpoint(first, { folder: `${root}/examples/hello-node`, settings: { workersMax: 0 } })
  const base = `/v2/${endpoint}/batch`
  const { id } = await call(first, base, { body: inputs(5_000) })
  const before = await allRequests(first, `${base}/${id}`)
  const answer = ask(first, `${base}/${id}/finalize`, { method: 'POST' }).catch(() => null)
  await until('it to begin', async () => (await call(first, `${base}/${id}`)).status === 'FINALIZED', 10_000, 1)
  await first.kill9()
  await answer
  const second = await startServer({ dataDir, env })
  await until(
    'all to be jobs',
    async () => (await ask(second, `/v2/${endpoint}/health`)).json.jobs.inQueue === 5_000,
    20_000,
  )
  const after = await allRequests(second, `${base}/${id}`)
  assert.deepEqual(
    after.map(request => [request.id, request.status]),
    before.map(request => [request.id, 'IN_QUEUE']),
  )
  await call(second, `${base}/${id}/cancel`, { method: 'POST' })
  // The sweep may hold a part of the jobs while the call drops the others.
  const done = await whenDone(second, `${base}/${id}`)
  assert.deepEqual([done.status, done.requestFailed], ['CANCELLED', 5_000])
  await second.stop()
}

test('a server that is killed while it finalizes a batch finalizes it after its restart', () =>
  killedWhileFinalizing({}))

test('on PostgreSQL, too', { skip: noPostgres }, async () => {
  const schema = await testSchema()
  try {
    await killedWhileFinalizing({ RUNYARD_DATABASE: schema.url })
  } finally {
    await schema.drop()
  }
})

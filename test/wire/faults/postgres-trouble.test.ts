/**
 * A PostgreSQL that is slow, full, stalled, stopped or gone, each for a while: the server answers
 * in time and goes on after.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, submit, whenFinal, whenStatus } from '../support/client.ts'
import { noPostgresPrograms, type Postgres, startPostgres } from '../support/postgres.ts'
import { skip as noPython, python } from '../support/python.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { fixture, root, type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

async function startBoth(settings: readonly string[] = []): Promise<{ postgres: Postgres; server: Server }> {
  const postgres = await startPostgres(settings)
  const server = await startServer({ env: { RUNYARD_DATABASE: postgres.url } })
  return { postgres, server }
}

/** Clients that submit without a pause, and what they were answered. */
class Load {
  readonly acknowledged: string[] = []
  readonly statuses = new Map<number, number>()
  longestMs = 0
  #over = false
  readonly #clients: Promise<void>[]

  constructor(server: Server, endpoint: string, clients: number) {
    const client = async () => {
      while (!this.#over) {
        const { value, ms } = await timed(() => ask(server, `/v2/${endpoint}/run`, { body: { input: {} } }))
        this.longestMs = Math.max(this.longestMs, ms)
        this.statuses.set(value.status, (this.statuses.get(value.status) ?? 0) + 1)
        if (value.status === 200) this.acknowledged.push(value.json.id)
        await sleep(value.status === 200 ? 5 : 50)
      }
    }
    this.#clients = Array.from({ length: clients }, client)
  }

  async end(): Promise<void> {
    this.#over = true
    await Promise.all(this.#clients)
  }
}

async function allCompleted(server: Server, endpoint: string, jobs: readonly string[]): Promise<void> {
  for (const id of jobs) assert.equal((await whenFinal(server, endpoint, id, 90_000)).status, 'COMPLETED', id)
}

const workers = { workersMin: 2, workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }

describe('a PostgreSQL in trouble', { skip: noPostgresPrograms, concurrency: 2 }, () => {
  test('a restart in order: 503 while it is away, nothing acknowledged is lost, and no restart of the server', async () => {
    const { postgres, server } = await startBoth()
    const endpoint = await makeEndpoint(server, { folder, settings: workers })
    const load = new Load(server, endpoint, 4)
    await until('some jobs', () => load.acknowledged.length >= 50)
    await postgres.stopFast()
    await until('refusals', () => (load.statuses.get(503) ?? 0) > 10)
    const before = load.acknowledged.length
    await postgres.start()
    await until('more jobs', () => load.acknowledged.length >= before + 50)
    await load.end()
    await allCompleted(server, endpoint, load.acknowledged)
    assert.deepEqual([...load.statuses.keys()].sort(), [200, 503])
  })

  test('a stall of some seconds: every call is answered in time, and everything recovers by itself', async () => {
    const { postgres, server } = await startBoth()
    const endpoint = await makeEndpoint(server, { folder, settings: workers })
    const load = new Load(server, endpoint, 30)
    await until('some jobs', () => load.acknowledged.length >= 50)
    postgres.stall()
    await sleep(8_000)
    const { value, ms } = await timed(() => ask(server, '/healthz'))
    postgres.resume()
    assert.equal(value.status, 200)
    assert.ok(ms < patient(4_000), 'what needs no database is answered at once')
    const before = load.acknowledged.length
    await until('more jobs', () => load.acknowledged.length >= before + 50)
    await load.end()
    // Writes that wait share connections, so a call is refused only when the others leave none.
    for (const status of load.statuses.keys()) assert.ok(status === 200 || status === 503, `${status}`)
    assert.ok(load.longestMs < patient(20_000), `${Math.round(load.longestMs)} ms`)
    await allCompleted(server, endpoint, load.acknowledged)
  })

  test('a table that another client locks: calls are refused in time, and served when it is free', async () => {
    const { postgres, server } = await startBoth()
    const endpoint = await makeEndpoint(server, { folder, settings: workers })
    assert.equal((await runJob(server, endpoint, {})).status, 'COMPLETED')
    const other = await postgres.client()
    await other.query('BEGIN')
    await other.query('LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE')
    const { value, ms } = await timed(() =>
      Promise.all(Array.from({ length: 30 }, () => ask(server, `/v2/${endpoint}/run`, { body: { input: {} } }))),
    )
    assert.deepEqual([...new Set(value.map(({ status }) => status))], [503])
    assert.ok(ms < patient(25_000), `${Math.round(ms)} ms`)
    assert.match(value[0]!.json.error, /PostgreSQL/)
    await other.query('COMMIT')
    assert.equal((await runJob(server, endpoint, {})).status, 'COMPLETED')
  })

  test('fewer connections than the server would like: calls wait for the ones there are instead of failing', async () => {
    const { postgres, server } = await startBoth(['max_connections=12', 'superuser_reserved_connections=0'])
    const endpoint = await makeEndpoint(server, { folder, settings: { workersMax: 0 } })
    const others = []
    for (let n = 0; n < 20; n += 1) {
      const other = await postgres.client().catch(() => null)
      if (other === null) break
      others.push(other)
    }
    // The server may have all of them already.
    assert.ok(others.length < 20, 'the database gives no further connection')
    // More at once than it would like to have connections, and few enough that none waits for
    // seconds on a busy machine.
    const client = async () => {
      for (let n = 0; n < 5; n += 1) {
        const { status, text } = await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
        assert.equal(status, 200, text)
      }
    }
    await Promise.all(Array.from({ length: 40 }, client))
    for (const other of others) await other.end()
    assert.equal((await ask(server, `/v2/${endpoint}/purge-queue`, { method: 'POST' })).json.removed, 200)
  })

  test('results, chunks and streams while it is away: 503 to the worker, and both come through when sent again', async () => {
    const { postgres, server } = await startBoth()
    const endpoint = await silentEndpoint(server, 1)
    const worker = await endpoint.worker()
    const id = await submit(server, endpoint.id, {})
    const job = await worker.take()
    assert.equal((await worker.chunk(job.id, { output: 'one' })).status, 200)
    const answer = await fetch(`${server.url}/v2/${endpoint.id}/stream/${id}`, {
      headers: { authorization: `Bearer ${server.apiKey}`, accept: 'text/event-stream' },
    })
    // It may be cut off when the database is gone.
    const events = answer.text().catch((error: Error) => error.message)
    await postgres.kill9()
    assert.equal((await worker.chunk(job.id, { output: 'two' })).status, 503)
    assert.equal((await worker.done(job.id, { output: 'all' })).status, 503)
    const polled = await worker.takeAnswer(true)
    assert.deepEqual([polled.status, polled.headers.get('retry-after')], [429, '5'], 'nothing but 429 slows it down')
    await postgres.start()
    await until('the chunk to be taken', async () => (await worker.chunk(job.id, { output: 'two' })).status === 200)
    assert.equal((await worker.done(job.id, { output: 'all' })).status, 200)
    const done = await statusOf(server, endpoint.id, id)
    assert.deepEqual([done.status, done.output], ['COMPLETED', 'all'])
    const text = await events
    const rest = await ask(server, `/v2/${endpoint.id}/stream/${id}`)
    const told = `${text} ${JSON.stringify(rest.json.stream)}`
    assert.ok(told.includes('two'), told)
  })

  test('a Python worker whose result finds no database for too long runs the job again', {
    skip: noPython,
  }, async () => {
    const { postgres, server } = await startBoth()
    const endpoint = await makeEndpoint(server, {
      folder: fixture('python-worker'),
      args: `"${python}" handler.py`,
      env: { WIRE_FOLDER: temporaryFolder() },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    assert.equal((await runJob(server, endpoint, {}, 60_000)).status, 'COMPLETED')
    const id = await submit(server, endpoint, { sleep: 2 })
    await whenStatus(server, endpoint, id, ['IN_PROGRESS'])
    await postgres.kill9()
    await sleep(10_000)
    await postgres.start()
    const done = await whenFinal(server, endpoint, id, 90_000)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
  })
})

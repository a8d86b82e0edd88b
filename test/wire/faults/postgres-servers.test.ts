/** Several servers on one PostgreSQL: one of them acts, and knows when it may not. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { after, describe, test } from 'node:test'
import { Client } from 'pg'
import { noPostgres, type TestSchema, testDatabase } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, statusOf, submit } from '../support/client.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const masterKey = randomBytes(32).toString('base64')
const LEASE_SESSION = `datname = current_database() AND application_name = 'runyard lease'`

/** What servers of one database share. */
function sharedBy(database: TestSchema): Record<string, string> {
  return { RUNYARD_DATABASE: database.url, RUNYARD_MASTER_KEY: masterKey }
}

async function startBoth(): Promise<{ database: TestSchema; server: Server }> {
  const database = await testDatabase()
  const server = await startServer({ env: sharedBy(database) })
  after(async () => {
    await server.kill9()
    await database.drop()
  })
  return { database, server }
}

function cutLease(database: TestSchema) {
  return database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LEASE_SESSION}`)
}

const isDone = (server: Server, endpoint: string, id: string) =>
  until('the job to be done', async () => (await statusOf(server, endpoint, id)).status === 'COMPLETED')

describe('servers on one PostgreSQL', { skip: noPostgres, concurrency: 2 }, () => {
  test('a second one is refused with the name of the first, whose workers, jobs and key stay', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    const worker = await endpoint.worker()
    const id = await submit(server, endpoint.id, {})
    const job = await worker.take()
    const args = ['serve', '--port', '0', '--data-dir', temporaryFolder(), '--json']
    const otherKey = await runCommand(args, { RUNYARD_DATABASE: database.url })
    assert.equal(otherKey.code, 69)
    assert.match(otherKey.stderr, /sealed with another encryption key than this server has; nothing was changed/)
    const second = await runCommand(args, sharedBy(database))
    assert.equal(second.code, 69, second.stderr)
    const holder = `is in use by the server with pid ${server.pid} on ${hostname()} at ${server.url}`
    assert.match(second.stderr, new RegExp(holder))
    assert.match(second.stderr, /stop it or give another --database/)
    const before = await statusOf(server, endpoint.id, id)
    assert.deepEqual([before.status, before.workerId], ['IN_PROGRESS', worker.id])
    assert.equal((await worker.done(job.id, { output: 'unharmed' })).status, 200)
    const done = await statusOf(server, endpoint.id, id)
    assert.deepEqual([done.status, done.output, done.retries], ['COMPLETED', 'unharmed', undefined])
  })

  test('one that is started right after a kill -9 of the one before comes up', async () => {
    const { database, server } = await startBoth()
    await server.kill9()
    const next = await startServer({ dataDir: server.dataDir, env: sharedBy(database) })
    assert.equal(next.apiKey, server.apiKey)
    assert.deepEqual(await next.stop(), { code: 0, signal: null })
  })

  test('without a lease that is confirmed it starts nothing, and continues once it is', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    const worker = await endpoint.worker()
    const holding = new Client({ connectionString: database.url })
    await holding.connect()
    await holding.query('BEGIN')
    await holding.query('SELECT 1 FROM server_lease FOR UPDATE')
    await until('it to notice', () => server.events('leader.changed').some(({ now }) => now === 'unsure'))
    assert.equal((await ask(server, '/readyz')).status, 503)
    const id = await submit(server, endpoint.id, {})
    await holding.end()
    await until('it to lead again', () => server.events('leader.changed').at(-1)?.now === 'active')
    const job = await worker.take()
    assert.equal(job.id, id)
    assert.equal((await worker.done(job.id, { output: 1 })).status, 200)
    await isDone(server, endpoint.id, id)
    assert.equal((await ask(server, '/readyz')).status, 200)
  })

  test('a connection that is only cut is made again, and no call fails', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server, 0)
    await cutLease(database)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(server, `/v2/${endpoint.id}/run`, { body: { input: {} } })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal((await ask(server, '/readyz')).status, 200)
    assert.deepEqual(server.events('leader.changed'), [])
  })

  // The new one may do with them as it likes.
  test('a deposed server ends with a message, and touches neither workers nor jobs', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    await endpoint.worker()
    server.signal('SIGSTOP')
    const rival = await startServer({ env: sharedBy(database) })
    server.signal('SIGCONT')
    assert.deepEqual(await server.ended, { code: 69, signal: null })
    assert.match(server.lines.join('\n'), new RegExp(`pid ${rival.pid} on .* has taken over the database`))
    const later = server.lines.slice(server.lines.findIndex(line => line.includes('"now":"unsure"')))
    assert.ok(!/"msg":"(worker|job)\./.test(later.join('\n')), later.join('\n'))
    assert.equal((await ask(rival, '/v2/none/health')).status, 404)
    await rival.kill9()
  })
})

/** The server on a real PostgreSQL, also while that is killed and comes back. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Client } from 'pg'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, whenFinal } from '../support/client.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { workerProcesses } from '../support/processes.ts'
import { root, runCommand, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`
const AFTER_KILL = 60

describe('the server on PostgreSQL', { skip: noPostgresPrograms }, () => {
  test('jobs run, and are there after a restart with nothing in the data directory but keys', async () => {
    const { url } = await startPostgres()
    const env = { RUNYARD_DATABASE: url }
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir, env })
    const endpoint = await makeEndpoint(first, { folder, settings: { workersMax: 2 } })
    const done = await runJob(first, endpoint, { name: 'Ada' })
    assert.deepEqual([done.status, done.output.message], ['COMPLETED', 'Hello, Ada!'])
    assert.deepEqual(await first.stop(), { code: 0, signal: null })
    const second = await startServer({ dataDir, env })
    assert.deepEqual(await statusOf(second, endpoint, done.id), done)
    assert.equal((await runJob(second, endpoint, {})).status, 'COMPLETED')
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
  })

  test('kill -9 of PostgreSQL under load: 503 while it is away, then on as before, and nothing acknowledged is lost', async () => {
    const postgres = await startPostgres()
    const server = await startServer({ env: { RUNYARD_DATABASE: postgres.url } })
    const endpoint = await makeEndpoint(server, {
      folder,
      settings: { workersMin: 3, workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 },
    })
    const acknowledged: string[] = []
    const refusals = new Map<number, number>()
    let submitted = 0
    let over = false
    const client = async () => {
      while (!over) {
        submitted += 1
        const answer = await ask(server, `/v2/${endpoint}/run`, { body: { input: { sleepMs: submitted % 31 } } })
        if (answer.status === 200) acknowledged.push(answer.json.id)
        else refusals.set(answer.status, (refusals.get(answer.status) ?? 0) + 1)
        await sleep(answer.status === 200 ? 5 : 50)
      }
    }
    const clients = Array.from({ length: 4 }, client)
    await until('some jobs', () => acknowledged.length >= 100)
    await until('some results', () => server.events('job.moved').filter(({ to }) => to === 'COMPLETED').length > 20)
    const known = acknowledged[0]!
    await postgres.kill9()
    const before = acknowledged.length
    await until('refusals', () => (refusals.get(503) ?? 0) > 20)
    assert.equal((await ask(server, `/v2/${endpoint}/status/${known}`)).status, 503)
    assert.ok(acknowledged.length <= before + clients.length)
    await postgres.start()
    await until('more jobs', () => acknowledged.length >= before + AFTER_KILL)
    over = true
    await Promise.all(clients)
    for (const id of acknowledged) {
      const done = await whenFinal(server, endpoint, id, 60_000)
      assert.equal(done.status, 'COMPLETED', JSON.stringify(done))
    }
    assert.deepEqual([...refusals.keys()], [503])
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    assert.deepEqual(workerProcesses(server.dataDir), [])
  })

  test('a data directory goes on with its own database alone, at whatever address, and with another one where that is wanted', async () => {
    const { url, client } = await startPostgres()
    const sql = await client()
    await sql.query('CREATE SCHEMA other')
    await sql.query('CREATE DATABASE empty')
    const at = (change: (address: URL) => void) => {
      const address = new URL(url)
      change(address)
      return { RUNYARD_DATABASE: address.href.replaceAll('+', '%20') }
    }
    const own = at(() => {})
    const dataDir = temporaryFolder()
    const endpoint = await (async () => {
      const server = await startServer({ dataDir, env: own })
      const made = await makeEndpoint(server, { folder })
      await server.stop()
      return made
    })()
    const serve = ['serve', '--port', '0', '--data-dir', dataDir]
    const empty = at(address => (address.pathname = '/empty'))
    const schema = at(address => address.searchParams.set('options', '-c search_path=other'))
    const other = await startServer({ env: schema })
    await other.stop()
    for (const [env, what] of [
      [empty, /\/empty is empty; /],
      [schema, /\/postgres, schema other is another database; /],
    ] as const) {
      const refused = await runCommand(serve, env)
      assert.match(refused.stderr, what)
      assert.match(refused.stderr, /belongs to PostgreSQL at 127\.0\.0\.1:\d+\/postgres, .*; nothing was changed$/)
      assert.equal(refused.code, 69)
      const checked = await runCommand(['check', '--data-dir', dataDir], env)
      assert.deepEqual([checked.code, checked.stderr], [69, refused.stderr])
    }
    const tables = new Client({ connectionString: empty.RUNYARD_DATABASE })
    await tables.connect()
    const made = await tables.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
    await tables.end()
    assert.equal(made.rowCount, 0, 'the refusal has written nothing')

    const moved = at(address => (address.hostname = 'localhost'))
    const again = await startServer({ dataDir, env: moved })
    assert.equal((await ask(again, `/v2/serverless/${endpoint}`)).status, 200)
    assert.deepEqual(
      again.lines.filter(line => !line.startsWith('{')),
      [],
      'no library warns on the terminal',
    )
    await again.stop()
    const fresh = await startServer({ dataDir, env: empty, args: ['--new-database'] })
    assert.equal((await ask(fresh, `/v2/serverless/${endpoint}`)).status, 404)
    await fresh.stop()
    assert.equal((await runCommand(serve, own)).code, 69)
  })
})

test('a server without its PostgreSQL does not start, and says why without the password', async () => {
  const env = { RUNYARD_DATABASE: 'postgres://runyard:hidden@127.0.0.1:1/runyard' }
  const { code, stderr } = await runCommand(['serve', '--port', '0', '--data-dir', temporaryFolder()], env)
  assert.equal(code, 69)
  assert.equal(
    stderr,
    'runyard: PostgreSQL at 127.0.0.1:1/runyard: nothing listens at 127.0.0.1:1 (ECONNREFUSED); start PostgreSQL there, or correct the host and the port in RUNYARD_DATABASE',
  )
})

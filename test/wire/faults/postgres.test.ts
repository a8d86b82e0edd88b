/** The server on a real PostgreSQL, also while that is killed and comes back. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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
})

test('a server without its PostgreSQL does not start, and says why without the password', async () => {
  const env = { RUNYARD_DATABASE: 'postgres://runyard:hidden@127.0.0.1:1/runyard' }
  const { code, stderr } = await runCommand(['serve', '--port', '0', '--data-dir', temporaryFolder()], env)
  assert.equal(code, 69)
  assert.match(stderr, /PostgreSQL does not answer \(postgres:\/\/127\.0\.0\.1:1\/runyard\)$/)
  assert.doesNotMatch(stderr, /hidden/)
})

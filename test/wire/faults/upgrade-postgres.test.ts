/**
 * Servers of two releases on one PostgreSQL: the schema changes on a command, and no server writes into a
 * schema of another release.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { migrations } from '../../../src/store/schema/schema-state.ts'
import { noPostgres, type TestSchema, testDatabase } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, statusOf, submit } from '../support/client.ts'
import { noPostgresPrograms } from '../support/postgres.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { nextRelease, runCommand, startCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const from = migrations.at(-1)!.version
const to = from + 1
const step = (...statements: string[]) => ({ version: to, name: 'more', statements })
const MORE = 'CREATE TABLE more (id TEXT, owner TEXT)'
const later = nextRelease('9.9.9', [step(MORE)])
const endless = nextRelease('9.9.9', [step(MORE, 'SELECT pg_sleep(600)')])
const permitted = { RUNYARD_MIGRATE_TO: String(to) }
const password = 'hidden in the address'

async function begin() {
  const database = await testDatabase()
  after(() => database.drop())
  const url = new URL(database.url)
  url.password = password
  const shared = { RUNYARD_DATABASE: url.href, RUNYARD_MASTER_KEY: randomBytes(32).toString('base64') }
  const server = await startServer({ env: shared })
  const { dataDir } = server
  const serve = (env: Record<string, string>) =>
    runCommand(['serve', '--port', '0', '--data-dir', dataDir, '--json'], { ...shared, ...env })
  return { database, shared, server, dataDir, serve }
}

async function schemaOf(database: TestSchema): Promise<readonly [schema: number, more: boolean]> {
  const [row] = await database.query(
    `SELECT max(version)::int AS schema, to_regclass('more') IS NOT NULL AS more FROM migrations`,
  )
  return [Number(row?.schema), row?.more === true]
}

describe('releases on one PostgreSQL', { skip: noPostgres, concurrency: 2 }, () => {
  test('a later release is refused before it stands by until somebody permits its schema, and the old one goes on', async () => {
    const { database, shared, server, dataDir, serve } = await begin()
    const { id: endpoint } = await silentEndpoint(server)
    const job = await submit(server, endpoint, { kept: true })
    for (const env of [later, { ...later, RUNYARD_MIGRATE_TO: String(to + 1) }]) {
      const refused = await serve(env)
      assert.equal(refused.code, 69)
      assert.match(
        refused.stderr,
        new RegExp(`has schema ${from}, of Runyard \\S+, and this version changes it to schema ${to}`),
      )
      assert.match(
        refused.stderr,
        /back it up with pg_dump --format=custom --exclude-table-data='\*\.server_lease' --file='runyard-schema-\d+\.dump' --dbname='postgres:/,
      )
      assert.match(refused.stderr, new RegExp(`start with --migrate-to ${to},.*nothing was changed`))
      assert.ok(!refused.stderr.includes('hidden'), 'the password is nowhere')
    }
    assert.equal((await ask(server, '/readyz')).status, 200)

    // A rolling upgrade: the next release and one of the old release stand by.
    const env = { ...shared, ...later, ...permitted }
    const next = await startServer({ dataDir, env, mayStandBy: true })
    assert.deepEqual(await schemaOf(database), [from, false], 'nothing changes while it stands by')
    const old = await startServer({ dataDir, env: shared, mayStandBy: true })
    old.signal('SIGSTOP')
    await server.kill9()
    await until('a takeover by the next release', () => next.events('leader.changed').at(-1)?.now === 'active')
    assert.deepEqual(await schemaOf(database), [to, true])
    assert.equal(next.events('schema.changing')[0]?.backup, null)
    assert.equal((await statusOf(next, endpoint, job)).status, 'IN_QUEUE')

    old.signal('SIGCONT')
    await next.kill9()
    assert.deepEqual(await old.ended, { code: 69, signal: null }, 'it does not go on with what it does not know')
    assert.match(old.lines.join('\n'), /made by a newer version of Runyard, 9\.9\.9/)
    const refused = await serve({})
    assert.equal(refused.code, 69)
    assert.match(refused.stderr, /made by a newer version of Runyard, 9\.9\.9 .*start Runyard 9\.9\.9/)
    const again = await startServer({ dataDir, env: { ...shared, ...later } })
    assert.equal((await statusOf(again, endpoint, job)).status, 'IN_QUEUE')
    assert.deepEqual(again.events('schema.changing'), [])
  })

  test('a server that is killed in the middle of a change has changed nothing', async () => {
    const { database, shared, server, dataDir } = await begin()
    const { id: endpoint } = await silentEndpoint(server)
    const job = await submit(server, endpoint, { kept: true })
    await server.kill9()
    const env = { ...shared, ...endless, ...permitted }
    const changing = startCommand(['serve', '--port', '0', '--data-dir', dataDir], env)
    const sleeps = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%'`
    await until('the change to be in its middle', async () => (await database.query(sleeps)).length > 0)
    await changing.kill9()
    const back = await startServer({ dataDir, env: shared })
    assert.equal((await statusOf(back, endpoint, job)).status, 'IN_QUEUE')
    assert.deepEqual(await schemaOf(database), [from, false])
    assert.deepEqual(await database.query(sleeps), [], 'what it held is free')
  })

  test('with pg_dump the server makes the copy itself, and without one it changes nothing', {
    skip: noPostgresPrograms,
  }, async () => {
    const { database, shared, server, dataDir, serve } = await begin()
    await server.kill9()
    const program = join(temporaryFolder(), 'pg_dump')
    writeFileSync(program, '#!/bin/sh\necho "pg_dump: error: no room" >&2; exit 1\n')
    chmodSync(program, 0o755)
    const failing = await serve({ ...later, RUNYARD_BACKUP_PG_DUMP: program })
    assert.equal(failing.code, 69, failing.stderr)
    assert.match(
      failing.stderr,
      /no copy of it could be made before in .*pg_dump: error: no room; .*nothing was changed/,
    )
    assert.deepEqual([await schemaOf(database), readdirSync(join(dataDir, 'backups'))], [[from, false], []])
    const real = `${process.env.RUNYARD_TEST_POSTGRES_BIN}/pg_dump`
    const next = await startServer({ dataDir, env: { ...shared, ...later, RUNYARD_BACKUP_PG_DUMP: real } })
    assert.deepEqual(await schemaOf(database), [to, true])
    const backup = String(next.events('schema.changing')[0]?.backup)
    assert.match(backup, new RegExp(`^${dataDir}/backups/runyard-\\S+-schema-${from}-\\d{8}T\\d{6}Z\\.dump$`))
    assert.equal(statSync(backup).mode & 0o777, 0o600)
    assert.ok(statSync(backup).size > 10_000)
  })

  test('runyard check checks it beside a server, repairs it when no server is active, and reports the findings of PostgreSQL', async () => {
    const { database, shared, server, dataDir } = await begin()
    const check = (...args: string[]) => runCommand(['check', '--data-dir', dataDir, ...args], shared)
    await silentEndpoint(server)
    const whole = await check()
    assert.equal(whole.code, 0, whole.stderr)
    assert.match(
      whole.stdout,
      /^the database is whole \(schema \d+, of Runyard \S+\)\nfor damage of its files ask PostgreSQL itself: pg_amcheck .*\n$/,
    )
    assert.ok(!whole.stdout.includes('hidden'))
    const repair = await check('--repair')
    assert.equal(repair.code, 69)
    assert.match(repair.stderr, new RegExp(`is in use by the server with pid ${server.pid}`))
    const elsewhere = await runCommand(['check', '--data-dir', temporaryFolder(), '--repair'], shared)
    assert.match(elsewhere.stderr, /does not belong to PostgreSQL at .*see --data-dir/)
    const embedded = await runCommand(['check', '--data-dir', dataDir])
    assert.match(
      embedded.stderr,
      /belongs to PostgreSQL at \S+, and no database is given; give its address in RUNYARD_DATABASE/,
    )
    await server.stop()
    await database.query(`INSERT INTO queue_counts SELECT id, 9, owner, 5, 0, 0, 0, 0, 0 FROM endpoint_ids`)
    const flawed = await check()
    assert.deepEqual([flawed.code, flawed.stdout.includes('are wrong; --repair would count them again')], [65, true])
    const mended = await check('--repair')
    assert.deepEqual([mended.code, mended.stdout.includes('repaired: count them again')], [0, true], mended.stderr)
    assert.equal((await check()).code, 0)
  })
})

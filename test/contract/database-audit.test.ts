/**
 * The check of either database: a whole one has no flaw, each flaw is named, and a repair fixes what
 * it can in one transaction.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../src/ports/store/store.ts'
import { type Audit, auditFile, auditPostgres } from '../../src/store/database-audit.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { DatabaseLease } from '../../src/store/engines/postgres-lease.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../../src/store/engines/sqlite-engine.ts'
import { migrations } from '../../src/store/schema/schema-state.ts'
import { noPostgres, testDatabase } from '../support/postgres-database.ts'
import { E1, W1, W2, World } from './store-world.ts'

const NOW = 5_000
const next = { version: migrations.at(-1)!.version + 1, name: 'next', statements: ['CREATE TABLE more (id TEXT)'] }

/** A database of a test, and ways around the store. */
interface Audited {
  readonly store: Store
  run(sql: string): Promise<readonly Record<string, unknown>[]>
  check(repair: boolean): Promise<Audit>
  /** Brings it to the schema of a later release. */
  upgrade(): Promise<void>
}

async function onSqlite(context: TestContext): Promise<Audited> {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-audit-'))
  const file = join(folder, 'runyard.sqlite')
  const store = await openSqliteStore({ file, host: 'inline' })
  context.after(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  return {
    store,
    async run(sql) {
      using database = new DatabaseSync(file, { enableForeignKeyConstraints: false })
      return database.prepare(sql).all()
    },
    check: async repair => auditFile(file, repair, NOW),
    upgrade: async () => new SqliteEngine({ file, migrations: [...migrations, next] }).close(),
  }
}

async function onPostgres(context: TestContext): Promise<Audited> {
  const database = await testDatabase()
  const { url } = database
  const store = await openPostgresStore({ url })
  const lease = new DatabaseLease(url)
  context.after(async () => {
    await lease.close()
    await store.close()
    await database.drop()
  })
  await lease.prepare()
  const server = { pid: 1, host: 'h', url: null, machine: 'm', boundToMachine: false, instance: null }
  const epoch = await lease.take('me', server, 60_000)
  const fence = { epoch: epoch!, holder: 'me', lost() {} }
  return {
    store,
    run: database.query,
    check: repair => auditPostgres(url, repair ? fence : null, NOW),
    upgrade: async () => (await openPostgresStore({ url, migrations: [...migrations, next] })).close(),
  }
}

const sharing = (gb: number) =>
  JSON.stringify({ gpus: [{ index: 1, uuid: null, type: 'x', memoryGb: 24, shareMb: gb * 1024 }], pool: null })

const placedOn = (...indexes: number[]) =>
  JSON.stringify({ gpus: indexes.map(index => ({ index, uuid: null, type: 'x', memoryGb: 1 })), pool: null })

for (const [engine, open, skip] of [
  ['SQLite', onSqlite, false],
  ['PostgreSQL', onPostgres, noPostgres],
] as const) {
  test(`${engine}: a database that was used has no flaws, and says which Runyard made it`, { skip }, async context => {
    const { store, check } = await open(context)
    const world = new World(store)
    await world.begin()
    await world.holder(W1, 'held')
    await world.job('waiting')
    const { schema, flaws } = await check(false)
    assert.deepEqual(flaws, [])
    assert.equal(schema?.version, migrations.at(-1)!.version)
    assert.match(schema?.writtenBy ?? '', /^\d+\.\d+\.\d+/)
  })

  test(`${engine}: each flaw is named, a check changes nothing, and a repair fixes what it can`, {
    skip,
  }, async context => {
    const { store, check, run } = await open(context)
    const world = new World(store)
    await world.begin()
    await world.holder(W1, 'held')
    await world.worker(W2)
    await world.job('waiting')
    await run(`UPDATE jobs SET worker_id = 'gone' WHERE id = 'held'`)
    await run('UPDATE queue_counts SET queued = 7')
    await run('DELETE FROM releases')
    await run(`UPDATE workers SET placement = '${placedOn(0, 1)}' WHERE id = 'w1'`)
    await run(`UPDATE workers SET placement = '${placedOn(1, 2)}' WHERE id = 'w2'`)
    const mended = [
      '1 jobs run on workers that have ended',
      `the counts of waiting and running jobs of endpoint ${E1} are wrong`,
    ]
    const left = [/^endpoint e1 is at release \d+, which is gone$/, /^GPU 1 is held by 2 workers: w1, w2$/]
    for (const repair of [false, false, true]) {
      const problems = (await check(repair)).flaws.map(({ problem }) => problem)
      assert.deepEqual(problems.slice(0, 2), mended)
      for (const [index, pattern] of left.entries()) assert.match(problems[2 + index] ?? '', pattern)
      assert.equal(problems.length, 4)
    }
    const [job] = await run(`SELECT status, lost_attempts, waiting_since_ms FROM jobs WHERE id = 'held'`)
    const numbers = [job?.status, Number(job?.lost_attempts), Number(job?.waiting_since_ms)]
    assert.deepEqual(numbers, ['IN_QUEUE', 1, NOW])
    const { flaws } = await check(false)
    assert.deepEqual(
      flaws.map(({ mends }) => mends),
      [false, false],
    )
    await run(`UPDATE workers SET state = 'FROZEN', frozen_at_ms = 1, asleep_at_ms = 2 WHERE id = 'w2'`)
    assert.deepEqual((await check(false)).flaws.length, 1, 'a worker that sleeps has given its GPUs back')
    assert.equal((await world.snapshot()).queue.queued, 2)
  })

  test(`${engine}: shares of a GPU are a flaw beside a whole one, and beyond its memory`, { skip }, async context => {
    const { store, check, run } = await open(context)
    const world = new World(store)
    await world.begin()
    await world.worker(W1)
    await world.worker(W2)
    const flawsOf = async (first: string, second: string) => {
      await run(`UPDATE workers SET placement = '${first}' WHERE id = 'w1'`)
      await run(`UPDATE workers SET placement = '${second}' WHERE id = 'w2'`)
      return (await check(false)).flaws.map(({ problem }) => problem)
    }
    const held = ['GPU 1 is held by 2 workers: w1, w2']
    assert.deepEqual(await flawsOf(sharing(8), sharing(16)), [])
    assert.deepEqual(await flawsOf(sharing(8), sharing(17)), held)
    assert.deepEqual(await flawsOf(sharing(8), placedOn(1)), held)
  })

  test(`${engine}: a database of another schema is left to the version that made it`, { skip }, async context => {
    const { check, run, upgrade } = await open(context)
    await upgrade()
    await run(`UPDATE migrations SET program = '9.9.9' WHERE version = ${next.version}`)
    for (const repair of [false, true]) {
      const [flaw, ...more] = (await check(repair)).flaws
      assert.match(flaw?.problem ?? '', /made by a newer version of Runyard, 9\.9\.9/)
      assert.deepEqual([flaw?.mends, flaw?.remedy, more], [false, 'check it with that version', []])
    }
  })
}

test('a repair of a PostgreSQL whose lease another server has taken changes nothing', {
  skip: noPostgres,
}, async context => {
  const { store, check, run } = await onPostgres(context)
  const world = new World(store)
  await world.begin()
  await world.holder(W1, 'held')
  await run('UPDATE queue_counts SET queued = 7')
  await run('UPDATE server_lease SET epoch = epoch + 1')
  await assert.rejects(check(true), { code: 'unavailable', message: /another server has taken over the database/ })
  assert.equal((await check(false)).flaws.length, 1)
})

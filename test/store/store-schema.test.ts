/** The schema: how it comes about, what it refuses, and that its indexes serve the statements. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { SCHEMA_PAGE, withSchema } from '../../scripts/schema-diagram.ts'
import { JOB_STATUSES } from '../../src/core/jobs/job.ts'
import { WORKER_STATES } from '../../src/core/workers/worker.ts'
import { forSqlite } from '../../src/store/engines/dialect.ts'
import { chooseHost, measureFlushMs, openSqliteStore, sqliteStoreOn } from '../../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../../src/store/engines/sqlite-engine.ts'
import { InlineHost } from '../../src/store/engines/sqlite-inline.ts'
import { migrations } from '../../src/store/schema/schema-state.ts'
import { readSummed, summed } from '../../src/store/tables/summed-text.ts'
import { BROKEN, E1, jobId, OWNER, T0, W1, World } from '../contract/store-world.ts'
import { GROWING, inOrder, OF_POSTGRES, SMALL_INDEXES, statements, WHOLE } from '../support/store-statements.ts'

function fileIn(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-schema-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return join(folder, 'runyard.sqlite')
}

const next = { version: migrations.at(-1)!.version + 1, name: 'next', statements: ['CREATE TABLE more (id TEXT)'] }

test('the steps of the schema are in the order of their numbers, each once', () => {
  const versions = migrations.map(({ version }) => version)
  assert.deepEqual(
    versions,
    [...new Set(versions)].sort((a, b) => a - b),
  )
})

for (const host of ['inline', 'thread'] as const) {
  test(`${host}: a database of a newer version is refused with a sentence, and stays as it is`, async context => {
    const file = fileIn(context)
    new SqliteEngine({ file, migrations: [...migrations, next] }).close()
    await assert.rejects(openSqliteStore({ file, host }), {
      code: 'unavailable',
      message: new RegExp(`made by a newer version of Runyard, \\S+ \\(its schema is ${next.version}`),
    })
    new SqliteEngine({ file, migrations: [...migrations, next] }).close()
  })

  test(`${host}: a file that is no database, and one in no folder, are unavailable`, async context => {
    const file = fileIn(context)
    writeFileSync(file, 'certainly not a database, but long enough to look like one'.repeat(30))
    await assert.rejects(openSqliteStore({ file, host }), {
      code: 'unavailable',
      message: /is damaged \(file is not a database\)/,
    })
    const nowhere = join(file, 'deeper', 'db')
    await assert.rejects(openSqliteStore({ file: nowhere, host }), { code: 'unavailable', message: /cannot be opened/ })
  })
}

test('an older database gets the steps that it lacks, once', context => {
  const file = fileIn(context)
  new SqliteEngine({ file }).close()
  for (let time = 0; time < 2; time += 1) {
    const engine = new SqliteEngine({ file, migrations: [...migrations, next] })
    const rows = engine.database.prepare('SELECT version FROM migrations ORDER BY version').all()
    assert.deepEqual(
      rows.map(({ version }) => version),
      [...migrations, next].map(({ version }) => version),
    )
    engine.close()
  }
})

test('a database of a development version is refused with a sentence, and stays as it is', async context => {
  const file = fileIn(context)
  const development = { version: 1, name: 'initial', statements: ['CREATE TABLE jobs (id TEXT)'] }
  new SqliteEngine({ file, migrations: [development] }).close()
  await assert.rejects(openSqliteStore({ file, host: 'inline' }), {
    code: 'unavailable',
    message: /development version from before the first release.*start with a new data directory/,
  })
  new SqliteEngine({ file, migrations: [development] }).close()
})

test('rows of an older database are there after the steps that it lacks', async context => {
  const file = fileIn(context)
  const store = await openSqliteStore({ file, host: 'inline' })
  await store.accounts.replaceSshKeys(OWNER, ['a key'], T0)
  await store.close()
  const filling = { ...next, statements: [`ALTER TABLE accounts ADD COLUMN more TEXT NOT NULL DEFAULT 'given'`] }
  const engine = new SqliteEngine({ file, migrations: [...migrations, filling] })
  assert.deepEqual(
    { ...engine.database.prepare('SELECT ssh_keys, more FROM accounts').get() },
    { ssh_keys: '["a key"]', more: 'given' },
  )
  engine.close()
})

test('a step that fails leaves the database as it was', context => {
  const file = fileIn(context)
  new SqliteEngine({ file }).close()
  const broken = { ...next, statements: [...next.statements, 'CREATE TABLE jobs (id TEXT)'] }
  assert.throws(() => new SqliteEngine({ file, migrations: [...migrations, broken] }), /table jobs already exists/)
  const engine = new SqliteEngine({ file })
  assert.deepEqual(engine.database.prepare(`SELECT name FROM sqlite_master WHERE name = 'more'`).all(), [])
  engine.close()
})

test('the database keeps a journal that it flushes, and is for its owner alone', async context => {
  const file = fileIn(context)
  const engine = new SqliteEngine({ file })
  const pragma = (name: string) => Object.values(engine.database.prepare(`PRAGMA ${name}`).get() ?? {})[0]
  assert.deepEqual([pragma('journal_mode'), pragma('synchronous'), pragma('foreign_keys')], ['wal', 2, 1])
  for (const path of [file, `${file}-wal`]) assert.equal(statSync(path).mode & 0o777, 0o600)
  engine.close()
})

test('the page about the tables shows them as they are', () => {
  const page = readFileSync(SCHEMA_PAGE, 'utf8')
  assert.equal(page, withSchema(page), 'run ./bin/node scripts/schema-diagram.ts')
  assert.match(page, /^\| `job_payloads` \| `job_id` text \*\*key\*\* of `jobs`, /m)
})

test('every table of what accounts have has an owner', () => {
  const engine = new SqliteEngine({ file: ':memory:' })
  const tables = engine.database
    .prepare(
      `SELECT name FROM sqlite_master
       WHERE type = 'table' AND name NOT IN ('migrations', 'key_canaries', 'server_clock') AND name NOT LIKE 'audit%'`,
    )
    .all()
  assert.ok(tables.length >= 10)
  for (const { name } of tables) {
    const owner = engine.database.prepare(`SELECT 1 FROM pragma_table_info('${name}') WHERE name = 'owner'`).get()
    assert.ok(owner !== undefined, `${name} has no owner`)
  }
})

/** A payload that is not kept beside the state of its job. */
const LARGE = JSON.stringify('ä'.repeat(1_200))

/** Changes that no statement makes; the job `held` is IN_PROGRESS, `waiting` is IN_QUEUE. */
const impossible = [
  `UPDATE jobs SET status = 'LOST'`,
  ...JOB_STATUSES.slice(2).map(status => `UPDATE jobs SET status = '${status}', progress_bytes = NULL`),
  `UPDATE jobs SET finished_at_ms = 1`,
  `UPDATE jobs SET status = 'IN_PROGRESS' WHERE id = 'waiting'`,
  `UPDATE jobs SET status = 'IN_QUEUE' WHERE id = 'held'`,
  `UPDATE jobs SET worker_id = NULL WHERE id = 'held'`,
  `UPDATE jobs SET started_at_ms = NULL WHERE id = 'held'`,
  `UPDATE jobs SET deadline_ms = NULL WHERE id = 'held'`,
  `UPDATE jobs SET unbegun = 1 WHERE id = 'waiting'`,
  `UPDATE jobs SET unbegun = 2 WHERE id = 'held'`,
  `UPDATE jobs SET attempt = 0 WHERE id = 'held'`,
  `UPDATE jobs SET lost_attempts = attempt + 1`,
  `UPDATE jobs SET progress_bytes = 1 WHERE id = 'waiting'`,
  `UPDATE jobs SET output_bytes = 1`,
  `UPDATE jobs SET input_bytes = NULL`,
  `UPDATE job_payloads SET text = NULL`,
  `UPDATE job_payloads SET kind = 'error'`,
  `UPDATE job_payloads SET job_id = 'gone'`,
  `UPDATE jobs SET error = 'x'`,
  `UPDATE jobs SET low_priority = 2`,
  `UPDATE jobs SET position = 0.5`,
  `UPDATE jobs SET endpoint_id = 'gone'`,
  ...WORKER_STATES.slice(2).map(state => `UPDATE workers SET state = '${state}'`),
  `UPDATE workers SET exited_at_ms = 1`,
  `UPDATE workers SET stop_reason = 'idle'`,
  `DELETE FROM templates`,
]

test('the schema refuses what the state machines do not know', async context => {
  const engine = new SqliteEngine({ file: ':memory:' })
  const world = new World(sqliteStoreOn(new InlineHost(engine)))
  await world.begin()
  await world.holder(W1, 'held')
  await world.job('waiting')
  await world.job('large', { input: LARGE })
  for (const sql of impossible) {
    await context.test(sql, () => assert.throws(() => engine.database.exec(sql), /constraint failed|cannot store/))
  }
})

test('large texts of a job are kept apart for as long as it has them, their sizes beside its state', async () => {
  const engine = new SqliteEngine({ file: ':memory:' })
  const world = new World(sqliteStoreOn(new InlineHost(engine)))
  await world.begin()
  const { store } = world
  const payloads = () =>
    engine.database
      .prepare(`SELECT kind, text FROM job_payloads WHERE job_id = 'a' ORDER BY kind`)
      .all()
      .map(({ kind, text }) => `${kind} ${readSummed(String(text)).text}`)
  const sizes = () => {
    const row = engine.database.prepare('SELECT input_bytes, progress_bytes, output_bytes FROM jobs').get()
    return row === undefined ? null : Object.values(row)
  }
  await world.worker(W1)
  await world.job('a', { input: LARGE })
  const [claimed] = await world.claim(W1)
  assert.equal(claimed?.input, LARGE)
  assert.deepEqual([payloads(), sizes()], [[`input ${LARGE}`], [2_402, null, null]])
  for (const progress of [`${LARGE} `, `[${LARGE}]`, '"little"']) {
    await store.jobs.setProgress(jobId('a'), W1, progress)
    assert.equal((await world.read('a')).progress, progress)
  }
  assert.deepEqual(
    [payloads(), sizes()],
    [
      [`input ${LARGE}`, `progress [${LARGE}]`],
      [2_402, 8, null],
    ],
  )
  await store.jobOutcomes.requeueLost(W1, 'gone', T0 + 1)
  assert.deepEqual([payloads(), sizes()], [[`input ${LARGE}`], [2_402, null, null]])
  const move = await world.finish('a', W1, { ...BROKEN, output: LARGE }, T0 + 2)
  assert.deepEqual([move?.job.output, (await world.read('a')).output], [LARGE, LARGE])
  assert.deepEqual(
    [payloads(), sizes()],
    [
      [`input ${LARGE}`, `output ${LARGE}`],
      [2_402, null, 2_402],
    ],
  )
  assert.equal(await store.seals.replace('jobInputs', [{ id: 'a', previous: summed(LARGE), next: 'sealed:äh' }]), 1)
  assert.deepEqual(await store.seals.list('jobInputs', '', 5), [{ id: 'a', row: 'a', sealed: 'sealed:äh' }])
  await store.jobOutcomes.retry(E1, jobId('a'), 5, T0 + 3)
  assert.deepEqual([payloads(), sizes()], [['input sealed:äh'], [10, null, null]])
  await store.jobs.setExpiry(E1, jobId('a'), T0 + 4, T0 + 3)
  await store.jobOutcomes.removeExpired(T0 + 4, 1)
  assert.deepEqual([payloads(), sizes()], [[], null])
})

test('at most 20 diagnostics of a job are kept, and go with it', async () => {
  const engine = new SqliteEngine({ file: ':memory:' })
  const world = new World(sqliteStoreOn(new InlineHost(engine)))
  await world.begin()
  const id = await world.job('a')
  for (let n = 0; n < 25; n += 1) await world.store.jobs.addDiagnostic(id, T0 + n, W1, `number ${n}`)
  const kept = () => engine.database.prepare('SELECT text FROM diagnostics ORDER BY at_ms').all()
  assert.deepEqual(
    kept().map(({ text }) => text),
    Array.from({ length: 20 }, (_, n) => `number ${n}`),
  )
  await world.store.jobs.setExpiry((await world.read('a')).endpointId, jobId('a'), T0 + 1, T0)
  await world.store.jobOutcomes.removeExpired(T0 + 1, 1)
  assert.deepEqual(kept(), [])
})

/** The plan of SQLite for each statement, a step in each line. */
function plans(): [name: string, steps: string][] {
  const { database } = new SqliteEngine({ file: ':memory:' })
  return statements
    .filter(([name]) => !OF_POSTGRES.has(name))
    .map(([name, sql]) => {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${forSqlite(sql)}`).all()
      return [name, plan.map(({ detail }) => String(detail)).join('\n')]
    })
}

test('no statement reads through a table that grows, and the head of a line is found without sorting', () => {
  const tables = [...GROWING, 'own', 'task'].join('|')
  const whole = new RegExp(`SCAN (?:${tables})\\b(?! USING (?:COVERING )?INDEX (?:${SMALL_INDEXES.join('|')})$)`, 'm')
  const problems = plans().flatMap(([name, steps]) => {
    if (whole.test(steps) && !(name in WHOLE)) return [`${name} ${steps}`]
    if (/expires_at_ms>/.test(steps)) return [`${name} reads all that have not expired`]
    return inOrder.has(name) && /TEMP B-TREE/.test(steps) ? [`${name} sorts: ${steps}`] : []
  })
  assert.deepEqual(problems, [])
  const names = new Set(statements.map(([name]) => name))
  assert.deepEqual(
    Object.keys(WHOLE).filter(name => !names.has(name)),
    [],
  )
})

test('no statement reads all jobs at once, a jump of the clock neither', () => {
  assert.deepEqual(
    plans().filter(([, steps]) => /SCAN jobs\b/.test(steps)),
    [],
  )
})

test('what is asked of one endpoint is found by it, not among all that its account has', () => {
  const texts = new Map(statements)
  const problems = plans().filter(
    ([name, steps]) =>
      /(?:WHERE|AND) endpoint_id = \$/.test(texts.get(name)!) && /\(owner=\?(?! AND endpoint_id)/.test(steps),
  )
  assert.deepEqual(problems, [])
})

// SQLite begins with the first row that has the same values as a comparison of several columns, and reads all of them.
test('a comparison of several columns ends with one that has each value once', () => {
  const problems = statements.filter(([, sql]) =>
    [...sql.matchAll(/\((?:[\w.]+, )+(?:\w+\.)?(\w+)\) [<>]/g)].some(([, last]) => !['id', 'owner'].includes(last!)),
  )
  assert.deepEqual(problems, [])
})

// An index serves the largest value of its first free column alone; else all rows within the bounds are read.
test('the largest or smallest value of a column is not asked for within bounds of another one', () => {
  const problems = statements.filter(([, sql]) =>
    [...sql.matchAll(/SELECT (?:MAX|MIN)\((\w+)\)[^()]*? FROM \w+\s+WHERE ([^()]*)/g)].some(([, column, where]) =>
      [...where!.matchAll(/(\w+) [<>]=? \$/g)].some(([, bound]) => bound !== column),
    ),
  )
  assert.deepEqual(problems, [])
})

test('SQLite compiles a statement once, not at each run', () => {
  const { database } = new SqliteEngine({ file: ':memory:' })
  let compiled = 0
  // SQLite asks for the right to read a table or a column when it compiles a statement.
  database.setAuthorizer(() => {
    compiled += 1
    return 0
  })
  for (const [name, sql] of statements) {
    // A table of the engine itself is made each time.
    if (OF_POSTGRES.has(name) || name === 'pages') continue
    const text = forSqlite(sql)
    const statement = database.prepare(text)
    const count = Math.max(0, ...[...text.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number)))
    const run = () => {
      try {
        statement.all(...Array<number>(count).fill(1))
      } catch {
        // The rows to which its own would refer are missing.
      }
    }
    run()
    compiled = 0
    run()
    assert.equal(compiled, 0, name)
  }
})

/** A monotonic clock whose flushes take these times, the last of them again and again. */
function flushesOf(...times: readonly number[]) {
  // The first two reads are before the first flush.
  let reads = -2
  let now = 0
  return {
    monotonic: () => {
      if (reads >= 0) now += times[Math.min(reads, times.length - 1)]!
      reads += 1
      return now
    },
    flushes: () => reads,
  }
}

test('the flush time is that of the quickest probe, so that the writes of others do not count', context => {
  const folder = join(fileIn(context), '..')
  const quick = flushesOf(0.2)
  assert.equal(measureFlushMs(folder, quick.monotonic), 0.2)
  assert.equal(quick.flushes(), 1)
  const busy = flushesOf(5, 4, 4, 4, 4, 5, 4, 4, 4, 4, 4, 0.25)
  assert.equal(measureFlushMs(folder, busy.monotonic), 0.25)
  assert.equal(busy.flushes(), 12)
})

test('the probes of a slow disk are few, and leave nothing behind', context => {
  const folder = join(fileIn(context), '..')
  const slow = flushesOf(8, 6)
  assert.equal(measureFlushMs(folder, slow.monotonic), 6)
  assert.equal(slow.flushes(), 30)
  const slowest = flushesOf(100)
  assert.equal(measureFlushMs(folder, slowest.monotonic), 100)
  assert.equal(slowest.flushes(), 3)
  assert.throws(() => statSync(join(folder, 'flush.probe')), { code: 'ENOENT' })
  // A full disk throws, too.
  assert.equal(measureFlushMs(join(folder, 'missing'), slow.monotonic), Number.POSITIVE_INFINITY)
})

test('a quick disk is written in line until large bodies come, a slow one by a thread', () => {
  assert.deepEqual([0.1, 0.99, 1, 5].map(chooseHost), ['moving', 'moving', 'thread', 'thread'])
})

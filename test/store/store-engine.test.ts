/** Guarantees of the engine of the SQLite store beneath the port: shared commits, and nothing half done. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { openSqliteStore, type SqliteStore, sqliteStoreOn } from '../../src/store/engines/sqlite.ts'
import {
  MAX_BATCH,
  MAX_JOURNAL_BYTES,
  SqliteEngine,
  type SqliteEngineOptions,
} from '../../src/store/engines/sqlite-engine.ts'
import { InlineHost } from '../../src/store/engines/sqlite-inline.ts'
import { SUM_LENGTH } from '../../src/store/tables/summed-text.ts'
import { DONE, E1, jobId, makeEndpoint, makeJob, OWNER, T0, W1, World } from '../contract/store-world.ts'

/** Values of SQLite's setting `synchronous`. */
const [NORMAL, FULL] = [1, 2]

const unavailable = { name: 'AppError', code: 'unavailable' }

function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-engine-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return folder
}

async function begin(
  options: Partial<SqliteEngineOptions> = {},
): Promise<{ engine: SqliteEngine; store: SqliteStore }> {
  const engine = new SqliteEngine({ file: ':memory:', ...options })
  const store = sqliteStoreOn(new InlineHost(engine))
  await new World(store).begin()
  return { engine, store }
}

const insertMany = (store: SqliteStore, count: number) =>
  Promise.all(Array.from({ length: count }, (_, n) => store.jobs.insert(makeJob(`job-${n}`, { position: T0 + n }))))

test('results that come together run as one, and one that fails does not fail the others', async () => {
  const { store } = await begin()
  const world = new World(store)
  await world.worker()
  const ids = Array.from({ length: 20 }, (_, n) => `job-${n}`)
  await world.jobs(...ids)
  await world.claim(W1, 20)
  const results = ids.map((id, n) => world.finish(id, W1, DONE, n === 3 ? Number.NaN : T0 + n))
  const outcomes = await Promise.allSettled(results)
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ids.map((_, n) => (n === 3 ? 'rejected' : 'fulfilled')),
  )
  assert.equal((await world.readWorker()).jobsFinished, 19)
  assert.equal((await world.read('job-3')).status, 'IN_PROGRESS')
  assert.equal((await world.snapshot()).counters.completed, 19)
})

for (const host of ['inline', 'thread'] as const) {
  test(`${host}: writes that arrive together share commits, each at most ${MAX_BATCH}`, async context => {
    const store = await openSqliteStore({ file: join(makeFolder(context), 'db'), host })
    await new World(store).begin()
    const before = await store.stats()
    await insertMany(store, 1_000)
    const after = await store.stats()
    assert.equal(after.writes - before.writes, 1_000)
    assert.equal(after.commits - before.commits, Math.ceil(1_000 / MAX_BATCH))
    assert.equal(after.largestBatch, MAX_BATCH)
    await store.close()
  })

  test(`${host}: takes of large jobs that come together share no commit, and each gets its job`, async context => {
    const store = await openSqliteStore({ file: join(makeFolder(context), 'db'), host })
    const world = new World(store)
    await world.begin()
    const input = JSON.stringify('x'.repeat(5 * 1024 * 1024))
    const workers = ['w1', 'w2', 'w3', 'w4', 'w5', 'w6'] as const
    for (const [n, id] of workers.entries()) {
      await world.worker(id)
      await world.job(`job-${n}`, { position: T0 + n, input })
    }
    const before = await store.stats()
    const claims = await Promise.all(workers.map(id => world.claim(id as typeof W1)))
    const after = await store.stats()
    assert.deepEqual(
      claims.map(([job]) => job?.id),
      workers.map((_, n) => `job-${n}`),
    )
    assert.equal(after.commits - before.commits, 3, 'at most about 8 MiB are answered at once')
    await store.close()
  })

  test(`${host}: what was acknowledged is there after the file is opened again`, async context => {
    const file = join(makeFolder(context), 'db')
    const first = await openSqliteStore({ file, host })
    const world = new World(first)
    await world.begin()
    await world.holder(W1, 'a')
    await world.finish('a')
    const job = await world.read('a')
    const snapshot = await world.snapshot()
    await first.close()
    const second = await openSqliteStore({ file, host })
    assert.deepEqual(await second.jobs.find(E1, jobId('a'), T0), job)
    assert.deepEqual(await second.endpoints.snapshot(E1), snapshot)
    await second.close()
  })

  test(`${host}: closing finishes what was asked for before, and refuses what comes after`, async context => {
    const file = join(makeFolder(context), 'db')
    const store = await openSqliteStore({ file, host })
    await new World(store).begin()
    const inserted = insertMany(store, 300)
    const closed = store.close()
    assert.ok((await inserted).every(kept => kept))
    await closed
    await assert.rejects(store.endpoints.list(OWNER), unavailable)
    await assert.rejects(store.jobs.insert(makeJob('late')), unavailable)
    await store.close()
  })

  test(`${host}: a write that fails takes no other of its batch with it`, async context => {
    const store = await openSqliteStore({ file: join(makeFolder(context), 'db'), host })
    await new World(store).begin()
    const before = await store.stats()
    const [first, twice, last] = await Promise.allSettled([
      store.jobs.insert(makeJob('a')),
      store.endpoints.insert(makeEndpoint(E1)),
      store.jobs.insert(makeJob('b')),
    ])
    assert.deepEqual([first, last], Array(2).fill({ status: 'fulfilled', value: true }))
    assert.match(String(twice?.status === 'rejected' && twice.reason), /the id e1 is taken/)
    assert.equal((await store.stats()).commits - before.commits, 1)
    await store.close()
  })

  test(`${host}: a parameter that is missing is refused, not stored as NULL`, async context => {
    const store = await openSqliteStore({ file: join(makeFolder(context), 'db'), host })
    await new World(store).begin()
    const job = { ...makeJob('a'), policy: undefined as unknown as string }
    await assert.rejects(store.jobs.insert(job), /parameter \$6 cannot be undefined/)
    assert.equal(await store.jobs.find(E1, jobId('a'), T0), null)
    await store.close()
  })
}

test('a commit ends when the time of a batch is over, and the rest gets the next ones in order', async () => {
  let nowMs = 0
  // Each look at the clock is a millisecond later.
  const { engine, store } = await begin({ batchTime: { ms: 5, monotonic: () => ++nowMs } })
  const before = engine.stats
  const ended: number[] = []
  const inserts = Array.from({ length: 12 }, (_, n) =>
    store.jobs.insert(makeJob(`job-${n}`, { position: T0 + n })).then(() => ended.push(n)),
  )
  await Promise.all(inserts)
  assert.deepEqual(ended, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  assert.equal(engine.stats.commits - before.commits, 3)
  assert.equal(engine.stats.largestBatch, 5)
})

test('an inline store makes one commit in each turn of its caller', async () => {
  let nowMs = 0
  const turns: (() => void)[] = []
  let isHeld = false
  const engine = new SqliteEngine({ file: ':memory:', batchTime: { ms: 5, monotonic: () => ++nowMs } })
  const gather = (flush: () => void) => void (isHeld ? turns.push(flush) : queueMicrotask(flush))
  const store = sqliteStoreOn(new InlineHost(engine, gather))
  await new World(store).begin()
  const before = engine.stats
  isHeld = true
  const inserted = insertMany(store, 10)
  for (const commits of [1, 2]) {
    assert.equal(turns.length, 1)
    turns.pop()?.()
    assert.equal(engine.stats.commits - before.commits, commits)
    assert.equal(engine.stats.writes - before.writes, commits * 5)
  }
  assert.ok((await inserted).every(kept => kept))
})

test('reads of one turn of an inline store end after some time, and the others wait for the next turn in order', async () => {
  let nowMs = 0
  const turns: (() => void)[] = []
  const engine = new SqliteEngine({ file: ':memory:' })
  // Each look at the clock is a millisecond later, so that a read takes one.
  const readTime = { ms: 5, monotonic: () => ++nowMs }
  const store = sqliteStoreOn(new InlineHost(engine, turn => void turns.push(turn), readTime))
  const answered: number[] = []
  const read = (n: number) => store.endpoints.ids().then(() => answered.push(n))
  const settle = async () => {
    for (let n = 0; n < 100; n += 1) await Promise.resolve()
  }
  const reading = (async () => {
    for (let n = 0; n < 12; n += 1) await read(n)
  })()
  await settle()
  assert.deepEqual(answered, [0, 1, 2, 3, 4])
  const other = read(100)
  for (const expected of [
    [0, 1, 2, 3, 4, 5, 100, 6, 7, 8],
    [0, 1, 2, 3, 4, 5, 100, 6, 7, 8, 9, 10, 11],
  ]) {
    assert.equal(turns.length, 1, 'the end of a turn is noticed once')
    turns.pop()!()
    await settle()
    assert.deepEqual(answered, expected)
  }
  await Promise.all([reading, other])
  const last = Promise.all([0, 1, 2, 3, 4].map(read))
  await store.close()
  await last
  assert.equal(engine.stats.reads, 18)
})

test('a commit that fails rejects all of its batch, and nothing of it is there', async () => {
  let broken = false
  const { store } = await begin({
    aroundCommit: commit => {
      if (broken) throw new Error('the flush failed')
      commit()
    },
  })
  broken = true
  const results = await Promise.allSettled([store.jobs.insert(makeJob('a')), store.jobs.insert(makeJob('b'))])
  for (const result of results) {
    assert.equal(result.status, 'rejected')
    assert.equal(result.reason.code, 'unavailable')
    assert.equal(result.reason.cause.message, 'the flush failed')
  }
  await assert.rejects(store.jobs.insert(makeJob('c')), unavailable)
  broken = false
  assert.equal((await store.endpoints.snapshot(E1))?.queue.queued, 0)
  assert.equal(await store.jobs.insert(makeJob('a')), true)
})

test('a full disk refuses what does not fit, keeps what does, and works again when there is room', async context => {
  const { engine, store } = await begin({ file: join(makeFolder(context), 'db') })
  const pages = Number(engine.database.prepare('PRAGMA page_count').get()?.page_count)
  engine.database.exec(`PRAGMA max_page_count = ${pages + 2}`)
  const huge = makeJob('huge', { input: JSON.stringify('x'.repeat(100_000)) })
  const before = await store.endpoints.snapshot(E1)
  await assert.rejects(store.jobs.insert(huge), { ...unavailable, reason: 'its disk is full' })
  assert.deepEqual(await store.endpoints.snapshot(E1), before)
  const results = await Promise.allSettled([
    store.jobs.insert(makeJob('before')),
    store.jobs.insert(huge),
    store.jobs.insert(makeJob('after')),
  ])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.equal((await store.endpoints.snapshot(E1))?.queue.queued, 2)
  engine.database.exec('PRAGMA max_page_count = 100000')
  assert.equal(await store.jobs.insert(huge), true)
  const stored = engine.database.prepare("SELECT length(text) AS length FROM job_payloads WHERE job_id = 'huge'").get()
  assert.equal(stored?.length, SUM_LENGTH + huge.input.length)
  assert.deepEqual(engine.database.prepare('PRAGMA integrity_check').all(), [
    Object.assign(Object.create(null), { integrity_check: 'ok' }),
  ])
  await store.close()
})

test('an operation of several statements that fails in the middle leaves nothing', async context => {
  const { engine, store } = await begin({ file: join(makeFolder(context), 'db') })
  const world = new World(store)
  await world.holder(W1, 'a')
  const before = [await world.read('a'), await world.snapshot()]
  engine.database.exec(`CREATE TEMP TRIGGER fail BEFORE UPDATE ON main.endpoint_counters
    BEGIN SELECT RAISE(ABORT, 'no counting'); END`)
  await assert.rejects(world.finish('a'), /no counting/)
  assert.deepEqual([await world.read('a'), await world.snapshot()], before)
  const [failed, kept] = await Promise.allSettled([world.finish('a'), world.job('b')])
  assert.deepEqual([failed?.status, kept?.status], ['rejected', 'fulfilled'])
  assert.deepEqual(await world.read('a'), before[0])
  engine.database.exec('DROP TRIGGER fail')
  assert.equal((await world.finish('a'))?.job.status, 'COMPLETED')
  await store.close()
})

test('a database that another process has locked is unavailable until it is free', async context => {
  const file = join(makeFolder(context), 'db')
  const { engine, store } = await begin({ file })
  engine.database.exec('PRAGMA busy_timeout = 0')
  const other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  await assert.rejects(store.jobs.insert(makeJob('a')), { ...unavailable, message: /locked by another process/ })
  assert.equal((await store.endpoints.list(OWNER)).length, 1)
  other.exec('ROLLBACK')
  other.close()
  assert.equal(await store.jobs.insert(makeJob('a')), true)
  await store.close()
})

const pragma = (engine: SqliteEngine, name: string) =>
  Number(Object.values(engine.database.prepare(`PRAGMA ${name}`).get() ?? {})[0])

/** Jobs of 4 KiB that are removed a moment later. */
async function burst(store: SqliteStore, count: number, nowMs: number): Promise<void> {
  const input = JSON.stringify('x'.repeat(4_096))
  const times = { queuedAtMs: nowMs, expiresAtMs: nowMs + 1_000 }
  const jobs = Array.from({ length: count }, (_, n) => makeJob(`job-${nowMs}-${n}`, { input, ...times }))
  await Promise.all(jobs.map(job => store.jobs.insert(job)))
  while ((await store.jobOutcomes.removeExpired(nowMs + 1_000, 500)).more);
}

test('the file shrinks after a burst, by a bounded step at a time', async context => {
  const file = join(makeFolder(context), 'db')
  const { engine, store } = await begin({ file })
  await burst(store, 8_000, T0)
  const after = pragma(engine, 'page_count')
  assert.ok(after > 8_000, `${after} pages`)
  for (let pages = after, more = true; more; ) {
    more = await store.upkeep.compact()
    const left = pragma(engine, 'page_count')
    assert.ok(left < pages && pages - left <= 1_100, `from ${pages} to ${left} pages at once`)
    pages = left
  }
  assert.ok(pragma(engine, 'page_count') < 2_000)
  assert.equal(await store.upkeep.compact(), false, 'and what is left is kept for the next jobs')
  await store.close()
  assert.ok(statSync(file).size < 2_000 * 4_096)
})

test('bursts of the same size do not let the file grow, and its journal has a limit', async context => {
  const file = join(makeFolder(context), 'db')
  const { engine, store } = await begin({ file })
  await burst(store, 3_000, T0)
  const first = pragma(engine, 'page_count')
  for (let round = 1; round < 6; round += 1) await burst(store, 3_000, T0 + round * 10_000)
  assert.ok(pragma(engine, 'page_count') <= first * 1.05)
  assert.ok(statSync(`${file}-wal`).size <= MAX_JOURNAL_BYTES)
  await store.close()
})

test('a journal that a long reader of another process let grow is cut once that has ended', async context => {
  const file = join(makeFolder(context), 'db')
  const { store } = await begin({ file })
  const reader = new DatabaseSync(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT COUNT(*) FROM jobs').get()
  await burst(store, 12_000, T0)
  assert.ok(statSync(`${file}-wal`).size > MAX_JOURNAL_BYTES, 'nothing can be taken from under a reader')
  reader.exec('COMMIT')
  reader.close()
  await burst(store, 500, T0 + 10_000)
  await burst(store, 500, T0 + 20_000)
  assert.ok(statSync(`${file}-wal`).size <= MAX_JOURNAL_BYTES)
  await store.close()
})

test('a file of an earlier version learns to shrink at the start when it is small, and is the same otherwise', async context => {
  for (const rebuiltBytes of [1_000, undefined]) {
    const file = join(makeFolder(context), 'db')
    const old = new DatabaseSync(file)
    old.exec('PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = WAL; CREATE TABLE other (id TEXT)')
    old.exec(`INSERT INTO other VALUES ('kept')`)
    old.close()
    const engine = new SqliteEngine({ file, ...(rebuiltBytes === undefined ? {} : { rebuiltBytes }) })
    assert.equal(pragma(engine, 'auto_vacuum'), rebuiltBytes === undefined ? 2 : 0)
    assert.equal(engine.database.prepare('SELECT id FROM other').get()?.id, 'kept')
    assert.deepEqual([pragma(engine, 'synchronous'), pragma(engine, 'foreign_keys')], [2, 1])
    const store = sqliteStoreOn(new InlineHost(engine))
    await new World(store).begin()
    await burst(store, 8_000, T0)
    const pages = pragma(engine, 'page_count')
    await store.upkeep.compact()
    assert.equal(pragma(engine, 'page_count') < pages, rebuiltBytes === undefined)
    await store.close()
  }
})

test('a commit flushes before it returns, unless all of its writes are claims', async () => {
  let watch = () => {}
  const { engine, store } = await begin({
    aroundCommit: commit => {
      watch()
      commit()
    },
  })
  const world = new World(store)
  const worker = await world.worker('w1')
  await world.job('job-1')
  await world.job('job-2')
  const flushes: unknown[] = []
  watch = () => void flushes.push(engine.database.prepare('PRAGMA synchronous').get()?.synchronous)
  const claim = () => store.jobs.claim({ endpointId: E1, workerId: worker, limit: 1, nowMs: T0 })
  assert.equal((await claim()).jobs.length, 1)
  await Promise.all([claim(), store.jobs.insert(makeJob('job-3'))])
  await claim()
  await world.job('job-4')
  assert.deepEqual(flushes, [NORMAL, FULL, NORMAL, FULL])
})

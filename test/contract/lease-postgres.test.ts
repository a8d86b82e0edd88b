/** The lease of a database on a real PostgreSQL: one server acts, and what an older one still writes is refused. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Client } from 'pg'
import type { Leadership } from '../../src/ports/leader.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { type EpochFence, openPostgresStore } from '../../src/store/engines/postgres.ts'
import { DatabaseLease } from '../../src/store/engines/postgres-lease.ts'
import { Pipeline } from '../../src/store/engines/postgres-pipeline.ts'
import type { Clocks, FencedTerm } from '../../src/system/coordination/lease-term.ts'
import { openPostgresLease, type PostgresLeaseOptions } from '../../src/system/coordination/postgres-lease.ts'
import { noPostgres, type TestSchema, testDatabase, testSchema } from '../support/postgres-database.ts'
import { makeJob, World } from './store-world.ts'

const never = new AbortController().signal
const OTHER = {
  pid: 1,
  host: 'other',
  url: 'http://other:8080',
  machine: 'there',
  boundToMachine: false,
  instance: null,
}

type Rest = Partial<Omit<PostgresLeaseOptions, 'url'>>

async function makeSchema(context: TestContext): Promise<TestSchema> {
  const schema = await testSchema()
  context.after(() => schema.drop())
  return schema
}

async function candidateOn(context: TestContext, { url }: TestSchema, rest: Rest = {}) {
  const candidate = await openPostgresLease({ url, machine: 'here', boundToMachine: false, instance: null, ...rest })
  context.after(() => candidate.close())
  return candidate
}

async function termOn(context: TestContext, schema: TestSchema, rest: Rest = {}): Promise<FencedTerm> {
  const term = await (await candidateOn(context, schema, rest)).lead(never)
  context.after(() => term.close())
  return term
}

async function storeOn(context: TestContext, { url }: TestSchema, { fence }: FencedTerm): Promise<Store> {
  const store = await openPostgresStore({ url, fence })
  context.after(() => store.close())
  return store
}

/**
 * Another server takes the lease, whatever the previous one believes, and does not wait for the
 * end of that one's writes.
 */
async function takeOver(context: TestContext, schema: TestSchema): Promise<DatabaseLease> {
  const lease = new DatabaseLease(schema.url)
  context.after(() => lease.close())
  await takeAnyway(schema, lease)
  return lease
}

/** Takes a lease that its server may renew between the end of it and the next one's call. @returns the epoch */
async function takeAnyway(schema: TestSchema, lease: DatabaseLease): Promise<number> {
  for (;;) {
    await schema.query('UPDATE server_lease SET until = clock_timestamp()')
    const epoch = await lease.take('rival', OTHER, 60_000)
    if (epoch !== null) return epoch
  }
}

function nextState(term: FencedTerm, state: Leadership): Promise<string | null> {
  return new Promise(resolve => {
    const unwatch = term.watch((now, why) => {
      if (now !== state) return
      unwatch()
      resolve(why)
    })
  })
}

const frozen = (): Clocks => ({ monotonicMs: 0, wallMs: 0 })

describe('the lease of a database', { skip: noPostgres, concurrency: 4 }, () => {
  test('of several candidates one leads, and the next one once it has let go; schemas do not meet', async context => {
    const [schema, elsewhere] = [await makeSchema(context), await makeSchema(context)]
    const candidates = await Promise.all([1, 2, 3].map(() => candidateOn(context, schema)))
    const terms: FencedTerm[] = []
    const leading = candidates.map(async candidate => {
      const term = await candidate.lead(never)
      assert.ok(terms.every(other => !other.isLeader()))
      terms.push(term)
      assert.deepEqual([term.isLeader(), await term.confirm()], [true, true])
      await term.close()
      assert.deepEqual([term.isLeader(), await term.confirm()], [false, false])
    })
    const other = await termOn(context, elsewhere)
    await Promise.all(leading)
    assert.deepEqual(
      terms.map(({ epoch }) => epoch),
      [1, 2, 3],
    )
    assert.ok(other.isLeader())
  })

  test('who acts is known to all, with its address, and nobody acts after an orderly end', async context => {
    const schema = await makeSchema(context)
    const candidate = await candidateOn(context, schema)
    assert.equal(await candidate.active(), null)
    const term = await termOn(context, schema, { machine: 'there', boundToMachine: true })
    const { sinceMs, leaseLeftMs, host, ...starting } = (await candidate.active())!
    const named = { epoch: 1, pid: process.pid, url: null, machine: 'there', boundToMachine: true }
    assert.deepEqual(starting, { ...named, agreement: null, workersUrl: undefined })
    assert.ok(leaseLeftMs > 3_000 && leaseLeftMs <= 6_000 && sinceMs > 0 && host !== '')
    term.reachedAt('http://127.0.0.1:8080', undefined, 'http://127.0.0.1:8082')
    while ((await candidate.active())?.url !== 'http://127.0.0.1:8080') assert.ok(term.isLeader())
    assert.equal((await candidate.active())?.workersUrl, 'http://127.0.0.1:8082')
    await term.close()
    assert.equal(await candidate.active(), null)
  })

  test('a candidate whose keys are others than those of who acts is refused, and takes a lease that is free', async context => {
    const schema = await makeSchema(context)
    const theirs = { apiKey: 'a', sealsWith: 'b', settings: {} }
    const first = { published: () => theirs, problemWith: () => null }
    const term = await termOn(context, schema, { agreement: first })
    term.reachedAt('http://127.0.0.1:8080')
    const asked: unknown[] = []
    const agreement = {
      published: () => null,
      problemWith: (given: unknown) => {
        asked.push(given)
        return 'with another key'
      },
    }
    const candidate = await candidateOn(context, schema, { agreement })
    await assert.rejects(
      candidate.lead(never),
      /127\.0\.0\.1:8080 acts on the database .* with another key; nothing was/,
    )
    assert.deepEqual(asked, [theirs])
    await term.close()
    const next = await candidate.lead(never)
    assert.equal(next.epoch, 2)
    await next.close()
  })

  test('a wait ends with its signal', async context => {
    const schema = await makeSchema(context)
    await termOn(context, schema)
    const waiting = new AbortController()
    const lead = (await candidateOn(context, schema)).lead(waiting.signal)
    waiting.abort(new Error('enough'))
    await assert.rejects(lead, { message: 'enough' })
  })

  test('a lease that is not renewed is taken soon after its end, and the server before is deposed for good', async context => {
    const schema = await makeSchema(context)
    const stuck = new DatabaseLease(schema.url)
    context.after(() => stuck.close())
    await stuck.prepare()
    assert.equal(await stuck.take('stuck', OTHER, 1_500), 1)
    const next = await termOn(context, schema)
    assert.equal(next.epoch, 2)
    const [first, second] = await schema.query(
      'SELECT epoch, taken_at, active_at, ended_at FROM server_epochs ORDER BY epoch',
    )
    const waited = Number(second?.taken_at) - Number(first?.taken_at)
    assert.ok(waited >= 1_500 && waited < 3_000, `${waited} ms`)
    assert.ok(
      Number(first?.ended_at) >= Number(second?.taken_at) && Number(second?.active_at) >= Number(second?.taken_at),
    )
    assert.equal(second?.ended_at, null)
    assert.equal(await stuck.renew({ epoch: 1, holder: 'stuck' }, OTHER, 1_500), false)
  })

  test('a lease that has run out is still renewed while nobody else has taken it', async context => {
    const schema = await makeSchema(context)
    const term = await termOn(context, schema)
    await schema.query('UPDATE server_lease SET until = clock_timestamp()')
    const before = new DatabaseLease(schema.url)
    context.after(() => before.close())
    while ((await before.read()).leftMs < 0) assert.ok(term.isLeader())
    assert.ok(await term.confirm())
  })

  test('a server whose data directory is the same takes the lease of the killed one at once', async context => {
    const schema = await makeSchema(context)
    const same = { instance: 'folder', machine: 'here', boundToMachine: true }
    const killed = new DatabaseLease(schema.url)
    context.after(() => killed.close())
    await killed.prepare()
    await killed.take('killed', { ...OTHER, ...same }, 600_000)
    assert.equal((await termOn(context, schema, same)).epoch, 2)
  })

  test('a server that loses its connection makes it again and stays active', async context => {
    const schema = await testDatabase()
    context.after(() => schema.drop())
    const term = await termOn(context, schema)
    const states: Leadership[] = []
    term.watch(now => void states.push(now))
    await schema.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'runyard lease'",
    )
    assert.deepEqual([await term.confirm(), term.isLeader(), states], [true, true, []])
  })

  test('the log of epochs is bounded', async context => {
    const schema = await makeSchema(context)
    const lease = new DatabaseLease(schema.url)
    context.after(() => lease.close())
    await lease.prepare()
    await schema.query(
      `INSERT INTO server_epochs (epoch, server, taken_at) SELECT n, '{}', now() FROM generate_series(1, 1500) AS n`,
    )
    await schema.query('DELETE FROM server_lease')
    assert.equal((await termOn(context, schema)).epoch, 1_501)
    const [counted] = await schema.query('SELECT count(*)::int AS count, min(epoch)::int AS first FROM server_epochs')
    assert.deepEqual(counted, { count: 1_000, first: 502 })
  })
})

describe('servers whose workers are bound to their machine', { skip: noPostgres, concurrency: 4 }, () => {
  const here = { machine: 'here', boundToMachine: true, instance: 'a' }
  const there = { machine: 'there', boundToMachine: true, instance: 'b' }

  async function holding(context: TestContext, server: typeof here): Promise<TestSchema> {
    const schema = await makeSchema(context)
    const lease = new DatabaseLease(schema.url)
    context.after(() => lease.close())
    await lease.prepare()
    await lease.take('holder', { ...OTHER, ...server }, 1)
    return schema
  }

  test('one that has no workers of its own machine could not see them either, and is refused', async context => {
    const schema = await holding(context, there)
    const candidate = await candidateOn(context, schema, { ...here, boundToMachine: false })
    await assert.rejects(candidate.lead(never), { code: 'invalid' })
  })

  test('one of another machine is refused, also after the lease expired, with the way to take over', async context => {
    const schema = await holding(context, there)
    const candidate = await candidateOn(context, schema, here)
    await assert.rejects(candidate.lead(never), {
      code: 'invalid',
      message: /bound to their machine.*pid 1 on other at http:\/\/other:8080.*--docker off --processes off/,
    })
    await schema.query('UPDATE server_lease SET released = true')
    const term = await candidate.lead(never)
    assert.equal(term.epoch, 2)
    await term.close()
  })

  test('one that gave the lease back and left workers behind is waited for by no one, and still keeps other machines out', async context => {
    const schema = await makeSchema(context)
    await (await termOn(context, schema, here)).close(true)
    await assert.rejects((await candidateOn(context, schema, there)).lead(never), { code: 'invalid' })
    assert.equal((await termOn(context, schema, { ...here, instance: null })).epoch, 2)
  })

  test('one of the same machine, one with the same data directory, and one without such workers are not', async context => {
    for (const [before, next] of [
      [here, { ...here, instance: 'c' }],
      [here, { ...there, instance: 'a' }],
      [{ ...here, boundToMachine: false }, there],
    ] as const) {
      const schema = await holding(context, before)
      assert.equal((await termOn(context, schema, next)).epoch, 2)
    }
  })
})

describe('writes of an epoch that is over', { skip: noPostgres, concurrency: 4 }, () => {
  async function opened(context: TestContext, rest: Rest = {}) {
    const schema = await makeSchema(context)
    const term = await termOn(context, schema, rest)
    const store = await storeOn(context, schema, term)
    const world = new World(store)
    await world.begin()
    return { schema, term, store, world }
  }

  /** A connection in the middle of a transaction of an epoch. */
  async function writing(context: TestContext, { url }: TestSchema, { epoch, holder }: EpochFence): Promise<Client> {
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    context.after(() => client.end().catch(() => {}))
    await client.query('BEGIN')
    await client.query('SELECT assert_server_epoch($1, $2)', [epoch, holder])
    return client
  }

  const refused = { code: 'unavailable', message: /another server has taken over the database/ }

  test('are refused wholly, whatever the clocks of their server say: one, gathered ones and those of several steps', async context => {
    const { schema, term, store, world } = await opened(context, { clocks: frozen })
    await world.worker()
    await world.jobs('job-1', 'job-2')
    await takeOver(context, schema)
    assert.ok(term.isLeader(), 'it believes so')
    const deposed = nextState(term, 'deposed')
    const inserts = Array.from({ length: 50 }, (_, n) => store.jobs.insert(makeJob(`late-${n}`)))
    const writes = [...inserts, world.claim(), store.upkeep.removeOldWindows(0, 1)]
    for (const settled of await Promise.allSettled(writes)) {
      assert.equal(settled.status, 'rejected')
      assert.match(String(settled.reason), refused.message)
    }
    const [counted] = await schema.query(
      `SELECT count(*)::int AS jobs, count(*) FILTER (WHERE status <> 'IN_QUEUE')::int AS moved FROM jobs`,
    )
    assert.deepEqual(counted, { jobs: 2, moved: 0 })
    assert.match((await deposed) ?? '', /pid 1 on other at http:\/\/other:8080 has taken over the database/)
    assert.deepEqual([term.isLeader(), await term.confirm()], [false, false])
    assert.equal((await store.workers.alive()).length, 1, 'reading goes on')
  })

  test('a change of the schema is refused, too', async context => {
    const schema = await makeSchema(context)
    const term = await termOn(context, schema)
    await takeOver(context, schema)
    await assert.rejects(openPostgresStore({ url: schema.url, fence: term.fence }), refused)
    const [made] = await schema.query(`SELECT to_regclass('jobs') IS NULL AS missing`)
    assert.deepEqual(made, { missing: true })
  })

  test('a transaction that was begun before is ended before the next server acts, and nothing of it stays', async context => {
    const { schema, term } = await opened(context)
    const stopped = await writing(context, schema, term.fence)
    await stopped.query(`UPDATE accounts SET name = 'changed'`)
    const lease = await takeOver(context, schema)
    assert.equal(await lease.passWriters(2), false, 'it is ended')
    while (!(await lease.passWriters(2)));
    await assert.rejects(stopped.query('COMMIT'))
    const [{ count } = {}] = await schema.query(`SELECT count(*)::int AS count FROM accounts WHERE name = 'changed'`)
    assert.equal(count, 0)
  })

  test('a server that was stopped while it took over ends nothing of a later one', async context => {
    const schema = await makeSchema(context)
    const late = new DatabaseLease(schema.url)
    context.after(() => late.close())
    await late.prepare()
    assert.equal(await late.take('late', OTHER, 1), 1)
    const term = await termOn(context, schema)
    const writer = await writing(context, schema, term.fence)
    assert.equal(await late.passWriters(1), false)
    await writer.query('COMMIT')
  })

  test('a write that comes while the next server takes over waits, and is refused', async context => {
    const { schema, store } = await opened(context)
    const taking = new Client({ connectionString: schema.url })
    await taking.connect()
    context.after(() => taking.end())
    const lease = new DatabaseLease(schema.url)
    context.after(() => lease.close())
    await taking.query('BEGIN')
    await taking.query(`SELECT pg_advisory_xact_lock(${0x52756e79}, 'server_lease'::regclass::oid::int4)`)
    const insert = store.jobs.insert(makeJob('late'))
    // Other tests wait for locks of their own in the same PostgreSQL.
    const waits = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 'server_lease'::regclass::oid`
    for (let tries = 0; (await schema.query(waits)).length === 0; tries += 1) assert.ok(tries < 1_000, 'it waits')
    assert.equal(await takeAnyway(schema, lease), 2)
    await taking.query('COMMIT')
    await assert.rejects(insert, refused)
  })

  test('an epoch that a failed-over database gives twice is not taken for the own one', async context => {
    const { schema, store } = await opened(context)
    await schema.query(`UPDATE server_lease SET holder = 'twin'`)
    await assert.rejects(store.jobs.insert(makeJob('late')), refused)
  })
})

test('while the lease goes from server to server, nothing of an older epoch is written once the next one acts', {
  skip: noPostgres,
}, async context => {
  const schema = await makeSchema(context)
  const first = new DatabaseLease(schema.url)
  await first.prepare()
  await schema.query('CREATE TABLE written (epoch BIGINT, n BIGINT)')
  let held = { epoch: (await first.take('server-0', OTHER, 60_000))!, holder: 'server-0' }
  await first.close()
  let over = false
  const outcomes = { written: 0, refused: 0, ended: 0 }
  /** Writes in the epoch that it knew when it began, some of them for so long that they are ended. */
  const write = async (writer: number) => {
    for (let n = 0; !over; n += 1) {
      const { epoch, holder } = held
      const client = new Client({ connectionString: schema.url })
      client.on('error', () => {})
      try {
        await client.connect()
        await client.query('BEGIN')
        if (n % 3 === 0) await client.query('SELECT pg_sleep(0.05)')
        await client.query('SELECT assert_server_epoch($1, $2)', [epoch, holder])
        await client.query('INSERT INTO written VALUES ($1, $2)', [epoch, writer * 1_000_000 + n])
        if (n % 7 === writer) await client.query('SELECT pg_sleep(1)')
        await client.query('COMMIT')
        outcomes.written += 1
      } catch (error) {
        outcomes[(error as { code?: string }).code === 'RY001' ? 'refused' : 'ended'] += 1
      }
      await client.end().catch(() => {})
    }
  }
  const writers = [0, 1, 2, 3, 4, 5].map(write)
  const older = (epoch: number) => schema.query(`SELECT n FROM written WHERE epoch < ${epoch} ORDER BY n`)
  const seen: { readonly epoch: number; readonly rows: readonly unknown[] }[] = []
  for (let turn = 1; turn <= 12; turn += 1) {
    const lease = new DatabaseLease(schema.url)
    await schema.query('UPDATE server_lease SET until = clock_timestamp()')
    const epoch = (await lease.take(`server-${turn}`, OTHER, 60_000))!
    while (!(await lease.passWriters(epoch)));
    seen.push({ epoch, rows: await older(epoch) })
    held = { epoch, holder: `server-${turn}` }
    await schema.query('SELECT pg_sleep(0.2)')
    await lease.close()
  }
  over = true
  await Promise.all(writers)
  for (const { epoch, rows } of seen) assert.deepEqual(await older(epoch), rows, `epoch ${epoch}`)
  assert.ok(
    Object.values(outcomes).every(count => count > 0),
    JSON.stringify(outcomes),
  )
})

// By itself: it counts the messages of all clients.
test('writes that assert an epoch take no more messages than others', { skip: noPostgres }, async context => {
  const schemas = [await makeSchema(context), await makeSchema(context)]
  const term = await termOn(context, schemas[1]!)
  const counts: number[] = []
  for (const [n, { url }] of schemas.entries()) {
    const store = await openPostgresStore(n === 1 ? { url, fence: term.fence } : { url })
    context.after(() => store.close())
    const world = new World(store)
    await world.begin()
    await world.worker()
    const sent = context.mock.method(Client.prototype, 'query')
    await store.jobs.insert(makeJob('job-1'))
    await world.claim()
    await world.finish('job-1')
    counts.push(sent.mock.calls.filter(({ arguments: [given] }) => (given as unknown) instanceof Pipeline).length)
    sent.mock.restore()
  }
  assert.ok(counts[0]! >= 3 && counts[0] === counts[1], `${counts}`)
})

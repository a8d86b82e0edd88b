/** Properties of a store on PostgreSQL alone: changes at the same time, its connection, its schema, its texts. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { EndpointId, RegistryId, VolumeId } from '../../src/core/ids.ts'
import type { Job } from '../../src/core/jobs/job.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { forPostgres } from '../../src/store/engines/dialect.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { migrations } from '../../src/store/schema/schema-state.ts'
import { claimJob, claimJobs } from '../../src/store/tables/jobs.ts'
import { noPostgres, postgresUrl, type TestSchema, testDatabase, testSchema } from '../support/postgres-database.ts'
import {
  BROKEN,
  DONE,
  E1,
  EXIT,
  jobId,
  makeEndpoint,
  makeJob,
  makeRegistry,
  makeTemplate,
  makeVolume,
  makeWorker,
  OWNER,
  replaceTemplate,
  T0,
  TPL,
  W1,
  World,
} from './store-world.ts'

const next = { version: migrations.at(-1)!.version + 1, name: 'next', statements: ['CREATE TABLE more (id TEXT)'] }

async function opened(
  context: TestContext,
  make: () => Promise<TestSchema> = testSchema,
): Promise<{ schema: TestSchema; store: Store; world: World }> {
  const schema = await make()
  const store = await openPostgresStore({ url: schema.url })
  context.after(async () => {
    await store.close()
    await schema.drop()
  })
  const world = new World(store)
  await world.begin()
  return { schema, store, world }
}

test('a selection of rows to lock is run once, and texts are compared byte by byte', () => {
  assert.match(forPostgres(claimJobs), /id = ANY \(ARRAY\(SELECT id FROM jobs .* LIMIT \$5 FOR UPDATE SKIP LOCKED\)\)/s)
  assert.match(forPostgres(claimJob), /id = \(SELECT id FROM jobs .* LIMIT 1 FOR UPDATE SKIP LOCKED\)/s)
  assert.equal(forPostgres('CREATE TABLE a (b TEXT NOT NULL)'), 'CREATE TABLE a (b TEXT COLLATE "C" NOT NULL)')
})

test('an address without a PostgreSQL is reported without its password', async () => {
  await assert.rejects(openPostgresStore({ url: 'postgres://me:hidden@127.0.0.1:1/db?options=x' }), {
    code: 'unavailable',
    message:
      'PostgreSQL at 127.0.0.1:1/db: nothing listens at 127.0.0.1:1 (ECONNREFUSED); start PostgreSQL there, or correct the host and the port in RUNYARD_DATABASE',
  })
})

describe('the store on PostgreSQL', { skip: noPostgres }, () => {
  test('a worker that finishes all its jobs at once is idle, and one that is handed another is not', async context => {
    const { world, store } = await opened(context)
    await world.worker()
    for (let round = 0; round < 10; round += 1) {
      const ids = Array.from({ length: 6 }, (_, n) => `job-${round}-${n}`)
      await world.jobs(...ids)
      const claimed = await world.claim(W1, 6)
      await Promise.all(claimed.map(({ id }) => world.finish(id, W1, DONE, T0 + round)))
      assert.equal((await world.readWorker()).idleSinceMs, T0 + round)
      await world.jobs(`a-${round}`, `b-${round}`)
      const [first] = await world.claim(W1)
      await Promise.all([world.finish(first!.id), world.claim(W1)])
      assert.equal((await world.readWorker()).idleSinceMs, null)
      await store.jobOutcomes.cancel(E1, jobId(`b-${round}`), T0)
      await store.stops.letGo(W1, 'all')
    }
  })

  test('jobs that are inserted at the same time are all kept, and one that fails does not fail the others', async context => {
    const { store, world } = await opened(context)
    const insert = (changes: Partial<Job>, n: number) => store.jobs.insert(makeJob(`job-${n}`, changes))
    const inputs = [
      '{"a":1}',
      '"\\u0000"',
      '"\ud800"',
      JSON.stringify('x'.repeat(100_000)),
      '"\u2028 😀"',
      '{"b":[1,2.50]}',
    ]
    const many = Array.from({ length: 300 }, (_, n) => insert({ input: inputs[n % inputs.length]! }, n))
    const gone = insert({ endpointId: 'gone' as EndpointId }, 300)
    const twice = insert({}, 0)
    const broken = insert({ attempt: 0, kind: 'neither' as 'run' }, 301)
    const more = Array.from({ length: 50 }, (_, n) =>
      insert({ webhook: 'http://a.b/?{}",\\', lowPriority: true }, 400 + n),
    )
    assert.deepEqual(await Promise.all([...many, gone, ...more]), [
      ...many.map(() => true),
      false,
      ...more.map(() => true),
    ])
    await assert.rejects(twice)
    await assert.rejects(broken)
    assert.equal((await store.jobs.find(E1, jobId('job-400'), T0))?.webhook, 'http://a.b/?{}",\\')
    assert.equal((await store.endpoints.snapshot(E1))?.queue.queued, 300, 'without those of low priority')
    await world.worker()
    const claimed = new Map((await world.claim(W1, 400)).map(({ id, input }) => [id, input]))
    assert.deepEqual(
      inputs.map((_, n) => claimed.get(jobId(`job-${n}`))),
      inputs.map(input => input.toWellFormed()),
    )
  })

  test('a worker that ends while it claims keeps no job', async context => {
    const { world, store } = await opened(context)
    for (let round = 0; round < 10; round += 1) {
      const id = await world.worker(`worker-${round}`)
      await world.job(`job-${round}`)
      await Promise.all([
        world.claim(id),
        store.workers.exited(id, EXIT, T0).then(() => store.jobOutcomes.requeueLost(id, 'gone', T0)),
      ])
      assert.equal((await world.read(`job-${round}`)).status, 'IN_QUEUE')
      await store.jobOutcomes.cancel(E1, jobId(`job-${round}`), T0)
    }
  })

  test('workers that are added at once stay within the limit, chunks that come at once within their order', async context => {
    const { world, store } = await opened(context)
    const { endpoint } = await world.snapshot()
    assert.equal(await store.endpoints.replace({ ...endpoint, workersMax: 3 }, endpoint, T0), true)
    const added = await Promise.all(
      Array.from({ length: 10 }, (_, n) => store.workers.insert(makeWorker(`w-${n}`), `token-${n}`)),
    )
    assert.equal(added.filter(Boolean).length, 3)
    await world.jobs('a')
    const holder = (await store.workers.alive())[0]!.id
    await world.claim(holder)
    const append = (n: number) => store.streams.append(jobId('a'), holder, [`"${n}.1"`, `"${n}.2"`], 1_000, 0)
    assert.deepEqual(await Promise.all(Array.from({ length: 10 }, (_, n) => append(n))), Array(10).fill(true))
    const part = await store.streams.read(jobId('a'), 0, 1_000)
    assert.deepEqual(
      part?.chunks.map(({ seq }) => seq),
      Array.from({ length: 20 }, (_, n) => n + 1),
    )
  })

  test('concurrent changes of templates, endpoints and registries finish, each version with its release', async context => {
    const { store } = await opened(context)
    const { endpoints, templates, registries, releases, volumes } = store
    await volumes.insert(makeVolume('v1'))
    for (let round = 0; round < 5; round += 1) {
      const id = `r${round}` as RegistryId
      await registries.insert(makeRegistry(id), 'sealed')
      await replaceTemplate(templates, makeTemplate(TPL, { registry: id }), T0)
      const change = async (n: number) => {
        const before = (await endpoints.find(E1))!
        const after = { ...before, version: before.version + 1, env: { N: `${round}.${n}` } }
        return endpoints.replace({ ...after, networkVolumeIds: n % 2 ? ['v1' as VolumeId] : [] }, before, T0)
      }
      const own = makeTemplate(`own-${round}`, { listed: false })
      await endpoints.insert(makeEndpoint(`other${round}`, { templateId: own.id }), own)
      const copied = async () => {
        const before = (await endpoints.find(`other${round}` as EndpointId))!
        return endpoints.replace({ ...before, version: before.version + 1, templateId: TPL }, before, T0)
      }
      const tries = await Promise.all([
        ...Array.from({ length: 4 }, (_, n) => change(n)),
        ...Array.from({ length: 4 }, (_, n) =>
          replaceTemplate(templates, makeTemplate(TPL, { image: `image:${n}` }), T0),
        ),
        copied(),
        registries.remove(OWNER, id, T0),
        volumes.remove(OWNER, 'v1' as VolumeId),
      ])
      assert.ok(tries[0] !== undefined)
      await endpoints.remove(`other${round}` as EndpointId, T0)
      assert.equal(await templates.find(OWNER, own.id), null)
    }
    const { version } = (await endpoints.find(E1))!
    const versions = (await releases.list(E1)).map(release => release.version)
    assert.deepEqual(
      versions,
      Array.from({ length: version }, (_, n) => version - n),
    )
  })

  test('jobs that come while their endpoint is removed are refused or removed with it', async context => {
    const { world, store } = await opened(context)
    await world.jobs('a')
    const inserts = Array.from({ length: 20 }, (_, n) => store.jobs.insert(makeJob(`late-${n}`)))
    const [, ...accepted] = await Promise.all([store.endpoints.remove(E1, T0), ...inserts])
    const cancelled = await world.removeAll()
    assert.equal(cancelled.length, accepted.filter(Boolean).length + 1)
    assert.equal(await store.jobs.locate(OWNER, jobId('a'), T0), null)
  })

  test('one key that comes many times at once makes one job', async context => {
    const { store } = await opened(context)
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => store.jobs.insertOnce(makeJob(`job-${n}`), 'key', T0 + 1_000)),
    )
    assert.equal(new Set(ids).size, 1)
  })

  test('a NUL in a text is kept as its picture, and JSON with one as it is', async context => {
    const { world } = await opened(context)
    await world.worker()
    await world.job('a', { input: '"\\u0000"' })
    assert.equal((await world.claim())[0]?.input, '"\\u0000"')
    await world.finish('a', W1, { ...BROKEN, error: 'a\0b' })
    assert.equal((await world.read('a')).error, 'a\u2400b')
  })

  test('connections that are ended make calls unavailable at most once, and nothing is done by halves', async context => {
    const { schema, store, world } = await opened(context, testDatabase)
    const results: PromiseSettledResult<boolean>[] = []
    for (let round = 0; round < 5; round += 1) {
      const inserts = Array.from({ length: 40 }, (_, n) => store.jobs.insert(makeJob(`job-${round}-${n}`)))
      await schema.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
      )
      results.push(...(await Promise.allSettled(inserts)))
    }
    for (const result of results) {
      if (result.status === 'rejected') assert.equal((result.reason as { code: string }).code, 'unavailable')
    }
    const acknowledged = results.filter(result => result.status === 'fulfilled').length
    await world.job('after')
    assert.ok((await world.snapshot()).queue.queued > acknowledged)
  })

  test('a newer schema is refused with a message; several servers that open at once migrate once', async context => {
    const { schema } = await opened(context)
    const both = await Promise.all(
      [1, 2, 3].map(() => openPostgresStore({ url: schema.url, migrations: [...migrations, next] })),
    )
    await Promise.all(both.map(store => store.close()))
    await assert.rejects(openPostgresStore({ url: schema.url }), {
      code: 'unavailable',
      message: new RegExp(`made by a newer version of Runyard, \\S+ \\(its schema is ${next.version}`),
    })
  })

  test('a step that fails leaves the database as it was', async context => {
    const { schema } = await opened(context)
    const broken = { ...next, statements: [...next.statements, 'CREATE TABLE jobs (id TEXT)'] }
    const opening = openPostgresStore({ url: schema.url, migrations: [...migrations, broken] })
    await assert.rejects(opening, /relation "jobs" already exists/)
    await assert.rejects(schema.query('SELECT * FROM more'), /does not exist/)
  })

  test('a PostgreSQL that does not wait for its disk is refused', async () => {
    const url = new URL(postgresUrl)
    url.searchParams.set('options', '-csynchronous_commit=off')
    await assert.rejects(openPostgresStore({ url: url.href }), { message: /has synchronous_commit off, .* turn it on/ })
  })

  test('after its end it refuses calls, and open ones are finished', async () => {
    const schema = await testSchema()
    const store = await openPostgresStore({ url: schema.url })
    const open = Array.from({ length: 30 }, () => store.workers.known('', 10))
    await store.close()
    assert.deepEqual((await Promise.all(open)).flat(), [])
    await assert.rejects(store.workers.known('', 10), { code: 'unavailable', message: /it is closed/ })
    await schema.drop()
  })
})

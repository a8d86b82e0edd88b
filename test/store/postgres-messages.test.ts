/** Number of messages to PostgreSQL and back for the steps of a job: each wakes both sides. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../src/ports/store/store.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { DONE, E1, T0, W1, World } from '../contract/store-world.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'
import { countPostgres } from '../support/postgres-messages.ts'

/** A world on PostgreSQL with one worker, and the number of messages of an action. */
async function opened(context: TestContext) {
  const schema = await testSchema()
  const way = await countPostgres(schema.url)
  const store: Store = await openPostgresStore({ url: way.url, connections: 1 })
  context.after(async () => {
    await store.close()
    await way.close()
    await schema.drop()
  })
  const world = new World(store)
  await world.begin()
  await world.worker()
  const messages = async (action: () => Promise<unknown>): Promise<number> => {
    const before = way.answers
    await action()
    return way.answers - before
  }
  return { store, world, messages, way }
}

test('each step of a job on PostgreSQL takes few messages', { skip: noPostgres }, async context => {
  const { store, world, messages } = await opened(context)
  // The first run of a read shows that it has several statements.
  await store.endpoints.snapshot(E1)
  const counts = {
    insert: await messages(() => world.jobs('a')),
    snapshot: await messages(() => store.endpoints.snapshot(E1)),
    claim: await messages(() =>
      store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0, letGoFirst: true }),
    ),
    finish: await messages(() => world.finish('a', undefined, DONE)),
  }
  assert.deepEqual(counts, { insert: 1, snapshot: 2, claim: 3, finish: 2 })
})

test('results that come together share their statements', { skip: noPostgres }, async context => {
  const { world, way } = await opened(context)
  const ids = Array.from({ length: 16 }, (_, n) => `job-${n}`)
  await world.jobs(...ids)
  await world.claim(undefined, ids.length)
  await world.finish(ids[0]!)
  const [answers, statements] = [way.answers, way.statements]
  await Promise.all(ids.slice(1).map(id => world.finish(id)))
  // The first one has a transaction to itself; the others come in the meantime.
  assert.ok(way.answers - answers <= 4, `${way.answers - answers} messages`)
  assert.ok(way.statements - statements <= 24, `${way.statements - statements} statements`)
})

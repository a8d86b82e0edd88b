import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topic } from '../../src/ports/notifier.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { createPostgresNotifier, type PostgresNotifier } from '../../src/system/coordination/postgres-notifier.ts'
import { noPostgres, postgresUrl, testDatabase } from '../support/postgres-database.ts'
import { notifierContract } from './notifier.ts'

async function open(url: string = postgresUrl): Promise<PostgresNotifier> {
  const notifier = createPostgresNotifier({ url, local: createNotifier() })
  await notifier.ready
  return notifier
}

if (noPostgres === false) {
  notifierContract('PostgreSQL, one end of the', async () => {
    const notifier = await open()
    return { sender: notifier, receiver: notifier, close: () => notifier.close() }
  })
  notifierContract('PostgreSQL, both ends of the', async () => {
    const [sender, receiver] = [await open(), await open()]
    const close = async () => void (await Promise.all([sender.close(), receiver.close()]))
    return { sender, receiver, close }
  })
}

const skip = noPostgres

/** Resolves at the next notification of a topic. */
function next(notifier: PostgresNotifier, topic: Topic): Promise<void> {
  return new Promise(resolve => {
    const unsubscribe = notifier.subscribe(topic, () => {
      unsubscribe()
      resolve()
    })
  })
}

test('what a notifier has sent does not come back to it', { skip }, async () => {
  const [one, other] = [await open(), await open()]
  let calls = 0
  one.subscribe('job:a', () => {
    calls += 1
  })
  const arrived = next(other, 'job:a')
  one.publish('job:a')
  await arrived
  const answered = next(one, 'job:b')
  other.publish('job:b')
  await answered
  assert.equal(calls, 1)
  await Promise.all([one.close(), other.close()])
})

test('after a lost connection every listener is woken once, and notifications continue', { skip }, async () => {
  const problems: unknown[] = []
  const database = await testDatabase()
  const one = createPostgresNotifier({
    url: database.url,
    local: createNotifier(),
    onError: error => problems.push(error),
  })
  await one.ready
  const woken = [next(one, 'queue:a'), next(one, 'fleet')]
  await database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
  )
  await Promise.all(woken)
  assert.equal(problems.length, 1)
  const other = await open(database.url)
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const arrived = next(to, 'job:a')
    from.publish('job:a')
    await arrived
  }
  await Promise.all([one.close(), other.close()])
  await database.drop()
})

test('without a database it notifies within the process, and can be closed', { skip }, async () => {
  const problem = Promise.withResolvers<unknown>()
  const nowhere = 'postgres://nobody@127.0.0.1:1/nowhere'
  const notifier = createPostgresNotifier({ url: nowhere, local: createNotifier(), onError: problem.resolve })
  assert.match(String(await problem.promise), /PostgreSQL does not answer/)
  const notified = next(notifier, 'fleet')
  notifier.publish('fleet')
  await notified
  await notifier.close()
})

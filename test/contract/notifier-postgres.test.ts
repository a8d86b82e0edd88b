import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topic } from '../../src/ports/notifier.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { createPostgresNotifier, type PostgresNotifier } from '../../src/system/coordination/postgres-notifier.ts'
import { noPostgres, postgresUrl, testDatabase } from '../support/postgres-database.ts'
import { notifierContract } from './notifier.ts'

if (noPostgres === false) {
  notifierContract('PostgreSQL', async () => {
    const notifier = createPostgresNotifier({ url: postgresUrl, local: createNotifier() })
    await notifier.ready
    return { sender: notifier, receiver: notifier, close: () => notifier.close() }
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

test('after a lost connection every listener is woken once, and notifications continue', { skip }, async () => {
  const problems: unknown[] = []
  const database = await testDatabase()
  const notifier = createPostgresNotifier({
    url: database.url,
    local: createNotifier(),
    onError: error => problems.push(error),
  })
  await notifier.ready
  const woken = [next(notifier, 'queue:a'), next(notifier, 'fleet')]
  const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'runyard watch'`
  await database.query(terminate)
  await Promise.all(woken)
  assert.equal(problems.length, 1)
  const notified = next(notifier, 'job:a')
  notifier.publish('job:a')
  await notified
  await notifier.close()
  await database.drop()
})

test('a notification is no message to the database, where only one server acts', { skip }, async () => {
  const database = await testDatabase()
  const notifier = createPostgresNotifier({ url: database.url, local: createNotifier() })
  await notifier.ready
  const notified = next(notifier, 'job:a')
  notifier.publish('job:a')
  await notified
  const used = `SELECT query FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'runyard watch'`
  assert.deepEqual(await database.query(used), [{ query: '' }])
  await notifier.close()
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { notifierContract } from './notifier.ts'

notifierContract('in-process', async () => {
  const notifier = createNotifier()
  return { sender: notifier, receiver: notifier, close: async () => {} }
})

test('an error of a listener is reported', async () => {
  const thrown: unknown[] = []
  const notifier = createNotifier({ onError: error => thrown.push(error) })
  const error = new Error('thrown by a test')
  notifier.subscribe('fleet', () => {
    throw error
  })
  notifier.publish('fleet')
  assert.deepEqual(thrown, [])
  await Promise.resolve()
  assert.deepEqual(thrown, [error])
})

test('publications of one topic that come together are one', async () => {
  const notifier = createNotifier()
  let calls = 0
  notifier.subscribe('fleet', () => {
    calls += 1
  })
  for (let i = 0; i < 100; i++) notifier.publish('fleet')
  await Promise.resolve()
  assert.equal(calls, 1)
})

/** Accounts take turns at the threads that read large bodies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ThreadTurns, type ThreadTurnsLimits } from '../../src/system/bodies/thread-turns.ts'

function makeTurns(limits: Partial<ThreadTurnsLimits> = {}): ThreadTurns<string> {
  return new ThreadTurns({ threads: 3, waiting: 100, waitingBytes: 1_000, waitingOfAll: 100, ...limits })
}

test('the last free thread is for an account without one', () => {
  const turns = makeTurns()
  for (const item of ['a1', 'a2', 'a3']) turns.add('a', item, 1)
  assert.deepEqual([turns.take(), turns.take(), turns.take()], ['a1', 'a2', null])
  turns.add('b', 'b1', 1)
  assert.deepEqual([turns.take(), turns.take()], ['b1', null])
  turns.leave('a')
  assert.equal(turns.take(), null)
  turns.leave('b')
  assert.equal(turns.take(), 'a3')
})

test('accounts with the fewest threads come first, and then take turns', () => {
  const turns = makeTurns({ threads: 2 })
  for (const item of ['a1', 'a2', 'a3']) turns.add('a', item, 1)
  for (const item of ['b1', 'b2']) turns.add('b', item, 1)
  turns.add('c', 'c1', 1)
  assert.deepEqual([turns.take(), turns.take(), turns.take()], ['a1', 'b1', null])
  const order: string[] = []
  for (const account of ['a', 'b', 'c', 'a', 'b']) {
    turns.leave(account)
    order.push(turns.take() ?? 'none')
  }
  assert.deepEqual(order, ['c1', 'a2', 'b2', 'a3', 'none'])
})

test('one account has limits in number and bytes, and all together one in number', () => {
  const turns = makeTurns({ waiting: 2, waitingOfAll: 3 })
  assert.equal(turns.add('a', 'large', 5_000), null)
  assert.equal(turns.add('a', 'more', 1), 'account')
  assert.equal(turns.take(), 'large')
  assert.deepEqual(
    [turns.add('a', 'a1', 500), turns.add('a', 'a2', 500), turns.add('a', 'a3', 0)],
    [null, null, 'account'],
  )
  assert.deepEqual([turns.add('b', 'b1', 1), turns.add('c', 'c1', 1)], [null, 'all'])
})

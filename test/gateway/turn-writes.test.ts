/** Short writes of many exchanges are made together; nothing waits longer than the turn in which it came. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnWrites } from '../../src/gateway/proxy/turn-writes.ts'

function gathered(exchanges: number) {
  const written: number[] = []
  const turns: (() => void)[] = []
  const writes = new TurnWrites(callback => turns.push(callback), { size: exchanges })
  const add = (number: number) => writes.add({ writeNow: () => written.push(number) })
  return { written, turns, add }
}

test('a request writes at once while few others are in progress', () => {
  const { written, turns, add } = gathered(1)
  add(1)
  assert.deepEqual(written, [1])
  assert.equal(turns.length, 0)
})

test('the writes of many requests wait for the end of their turn, and keep their order', () => {
  const { written, turns, add } = gathered(32)
  for (const number of [1, 2, 3]) add(number)
  assert.deepEqual(written, [])
  assert.equal(turns.length, 1, 'one turn is enough for all')
  turns.shift()!()
  assert.deepEqual(written, [1, 2, 3])
  add(4)
  assert.equal(turns.length, 1, 'the next turn has its own')
})

test('no more than 16 writes wait', () => {
  const { written, turns, add } = gathered(256)
  for (let number = 1; number <= 20; number += 1) add(number)
  assert.equal(written.length, 16)
  for (const run of turns) run()
  assert.deepEqual(
    written,
    Array.from({ length: 20 }, (_, at) => at + 1),
  )
})

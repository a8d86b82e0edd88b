import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Quarantine } from '../../src/relay/quarantine.ts'

test('calls pass together, and one that is suspected with no other beside it, in the order in which they came', async () => {
  const quarantine = new Quarantine()
  const entered: string[] = []
  const enter = (name: string, alone: boolean) => quarantine.enter(alone).then(() => entered.push(name))
  await Promise.all([enter('a', false), enter('b', false)])
  const rest = [enter('suspect', true), enter('c', false), enter('d', false)]
  await Promise.resolve()
  assert.deepEqual(entered, ['a', 'b'])
  quarantine.leave()
  quarantine.leave()
  await rest[0]
  assert.deepEqual(entered, ['a', 'b', 'suspect'])
  quarantine.leave()
  await Promise.all(rest)
  assert.deepEqual(entered, ['a', 'b', 'suspect', 'c', 'd'])
})

test('a worker is suspected until a server has taken a body of it, and for good once one was dropped', () => {
  const quarantine = new Quarantine()
  quarantine.died('a')
  assert.deepEqual([quarantine.deathsBefore('a'), quarantine.deathsBefore('b')], [1, 0])
  quarantine.survived('a')
  assert.equal(quarantine.deathsBefore('a'), 0)
  quarantine.dropped('a')
  quarantine.survived('a')
  assert.equal(quarantine.deathsBefore('a'), 1)
})

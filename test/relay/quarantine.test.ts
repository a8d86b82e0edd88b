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

test('a large body is a suspect after one death, a small one after three, and three deaths alone convict it', () => {
  const quarantine = new Quarantine()
  for (const [bytes, together] of [
    [65_536, 1],
    [65_535, 3],
  ] as const) {
    const trial = quarantine.startTrial('a', bytes)
    for (let death = 0; death < together; death += 1) {
      assert.equal(trial.isSuspect, false)
      trial.died()
    }
    for (let death = 0; death < 3; death += 1) {
      assert.deepEqual([trial.isSuspect, trial.isOver], [true, false])
      trial.died()
    }
    assert.equal(trial.isOver, true)
  }
})

test('large bodies of a worker are suspects until a server has taken one, all of its bodies for good once one was convicted', () => {
  const quarantine = new Quarantine()
  const suspects = (token: string) => [65_536, 10].map(bytes => quarantine.startTrial(token, bytes).isSuspect)
  quarantine.died('a')
  assert.deepEqual(
    [suspects('a'), suspects('b')],
    [
      [true, false],
      [false, false],
    ],
  )
  quarantine.survived('a')
  assert.deepEqual(suspects('a'), [false, false])
  quarantine.convicted('a')
  quarantine.survived('a')
  assert.deepEqual(suspects('a'), [true, true])
  const next = quarantine.startTrial('a', 10)
  next.died()
  assert.equal(next.isOver, true)
})

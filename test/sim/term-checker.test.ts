import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TermChecker } from '../../sim/checks/term-checker.ts'
import type { LeaseState } from '../../sim/pair/lease-row.ts'

const CONFIRM_MS = 1_000

function terms() {
  const problems: string[] = []
  return { problems, checker: new TermChecker(problem => problems.push(problem), CONFIRM_MS) }
}

function aLease(epoch: number, instance: string, untilMs: number, released = false): LeaseState {
  const server = { pid: 1, host: 'sim', url: null, machine: 'sim', boundToMachine: true, instance }
  return { epoch, holder: `${epoch}`, server, takenAtMs: 0, untilMs, released }
}

test('a lease may be taken once it has run out, was given up, or is that of the same server', () => {
  const { problems, checker } = terms()
  checker.taken(aLease(1, 'a', 6_000), aLease(2, 'b', 12_000), 6_000)
  checker.taken(aLease(2, 'b', 12_000, true), aLease(3, 'a', 14_000), 8_000)
  checker.taken(aLease(3, 'a', 14_000), aLease(4, 'a', 15_000), 9_000)
  assert.deepEqual(problems, [])
  checker.taken(aLease(4, 'a', 15_000), aLease(5, 'b', 16_000), 10_000)
  assert.deepEqual(problems, ['server b took epoch 5 while epoch 4 of server a had 5000 ms left'])
})

test('a change in another epoch than the present one is reported', () => {
  const { problems, checker } = terms()
  checker.wrote('a', 1, aLease(1, 'a', 0))
  checker.wrote('a', 1, aLease(2, 'b', 0))
  assert.deepEqual(problems, ['a change of server a in epoch 1 was made in epoch 2 of server b'])
})

test('a server may do to workers what it had confirmed just before, and nothing once it knows that it is deposed', () => {
  const { problems, checker } = terms()
  checker.acted('a', 'kills worker w', null, false)
  checker.acted('a', 'kills worker w', CONFIRM_MS, false)
  assert.deepEqual(problems, [])
  checker.acted('a', 'kills worker w', CONFIRM_MS + 1, false)
  checker.acted('b', 'kills worker w', 0, true)
  assert.deepEqual(problems, [
    'server a kills worker w 1001 ms after another one had become active',
    'server b kills worker w although it knows that it is deposed',
  ])
})

test('more than ten seconds without an active server are reported, unless no server could be active', () => {
  const { problems, checker } = terms()
  for (let nowMs = 0; nowMs <= 60_000; nowMs += 1_000) checker.inspect(nowMs, { isServed: false, mayBeServed: false })
  for (let nowMs = 61_000; nowMs <= 71_000; nowMs += 1_000)
    checker.inspect(nowMs, { isServed: false, mayBeServed: true })
  assert.deepEqual(problems, [])
  checker.inspect(72_000, { isServed: false, mayBeServed: true })
  checker.inspect(73_000, { isServed: true, mayBeServed: true })
  assert.equal(problems.length, 1)
  assert.deepEqual(checker.takeoversMs, [12_000])
})

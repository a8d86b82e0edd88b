import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RelayShares } from '../../src/relay/shares.ts'

function fill(shares: RelayShares, token: string, owner: string): number {
  let used = 0
  while (shares.take({ token, owner }, 1)) used += 1
  return used
}

test('one worker fills no more than half of a room, and the next still finds half of the rest', () => {
  const shares = new RelayShares(1_000)
  assert.equal(fill(shares, 'a', 'x'), 500)
  assert.equal(fill(shares, 'b', 'y'), 250)
  assert.equal(fill(shares, 'c', 'z'), 125)
})

test('all workers of one account together fill no more than three quarters', () => {
  const shares = new RelayShares(1_000)
  let used = 0
  for (let n = 0; n < 100; n += 1) used += fill(shares, `w${n}`, 'x')
  assert.equal(used, 750)
  assert.ok(shares.take({ token: 'other', owner: 'y' }, 100))
})

test('returned shares can be used again', () => {
  const shares = new RelayShares(1_000)
  const worker = { token: 'a', owner: 'x' }
  assert.ok(shares.take(worker, 500))
  assert.ok(!shares.take(worker, 1))
  shares.give(worker, 500)
  assert.ok(shares.take(worker, 500))
})

/** Sums over the connections of several threads. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sharedTotals, totalsMemory } from '../../src/server/connection-totals.ts'
import { ConnectionShares } from '../../src/server/shares.ts'
import { randomSeed } from '../support/random-seed.ts'

test('sums by holder are those of one thread, whatever comes and goes', () => {
  const change = fc.record({ holder: fc.integer({ min: 0, max: 30 }), adds: fc.boolean(), thread: fc.nat({ max: 1 }) })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 300, size: 'max' }), changes => {
      const memory = totalsMemory(2, 16, 'salt')
      const threads = [sharedTotals(memory, 0), sharedTotals(memory, 1)]
      const expected = new Map<number, number>()
      for (const { holder, adds, thread } of changes) {
        const held = expected.get(holder) ?? 0
        const sum = [...expected.values()].reduce((a, b) => a + b, 0)
        if (adds ? sum >= 16 : held === 0) continue
        expected.set(holder, held + (adds ? 1 : -1))
        const total = threads[thread]!.addresses.add(`10.0.0.${holder}`, adds ? 1 : -1)
        assert.equal(total, expected.get(holder))
      }
    }),
    { seed: randomSeed },
  )
})

test('places of two threads have one limit, for an endpoint and for all', () => {
  const memory = totalsMemory(2, 100, 'salt')
  const limits = { all: 16, reserved: 2, perAccount: 16, perEndpoint: 3 }
  const [a, b] = [0, 1].map(thread => new ConnectionShares(limits, sharedTotals(memory, thread)))
  const enter = (shares: ConnectionShares | undefined, id: string) =>
    shares!.enter(
      id as never,
      () => false,
      () => {},
    )
  const first = enter(a, 'x')
  assert.ok(first !== null && enter(b, 'x') !== null && enter(a, 'x') !== null)
  assert.equal(enter(b, 'x'), null)
  a!.leave(first)
  assert.ok(enter(b, 'x') !== null)
  const others = Array.from({ length: 12 }, (_, n) => enter([a, b][n % 2], `y${n}`))
  assert.equal(others.filter(place => place !== null).length, 9, 'three quarters are for all endpoints together')
})

test('a thread ends unread responses only above its share, and all threads together come below the limit', () => {
  const memory = totalsMemory(2, 100, 'salt')
  const [a, b] = [sharedTotals(memory, 0), sharedTotals(memory, 1)]
  const megabyte = 1024 * 1024
  const over = (sum: number) => Math.max(0, sum - 100 * megabyte) / megabyte
  assert.equal(over(a.unread(90 * megabyte, 100 * megabyte)), 0)
  assert.equal(over(b.unread(30 * megabyte, 100 * megabyte)), 0, 'it has less than half')
  assert.equal(over(a.unread(90 * megabyte, 100 * megabyte)), 20)
  assert.equal(over(a.unread(70 * megabyte, 100 * megabyte)), 0)
})

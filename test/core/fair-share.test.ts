import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fairShare, Holdings, mayHavePlace } from '../../src/core/fair-share.ts'

const part = fc.constantFrom(1 / 8, 1 / 4, 1 / 2, 3 / 4, 4 / 5, 7 / 8)

test('a holder gets all but the part that it leaves, rounded up', () => {
  assert.deepEqual(
    [8, 9, 1, 0].map(room => fairShare(room, 1 / 8)),
    [7, 8, 1, 0],
  )
  assert.deepEqual(
    [10, 11, 1].map(room => fairShare(room, 1 / 2)),
    [5, 6, 1],
  )
})

test('a holder with anything to leave never gets more than the room, and gets some of any room', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1e12 }), part, (room, left) => {
      const most = fairShare(room, left)
      assert.ok(most <= room && (room === 0 || most >= 1))
      assert.ok(Math.abs(most - room * (1 - left)) < 1)
    }),
  )
})

test('holders who share what others have not taken find some while any is free, and never fill more than the room', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e6 }), part, fc.integer({ min: 1, max: 50 }), (room, left, holders) => {
      let free = room
      for (let n = 0; n < holders && free > 0; n += 1) {
        const taken = fairShare(free, left)
        assert.ok(taken >= 1 && taken <= free)
        free -= taken
      }
    }),
  )
})

test('the last places are for holders with few', () => {
  const last = { kept: 6, few: 2 }
  assert.deepEqual(
    [7, 6, 1, 0].map(free => mayHavePlace(free, 2, last)),
    [true, false, false, false],
  )
  assert.deepEqual(
    [7, 6, 1, 0].map(free => mayHavePlace(free, 1, last)),
    [true, true, true, false],
  )
})

test('a holder that has given all back is forgotten', () => {
  const holdings = new Holdings<string>()
  assert.equal(holdings.add('a', 2), 2)
  assert.equal(holdings.add('b', 1), 1)
  assert.equal(holdings.add('a', -2), 0)
  assert.deepEqual([...holdings], [['b', 1]])
  assert.equal(holdings.of('a'), 0)
})

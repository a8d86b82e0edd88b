/** Times for people. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { age } from '../../console/format.ts'
import { now } from '../../console/server-clock.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS

test('an age has no more digits than people read', () => {
  const ages = [400, 7 * SECOND_MS, 59.9 * SECOND_MS, 22 * MINUTE_MS + 46_000, 185 * MINUTE_MS, 52 * 60 * MINUTE_MS]
  assert.deepEqual(
    ages.map(ms => age(now.value - ms)),
    ['now', '7 s', '59 s', '22 min', '3 h', '2 d'],
  )
  assert.equal(age(now.value + MINUTE_MS), 'now')
  assert.equal(age(null), '–')
})

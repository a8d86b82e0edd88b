import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteBudget } from '../../src/core/byte-budget.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const RATE = { bytesPerSecond: 1_000, burstBytes: 5_000 }

/** A caller that lets pieces of a size through without a pause, and counts them. */
function busy(budget: ByteBudget, bytes: number) {
  const passed = { bytes: 0 }
  const run = async () => {
    for (;;) {
      await budget.take(bytes)
      passed.bytes += bytes
    }
  }
  void run()
  return passed
}

test('a burst passes at once, and more at the rate', async () => {
  const clock = new VirtualClock()
  const passed = busy(new ByteBudget(RATE, clock), 100)
  await clock.advance(0)
  assert.equal(passed.bytes, 5_000)
  await clock.advance(10_000)
  assert.ok(passed.bytes >= 14_500 && passed.bytes <= 15_100, String(passed.bytes))
})

test('who is busy waits in turn with all others, and who comes now and then waits for one piece of each', async () => {
  const clock = new VirtualClock()
  const budget = new ByteBudget(RATE, clock)
  const floods = Array.from({ length: 50 }, () => busy(budget, 100))
  await clock.advance(20_000)
  let isThrough = false
  void budget.take(10).then(() => (isThrough = true))
  await clock.advance(5_200)
  assert.ok(isThrough)
  const counts = floods.map(({ bytes }) => bytes)
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 100, String(counts))
})

test('a time of less saves no more than a burst', async () => {
  const clock = new VirtualClock()
  const budget = new ByteBudget(RATE, clock)
  await clock.advance(3_600_000)
  const passed = busy(budget, 100)
  await clock.advance(0)
  assert.equal(passed.bytes, 5_000)
})

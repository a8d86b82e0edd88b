import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type AttemptTimes,
  appendTimes,
  BLOCK_LIMITS,
  type TimesBlock,
  timesFromBlock,
} from '../../../src/core/jobs/attempt-times.ts'

const T = 1_700_000_000_000

const anyTimes = fc
  .record({
    finishedAtMs: fc.integer({ min: T, max: T + 40 * 24 * 3_600_000 }),
    runMs: fc.nat(7 * 24 * 3_600_000),
    waitMs: fc.nat(7 * 24 * 3_600_000),
    cold: fc.boolean(),
  })
  .map(({ finishedAtMs, runMs, waitMs, cold }): AttemptTimes => {
    const startedAtMs = finishedAtMs - runMs
    return { queuedAtMs: startedAtMs - waitMs, startedAtMs, finishedAtMs, cold }
  })

/** Adds groups of times as a store does. */
function stored(groups: readonly (readonly AttemptTimes[])[]): TimesBlock[] {
  const blocks = new Map<number, TimesBlock>()
  let last: TimesBlock | null = null
  for (const group of groups) {
    for (const block of appendTimes(last, group)) {
      blocks.set(block.atMs, block)
      last = block
    }
  }
  return [...blocks.values()]
}

test('times come back as they were, in their order, whatever the groups and also when the clock was set back', () => {
  fc.assert(
    fc.property(fc.array(fc.array(anyTimes, { maxLength: 20 }), { maxLength: 8 }), groups => {
      const blocks = stored(groups)
      assert.deepEqual(blocks.flatMap(timesFromBlock), groups.flat())
      for (const block of blocks) assert.equal(timesFromBlock(block).length, block.attempts)
      const begins = blocks.map(({ atMs }) => atMs)
      assert.deepEqual(
        begins,
        [...begins].sort((a, b) => a - b),
      )
    }),
  )
})

test('an attempt takes less than twelve bytes, and a block has a limit of attempts, also of one instant', () => {
  const attempts = Array.from({ length: 2_500 }, (_, index): AttemptTimes => {
    const finishedAtMs = T + index * 1_500
    const startedAtMs = finishedAtMs - 20_000 - (index % 700)
    return { queuedAtMs: startedAtMs - 3_000 - (index % 900), startedAtMs, finishedAtMs, cold: index % 50 === 0 }
  })
  const blocks = stored([attempts])
  assert.deepEqual(
    blocks.map(block => block.attempts),
    [BLOCK_LIMITS.attempts, BLOCK_LIMITS.attempts, 500],
  )
  const bytes = blocks.reduce((sum, block) => sum + block.packed.length, 0) / attempts.length
  assert.ok(bytes < 12, `${bytes} bytes an attempt`)
  const atOnce = attempts.map(times => ({ ...times, finishedAtMs: T, startedAtMs: T, queuedAtMs: T }))
  assert.deepEqual(stored([atOnce]).flatMap(timesFromBlock), atOnce)
})

test('a block covers a week at most', () => {
  const at = (finishedAtMs: number) => ({
    queuedAtMs: finishedAtMs,
    startedAtMs: finishedAtMs,
    finishedAtMs,
    cold: false,
  })
  const week = BLOCK_LIMITS.lengthMs
  assert.equal(stored([[at(T)], [at(T + week - 1)], [at(T + week)]]).length, 2)
})

test('times that were cut end before the cut', () => {
  const [block] = stored([[{ queuedAtMs: T, startedAtMs: T + 500, finishedAtMs: T + 900, cold: true }]])
  assert.deepEqual(timesFromBlock({ atMs: T, packed: block!.packed.slice(0, 4) }), [])
})

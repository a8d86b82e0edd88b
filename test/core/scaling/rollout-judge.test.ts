/** The comparison of the failures of a new release with those of the last good one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ResultCount } from '../../../src/core/endpoints/rollout-facts.ts'
import {
  isClearlyWorse,
  judgeRelease,
  leastFailureRate,
  MIN_JUDGED_RESULTS,
  TRIAL_MS,
  TRIAL_RESULTS,
} from '../../../src/core/scaling/rollout-judge.ts'

const of = (failed: number, ended: number): ResultCount => ({ failed, ended })

/** Numbers from 0 to 1 that are the same in each run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

test('a release that fails most jobs is noticed at its twentieth result, and not before', () => {
  assert.equal(isClearlyWorse(of(18, 20), of(1, 200)), true)
  assert.equal(isClearlyWorse(of(20, 20), of(0, 10)), true, 'ten results of the other one are enough')
  assert.equal(isClearlyWorse(of(19, 19), of(0, 1_000_000)), false)
  assert.equal(isClearlyWorse(of(10, 20), of(1, 200)), true)
})

test('the numbers that the guide gives are enough, and one failure less is not', () => {
  for (const [failed, ended, good] of [
    [8, 20, of(2, 200)],
    [11, 40, of(2, 200)],
    [20, 100, of(2, 200)],
    [19, 20, of(0, 10)],
  ] as const) {
    assert.equal(isClearlyWorse(of(failed, ended), good), true)
    assert.equal(isClearlyWorse(of(failed - 1, ended), good), false)
  }
})

test('a difference that chance explains does not count', () => {
  assert.equal(isClearlyWorse(of(4, 20), of(1, 200)), false)
  assert.equal(isClearlyWorse(of(2, 20), of(0, 200)), false)
  assert.equal(isClearlyWorse(of(15, 20), of(150, 200)), false)
})

test('with few results of the other release more of the new one are needed, and without any there is no verdict', () => {
  assert.equal(isClearlyWorse(of(20, 20), of(0, 5)), false)
  assert.equal(isClearlyWorse(of(40, 40), of(0, 5)), true)
  for (const ended of [20, 200, 1_000_000]) assert.equal(isClearlyWorse(of(ended, ended), of(0, 0)), false)
})

test('a release that fails as often as the other one, or less, is not clearly worse, whatever their numbers are', () => {
  const count = fc.tuple(fc.nat(1_000_000), fc.nat(1_000_000)).map(([a, b]) => of(Math.min(a, b), Math.max(a, b)))
  fc.assert(
    fc.property(count, count, (a, b) => {
      const [less, more] = a.failed * b.ended <= b.failed * a.ended ? [a, b] : [b, a]
      assert.equal(isClearlyWorse(less, more), false)
    }),
  )
})

test('a further failure of the release, or a further success of the other one, never takes the verdict back', () => {
  const count = fc.tuple(fc.nat(300), fc.nat(300)).map(([a, b]) => of(Math.min(a, b), Math.max(a, b)))
  fc.assert(
    fc.property(count, count, (release, good) => {
      if (!isClearlyWorse(release, good)) return
      assert.ok(isClearlyWorse(of(release.failed + 1, release.ended + 1), good))
      assert.ok(isClearlyWorse(release, of(good.failed, good.ended + 1)))
    }),
    { numRuns: 1_000 },
  )
})

test('the lowest rate that results allow is below the observed one, and close to it after many', () => {
  fc.assert(
    fc.property(fc.nat(20_000_000), fc.nat(20_000_000), (a, b) => {
      const { failed, ended } = of(Math.min(a, b), Math.max(a, b))
      const least = leastFailureRate({ failed, ended })
      assert.ok(least >= 0 && least <= (ended === 0 ? 0 : failed / ended))
      if (ended > 100_000) assert.ok(failed / ended - least < 0.02)
    }),
  )
})

for (const [rate, before] of [
  [0.01, 200],
  [0.05, 30],
  [0.3, 200],
  [0.5, 20],
  [0.9, 400],
  [0.5, 0],
] as const) {
  test(`judged after each result, at most one release in a hundred is stopped that fails ${rate * 100} % as the one before with ${before} results does`, () => {
    const random = seeded(before + rate * 1_000)
    const runs = 400
    let stopped = 0
    for (let run = 0; run < runs; run += 1) {
      const good = { failed: 0, ended: before }
      for (let job = 0; job < before; job += 1) if (random() < rate) good.failed += 1
      const release = { failed: 0, ended: 0 }
      while (release.ended < TRIAL_RESULTS) {
        // The other one goes on beside it, as the base of a canary does.
        if (random() < 0.5) {
          good.ended += 1
          if (random() < rate) good.failed += 1
        }
        release.ended += 1
        if (random() < rate) release.failed += 1
        if (!isClearlyWorse(release, good)) continue
        stopped += 1
        break
      }
    }
    assert.ok(stopped <= runs / 100, `${stopped} of ${runs}`)
  })
}

test('a release that fails a third of its jobs is found within its trial, where the other one fails one in a hundred', () => {
  const random = seeded(7)
  let found = 0
  for (let run = 0; run < 200; run += 1) {
    const release = { failed: 0, ended: 0 }
    while (release.ended < TRIAL_RESULTS && !isClearlyWorse(release, of(2, 200))) {
      release.ended += 1
      if (random() < 1 / 3) release.failed += 1
    }
    if (release.ended < TRIAL_RESULTS) found += 1
  }
  assert.ok(found >= 199, `${found} of 200`)
})

test('a release is judged until it has results enough to be good, or is a week old', () => {
  const trial = { results: of(0, 199), readyAtMs: 0, good: of(0, 200) }
  assert.equal(judgeRelease(trial, TRIAL_MS - 1), 'open')
  assert.equal(judgeRelease(trial, TRIAL_MS), 'over')
  assert.equal(judgeRelease({ ...trial, results: of(0, 200) }, 1), 'over')
  assert.equal(judgeRelease({ ...trial, results: of(20, 20) }, 1), 'stop')
  assert.equal(judgeRelease({ ...trial, results: of(20, 20) }, TRIAL_MS), 'over')
  assert.equal(judgeRelease({ ...trial, results: of(150, 500) }, 1), 'stop', 'many results may come at once')
  assert.equal(judgeRelease({ ...trial, results: of(20, 20), good: null }, 1), 'open')
  assert.equal(judgeRelease({ ...trial, results: of(MIN_JUDGED_RESULTS, 200), good: null }, 1), 'over')
})

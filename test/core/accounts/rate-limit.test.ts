import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  countRequest,
  DEFAULT_WINDOWS,
  type RateWindow,
  type WindowCount,
} from '../../../src/core/accounts/rate-limit.ts'

const MINUTE: RateWindow = { name: 'minute', quota: 3, seconds: 60 }
const HOUR: RateWindow = { name: 'hour', quota: 4, seconds: 3_600 }
/** The start of a minute and of an hour. */
const START = 3_600_000 * 500_000

/** Counts requests at these instants, one after the other. */
function count(windows: readonly RateWindow[], instants: readonly number[], from: readonly WindowCount[] = []) {
  let counts = from
  return instants.map(nowMs => {
    const decision = countRequest(windows, counts, nowMs)
    counts = decision.counts
    return decision
  })
}

test('the windows are those that the documentation names', () => {
  assert.deepEqual(
    DEFAULT_WINDOWS.map(({ name, quota, seconds }) => [name, quota, seconds]),
    [
      ['minute', 1_200, 60],
      ['hour', 36_000, 3_600],
      ['day', 500_000, 86_400],
    ],
  )
})

test('each request takes one from each window, until one of them is used up', () => {
  const decisions = count([MINUTE, HOUR], [START, START + 1, START + 2, START + 3])
  assert.deepEqual(
    decisions.map(({ exceeded, rateLimit }) => [exceeded?.name ?? null, rateLimit]),
    [
      [null, '"minute";r=2;t=60, "hour";r=3;t=3600'],
      [null, '"minute";r=1;t=60, "hour";r=2;t=3600'],
      [null, '"minute";r=0;t=60, "hour";r=1;t=3600'],
      ['minute', '"minute";r=0;t=60, "hour";r=1;t=3600'],
    ],
  )
  for (const { rateLimitPolicy } of decisions) assert.equal(rateLimitPolicy, '"minute";q=3;w=60, "hour";q=4;w=3600')
})

test('a refused request is not counted', () => {
  const decisions = count([MINUTE, HOUR], [START, START, START, START, START, START, START + 60_000])
  assert.equal(decisions.at(-1)!.exceeded, null)
  assert.equal(decisions.at(-1)!.rateLimit, '"minute";r=2;t=60, "hour";r=0;t=3540')
  assert.deepEqual(decisions[3]!.counts, decisions[2]!.counts)
})

test('the window that refuses states in whole seconds when it restarts', () => {
  const full = count([MINUTE], [START, START, START])[2]!.counts
  const waits: [afterMs: number, seconds: number][] = [
    [0, 60],
    [1, 60],
    [999, 60],
    [1_000, 59],
    [59_000, 1],
    [59_999, 1],
  ]
  for (const [afterMs, seconds] of waits) {
    const { exceeded, retryAfterSeconds } = countRequest([MINUTE], full, START + afterMs)
    assert.deepEqual([exceeded, retryAfterSeconds], [MINUTE, seconds], `${afterMs} ms`)
  }
  const fresh = countRequest([MINUTE], full, START + 60_000)
  assert.deepEqual(
    [fresh.exceeded, fresh.retryAfterSeconds, fresh.counts],
    [null, 0, [{ startMs: START + 60_000, used: 1 }]],
  )
})

test('the first window that is used up is the one that is named', () => {
  const both = count([MINUTE, { ...HOUR, quota: 3 }], [START, START, START, START]).at(-1)!
  assert.equal(both.exceeded?.name, 'minute')
  const hour = count([MINUTE, HOUR], [START, START, START, START + 60_000, START + 60_001]).at(-1)!
  assert.deepEqual([hour.exceeded?.name, hour.retryAfterSeconds], ['hour', 3_540])
})

test('a quota of nothing refuses everything, and counts from before a smaller quota do not go below zero', () => {
  assert.equal(countRequest([{ ...MINUTE, quota: 0 }], [], START).exceeded?.quota, 0)
  const smaller = countRequest([MINUTE], [{ startMs: START, used: 99 }], START)
  assert.equal(smaller.rateLimit, '"minute";r=0;t=60')
})

test('no window ever lets more requests pass than its quota', () => {
  const steps = fc.array(fc.nat(40_000), { minLength: 1, maxLength: 60 })
  fc.assert(
    fc.property(fc.nat(5), fc.nat(9), fc.nat(3_600_000), steps, (perMinute, perHour, offset, gaps) => {
      const windows = [
        { ...MINUTE, quota: perMinute },
        { ...HOUR, quota: perHour },
      ]
      let nowMs = START + offset
      const instants = gaps.map(gap => (nowMs += gap))
      const decisions = count(windows, instants)
      for (const { quota, seconds } of windows) {
        const passed = new Map<number, number>()
        for (const [index, { exceeded, rateLimit }] of decisions.entries()) {
          if (exceeded !== null) continue
          const window = Math.floor(instants[index]! / (seconds * 1000))
          passed.set(window, (passed.get(window) ?? 0) + 1)
          assert.match(rateLimit, /^"minute";r=\d+;t=[1-9]\d*, "hour";r=\d+;t=[1-9]\d*$/)
        }
        for (const count of passed.values()) assert.ok(count <= quota)
      }
    }),
  )
})

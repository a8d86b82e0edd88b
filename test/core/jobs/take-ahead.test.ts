/** Number of jobs that a worker gets which asks for one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addRun, allowsTakeAhead, countJobsAhead, type RunTimes } from '../../../src/core/jobs/take-ahead.ts'

const able = { isAble: true, share: 1_000 }
const runsOf = (ms: number, count = 50): RunTimes => Array.from({ length: count }, () => ms)

test('a take gets at most a second of work, and at most a hundred jobs', () => {
  const counts = [1, 5, 10, 100, 125, 400, 501, 900, 5_000].map(ms => countJobsAhead({ ...able, runs: runsOf(ms) }))
  assert.deepEqual(counts, [100, 100, 100, 10, 8, 2, 1, 1, 1])
})

test('a worker that is not able to, no record and few runs get one job each', () => {
  assert.equal(countJobsAhead({ ...able, isAble: false, runs: runsOf(5) }), 1)
  assert.equal(countJobsAhead({ ...able, runs: [] }), 1)
  assert.equal(countJobsAhead({ ...able, runs: runsOf(5, 4) }), 1)
  assert.equal(countJobsAhead({ ...able, runs: runsOf(5, 5) }), 100)
})

test('a take gets no more than the fair share of its worker', () => {
  for (const share of [0, 1, 2, 30]) {
    assert.equal(countJobsAhead({ isAble: true, share, runs: runsOf(5) }), Math.max(1, share))
  }
})

test('one long run in ten, or a rare very long one, lowers the number', () => {
  const oneInSeven = [...runsOf(5, 42), ...runsOf(2_000, 8)]
  assert.equal(countJobsAhead({ ...able, runs: oneInSeven }), 1)
  const oneInFifty = [...runsOf(5, 49), 10_000]
  assert.equal(countJobsAhead({ ...able, runs: oneInFifty }), 4)
})

test('a run is counted from the previous result, or from the time at which an idle worker picks its job up', () => {
  assert.deepEqual(addRun([], { deliveredAtMs: 1_000, lastResultAtMs: 0, resultAtMs: 1_150 }), [50])
  assert.deepEqual(addRun([], { deliveredAtMs: 1_000, lastResultAtMs: 1_500, resultAtMs: 1_505 }), [5])
  assert.deepEqual(addRun([], { deliveredAtMs: 1_000, lastResultAtMs: 0, resultAtMs: 1_020 }), [1])
})

test('fifty runs are kept', () => {
  let times: RunTimes = []
  for (let n = 1; n <= 60; n += 1)
    times = addRun(times, { deliveredAtMs: 0, lastResultAtMs: 1_000, resultAtMs: 1_000 + n })
  assert.deepEqual(
    times,
    Array.from({ length: 50 }, (_, index) => index + 11),
  )
})

test('only RUNYARD_TAKE_AHEAD=0 turns it off', () => {
  assert.deepEqual(
    [{}, { RUNYARD_TAKE_AHEAD: '1' }, { RUNYARD_TAKE_AHEAD: '0' }].map(env =>
      allowsTakeAhead(env as Record<string, string>),
    ),
    [true, true, false],
  )
})

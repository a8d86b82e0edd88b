/** Number of jobs that a worker gets which asks for one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addRun, allowsTakeAhead, countJobsAhead, type Runs } from '../../../src/core/jobs/take-ahead.ts'

const able = { isAble: true, share: 1_000 }
const behindOthers = (ms: number, count = 50): Runs =>
  Array.from({ length: count }, () => ({ ms, isBehindOthers: true }))
const alone = (ms: number, count = 50): Runs => Array.from({ length: count }, () => ({ ms, isBehindOthers: false }))

test('a take gets at most a second of work, and at most a hundred jobs', () => {
  const counts = [0, 5, 10, 100, 125, 400, 501, 900, 5_000].map(ms => {
    return countJobsAhead({ ...able, runs: behindOthers(ms) })
  })
  assert.deepEqual(counts, [100, 100, 100, 10, 8, 2, 1, 1, 1])
})

test('a worker that is not able to, no record and few runs get one job each', () => {
  assert.equal(countJobsAhead({ ...able, isAble: false, runs: behindOthers(5) }), 1)
  assert.equal(countJobsAhead({ ...able, runs: [] }), 1)
  assert.equal(countJobsAhead({ ...able, runs: alone(5, 4) }), 1)
  assert.equal(countJobsAhead({ ...able, runs: behindOthers(5, 4) }), 1)
  assert.equal(countJobsAhead({ ...able, runs: alone(5, 5) }), 100)
})

test('a take gets no more than the fair share of its worker', () => {
  for (const share of [0, 1, 2, 30]) {
    assert.equal(countJobsAhead({ isAble: true, share, runs: behindOthers(5) }), Math.max(1, share))
  }
})

test('one long run in ten, or a rare very long one, lowers the number', () => {
  assert.equal(countJobsAhead({ ...able, runs: [...behindOthers(5, 42), ...behindOthers(2_000, 8)] }), 1)
  assert.equal(countJobsAhead({ ...able, runs: [...behindOthers(5, 49), ...behindOthers(10_000, 1)] }), 4)
  assert.equal(countJobsAhead({ ...able, runs: [...alone(55, 9), ...alone(10_000, 1)] }), 1)
})

test('the time in which an idle worker picks a job up is no part of the run', () => {
  assert.equal(countJobsAhead({ ...able, runs: alone(150) }), 10)
  assert.equal(countJobsAhead({ ...able, runs: alone(20) }), 100)
})

test('runs behind others count alone once there are five, as they are exact', () => {
  assert.equal(countJobsAhead({ ...able, runs: [...alone(150, 45), ...behindOthers(20, 5)] }), 50)
  assert.equal(countJobsAhead({ ...able, runs: [...alone(150, 46), ...behindOthers(150, 4)] }), 10)
})

test('fifty runs are kept', () => {
  let runs: Runs = []
  for (let ms = 1; ms <= 60; ms += 1) runs = addRun(runs, { ms, isBehindOthers: true })
  assert.deepEqual(
    runs.map(({ ms }) => ms),
    Array.from({ length: 50 }, (_, index) => index + 11),
  )
})

test('only RUNYARD_TAKE_AHEAD=0 turns it off', () => {
  assert.equal(allowsTakeAhead({}), true)
  assert.equal(allowsTakeAhead({ RUNYARD_TAKE_AHEAD: '1' }), true)
  assert.equal(allowsTakeAhead({ RUNYARD_TAKE_AHEAD: '0' }), false)
})

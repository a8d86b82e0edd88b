/** Numbers of charts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { axisTime, axisTop, valueSteps } from '../../console/parts/axes.ts'
import { middles, newest, type Series, stacked, summarize, totals } from '../../console/parts/chart-data.ts'

const series = (...values: (number | null)[]): Series => ({
  id: 'a',
  title: 'A',
  color: '--main',
  look: 'plain',
  values,
})

test('stacked parts are sums from the first one up; only where no part has a value is a gap', () => {
  const parts = [series(1, null, null), series(2, 5, null), series(3, null, null)]
  assert.deepEqual(stacked(parts).at(-1), [6, 5, null])
  assert.deepEqual(stacked(parts)[1], [3, 5, null])
  assert.deepEqual(totals(parts), [6, 5, null])
  assert.deepEqual(totals([]), [])
})

test('the whole range has one number, without the gaps', () => {
  const values = [1, null, 4]
  assert.equal(summarize(values, 'sum'), 5)
  assert.equal(summarize(values, 'average'), 2.5)
  assert.equal(summarize(values, 'max'), 4)
  assert.equal(summarize([null], 'sum'), null)
  assert.equal(newest([1, 7, null]), 7)
  assert.equal(newest([]), null)
})

test('a span is drawn around its middle, also where months differ', () => {
  assert.deepEqual(middles({ atMs: [0, 10, 40], fromMs: 0, toMs: 50, lengthMs: 10 }), [5, 25, 45])
})

test('steps of an axis are those that people would choose', () => {
  assert.ok(valueSteps('count').every(Number.isInteger))
  assert.deepEqual(valueSteps('ms').slice(-4), [14_400_000, 43_200_000, 86_400_000, 172_800_000])
  for (const unit of ['count', 'number', 'ms', 'percent', 'money', 'hours'] as const) {
    const steps = valueSteps(unit)
    assert.deepEqual(
      steps,
      [...steps].sort((a, b) => a - b),
    )
  }
})

test('an axis has a height even where nothing happened', () => {
  assert.equal(axisTop('count', null), 1)
  assert.equal(axisTop('percent', 3), 100)
  assert.ok(axisTop('ms', 1_000) > 1_000)
})

test('a time axis has days at midnight, and months where labels are months apart', () => {
  const midnight = new Date(2026, 10, 26).getTime()
  assert.equal(axisTime(midnight + 3_600_000, 3_600_000), '01:00')
  assert.equal(axisTime(midnight, 3_600_000), '11-26')
  assert.equal(axisTime(midnight + 3_600_000, 86_400_000), '11-26')
  assert.equal(axisTime(midnight, 30 * 86_400_000), '2026-11')
})

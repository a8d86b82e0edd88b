/** Traces that are recorded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areStartsSampled, isSampled, TRACE_SAMPLING } from '../../../src/core/observing/trace-sampling.ts'

const LOW = `${'f'.repeat(18)}${'0'.repeat(14)}`
const HIGH = 'f'.repeat(32)

test('by default a client decides, and what begins here is recorded', () => {
  assert.equal(isSampled(TRACE_SAMPLING, LOW, false), false)
  assert.equal(isSampled(TRACE_SAMPLING, LOW, true), true)
  assert.equal(isSampled(TRACE_SAMPLING, LOW, null), true)
})

test('a sampler that does not go by the parent decides for the client', () => {
  assert.equal(isSampled({ sampler: 'always_on', ratio: 1 }, LOW, false), true)
  assert.equal(isSampled({ sampler: 'always_off', ratio: 1 }, LOW, true), false)
  assert.equal(isSampled({ sampler: 'traceidratio', ratio: 0.1 }, HIGH, true), false)
  assert.equal(isSampled({ sampler: 'parentbased_traceidratio', ratio: 0.1 }, HIGH, true), true)
})

test('the ratio is of the last digits of the id, so all who sample agree', () => {
  const half = (traceId: string) => isSampled({ sampler: 'traceidratio', ratio: 0.5 }, traceId, null)
  assert.equal(half(LOW), true)
  assert.equal(half(`${'0'.repeat(18)}7${'f'.repeat(13)}`), true)
  assert.equal(half(`${'0'.repeat(18)}8${'0'.repeat(13)}`), false)
  for (const [ratio, expected] of [
    [0, false],
    [1, true],
  ] as const) {
    for (const traceId of [LOW, HIGH]) {
      assert.equal(isSampled({ sampler: 'traceidratio', ratio }, traceId, null), expected)
    }
  }
})

test('starts of workers are recorded unless nothing is', () => {
  assert.equal(areStartsSampled({ sampler: 'parentbased_traceidratio', ratio: 0.001 }), true)
  assert.equal(areStartsSampled({ sampler: 'traceidratio', ratio: 0 }), false)
  assert.equal(areStartsSampled({ sampler: 'parentbased_always_off', ratio: 1 }), false)
})

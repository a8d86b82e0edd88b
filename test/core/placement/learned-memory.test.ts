import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isWork,
  learnedShareMb,
  NOTHING_LEARNED,
  placedCompute,
  withFailure,
  withUse,
} from '../../../src/core/placement/learned-memory.ts'
import { excessMb, findGreediest } from '../../../src/core/placement/share-excess.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { gpus } from '../../support/placing.ts'

const share = (peakMb: number, others: object = {}) =>
  learnedShareMb({ learned: { ...NOTHING_LEARNED, peakMb, hasWorked: true, ...others }, givenMb: null })

test('a share is the peak with a tenth more and at least 512 MiB, in steps of 256 MiB', () => {
  assert.deepEqual([share(1_000), share(10_000), share(20_000)], [1_536, 11_008, 22_016])
})

test('nothing is known before work, whatever was measured', () => {
  assert.equal(learnedShareMb({ learned: null, givenMb: null }), null)
  assert.equal(share(9_000, { hasWorked: false }), null)
  assert.equal(share(0, { hasWorked: false, failedMb: 9_000 }), null)
})

test('a failed share grows by a quarter, and never below the peak', () => {
  assert.equal(share(1_000, { failedMb: 4_096 }), 5_120)
  assert.equal(share(10_000, { failedMb: 4_096 }), 11_008)
})

test('a program that takes what it is given starts with what its catalog names', () => {
  const learned = { peakMb: 23_000, hasWorked: true, failedMb: 0 }
  assert.equal(learnedShareMb({ learned, givenMb: 16_384 }), 16_384)
  assert.equal(learnedShareMb({ learned: withFailure(learned, 16_384), givenMb: 16_384 }), 20_480)
})

test('uses and failures only add', () => {
  const first = withUse(null, { usedMb: 5_000, hasWorked: true })
  const second = withUse(withFailure(first, 2_048), { usedMb: 3_000, hasWorked: false })
  assert.deepEqual(second, { peakMb: 5_000, hasWorked: true, failedMb: 2_048 })
  assert.equal(withFailure(second, 1_024).failedMb, 2_048)
})

test('a request that the application refuses shows no need of memory', () => {
  const statuses = [200, 101, 302, 404, 401, 500]
  const shown = statuses.map(status => isWork({ status, complete: true }))
  assert.deepEqual(shown, [true, true, true, false, false, false])
  assert.equal(isWork({ status: 200, complete: false }), false)
})

test('a share that no card has room for is a whole card', () => {
  const parts = aMachine([aGpu(0)])
  const compute = { ...gpus(), memoryGb: 'auto' as const }
  const placed = (peakMb: number) =>
    placedCompute(compute, { learned: { peakMb, hasWorked: true, failedMb: 0 }, givenMb: null }, parts)
  assert.deepEqual(placed(4_000), { ...gpus(), memoryGb: 4.5 })
  assert.deepEqual(placed(23_000), gpus())
  assert.deepEqual(placedCompute(gpus({ memoryGb: 8 }), { learned: null, givenMb: null }, parts), gpus({ memoryGb: 8 }))
})

test('a worker is beyond its share by more than the margin of its card', () => {
  const totalMb = 24_576
  const use = (usedMb: number) => ({ shareMb: 8_192, usedMb, totalMb })
  assert.deepEqual([excessMb(use(8_192)), excessMb(use(8_704)), excessMb(use(8_705))], [0, 0, 513])
  assert.equal(findGreediest([use(8_000), use(8_600)]), null)
  assert.deepEqual(findGreediest([use(9_000), use(12_000), use(10_000)]), use(12_000))
})

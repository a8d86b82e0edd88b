import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addBucket,
  bucketText,
  countedTimes,
  countGpu,
  countOfRelease,
  countQueue,
  countTime,
  countWorkers,
  emptyBucket,
  type MetricBucket,
  percentile,
  readBucket,
} from '../../../src/core/observing/metric-bucket.ts'
import {
  MAX_INTERVALS,
  metricRange,
  pointsFromBuckets,
  releasesFromBuckets,
} from '../../../src/core/observing/metric-series.ts'

const aBucket: fc.Arbitrary<MetricBucket> = fc
  .record({
    delays: fc.array(fc.integer({ min: 0, max: 1e10 }), { maxLength: 20 }),
    workers: fc.array(fc.record({ starting: fc.nat(9), idle: fc.nat(9), running: fc.nat(9), frozen: fc.nat(9) }), {
      maxLength: 4,
    }),
    gpus: fc.array(fc.record({ busy: fc.option(fc.nat(100)), memory: fc.option(fc.nat(100)) }), { maxLength: 4 }),
    queue: fc.record({ waiting: fc.nat(9), inProgress: fc.nat(9) }),
    crashes: fc.nat(2),
    ofReleases: fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.boolean(), fc.nat(1e6)), { maxLength: 30 }),
    failed: fc.nat(99),
  })
  .map(({ delays, workers, gpus, queue, crashes, ofReleases, failed }) => {
    const bucket = emptyBucket()
    bucket.results.failed = failed
    for (const delay of delays) countTime(bucket, 'delay', delay)
    for (const delay of delays.slice(3)) countTime(bucket, 'coldStart', delay)
    for (const now of workers) countWorkers(bucket, now)
    for (const use of gpus) countGpu(bucket, use)
    countQueue(bucket, queue)
    bucket.crashes = crashes
    for (const [version, hasFailed, executionMs] of ofReleases)
      countOfRelease(bucket, version, { hasFailed, executionMs })
    return bucket
  })

test('a bucket survives its text', () => {
  fc.assert(fc.property(aBucket, bucket => assert.deepEqual(readBucket(bucketText(bucket)), bucket)))
})

test('the text of an older version has no GPUs, and that of an endpoint without is as short', () => {
  const bucket = emptyBucket()
  countWorkers(bucket, { starting: 0, idle: 1, running: 0, frozen: 0 })
  const text = bucketText(bucket)
  assert.equal(text, '[[0,0,0,0,0],[],[],[],[1,0,0,1,1,0,0,0,0]]')
  assert.deepEqual(readBucket(text).gpus.busy, { samples: 0, sum: 0, max: 0 })
  countGpu(bucket, { busy: 90, memory: null })
  assert.ok(bucketText(bucket).length > text.length)
  assert.deepEqual(readBucket(bucketText(bucket)).gpus.busy, { samples: 1, sum: 90, max: 90 })
})

test('a bucket has the longest queue and the sum of the crashes of its parts', () => {
  const [first, second] = [emptyBucket(), emptyBucket()]
  countQueue(first, { waiting: 7, inProgress: 1 })
  countQueue(first, { waiting: 2, inProgress: 3 })
  first.crashes = 1
  second.crashes = 2
  addBucket(second, first)
  assert.deepEqual([second.queue, second.crashes], [{ waiting: 7, inProgress: 3 }, 3])
  assert.deepEqual(readBucket(bucketText(second)), second, 'also without GPUs')
})

test('requests of releases are summed, of a bounded number of the newest', () => {
  const bucket = emptyBucket()
  for (let version = 1; version <= 30; version += 1) {
    countOfRelease(bucket, version, { hasFailed: version === 30, executionMs: 100 })
    countOfRelease(bucket, version, { hasFailed: false, executionMs: null })
  }
  assert.deepEqual([bucket.releases.size, bucket.releases.has(23), bucket.releases.has(22)], [8, true, false])
  const sums = releasesFromBuckets([
    { atMs: 0, bucket },
    { atMs: 60_000, bucket },
  ])
  const [version, { ended, failed, execution }] = sums[0]!
  assert.deepEqual([version, ended, failed, countedTimes(execution)], [30, 4, 2, 2])
})

test('the sum of two buckets is that of their parts in any order', () => {
  fc.assert(
    fc.property(aBucket, aBucket, (a, b) => {
      const [first, second] = [emptyBucket(), emptyBucket()]
      for (const part of [a, b]) addBucket(first, part)
      for (const part of [b, a]) addBucket(second, part)
      assert.deepEqual(first, second)
      assert.equal(countedTimes(first.times.delay), countedTimes(a.times.delay) + countedTimes(b.times.delay))
    }),
  )
})

test('a percentile is right to a tenth', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 1e9 }), { minLength: 1, maxLength: 200 }),
      fc.constantFrom(0.5, 0.9, 0.95, 0.99, 1),
      (times, part) => {
        const bucket = emptyBucket()
        for (const ms of times) countTime(bucket, 'execution', ms)
        const exact = times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1]!
        const found = percentile(bucket.times.execution, part)!
        assert.ok(Math.abs(found - exact) <= Math.max(1, exact * 0.1), `${found} for ${exact}`)
      },
    ),
  )
  assert.equal(percentile([], 0.5), null)
})

test('hours add up to days, and empty intervals are left out', () => {
  const hours = [0, 1, 23, 48].map(hour => {
    const bucket = emptyBucket()
    bucket.results.completed = 1
    return { atMs: hour * 3_600_000, bucket }
  })
  const days = pointsFromBuckets(hours, '1d')
  assert.deepEqual(
    days.map(({ atMs, bucket }) => [atMs, bucket.results.completed]),
    [
      [0, 3],
      [172_800_000, 1],
    ],
  )
})

test('a range begins with an interval, is bounded, and has a standard length', () => {
  const nowMs = 1_700_000_030_000
  const range = (fromMs?: number, toMs?: number) => metricRange({ interval: '1m', fromMs, toMs }, nowMs)
  assert.deepEqual(range(), { interval: '1m', fromMs: 1_699_996_380_000, toMs: nowMs })
  assert.deepEqual(range(nowMs - 61_000), { interval: '1m', fromMs: 1_699_999_920_000, toMs: nowMs })
  assert.match(JSON.stringify(range(nowMs, nowMs - 120_000)), /must be before/)
  assert.match(JSON.stringify(range(nowMs - (MAX_INTERVALS + 1) * 60_000)), /at most 1500 intervals/)
})

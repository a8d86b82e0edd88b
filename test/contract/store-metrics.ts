import assert from 'node:assert/strict'
import { NO_JOB_USAGE } from '../../src/core/billing/usage.ts'
import type { EndpointId } from '../../src/core/ids.ts'
import { countTime, emptyBucket } from '../../src/core/observing/metric-bucket.ts'
import { type Cases, E1, E2, makeEndpoint, OWNER, STRANGER } from './store-world.ts'

const HOUR_MS = 3_600_000
/** The beginning of an hour. */
const T = 1_699_999_200_000

/** A bucket with so many completed requests. */
function completed(count: number) {
  const bucket = emptyBucket()
  bucket.results.completed = count
  countTime(bucket, 'delay', 100)
  return bucket
}

/** Metrics of endpoints over time. */
export const metricCases: Cases = {
  'counts add up in the bucket of their minute and in that of their hour': async ({ store: { metrics } }) => {
    await metrics.add([
      { endpointId: E1, minuteMs: T, bucket: completed(1) },
      { endpointId: E1, minuteMs: T + 60_000, bucket: completed(2) },
    ])
    await metrics.add([{ endpointId: E1, minuteMs: T + 60_000, bucket: completed(4) }])
    const minutes = await metrics.read(E1, 'minute', T, T + HOUR_MS, 10)
    assert.deepEqual(
      minutes.map(({ atMs, bucket }) => [atMs, bucket.results.completed, bucket.times.delay.at(-1)]),
      [
        [T, 1, 1],
        [T + 60_000, 6, 2],
      ],
    )
    const hours = await metrics.read(E1, 'hour', 0, T + HOUR_MS, 10)
    assert.deepEqual(
      hours.map(({ atMs, bucket }) => [atMs, bucket.results.completed]),
      [[T, 7]],
    )
    assert.equal((await metrics.read(E1, 'minute', T + 60_000, T + HOUR_MS, 10)).length, 1)
    assert.equal((await metrics.read(E1, 'minute', T, T + 60_000, 10)).length, 1)
    assert.equal((await metrics.read(E1, 'minute', T, T + HOUR_MS, 1)).length, 1)
  },

  'the minutes of all endpoints in which requests ended are read at once, the newest first': async ({ store }) => {
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    const failed = emptyBucket()
    failed.results.timedOut = 1
    failed.results.cancelled = 2
    await store.metrics.add([
      { endpointId: E1, minuteMs: T, bucket: completed(1) },
      { endpointId: E1, minuteMs: T + 60_000, bucket: emptyBucket() },
      { endpointId: E2, minuteMs: T + 60_000, bucket: failed },
      { endpointId: E2, minuteMs: T + 120_000, bucket: completed(1) },
    ])
    assert.deepEqual(await store.metrics.results(T, T + 120_000, 10), [
      { endpointId: E2, minuteMs: T + 60_000, results: { ended: 3, failed: 1, canceled: 2 } },
      { endpointId: E1, minuteMs: T, results: { ended: 1, failed: 0, canceled: 0 } },
    ])
    assert.equal((await store.metrics.results(T, T + 180_000, 1)).length, 1)
  },

  'buckets are those of one endpoint, and a deleted endpoint gets no new ones': async ({ store }) => {
    const gone = 'gone' as EndpointId
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    await store.metrics.add([
      { endpointId: E2, minuteMs: T, bucket: completed(1) },
      { endpointId: gone, minuteMs: T, bucket: completed(1) },
    ])
    assert.deepEqual(await store.metrics.read(E1, 'minute', 0, T + 1, 10), [])
    assert.deepEqual(await store.metrics.read(gone, 'minute', 0, T + 1, 10), [])
    assert.equal((await store.metrics.read(E2, 'minute', 0, T + 1, 10)).length, 1)
  },

  'requests are added to the counters and the usage of their endpoint, those of a deleted one are dropped': async ({
    store,
  }) => {
    const requests = { ...NO_JOB_USAGE, completed: 3, failed: 2, cancelled: 1, queuedMs: 40, executionMs: 900 }
    await store.metrics.add([
      { endpointId: E1, minuteMs: T, bucket: completed(3), requests },
      { endpointId: E1, minuteMs: T + 60_000, bucket: completed(1), requests: null },
      { endpointId: 'gone' as EndpointId, minuteMs: T, bucket: completed(3), requests },
    ])
    await store.metrics.add([{ endpointId: E1, minuteMs: T + HOUR_MS, bucket: completed(3), requests }])
    const { completed: ended, failed } = (await store.endpoints.snapshot(E1))!.counters
    assert.deepEqual([ended, failed], [6, 4])
    const bounds = [T, T + HOUR_MS, T + 2 * HOUR_MS]
    const { sums } = await store.usage.jobs({ owner: OWNER, endpointId: null, bounds })
    assert.deepEqual(
      sums.map(({ startMs, endpointId, usage }) => [startMs, endpointId, usage]),
      [
        [T, E1, requests],
        [T + HOUR_MS, E1, requests],
      ],
    )
  },

  'the queues are those with jobs, the longest first, and bounded': async world => {
    const { metrics, endpoints } = world.store
    await endpoints.insert(makeEndpoint(E2))
    assert.deepEqual(await metrics.queues(10), [])
    await world.holder('w1', 'a')
    await world.jobs('b', 'c')
    await world.job('low', { lowPriority: true })
    await world.job('other', { endpointId: E2 })
    const longest = { endpointId: E1, waiting: 3, inProgress: 1 }
    assert.deepEqual(await metrics.queues(10), [longest, { endpointId: E2, waiting: 1, inProgress: 0 }])
    assert.deepEqual(await metrics.queues(1), [longest])
    await world.finish('a')
    assert.deepEqual((await metrics.queues(1))[0], { endpointId: E1, waiting: 3, inProgress: 0 })
  },

  'old buckets of a span are removed, a bounded number at once, and the rest with the endpoint': async ({ store }) => {
    const minutes = [0, 1, 2, 3].map(n => ({ endpointId: E1, minuteMs: T + n * 60_000, bucket: completed(1) }))
    await store.metrics.add(minutes)
    assert.equal(await store.metrics.removeOld('minute', T + 120_000, 1), 1)
    assert.equal(await store.metrics.removeOld('minute', T + 120_000, 9), 1)
    assert.equal(await store.metrics.removeOld('minute', T + 120_000, 9), 0)
    assert.equal((await store.metrics.read(E1, 'minute', 0, T + HOUR_MS, 10)).length, 2)
    assert.equal((await store.metrics.read(E1, 'hour', 0, T + HOUR_MS, 10)).length, 1)
    await store.endpoints.remove(E1, T)
    assert.equal((await store.removals.removePart(E1, T, 2)).more, true)
    assert.equal((await store.removals.removePart(E1, T, 9)).more, false)
    assert.equal(await store.endpoints.isFree(E1), true)
  },
}

import assert from 'node:assert/strict'
import type { EndpointId } from '../../src/core/ids.ts'
import { type AttemptTimes, BLOCK_LIMITS, MAX_BLOCKS, timesFromBlock } from '../../src/core/jobs/attempt-times.ts'
import { type Cases, E1, E2, makeEndpoint, STRANGER } from './store-world.ts'

const T = 1_700_000_000_000
const WEEK_MS = BLOCK_LIMITS.lengthMs
const EVER = Number.MAX_SAFE_INTEGER

function endedAt(finishedAtMs: number): AttemptTimes {
  return { queuedAtMs: finishedAtMs - 3_000, startedAtMs: finishedAtMs - 1_000, finishedAtMs, cold: true }
}

/** Times of attempts. */
export const attemptTimesCases: Cases = {
  'times are added behind those that are there, and read in blocks, the newest first': async ({
    store: { attemptTimes },
  }) => {
    await attemptTimes.add([{ endpointId: E1, times: [endedAt(T), endedAt(T + 5)] }])
    await attemptTimes.add([{ endpointId: E1, times: [endedAt(T + 7), endedAt(T + WEEK_MS)] }])
    const blocks = await attemptTimes.read(E1, 0, EVER, 10)
    assert.deepEqual(
      blocks.map(({ atMs, toMs, attempts }) => [atMs, toMs, attempts]),
      [
        [T + WEEK_MS, T + WEEK_MS, 1],
        [T, T + 7, 3],
      ],
    )
    assert.deepEqual(blocks.toReversed().flatMap(timesFromBlock), [T, T + 5, T + 7, T + WEEK_MS].map(endedAt))
    assert.deepEqual(await attemptTimes.read(E1, 0, EVER, 1), blocks.slice(0, 1))
    assert.deepEqual(await attemptTimes.read(E1, 0, T + WEEK_MS, 10), blocks.slice(1))
    assert.deepEqual(await attemptTimes.read(E1, T + 8, EVER, 10), blocks.slice(0, 1))
  },

  'times are those of one endpoint, and those of a deleted endpoint are removed': async ({ store }) => {
    const gone = 'gone' as EndpointId
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    await store.attemptTimes.add([E2, gone].map(endpointId => ({ endpointId, times: [endedAt(T)] })))
    assert.deepEqual(await store.attemptTimes.read(E1, 0, EVER, 10), [])
    assert.deepEqual(await store.attemptTimes.read(gone, 0, EVER, 10), [])
    assert.equal((await store.attemptTimes.read(E2, 0, EVER, 10)).length, 1)
  },

  'an endpoint has a limit of blocks, and the oldest go': async ({ store: { attemptTimes } }) => {
    const weeks = Array.from({ length: MAX_BLOCKS.ofEndpoint + 3 }, (_, index) => endedAt(T + index * WEEK_MS))
    await attemptTimes.add([{ endpointId: E1, times: weeks }])
    const blocks = await attemptTimes.read(E1, 0, EVER, MAX_BLOCKS.ofEndpoint + 10)
    assert.equal(blocks.length, MAX_BLOCKS.ofEndpoint)
    assert.equal(blocks.at(-1)!.atMs, T + 3 * WEEK_MS)
  },

  'old blocks are removed, a bounded number at once, and the rest with the endpoint': async ({ store }) => {
    const weeks = [0, 1, 2, 3].map(week => endedAt(T + week * WEEK_MS))
    await store.attemptTimes.add([{ endpointId: E1, times: weeks }])
    assert.equal(await store.attemptTimes.removeOld(T + 2 * WEEK_MS, 1), 1)
    assert.equal(await store.attemptTimes.removeOld(T + 2 * WEEK_MS, 9), 1)
    assert.equal(await store.attemptTimes.removeOld(T + 2 * WEEK_MS, 9), 0)
    assert.equal((await store.attemptTimes.read(E1, 0, EVER, 10)).length, 2)
    await store.endpoints.remove(E1, T)
    assert.equal((await store.removals.removePart(E1, T, 2)).more, true)
    assert.equal((await store.removals.removePart(E1, T, 9)).more, false)
    assert.equal(await store.endpoints.isFree(E1), true)
  },
}

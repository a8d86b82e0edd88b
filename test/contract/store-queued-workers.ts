import assert from 'node:assert/strict'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { MAX_QUEUED_WORKERS, type QueuedWorker, UNPLACED } from '../../src/core/workers/placement.ts'
import {
  type Cases,
  E1,
  E2,
  EXIT,
  jobId,
  makeEndpoint,
  makeTemplate,
  makeWorker,
  OWNER,
  replaceTemplate,
  STRANGER,
  T0,
  TPL,
  W1,
  W2,
} from './store-world.ts'

/** A worker of {@link E1} that waits for a place. */
function makeQueuedWorker(id: string, changes: Partial<QueuedWorker> = {}): QueuedWorker {
  return {
    id: id as WorkerId,
    owner: OWNER,
    endpointId: E1,
    version: 1,
    queuedAtMs: T0,
    downloadStartedAtMs: null,
    downloadEndedAtMs: null,
    resource: 'gpu',
    reason: 'no free GPU of pool ADA_24: 1 of 1 in use by endpoint chat',
    ...changes,
  }
}

/** Workers that wait for a place, those that get one, and those that make room. */
export const queuedWorkerCases: Cases = {
  'workers that wait for a place are those of the last report, with their reasons': async ({ store }) => {
    const waiting = async () => (await store.endpoints.snapshot(E1))?.queuedWorkers
    assert.deepEqual(await waiting(), [])
    const [b, a] = [makeQueuedWorker('b', { queuedAtMs: T0 + 1 }), makeQueuedWorker('a')]
    await store.queuedWorkers.replace(E1, [b, a])
    assert.deepEqual(await waiting(), [a, b])
    const times = { queuedAtMs: T0 + 9, downloadStartedAtMs: T0 + 2, downloadEndedAtMs: T0 + 5 }
    const changed = { ...b, resource: 'cpu', reason: '2 vCPUs are wanted', ...times } as const
    await store.queuedWorkers.replace(E1, [changed])
    assert.deepEqual(await waiting(), [{ ...changed, queuedAtMs: T0 + 1 }])
    await store.queuedWorkers.replace(E1, [])
    assert.deepEqual(await waiting(), [])
  },

  'no more wait for a place than the max leaves beside the workers that there are': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint(E2, { workersMax: 3 }))
    await store.workers.insert(makeWorker(W1, { endpointId: E2 }), 'token')
    await store.queuedWorkers.replace(
      E2,
      ['a', 'b', 'c'].map(id => makeQueuedWorker(id, { endpointId: E2 })),
    )
    const ids = async () => (await store.endpoints.snapshot(E2))?.queuedWorkers.map(({ id }) => id)
    assert.deepEqual(await ids(), ['a', 'b'])
    await store.workers.exited(W1, EXIT, T0)
    await store.endpoints.insert(makeEndpoint('large', { workersMax: 1_000 }))
    const many = Array.from({ length: 150 }, (_, n) => makeQueuedWorker(`q${n}`, { endpointId: 'large' as EndpointId }))
    await store.queuedWorkers.replace('large' as EndpointId, many)
    assert.equal((await store.endpoints.snapshot('large' as EndpointId))?.queuedWorkers.length, MAX_QUEUED_WORKERS)
  },

  'a worker that gets a place waits no longer, and others that wait count against the max': async ({ store }) => {
    await store.endpoints.insert(makeEndpoint(E2, { workersMax: 2 }))
    const queued = ['a', 'b'].map(id => makeQueuedWorker(id, { endpointId: E2 }))
    await store.queuedWorkers.replace(E2, queued)
    assert.equal(await store.workers.insert(makeWorker('c', { endpointId: E2 }), 'c'), false)
    assert.equal(await store.workers.insert(makeWorker('a', { endpointId: E2, createdAtMs: T0 }), 'a'), true)
    assert.deepEqual((await store.endpoints.snapshot(E2))?.queuedWorkers, [queued[1]])
  },

  'the time of a worker counts from when it got its place, not from when it was wanted': async ({ store }) => {
    await store.queuedWorkers.replace(E1, [makeQueuedWorker(W1)])
    const placed = { placement: UNPLACED, placedAtMs: T0 + 60_000 }
    await store.workers.insert(makeWorker(W1, { createdAtMs: T0, ...placed }), 'token')
    await store.workers.exited(W1, EXIT, T0 + 61_000)
    const bounds = [T0 - (T0 % 3_600_000), T0 - (T0 % 3_600_000) + 7_200_000]
    const { sums } = await store.usage.workers({ owner: OWNER, endpointId: E1, bounds }, T0 + 61_000)
    assert.deepEqual(
      sums.map(({ usage }) => usage.startingMs),
      [1_000],
    )
  },

  'a worker that waits for a place goes with its endpoint and with its version': async ({ store }) => {
    await store.queuedWorkers.replace(E1, [makeQueuedWorker('a'), makeQueuedWorker('old', { version: 7 })])
    const before = await store.endpoints.find(E1)
    assert.deepEqual(
      (await store.queuedWorkers.list(OWNER)).map(({ id }) => id),
      ['a'],
    )
    await store.endpoints.replace({ ...before!, version: 2 }, before!, T0)
    assert.deepEqual((await store.endpoints.snapshot(E1))?.queuedWorkers, [])
    assert.deepEqual(await store.queuedWorkers.list(OWNER), [])
    assert.deepEqual(await store.endpoints.active(), [], 'it has nothing to do')
    await store.queuedWorkers.replace(E1, [makeQueuedWorker('b', { version: 2 })])
    await store.endpoints.remove(E1, T0)
    await store.queuedWorkers.replace(E1, [makeQueuedWorker('c', { version: 2 })])
    assert.deepEqual(await store.queuedWorkers.list(OWNER), [])
  },

  'a worker that waits for a place goes with its version also when a template made the new one': async ({ store }) => {
    await store.queuedWorkers.replace(E1, [makeQueuedWorker('a')])
    assert.deepEqual(await store.endpoints.active(), [E1])
    await replaceTemplate(store.templates, makeTemplate(TPL, { image: 'another' }), T0)
    assert.equal((await store.endpoints.find(E1))?.version, 2)
    assert.deepEqual(await store.endpoints.active(), [], 'it has nothing to do')
  },

  'each owner sees the workers that wait at its own endpoints': async ({ store }) => {
    await store.templates.insert(makeTemplate('t9', { owner: STRANGER, name: 'other' }))
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER, templateId: 't9' as never }))
    await store.queuedWorkers.replace(E2, [makeQueuedWorker('x', { endpointId: E2, owner: STRANGER })])
    await store.queuedWorkers.replace(E1, [makeQueuedWorker('a')])
    assert.deepEqual(
      (await store.queuedWorkers.list(OWNER)).map(({ id }) => id),
      ['a'],
    )
    assert.deepEqual(
      (await store.queuedWorkers.list(STRANGER)).map(({ id }) => id),
      ['x'],
    )
  },

  'what waits is counted over all owners by what it waits for, the longest wait first': async ({ store }) => {
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER, name: 'theirs' }))
    await store.queuedWorkers.replace(E1, [
      makeQueuedWorker('a', { queuedAtMs: T0 + 5 }),
      makeQueuedWorker('b', { queuedAtMs: T0 + 9 }),
    ])
    await store.queuedWorkers.replace(E2, [
      makeQueuedWorker('x', { endpointId: E2, owner: STRANGER, reason: 'no GPU' }),
    ])
    const { resource, reason } = makeQueuedWorker('a')
    const ofOwner = { endpointId: E1, endpointName: 'endpoint e1', account: OWNER, resource, reason }
    const ofStranger = { endpointId: E2, endpointName: 'theirs', account: STRANGER, resource, reason: 'no GPU' }
    assert.deepEqual(await store.queuedWorkers.waiting(10), [
      { ...ofStranger, workers: 1, sinceMs: makeQueuedWorker('x').queuedAtMs },
      { ...ofOwner, workers: 2, sinceMs: T0 + 5 },
    ])
    assert.equal((await store.queuedWorkers.waiting(1)).length, 1)
  },

  'a worker makes room only while it is ready and has neither a job nor one to stop': async world => {
    const { workers, jobOutcomes, stops } = world.store
    await workers.insert(makeWorker(W2), 'starting')
    assert.equal(await workers.evict(W2, T0), null)
    await world.holder(W1, 'job')
    assert.equal(await workers.evict(W1, T0), null)
    await jobOutcomes.cancel(E1, jobId('job'), T0)
    assert.equal(await workers.evict(W1, T0), null)
    await stops.letGo(W1, 'all')
    const move = await workers.evict(W1, T0 + 5)
    assert.deepEqual([move?.from, move?.worker.state, move?.worker.stopReason], ['READY', 'DRAINING', 'evicted'])
    assert.equal(await workers.evict(W1, T0 + 6), null)
    assert.equal(await workers.evict('gone' as WorkerId, T0), null)
  },

  'the loads of all workers that have not ended are read at once': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint(E2))
    await world.holder(W1, 'job')
    await world.worker(W2, { endpointId: E2 })
    await world.worker('ended')
    await store.workers.exited('ended' as WorkerId, EXIT, T0)
    const loads = (await store.workers.loads()).map(({ id, endpointId, held }) => [id, endpointId, held])
    assert.deepEqual(loads.sort(), [
      [W1, E1, 1],
      [W2, E2, 0],
    ])
  },
}

import assert from 'node:assert/strict'
import type { WorkerId } from '../../src/core/ids.ts'
import { batchId, draft, look, makeRequest, numberedIds, requireBatch, running, unsettled } from './store-batches.ts'
import { type Cases, E1, jobId, NO_SUSPECTS, OWNER, T0, W1, type World } from './store-world.ts'

/** Order of the jobs that claims get, one after another. */
async function order(world: World, count: number, nowMs = T0): Promise<string[]> {
  const claimed: string[] = []
  for (let n = 0; n < count; n += 1) claimed.push(...(await world.claim(W1, 1, nowMs)).map(({ id }) => id))
  return claimed
}

/** Batches and jobs in one line. */
export const turnCases: Cases = {
  'requests of one batch are handed out in their order, with the batch that they belong to': async world => {
    await world.worker()
    await running(world, 'b', ['z', 'y', 'x'])
    const [first] = await world.claim()
    assert.deepEqual([first?.id, first?.batchId], ['z', 'b'])
    assert.deepEqual(await order(world, 3), ['y', 'x'])
  },

  'a job waits for one request of each batch before it, and a batch for the jobs before it': async world => {
    await world.worker()
    await world.jobs('one', 'two')
    await running(world, 'a', numberedIds('a', 3))
    await running(world, 'b', numberedIds('b', 3))
    await world.job('three', { position: T0 + 1_000 })
    const wanted = ['one', 'two', 'a-0', 'b-0', 'three', 'a-1', 'b-1', 'a-2', 'b-2']
    assert.deepEqual(await order(world, 10), wanted)
  },

  'a job that comes while a batch has the line to itself is handed out at the next turn but one': async world => {
    await world.worker()
    await running(world, 'a', numberedIds('a', 9))
    assert.deepEqual(await order(world, 4), numberedIds('a', 4))
    await world.job('new', { position: T0 * 1_024 })
    assert.deepEqual(await order(world, 3), ['a-4', 'new', 'a-5'])
  },

  'several at once are the same as one after another': async world => {
    await world.worker()
    await running(world, 'a', numberedIds('a', 3))
    await running(world, 'b', numberedIds('b', 1))
    await world.job('one', { position: T0 })
    const claimed = (await world.claim(W1, 4)).map(({ id }) => id)
    assert.deepEqual(claimed.sort(), ['a-0', 'a-1', 'b-0', 'one'])
    assert.deepEqual(
      (await world.claim(W1, 9)).map(({ id }) => id),
      ['a-2'],
    )
    assert.equal((await look(world, 'a')).inProgress, 3)
  },

  'low priority comes after all others, within a batch and beyond it': async world => {
    await world.worker()
    const fields = { id: batchId('b'), owner: OWNER, endpointId: E1, name: null, webhook: null }
    const requests = [makeRequest('low', { lowPriority: true }), makeRequest('x'), makeRequest('y')]
    requireBatch(await world.store.batches.create(fields, requests, T0, null))
    await world.store.batches.finalize(E1, fields.id, T0)
    await world.store.batches.release(fields.id, 9)
    await world.job('low job', { lowPriority: true, position: 1 })
    await world.job('job', { position: T0 })
    assert.deepEqual(await order(world, 3), ['x', 'job', 'y'])
    assert.deepEqual((await order(world, 3)).sort(), ['low', 'low job'])
  },

  'a job that the worker has yet to stop holds up neither the batches behind it nor lets low priority before them':
    async world => {
      const { jobOutcomes } = world.store
      await world.worker()
      await world.jobs('retried')
      await world.claim()
      await jobOutcomes.timeOutOverdue(T0 + 10_000_000, 9)
      await jobOutcomes.retry(E1, jobId('retried'), T0 + 1, T0 + 1)
      await running(world, 'b', ['x', 'y'])
      await world.job('low job', { lowPriority: true, position: 1 })
      assert.deepEqual(await order(world, 4, T0 + 2), ['x', 'y', 'low job'])
    },

  'requests of drafts and of cancelled batches are not handed out': async world => {
    await world.worker()
    await draft(world, 'a', ['x'])
    await running(world, 'b', ['y'])
    await running(world, 'c', ['z'])
    requireBatch(await world.store.batches.cancel(E1, batchId('b'), T0))
    assert.deepEqual(
      (await world.claim(W1, 9)).map(({ id }) => id),
      ['z'],
    )
  },

  'a request that is given back is the first of its batch at the next turn': async world => {
    await world.worker()
    await running(world, 'b', ['x', 'y'])
    await world.claim()
    await world.store.jobOutcomes.release(W1, 'all')
    assert.deepEqual(await order(world, 2), ['x', 'y'])
  },

  'requests past their ttl have no turn': async world => {
    await world.worker()
    await running(world, 'b', ['x', 'y'])
    await world.store.jobs.setExpiry(E1, jobId('x'), T0 + 10, T0)
    assert.deepEqual(await order(world, 2, T0 + 10), ['y'])
  },

  'how many requests come before one is known while it waits': async world => {
    const { batches } = world.store
    await world.worker()
    await world.jobs('single')
    await running(world, 'b', ['x', 'y', 'z'])
    assert.deepEqual(await batches.before(jobId('z'), 9), { batchId: 'b', requestsAhead: 2 })
    assert.deepEqual(await batches.before(jobId('z'), 1), { batchId: 'b', requestsAhead: 1 }, 'counted to the limit')
    await order(world, 2)
    assert.deepEqual(await batches.before(jobId('z'), 9), { batchId: 'b', requestsAhead: 1 })
    assert.equal(await batches.before(jobId('x'), 9), null)
    assert.equal(await batches.before(jobId('single'), 9), null)
  },

  'the autoscaler sees what waits in batches, and since when a batch waits for its turn': async world => {
    await world.worker()
    await running(world, 'b', ['x', 'y', 'z'], T0 + 50)
    await draft(world, 'c', ['u'])
    const load = {
      queued: 3,
      queuedLowPriority: 0,
      queuedInBatches: 3,
      inProgress: 0,
      ...NO_SUSPECTS,
      headQueuedAtMs: T0 + 50,
    }
    assert.deepEqual((await world.snapshot()).queue, load)
    await world.claim(W1, 1, T0 + 90)
    assert.deepEqual((await world.snapshot()).queue, {
      queued: 2,
      queuedLowPriority: 0,
      queuedInBatches: 2,
      inProgress: 1,
      ...NO_SUSPECTS,
      headQueuedAtMs: T0 + 90,
    })
    await world.job('single', { queuedAtMs: T0 + 10 })
    const { queue } = await world.snapshot()
    assert.deepEqual([queue.queued, queue.queuedInBatches, queue.headQueuedAtMs], [3, 2, T0 + 10])
  },

  'a hundred claims at once give each request of two batches and each job to one worker': async world => {
    const workerIds = Array.from({ length: 10 }, (_, n) => `worker-${n}` as WorkerId)
    for (const id of workerIds) await world.worker(id)
    await running(world, 'a', numberedIds('a', 25))
    await running(world, 'b', numberedIds('b', 25))
    await Promise.all(numberedIds('job', 25).map((id, n) => world.job(id, { position: T0 + n })))
    const claims = await Promise.all(Array.from({ length: 100 }, (_, n) => world.claim(workerIds[n % 10])))
    const claimed = claims.flat().map(({ id }) => id)
    const all = [...numberedIds('a', 25), ...numberedIds('b', 25), ...numberedIds('job', 25)]
    assert.deepEqual(claimed.sort(), all.sort())
  },

  'concurrent claims, results, cancels and adds leave correct counts': async world => {
    const { jobOutcomes } = world.store
    const workerIds = Array.from({ length: 4 }, (_, n) => `worker-${n}` as WorkerId)
    for (const id of workerIds) await world.worker(id)
    await running(world, 'a', numberedIds('a', 30))
    await running(world, 'b', numberedIds('b', 30))
    const work = async (workerId: WorkerId) => {
      for (;;) {
        const claimed = await world.claim(workerId, 2)
        if (claimed.length === 0) return
        await Promise.all(claimed.map(({ id }) => world.finish(id, workerId)))
      }
    }
    const cancels = numberedIds('a', 30).filter((_, n) => n % 5 === 0)
    await Promise.all([
      ...workerIds.map(work),
      ...cancels.map(id => jobOutcomes.cancel(E1, jobId(id), T0)),
      draft(world, 'c', numberedIds('c', 20)),
    ])
    for (const id of ['a', 'b']) {
      const { total, completed, failed, finishedAtMs } = await look(world, id)
      assert.equal(completed + failed, total)
      assert.notEqual(finishedAtMs, null)
    }
    assert.equal((await look(world, 'b')).completed, 30)
    assert.deepEqual(await unsettled(world), [])
  },
}

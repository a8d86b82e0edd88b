import assert from 'node:assert/strict'
import type { JobId } from '../../src/core/ids.ts'
import { BATCH, type Batch } from '../../src/core/jobs/batch.ts'
import {
  batchId,
  counts,
  draft,
  look,
  numberedIds,
  page,
  refusal,
  requireBatch,
  running,
  unsettled,
} from './store-batches.ts'
import { BROKEN, type Cases, DONE, E1, jobId, OWNER, T0, W1 } from './store-world.ts'

/** Ends of batches and of their requests. */
export const batchEndCases: Cases = {
  'every end of a job is counted in its batch, and the last one finishes it': async world => {
    const { jobOutcomes } = world.store
    const ids = ['done', 'broken', 'cancelled', 'late', 'lost', 'expired', 'purged']
    await running(world, 'b', ids)
    await world.worker()
    assert.equal((await world.claim(W1, 5)).length, 5)
    assert.deepEqual(counts(await look(world, 'b')), [7, 5, 0, 0])
    await world.finish('done', W1, DONE)
    await world.finish('broken', W1, BROKEN)
    assert.deepEqual(counts(await look(world, 'b')), [7, 3, 1, 1])
    await jobOutcomes.cancel(E1, jobId('cancelled'), T0)
    await world.store.jobs.setExpiry(E1, jobId('expired'), T0 + 20, T0)
    assert.equal((await jobOutcomes.removeExpired(T0 + 20, 9)).jobs.length, 1)
    assert.equal((await world.purge()).length, 1)
    assert.deepEqual(counts(await look(world, 'b')), [7, 2, 1, 4])
    assert.equal((await look(world, 'b')).finishedAtMs, null)
    await world.store.jobs.setExpiry(E1, jobId('lost'), T0 + 10_001, T0)
    assert.equal((await jobOutcomes.timeOutOverdue(T0 + 10_000, 1)).length, 1)
    // Else it gets no job that was lost twice.
    await world.store.stops.letGo(W1, 'all')
    for (let n = 0; n < 9; n += 1) {
      await jobOutcomes.requeueLost(W1, 'it vanished', T0 + 10_000)
      await world.claim(W1, 1, T0 + 10_000)
    }
    const { finishedAtMs, expiresAtMs, ...batch } = await look(world, 'b', T0 + 10_001)
    assert.deepEqual(counts(batch as Batch), [7, 0, 1, 6])
    assert.deepEqual([finishedAtMs, expiresAtMs], [T0 + 10_000, T0 + 10_000 + BATCH.keptMs])
  },

  'ends that come at once are all counted': async world => {
    await running(world, 'b', numberedIds('r', 40))
    await world.worker()
    const claimed = await world.claim(W1, 40)
    await Promise.all(claimed.map(({ id }, n) => world.finish(id, W1, n % 4 === 0 ? BROKEN : DONE, T0 + n)))
    const batch = await look(world, 'b')
    assert.deepEqual(counts(batch), [40, 0, 30, 10])
    assert.ok(batch.finishedAtMs !== null)
  },

  'a retried request opens its batch again, and stands in line by itself': async world => {
    const { jobOutcomes, batches } = world.store
    await running(world, 'b', ['x'])
    await world.worker()
    await world.claim()
    await world.finish('x', W1, BROKEN)
    assert.notEqual((await look(world, 'b')).finishedAtMs, null)
    await jobOutcomes.retry(E1, jobId('x'), T0 + 7, T0 + 600)
    const { failed, finishedAtMs, expiresAtMs } = await look(world, 'b', T0 + 600)
    assert.deepEqual([failed, finishedAtMs, expiresAtMs], [0, null, null])
    assert.equal(await batches.before(jobId('x'), 9), null)
    requireBatch(await batches.cancel(E1, batchId('b'), T0 + 600))
    assert.deepEqual(await unsettled(world), [], 'a cancelled batch leaves it alone')
    assert.equal((await world.claim(W1, 1, T0 + 700))[0]?.id, 'x')
    await world.finish('x', W1, DONE, T0 + 800)
    assert.deepEqual(counts(await look(world, 'b')), [1, 0, 1, 0])
  },

  'a cancelled draft is over at once and keeps its list; again is no error': async world => {
    const { batches } = world.store
    await draft(world, 'b', ['x', 'y'])
    for (let time = 0; time < 2; time += 1) {
      const batch = requireBatch(await batches.cancel(E1, batchId('b'), T0 + 5 + time))
      assert.deepEqual([batch.status, batch.failed, batch.finishedAtMs], ['CANCELLED', 2, T0 + 5])
    }
    assert.deepEqual(await page(world, 'b'), { total: 2, items: ['x CANCELLED', 'y CANCELLED'] })
    assert.deepEqual(await unsettled(world), [])
    assert.equal(await batches.cancel(E1, batchId('c'), T0), null)
  },

  'cancelling drops what waits in parts and lets run what runs, also when it is queued again': async world => {
    const { batches, jobOutcomes } = world.store
    await running(world, 'b', numberedIds('r', 6))
    await world.worker()
    await world.claim(W1, 2)
    requireBatch(await batches.cancel(E1, batchId('b'), T0))
    assert.deepEqual(await world.claim(W1, 5), [], 'it has no turn any more')
    const dropped = async () => (await batches.cancelWaiting(batchId('b'), T0, 3)).map(({ job }) => job.id)
    assert.deepEqual(await unsettled(world), ['b'])
    assert.deepEqual(await dropped(), ['r-2', 'r-3', 'r-4'])
    assert.deepEqual(await dropped(), ['r-5'])
    assert.deepEqual(await unsettled(world), [])
    await world.finish('r-0')
    await jobOutcomes.requeueLost(W1, 'it vanished', T0)
    assert.deepEqual(await unsettled(world), ['b'])
    assert.deepEqual(await dropped(), ['r-1'])
    const batch = await look(world, 'b')
    assert.deepEqual([batch.status, ...counts(batch)], ['CANCELLED', 6, 0, 1, 5])
    assert.notEqual(batch.finishedAtMs, null)
  },

  'a batch that is done cannot be cancelled, and one that runs drops nothing': async world => {
    const { batches } = world.store
    await running(world, 'b', ['x'])
    assert.deepEqual(await batches.cancelWaiting(batchId('b'), T0, 9), [])
    await world.worker()
    await world.claim()
    await world.finish('x')
    assert.equal(refusal(await batches.cancel(E1, batchId('b'), T0)), 'conflict')
  },

  'a batch that names a receiver reports its end to it': async world => {
    const { webhooks, batches } = world.store
    await running(world, 'b', ['x'], T0, 'https://x.example/b')
    await draft(world, 'c', ['y'], T0, 'https://x.example/c')
    await world.worker()
    await world.claim()
    assert.deepEqual(await webhooks.due({ owner: OWNER, nowMs: T0 + 500, limit: 10 }), [])
    await world.finish('x')
    requireBatch(await batches.cancel(E1, batchId('c'), T0 + 500))
    const deliveries = await Promise.all(
      (await webhooks.due({ owner: OWNER, nowMs: T0 + 500, limit: 10 })).map(({ id }) => webhooks.open(id)),
    )
    const seen = deliveries.map(entry => [entry?.jobId, entry?.url, JSON.parse(entry!.payload).status])
    assert.deepEqual(seen, [
      ['b', 'https://x.example/b', 'FINALIZED'],
      ['c', 'https://x.example/c', 'CANCELLED'],
    ])
    assert.equal((await webhooks.list(E1, 'c' as string as JobId))[0]?.jobStatus, 'CANCELLED')
  },

  'expired batches are removed in parts, with their jobs and requests, and others stay': async world => {
    const { batches } = world.store
    await running(world, 'b', numberedIds('r', 5))
    await draft(world, 'c', numberedIds('s', 3))
    await draft(world, 'young', ['y'], T0 + 9_999)
    await world.worker()
    for (const { id } of await world.claim(W1, 5)) await world.finish(id, W1, DONE, T0)
    const at = T0 + BATCH.draftMs
    assert.deepEqual(await batches.removeExpired(at - 1, 9), { jobs: [], more: false })
    const removed: string[] = []
    let rounds = 0
    for (let more = true; more; rounds += 1) {
      const part = await batches.removeExpired(at, 3)
      assert.ok(part.jobs.length <= 3)
      removed.push(...part.jobs.map(({ id, status }) => `${id} ${status}`))
      more = part.more
    }
    assert.ok(rounds >= 3 && rounds <= 4, `${rounds}`)
    assert.deepEqual(
      removed.sort(),
      numberedIds('r', 5).map(id => `${id} COMPLETED`),
    )
    assert.deepEqual((await batches.list(E1, at, 0, 9)).items.length, 1)
    assert.deepEqual(await page(world, 'c'), { total: 0, items: [] })
    assert.equal(await world.store.jobs.find(E1, jobId('r-0'), T0), null)
  },
}

/** Removal in steps: deleted endpoints, expired jobs and purges. One step never touches more than its limit. */
import assert from 'node:assert/strict'
import type { JobId } from '../../src/core/ids.ts'
import type { Cases } from './store-world.ts'
import { DONE, E1, E2, jobId, makeEndpoint, makeJob, OWNER, T0, W1, type World } from './store-world.ts'

const BIG = JSON.stringify('x'.repeat(3 * 1024 * 1024))

const named = (count: number) => Array.from({ length: count }, (_, n) => `j${String(n).padStart(3, '0')}`)

/** The steps of a removal: how many rows each had, and which jobs it cancelled. */
async function steps(world: World, limit: number) {
  const all: { rows: number; ids: JobId[] }[] = []
  for (let more = true; more; ) {
    const part = await world.store.removals.removePart(E1, T0, limit)
    all.push({ rows: part.rows, ids: part.canceled.map(({ job }) => job.id).sort() })
    more = part.more
  }
  return all
}

async function purgeSteps(world: World, limit: number): Promise<string[][]> {
  const { jobOutcomes } = world.store
  const all: string[][] = []
  for (let parts = await jobOutcomes.waiting(E1); parts.length > 0; ) {
    const { moves, left } = await jobOutcomes.purge(E1, T0, limit, parts)
    all.push(moves.map(({ job }) => job.id))
    parts = [...left]
  }
  return all
}

/** Cases of {@link Cases}. */
export const removalCases: Cases = {
  'a deleted endpoint is gone at once, and its rows go in steps of so many at most, running jobs first':
    async world => {
      const { endpoints, jobs, removals, stops } = world.store
      await world.holder(W1, 'a', 'b')
      await world.jobs(...named(6))
      for (const key of ['k1', 'k2', 'k3']) await jobs.insertOnce(makeJob(key), key, T0 + 1e9)
      await endpoints.remove(E1, T0)
      assert.deepEqual(
        [await endpoints.find(E1), await endpoints.snapshot(E1), await endpoints.ids(), await endpoints.loads(null, 9)],
        [null, null, [], []],
      )
      assert.deepEqual([await jobs.find(E1, jobId('a'), T0), await jobs.locate(OWNER, jobId('j000'), T0)], [null, null])
      assert.deepEqual(await removals.endpoints(null, 9), [E1])
      const done = await steps(world, 2)
      assert.deepEqual(done[0], { rows: 2, ids: ['a', 'b'] })
      assert.ok(done.every(({ rows }) => rows <= 2))
      assert.equal(done.flatMap(({ ids }) => ids).length, 11)
      assert.equal(
        done.reduce((sum, { rows }) => sum + rows, 0),
        14,
      )
      assert.deepEqual(await stops.pending(W1), ['a', 'b'])
      assert.deepEqual(await removals.endpoints(null, 9), [])
      assert.deepEqual(await removals.removePart(E1, T0, 9), { canceled: [], rows: 0, more: false })
    },

  'one step of a removal takes only a few large jobs': async world => {
    for (const id of ['a', 'b', 'c']) await world.job(id, { input: BIG })
    await world.store.endpoints.remove(E1, T0)
    assert.deepEqual(
      (await steps(world, 100)).map(({ ids }) => ids),
      [['a', 'b'], ['c']],
    )
  },

  'nothing else can happen to a job whose endpoint was deleted, and it is cancelled even past its ttl': async world => {
    const { endpoints, jobOutcomes, jobs } = world.store
    await world.holder(W1, 'a', 'b')
    await world.job('c', { expiresAtMs: T0 + 10 })
    await endpoints.remove(E1, T0)
    assert.equal(await world.finish('a', W1, DONE), null)
    assert.equal(await jobOutcomes.cancel(E1, jobId('a'), T0), null)
    assert.deepEqual(await jobOutcomes.timeOutOverdue(T0 + 20_000, 9), [])
    assert.deepEqual(await jobOutcomes.requeueLost(W1, 'it ended', T0), [])
    assert.deepEqual(await jobOutcomes.release(W1, 'all'), [])
    assert.deepEqual(await world.claim(W1, 9), [])
    assert.deepEqual(await world.purge(), [])
    assert.equal(await jobs.insert(makeJob('late')), false)
    const { jobs: expired, canceled } = await jobOutcomes.removeExpired(T0 + 10, 9)
    assert.deepEqual([expired, canceled.map(({ job }) => [job.id, job.status])], [[], [['c', 'CANCELLED']]])
    assert.deepEqual((await world.removeAll()).map(({ job }) => job.id).sort(), ['a', 'b'])
  },

  'an id is free again when nothing is left of the endpoint that had it': async world => {
    const { endpoints } = world.store
    assert.deepEqual([await endpoints.isFree(E1), await endpoints.isFree(E2)], [false, true])
    await world.job('a')
    await endpoints.remove(E1, T0)
    assert.equal(await endpoints.isFree(E1), false)
    await assert.rejects(endpoints.insert(makeEndpoint(E1)), { code: 'conflict' })
    await world.removeAll()
    assert.equal(await endpoints.isFree(E1), true)
    await endpoints.insert(makeEndpoint(E1))
  },

  'jobs that expire at one instant are removed in steps of so many': async world => {
    for (const id of named(5)) await world.job(id, { expiresAtMs: T0 + 1 })
    const counts: number[] = []
    for (let more = true; more; ) {
      const part = await world.store.jobOutcomes.removeExpired(T0 + 1, 2)
      counts.push(part.jobs.length)
      more = part.more
    }
    assert.deepEqual(counts, [2, 2, 1])
  },

  'a purge goes in steps of so many and takes what waited when it began': async world => {
    await world.job('low', { lowPriority: true })
    await world.jobs('a', 'b', 'c')
    await world.job('expired', { position: T0 + 1, expiresAtMs: T0 })
    const parts = await world.store.jobOutcomes.waiting(E1)
    await world.job('later', { position: T0 + 100 })
    await world.job('later low', { position: T0 + 100, lowPriority: true })
    const purge = (from: typeof parts) => world.store.jobOutcomes.purge(E1, T0, 3, from)
    const first = await purge(parts)
    const second = await purge([...first.left])
    const ids = [first, second].map(({ moves }) => moves.map(({ job }) => job.id))
    assert.deepEqual(ids, [
      ['a', 'b'],
      ['low', 'c'],
    ])
    assert.deepEqual(second.left.length === 0 ? [] : (await purge([...second.left])).moves, [])
    for (const id of ['later', 'later low']) assert.equal((await world.read(id)).status, 'IN_QUEUE')
  },

  'one step of a purge takes only a few large jobs': async world => {
    for (const [n, id] of ['a', 'b', 'c'].entries()) await world.job(id, { input: BIG, position: T0 + n })
    assert.deepEqual(
      (await purgeSteps(world, 100)).filter(ids => ids.length > 0),
      [['a', 'b'], ['c']],
    )
  },
}

import assert from 'node:assert/strict'
import { SUSPECT_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { running } from './store-batches.ts'
import { BROKEN, type Cases, DONE, E1, EXIT, jobId, makeJob, OWNER, T0, W1, type World } from './store-world.ts'

const STEPS = 150
const SEED = 20_261

/** Expected counts of the snapshot for these jobs, read one by one from the store. */
async function countJobs(world: World, ids: readonly string[], retried: ReadonlySet<string>, nowMs: number) {
  const counts = {
    queued: 0,
    queuedLowPriority: 0,
    queuedInBatches: 0,
    inProgress: 0,
    suspectsQueued: 0,
    suspectsInProgress: 0,
  }
  for (const id of ids) {
    const job = await world.store.jobs.locate(OWNER, jobId(id), nowMs)
    if (job === null) continue
    const isSuspect = job.lostAttempts >= SUSPECT_LOST_ATTEMPTS
    if (job.status === 'IN_PROGRESS') {
      counts.inProgress += 1
      if (isSuspect) counts.suspectsInProgress += 1
    }
    if (job.status !== 'IN_QUEUE') continue
    counts[job.lowPriority ? 'queuedLowPriority' : 'queued'] += 1
    if (isSuspect && !job.lowPriority) counts.suspectsQueued += 1
    if (job.batchId !== null && !isSuspect && !retried.has(id)) counts.queuedInBatches += 1
  }
  return counts
}

async function counted(world: World) {
  const { headQueuedAtMs: _, ...counts } = (await world.snapshot()).queue
  return counts
}

/** The counts of a queue, which are kept and not counted. */
export const queueCountCases: Cases = {
  'the counts of a queue are those of its jobs, whatever moves them': async world => {
    const random = createSeededRandom(SEED)
    const pick = (count: number) => random.bytes(1)[0]! % count
    const ids: string[] = []
    const retried = new Set<string>()
    const { jobOutcomes } = world.store
    let worker = await world.worker('w-0')
    let nowMs = T0
    const any = () => jobId(ids[pick(ids.length)] ?? 'none')
    const moves: (() => Promise<unknown>)[] = [
      async () => {
        const id = `job-${ids.length}`
        ids.push(id)
        await world.job(id, { position: T0 + ids.length, lowPriority: pick(3) === 0, executionTimeoutMs: 2_000 })
      },
      async () => {
        const requests = [`request-${ids.length}`, `request-${ids.length + 1}`]
        ids.push(...requests)
        await running(world, `batch-${ids.length}`, requests, nowMs)
      },
      () => world.claim(worker, 1 + pick(3), nowMs),
      () => world.claim(worker, 1, nowMs),
      () => world.finish(any(), worker, pick(2) === 0 ? DONE : BROKEN, nowMs),
      () => jobOutcomes.cancel(E1, any(), nowMs),
      async () => {
        const move = await jobOutcomes.retry(E1, any(), T0 + 500, nowMs)
        if (move !== null) retried.add(move.job.id)
      },
      () => jobOutcomes.release(worker, 'all'),
      async () => {
        await jobOutcomes.requeueLost(worker, 'it vanished', nowMs)
        await world.store.workers.exited(worker, EXIT, nowMs)
        worker = await world.worker(`w-${nowMs}`)
      },
      () => jobOutcomes.timeOutOverdue(nowMs, 9),
      () => (pick(4) === 0 ? world.purge(nowMs, 2) : Promise.resolve()),
      () => world.store.jobs.setExpiry(E1, any(), nowMs + 300, nowMs),
      () => jobOutcomes.removeExpired(nowMs, 2),
    ]
    for (let step = 0; step < STEPS; step += 1) {
      nowMs += 50
      await moves[pick(moves.length)]!()
      if (step % 10 > 0) continue
      // Expired jobs count until they are removed.
      while ((await jobOutcomes.removeExpired(nowMs, 9)).more) {}
      assert.deepEqual(await counted(world), await countJobs(world, ids, retried, nowMs), `after step ${step}`)
    }
    assert.ok((await counted(world)).queued > 0)
  },

  'jobs that come and go at the same time are all counted': async world => {
    const ids = Array.from({ length: 40 }, (_, at) => `job-${at}`)
    await Promise.all(ids.map(id => world.store.jobs.insert(makeJob(id))))
    assert.equal((await counted(world)).queued, 40)
    const workers = await Promise.all(ids.slice(0, 8).map((_, at) => world.worker(`w-${at}`)))
    const claimed = await Promise.all(workers.map(worker => world.claim(worker, 3)))
    const held = claimed.flat().length
    const demand = { queued: 40 - held, takers: 8 }
    assert.deepEqual(await world.store.endpoints.demand(E1, workers[0]!), { ...demand, takerState: 'READY' })
    assert.deepEqual(await world.store.endpoints.demand(E1, W1), { ...demand, takerState: null })
    const withComing = { queued: 43 - held, takers: 8, takerState: null }
    assert.deepEqual(await world.store.endpoints.demand(E1, W1, 3), withComing)
    assert.deepEqual(await world.store.endpoints.active(), [E1])
    assert.deepEqual([(await counted(world)).queued, (await counted(world)).inProgress], [40 - held, held])
    await Promise.all(claimed.flatMap((jobs, at) => jobs.map(({ id }) => world.finish(id, workers[at]))))
    assert.deepEqual([(await counted(world)).queued, (await counted(world)).inProgress], [40 - held, 0])
    await Promise.all(ids.map(id => world.store.jobOutcomes.cancel(E1, jobId(id), T0)))
    assert.deepEqual(Object.values(await counted(world)), [0, 0, 0, 0, 0, 0])
  },
}

import assert from 'node:assert/strict'
import type { WorkerId } from '../../src/core/ids.ts'
import { batchId, look, requireBatch, running, unsettled } from './store-batches.ts'
import { BROKEN, type Cases, E1, EXIT, jobId, makeWorker, T0, W1, W2, type World } from './store-world.ts'

const ids = (jobs: readonly { id: string }[]) => jobs.map(job => job.id)
const PATIENCE_MS = 30_000

/** New jobs at the head of the line that have each been lost twice. */
async function suspects(world: World, ...wanted: string[]): Promise<void> {
  for (const [index, id] of wanted.entries()) await world.job(id, { position: T0 - 100 + index })
  await loseTwice(world, ...wanted)
}

/** Loses the jobs twice, which are all that wait. */
async function loseTwice(world: World, ...wanted: string[]): Promise<void> {
  for (const time of [1, 2]) {
    const worker = await world.worker(`lost-${time}-${wanted[0]}`)
    assert.deepEqual(ids(await world.claim(worker, 99)).sort(), [...wanted].sort())
    await world.store.jobOutcomes.requeueLost(worker, 'it vanished', T0)
    await world.store.workers.exited(worker, EXIT, T0)
  }
}

/** Result of a claim without jobs. */
async function refused(world: World, workerId: WorkerId, nowMs = T0) {
  const { jobs, ...how } = await world.store.jobs.claim({ endpointId: E1, workerId, limit: 5, nowMs })
  assert.deepEqual(jobs, [])
  return how
}

/** A worker that holds a job, with a place in the line of workers. */
async function busy(world: World, id: WorkerId, job: string): Promise<void> {
  await world.worker(id)
  await world.job(job, { position: T0 - 500 })
  assert.deepEqual(ids(await world.claim(id)), [job])
}

async function setMax(world: World, workersMax: number): Promise<void> {
  const before = (await world.store.endpoints.find(E1))!
  assert.equal(await world.store.endpoints.replace({ ...before, workersMax }, before, T0), true)
}

/** Jobs that were lost twice run alone. */
export const suspectCases: Cases = {
  'a job that was lost twice comes first at a free worker, and is all that it gets until it is done': async world => {
    await suspects(world, 'poison')
    await world.jobs('a', 'b')
    await world.worker(W1)
    assert.deepEqual(ids(await world.claim(W1, 9)), ['poison'])
    assert.deepEqual(await refused(world, W1), { holdsBack: true, leavesSuspect: false })
    await world.worker(W2)
    assert.deepEqual(ids(await world.claim(W2, 9)), ['a', 'b'])
    await world.job('c', { position: T0 + 9 })
    await world.finish('poison', W1, BROKEN)
    assert.deepEqual(ids(await world.claim(W1, 9)), ['c'])
  },

  'a worker with jobs passes a suspect by, and so does one that has yet to stop a job': async world => {
    await busy(world, W1, 'a')
    await suspects(world, 'poison')
    await world.job('b', { position: T0 + 1 })
    assert.deepEqual(ids(await world.claim(W1, 9)), ['b'])
    assert.deepEqual(await refused(world, W1), { holdsBack: false, leavesSuspect: true })
    await world.finish('b')
    await world.store.jobOutcomes.cancel(E1, jobId('a'), T0)
    assert.deepEqual(await refused(world, W1), { holdsBack: false, leavesSuspect: true })
    await world.store.stops.letGo(W1, jobId('a'))
    assert.deepEqual(ids(await world.claim(W1, 9)), ['poison'])
  },

  'suspects run one to a worker, in the order of the line': async world => {
    await suspects(world, 'a', 'b', 'c')
    await world.worker(W1)
    await world.worker(W2)
    assert.deepEqual(ids(await world.claim(W1, 9)), ['a'])
    assert.deepEqual(ids(await world.claim(W2, 9)), ['b'])
    assert.deepEqual(await refused(world, W1), { holdsBack: true, leavesSuspect: false })
    await world.finish('a')
    assert.deepEqual(ids(await world.claim(W1, 9)), ['c'])
  },

  'whatever is claimed at once, no job is beside a suspect': async world => {
    const alone = Array.from({ length: 6 }, (_, n) => `suspect-${n}`)
    await suspects(world, ...alone)
    await world.jobs(...Array.from({ length: 60 }, (_, n) => `other-${String(n).padStart(2, '0')}`))
    const workers = Array.from({ length: 8 }, (_, n) => `worker-${n}` as WorkerId)
    for (const id of workers) await world.worker(id)
    for (let round = 0; round < 4; round += 1) {
      const claims = Array.from({ length: 48 }, (_, n) => world.claim(workers[n % 8], 1 + (n % 3)))
      // Some finish their jobs in the meantime, so that workers become free in the middle of it.
      const ends = (await world.store.jobs.running(E1, 100)).map(({ id, workerId }) => world.finish(id, workerId))
      await Promise.all([...claims, ...ends])
      for (const worker of workers) {
        const held = await world.store.jobs.heldBy(worker)
        const isAlone = held.length === 1 || !held.some(id => id.startsWith('suspect'))
        assert.ok(isAlone, `${worker} has ${held.join(', ')}`)
      }
    }
    for (const id of alone) assert.notEqual((await world.read(id)).status, 'IN_QUEUE')
  },

  'where no more workers may be, the oldest is let run empty for a suspect, and the others go on': async world => {
    await busy(world, W1, 'a')
    await busy(world, W2, 'b')
    await suspects(world, 'poison', 'next')
    await world.jobs('c', 'd', 'e')
    await setMax(world, 2)
    assert.deepEqual(await refused(world, W1), { holdsBack: true, leavesSuspect: true })
    assert.deepEqual(ids(await world.claim(W2)), ['c'])
    await world.finish('a')
    assert.deepEqual(ids(await world.claim(W1)), ['poison'])
    assert.deepEqual(ids(await world.claim(W2)), ['d'], 'the next suspect can have the first worker afterwards')
    await world.finish('poison')
    assert.deepEqual(ids(await world.claim(W1)), ['next'])
    await world.finish('next')
    assert.deepEqual(ids(await world.claim(W1)), ['e'])
  },

  'a worker runs empty for a suspect only after a long wait, and not while another worker may come for it':
    async world => {
      await busy(world, W1, 'a')
      await suspects(world, 'poison')
      await world.jobs('b', 'c')
      assert.deepEqual(ids(await world.claim(W1, 1, T0 + PATIENCE_MS - 1)), ['b'])
      assert.deepEqual(await refused(world, W1, T0 + PATIENCE_MS), { holdsBack: true, leavesSuspect: true })
      await setMax(world, 2)
      await world.store.workers.insert(makeWorker(W2), 'a worker that starts')
      assert.deepEqual(ids(await world.claim(W1, 1, T0)), ['c'], 'the one that starts will have it')
    },

  'a suspect of low priority comes after all others but those of low priority': async world => {
    await world.job('low', { lowPriority: true, position: T0 - 9 })
    await loseTwice(world, 'low')
    await running(world, 'batch', ['x'])
    await world.job('a')
    await world.job('other-low', { lowPriority: true, position: T0 - 100 })
    await world.worker(W1)
    assert.deepEqual(ids(await world.claim(W1)), ['x'])
    await world.worker(W2)
    assert.deepEqual(ids(await world.claim(W2)), ['a'])
    await world.worker('w3')
    assert.deepEqual(ids(await world.claim('w3' as WorkerId, 9)), ['low'])
    assert.deepEqual(ids(await world.claim(W1)), ['other-low'])
  },

  'a request of a batch that was lost twice takes no turn of it, and is dropped with it': async world => {
    const { batches } = world.store
    await running(world, 'b', ['x', 'y'])
    await loseTwice(world, 'x', 'y')
    assert.equal(await batches.before(jobId('x'), 9), null)
    assert.equal((await world.snapshot()).queue.queuedInBatches, 0)
    await world.worker(W1)
    assert.deepEqual(ids(await world.claim(W1, 9)), ['x'])
    requireBatch(await batches.cancel(E1, batchId('b'), T0))
    assert.deepEqual(await unsettled(world), ['b'])
    const dropped = await batches.cancelWaiting(batchId('b'), T0, 9)
    assert.deepEqual(ids(dropped.map(({ job }) => job)), ['y'])
    assert.deepEqual(await unsettled(world), [])
    await world.finish('x')
    assert.notEqual((await look(world, 'b')).finishedAtMs, null)
  },

  'a suspect stays one when its claim was not delivered, and is one no more when it is retried': async world => {
    const { jobOutcomes } = world.store
    await suspects(world, 'poison')
    await world.worker(W1)
    const [claimed] = await world.claim(W1)
    await jobOutcomes.release(W1, { jobId: jobId('poison'), attempt: claimed!.attempt })
    assert.deepEqual(ids(await world.claim(W1)), ['poison'])
    const moves = await jobOutcomes.requeueLost(W1, 'it vanished', T0)
    assert.deepEqual(
      moves.map(({ job }) => job.status),
      ['FAILED'],
    )
    await world.job('a', { position: T0 - 900 })
    await jobOutcomes.retry(E1, jobId('poison'), T0 - 800, T0)
    assert.deepEqual(ids(await world.claim(W1, 9)), ['a', 'poison'])
  },

  'a purge and an expiry end suspects too': async world => {
    await suspects(world, 'a')
    assert.equal((await world.purge()).length, 1)
    await world.job('b', { expiresAtMs: T0 + 5 })
    await loseTwice(world, 'b')
    await world.worker(W1)
    assert.deepEqual(await world.claim(W1, 1, T0 + 5), [])
  },

  'the load of the line says how many suspects are in it': async world => {
    await suspects(world, 'a', 'b')
    await world.worker(W1)
    await world.claim(W1)
    const alone = { queued: 1, inProgress: 1, suspectsQueued: 1, suspectsInProgress: 1, headQueuedAtMs: T0 }
    assert.deepEqual((await world.snapshot()).queue, { ...alone, queuedLowPriority: 0, queuedInBatches: 0 })
    await world.job('c', { queuedAtMs: T0 + 7 })
    assert.equal((await world.snapshot()).queue.headQueuedAtMs, T0 + 7, 'what others wait for is not about suspects')
  },

  'a worker that is to let go first gets nothing while it has a job to stop': async world => {
    await busy(world, W1, 'a')
    await world.store.jobOutcomes.cancel(E1, jobId('a'), T0)
    await world.job('b')
    const claim = () => world.store.jobs.claim({ endpointId: E1, workerId: W1, limit: 1, nowMs: T0, letGoFirst: true })
    assert.deepEqual(await claim(), { jobs: [], holdsBack: true, leavesSuspect: false })
    await world.store.stops.letGo(W1, jobId('a'))
    assert.deepEqual(ids((await claim()).jobs), ['b'])
  },
}

import assert from 'node:assert/strict'
import type { WorkerId } from '../../src/core/ids.ts'
import { type Cases, DONE, E1, E2, jobId, OWNER, T0, W1, W2, type World } from './store-world.ts'

/** Jobs that a worker claims ahead; those after the first have to begin within three seconds. */
async function claimAhead(world: World, limit: number, nowMs = T0, workerId: WorkerId = W1): Promise<string[]> {
  const request = { endpointId: E1, workerId, limit, nowMs, beginsByMs: nowMs + 3_000 }
  return (await world.store.jobs.claim(request)).jobs.map(({ id }) => id)
}

async function started(world: World, ...ids: string[]): Promise<(number | null)[]> {
  const jobs = await Promise.all(ids.map(id => world.read(id)))
  return jobs.map(({ startedAtMs }) => startedAtMs)
}

/** Jobs that a worker has and has not begun. */
export const takeAheadCases: Cases = {
  'of jobs that are claimed ahead only the first begins, and the others begin one after another': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    assert.deepEqual(await claimAhead(world, 3), ['a', 'b', 'c'])
    assert.deepEqual(await started(world, 'a', 'b', 'c'), [T0, null, null])
    assert.deepEqual((await world.read('c')).status, 'IN_PROGRESS')
    assert.equal(await world.store.jobs.begin(W1, jobId('a'), T0 + 10), null)
    await world.finish('a', W1, undefined, T0 + 20)
    const begun = await world.store.jobs.begin(W1, jobId('a'), T0 + 21)
    assert.deepEqual([begun?.job.id, begun?.job.startedAtMs, begun?.waitedMs], ['b', T0 + 21, 21])
    assert.equal(await world.store.jobs.begin(W1, jobId('a'), T0 + 22), null)
    await world.finish('b', W1, undefined, T0 + 30)
    assert.equal((await world.store.jobs.begin(W1, jobId('b'), T0 + 31))?.job.id, 'c')
    await world.finish('c', W1, undefined, T0 + 40)
    assert.equal(await world.store.jobs.begin(W1, jobId('c'), T0 + 41), null)
    assert.equal((await world.load()).held, 0)
  },

  'the end of a job begins the next one in the same transaction where that is asked for': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    const ends = (id: string, nowMs: number, beginsNext: boolean) =>
      world.store.jobOutcomes.finish({ jobId: jobId(id), workerId: W1, outcome: DONE, nowMs, beginsNext })
    const first = await ends('a', T0 + 20, true)
    assert.deepEqual([first?.job.id, first?.job.status], ['a', 'COMPLETED'])
    assert.deepEqual([first?.begun?.job.id, first?.begun?.waitedMs], ['b', 20])
    assert.deepEqual(await started(world, 'b', 'c'), [T0 + 20, null])
    assert.equal(await ends('a', T0 + 25, true), null, 'a result that no longer counts begins nothing')
    assert.equal((await ends('b', T0 + 30, false))?.begun, null)
    assert.deepEqual(await started(world, 'b', 'c'), [T0 + 20, null])
    assert.equal((await ends('c', T0 + 40, true))?.begun, null)
    assert.deepEqual(await started(world, 'c'), [T0 + 40])
  },

  'the next job of a worker that was paused before its last result came is paused from its begin': async world => {
    const { store } = world
    await world.worker()
    await world.jobs('a', 'b')
    await claimAhead(world, 2)
    assert.equal((await store.workers.pause(W1, E2, T0 + 10))?.worker.state, 'FROZEN')
    const { begun } = (await store.jobOutcomes.finish({
      jobId: jobId('a'),
      workerId: W1,
      outcome: DONE,
      nowMs: T0 + 20,
      beginsNext: true,
    }))!
    assert.equal(begun?.job.id, 'b')
    const muchLaterMs = T0 + 86_400_000
    assert.deepEqual(await store.jobOutcomes.timeOutOverdue(muchLaterMs, 10), [])
    await store.workers.thaw(W1, muchLaterMs, null)
    assert.deepEqual((await store.workers.endPause(W1, muchLaterMs, null))?.jobs, [jobId('b')])
    assert.deepEqual(await store.jobOutcomes.timeOutOverdue(muchLaterMs + 1, 10), [])
  },

  'jobs begin in the order of the queue: by priority, then place, then id': async world => {
    await world.worker()
    await world.job('low', { lowPriority: true, position: T0 - 100 })
    await world.job('second', { position: T0 + 1 })
    await world.job('first', { position: T0 })
    assert.deepEqual(await claimAhead(world, 3), ['first', 'second', 'low'])
    const order: (string | undefined)[] = []
    for (const id of ['first', 'second', 'low']) {
      await world.finish(id)
      order.push((await world.store.jobs.begin(W1, jobId(id), T0))?.job.id)
    }
    assert.deepEqual(order, ['second', 'low', undefined])
  },

  'a job begins only after a canceled one before it that its worker has yet to go through': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    const { jobs, jobOutcomes, stops } = world.store
    await jobOutcomes.cancel(E1, jobId('b'), T0 + 10)
    await world.finish('a')
    assert.equal(await jobs.begin(W1, jobId('a'), T0 + 20), null)
    await stops.letGo(W1, jobId('b'))
    assert.equal((await jobs.begin(W1, jobId('b'), T0 + 30))?.job.id, 'c')
  },

  'a job that its worker shows to run begins, and those before it are over': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c', 'd')
    await claimAhead(world, 4)
    const { jobs, jobOutcomes } = world.store
    await jobOutcomes.cancel(E1, jobId('a'), T0 + 10)
    await jobOutcomes.cancel(E1, jobId('b'), T0 + 10)
    assert.equal((await jobs.begin(W1, jobId('c'), T0 + 20))?.job.id, 'c')
    await world.finish('c')
    assert.equal((await jobs.begin(W1, jobId('c'), T0 + 30))?.job.id, 'd')
  },

  'the execution timeout of a job counts from its begin': async world => {
    await world.worker()
    await world.jobs('a', 'b')
    await claimAhead(world, 2)
    await world.finish('a', W1, undefined, T0 + 2_000)
    await world.store.jobs.begin(W1, jobId('a'), T0 + 2_000)
    assert.deepEqual(await world.store.jobOutcomes.timeOutOverdue(T0 + 11_999, 9), [])
    assert.deepEqual(
      (await world.store.jobOutcomes.timeOutOverdue(T0 + 12_000, 9)).map(({ job }) => job.id),
      ['b'],
    )
  },

  'a job that has not begun in time goes back to its place without an attempt, and never times out': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    const { jobOutcomes } = world.store
    assert.equal(await jobOutcomes.nextDeadline(), T0 + 3_000)
    assert.deepEqual(await jobOutcomes.takeBackOverdue(T0 + 2_999, 9), [])
    assert.deepEqual(await jobOutcomes.timeOutOverdue(T0 + 3_000, 9), [])
    const moves = await jobOutcomes.takeBackOverdue(T0 + 3_000, 9)
    assert.deepEqual(
      moves.map(({ job, from }) => [job.id, from, job.status, job.attempt, job.workerId, job.startedAtMs]),
      ['b', 'c'].map(id => [id, 'IN_PROGRESS', 'IN_QUEUE', 0, W1, null]),
    )
    assert.deepEqual(await world.store.jobs.heldBy(W1), ['a'])
    assert.equal((await world.load()).held, 1)
    await world.worker(W2)
    assert.deepEqual(
      (await world.claim(W2, 3)).map(({ id, attempt }) => [id, attempt]),
      [
        ['b', 1],
        ['c', 1],
      ],
    )
  },

  'a job that went back is finished by its worker until another claims it': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    await world.store.jobOutcomes.takeBackOverdue(T0 + 3_000, 9)
    assert.equal((await world.finish('b'))?.job.status, 'COMPLETED')
    await world.worker(W2)
    assert.deepEqual(
      (await world.claim(W2, 3)).map(({ id }) => id),
      ['c'],
    )
    assert.equal(await world.finish('c', W1), null)
    assert.equal((await world.finish('c', W2))?.job.status, 'COMPLETED')
  },

  'of a lost worker only the job that it had begun loses an attempt': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    await world.finish('a')
    await world.store.jobs.begin(W1, jobId('a'), T0 + 600)
    const { jobOutcomes } = world.store
    assert.deepEqual(
      (await jobOutcomes.takeBack(W1, T0 + 700)).map(({ job }) => job.id),
      ['c'],
    )
    assert.deepEqual(
      (await jobOutcomes.requeueLost(W1, 'it ended', T0 + 700)).map(({ job }) => [job.id, job.lostAttempts]),
      [['b', 1]],
    )
    const c = await world.read('c')
    assert.deepEqual([c.status, c.attempt, c.lostAttempts], ['IN_QUEUE', 0, 0])
  },

  'a result and a cancellation of a job that has not begun end it with no time of execution': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    await claimAhead(world, 3)
    const done = await world.finish('b', W1, undefined, T0 + 50)
    assert.deepEqual([done?.from, done?.job.startedAtMs, done?.usage.executionMs], ['IN_PROGRESS', T0 + 50, 0])
    const cancelled = await world.store.jobOutcomes.cancel(E1, jobId('c'), T0 + 60)
    assert.deepEqual([cancelled?.from, cancelled?.job.startedAtMs], ['IN_PROGRESS', T0 + 60])
    assert.equal(cancelled?.usage.queuedMs, 60)
    assert.deepEqual(await world.store.stops.pending(W1), ['c'])
    assert.equal(await world.finish('c', W1), null)
  },

  'a job that never reached its worker is given back, begun or not': async world => {
    await world.worker()
    await world.jobs('a', 'b')
    await claimAhead(world, 2)
    for (const id of ['a', 'b']) {
      const moves = await world.store.jobOutcomes.release(W1, { jobId: jobId(id), attempt: 1 })
      assert.deepEqual(
        moves.map(({ job }) => [job.status, job.attempt]),
        [['IN_QUEUE', 0]],
      )
    }
    assert.deepEqual(
      (await world.claim(W1, 2)).map(({ id }) => id),
      ['a', 'b'],
    )
  },

  'lists, records and running jobs show no begin of a job that has none': async world => {
    await world.worker()
    await world.jobs('a', 'b')
    await claimAhead(world, 2)
    const running = await world.store.jobs.running(E1, 9)
    assert.deepEqual(
      running.map(({ id, startedAtMs }) => [id, startedAtMs]),
      [
        ['a', T0],
        ['b', null],
      ],
    )
    const record = await world.store.jobRecords.find(E1, jobId('b'), T0, true)
    assert.deepEqual([record?.status, record?.startedAtMs], ['IN_PROGRESS', null])
    assert.equal((await world.store.jobs.locate(OWNER, jobId('b'), T0))?.startedAtMs, null)
  },
}

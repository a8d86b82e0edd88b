import assert from 'node:assert/strict'
import { lostReason, MAX_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import { BROKEN, type Cases, DONE, E1, jobId, makeJob, T0, W1, W2 } from './store-world.ts'

const RETENTION = makeJob('x').retentionMs

/** Ends and steps back of jobs, with their traces at workers and endpoints. */
export const outcomeCases: Cases = {
  'a result ends the job, with its texts, its instant and its retention': async world => {
    await world.holder(W1, 'a', 'b')
    const done = await world.finish('a', W1, DONE, T0 + 500)
    assert.equal(done?.from, 'IN_PROGRESS')
    assert.deepEqual(done?.job, await world.read('a'))
    const { status, output, error, warning, finishedAtMs, expiresAtMs } = done!.job
    const ended = { finishedAtMs: T0 + 500, expiresAtMs: T0 + 500 + RETENTION }
    assert.deepEqual({ status, output, error, warning, finishedAtMs, expiresAtMs }, { ...DONE, ...ended })
    const broken = await world.finish('b', W1, BROKEN)
    assert.deepEqual([broken?.job.error, broken?.job.warning], ['ValueError: no', 'odd'])
  },

  'a result does not make a job live longer than its ttl': async world => {
    await world.worker()
    await world.job('a', { expiresAtMs: T0 + 600 })
    await world.claim()
    assert.equal((await world.finish('a', W1, DONE, T0 + 500))?.job.expiresAtMs, T0 + 600)
  },

  'a result counts once, and only from the holder': async world => {
    await world.holder(W1, 'a')
    await world.worker(W2)
    assert.equal(await world.finish('a', W2), null)
    assert.equal(await world.finish('b', W1), null)
    assert.notEqual(await world.finish('a', W1, DONE), null)
    assert.equal(await world.finish('a', W1, BROKEN), null)
    assert.equal((await world.read('a')).status, 'COMPLETED')
  },

  'results that come together are each judged by themselves': async world => {
    await world.worker()
    await world.worker(W2)
    await world.jobs('a', 'b', 'c', 'd')
    await world.claim(W1, 3)
    const large = { ...DONE, output: JSON.stringify('x'.repeat(5_000)) }
    const all = await Promise.all([
      world.finish('a', W1, DONE, T0 + 10),
      // These share a transaction.
      world.finish('b', W2, DONE, T0 + 20),
      world.finish('b', W1, BROKEN, T0 + 30),
      world.finish('b', W1, DONE, T0 + 40),
      world.finish('c', W1, large, T0 + 50),
      world.finish('d', W1, DONE, T0 + 60),
    ])
    assert.deepEqual(
      all.map(finish => finish?.job.status ?? null),
      ['COMPLETED', null, 'FAILED', null, 'COMPLETED', null],
    )
    const [a, b, c] = await Promise.all([world.read('a'), world.read('b'), world.read('c')])
    assert.deepEqual([a.finishedAtMs, b.finishedAtMs, c.finishedAtMs], [T0 + 10, T0 + 30, T0 + 50])
    assert.deepEqual([b.error, c.output], [BROKEN.error, large.output])
    const { jobsFinished, idleSinceMs } = await world.readWorker()
    assert.deepEqual([jobsFinished, idleSinceMs], [3, T0 + 50])
    const { counters } = await world.snapshot()
    assert.deepEqual([counters.completed, counters.failed, counters.averageExecutionMs], [2, 1, 30])
  },

  'a late result of the last holder counts until somebody claims the job again': async world => {
    const { jobOutcomes, endpoints } = world.store
    await world.holder(W1, 'a', 'b')
    await world.worker(W2)
    await jobOutcomes.requeueLost(W1, 'it was lost', T0 + 10)
    assert.equal(await world.finish('a', W2), null)
    const late = await world.finish('a', W1, DONE, T0 + 20)
    assert.deepEqual([late?.from, late?.job.status, late?.job.startedAtMs], ['IN_QUEUE', 'COMPLETED', null])
    assert.deepEqual([late?.job.attempt, late?.job.lostAttempts, late?.job.workerId], [1, 1, W1])
    assert.equal((await world.claim(W2))[0]?.id, 'b')
    assert.equal(await world.finish('b', W1), null)
    const wanted = { completed: 1, failed: 0, retried: 2, averageExecutionMs: null }
    assert.deepEqual((await endpoints.snapshot(E1))?.counters, wanted)
  },

  'nobody can finish a job that was never taken, or was given back': async world => {
    await world.worker()
    await world.jobs('a')
    assert.equal(await world.finish('a'), null)
    await world.claim()
    await world.store.jobOutcomes.release(W1, 'all')
    assert.equal(await world.finish('a'), null)
  },

  'results move the counters and the average of the endpoint': async world => {
    const { endpoints } = world.store
    await world.holder(W1, 'a', 'b', 'c')
    await world.finish('a', W1, DONE, T0 + 1_000)
    assert.deepEqual((await endpoints.snapshot(E1))?.counters, {
      completed: 1,
      failed: 0,
      retried: 0,
      averageExecutionMs: 1_000,
    })
    await world.finish('b', W1, DONE, T0 + 2_000)
    await world.finish('c', W1, BROKEN, T0 + 9_000)
    assert.deepEqual((await endpoints.snapshot(E1))?.counters, {
      completed: 2,
      failed: 1,
      retried: 0,
      averageExecutionMs: 1_500,
    })
  },

  'the average counts the first thirty jobs alike, and moves by a thirtieth with each later one': async world => {
    const { endpoints } = world.store
    const average = async () => (await endpoints.snapshot(E1))?.counters.averageExecutionMs ?? 0
    const ids = Array.from({ length: 32 }, (_, index) => `j${index}`)
    await world.holder(W1, ...ids)
    for (const id of ids.slice(0, 29)) await world.finish(id, W1, DONE, T0 + 1_000)
    await world.finish('j29', W1, DONE, T0 + 31_000)
    assert.ok(Math.abs((await average()) - 2_000) < 1e-6)
    await world.finish('j30', W1, DONE, T0 + 32_000)
    assert.ok(Math.abs((await average()) - 3_000) < 1e-6)
  },

  'a clock that was set back does not make an execution time negative': async world => {
    await world.holder(W1, 'a')
    await world.finish('a', W1, DONE, T0 - 5_000)
    assert.equal((await world.store.endpoints.snapshot(E1))?.counters.averageExecutionMs, 0)
  },

  'a worker is idle since it finished the last job that it held': async world => {
    await world.holder(W1, 'a', 'b')
    assert.deepEqual([(await world.load()).held, (await world.load()).idleSinceMs], [2, null])
    await world.finish('a', W1, DONE, T0 + 1)
    assert.deepEqual([(await world.load()).held, (await world.load()).idleSinceMs], [1, null])
    await world.finish('b', W1, BROKEN, T0 + 2)
    const { held, idleSinceMs, jobsFinished } = await world.load()
    assert.deepEqual({ held, idleSinceMs, jobsFinished }, { held: 0, idleSinceMs: T0 + 2, jobsFinished: 2 })
  },

  'a cancelled job counts nowhere, and its worker has it to stop': async world => {
    const { jobOutcomes, endpoints, stops } = world.store
    await world.holder(W1, 'a')
    await world.job('b')
    const running = await jobOutcomes.cancel(E1, jobId('a'), T0 + 5)
    assert.deepEqual([running?.from, running?.job.status], ['IN_PROGRESS', 'CANCELLED'])
    assert.deepEqual([running?.job.finishedAtMs, running?.job.expiresAtMs], [T0 + 5, T0 + 5 + RETENTION])
    assert.equal((await jobOutcomes.cancel(E1, jobId('b'), T0 + 6))?.from, 'IN_QUEUE')
    assert.equal(await jobOutcomes.cancel(E1, jobId('a'), T0 + 7), null)
    assert.equal(await jobOutcomes.cancel(E1, jobId('c'), T0 + 7), null)
    assert.deepEqual(await stops.pending(W1), ['a'])
    assert.deepEqual([(await world.load()).held, (await world.load()).idleSinceMs], [1, T0 + 5])
    const nothing = { completed: 0, failed: 0, retried: 0, averageExecutionMs: null }
    assert.deepEqual((await endpoints.snapshot(E1))?.counters, nothing)
  },

  'jobs past their execution timeout are TIMED_OUT, the most overdue first': async world => {
    const { jobOutcomes, endpoints, stops } = world.store
    await world.holder(W1, 'a', 'b', 'c')
    await world.worker(W2)
    await world.job('long', { executionTimeoutMs: 50_000 })
    await world.claim(W2)
    assert.deepEqual(await jobOutcomes.timeOutOverdue(T0 + 9_999, 10), [])
    const moves = await jobOutcomes.timeOutOverdue(T0 + 10_000, 2)
    assert.deepEqual(
      moves.map(({ job, from }) => [job.id, from, job.status]),
      [
        ['a', 'IN_PROGRESS', 'TIMED_OUT'],
        ['b', 'IN_PROGRESS', 'TIMED_OUT'],
      ],
    )
    assert.equal(moves[0]?.job.error, 'the job ran longer than its execution timeout of 10000 ms')
    assert.equal((await world.load()).idleSinceMs, null)
    assert.equal((await jobOutcomes.timeOutOverdue(T0 + 10_500, 10)).length, 1)
    assert.equal((await world.load()).idleSinceMs, T0 + 10_500)
    assert.equal((await endpoints.snapshot(E1))?.counters.failed, 3)
    assert.deepEqual(await stops.pending(W1), ['a', 'b', 'c'])
    assert.equal((await world.read('long')).status, 'IN_PROGRESS')
  },

  'jobs of a lost worker go back to the head of the line': async world => {
    const { jobOutcomes, endpoints, stops } = world.store
    await world.holder(W1, 'a', 'b')
    await world.job('later', { position: T0 + 50 })
    const moves = await jobOutcomes.requeueLost(W1, 'it vanished', T0 + 5)
    assert.deepEqual(
      moves.map(({ job, from }) => [job.id, from, job.status, job.attempt, job.lostAttempts, job.workerId]),
      [
        ['a', 'IN_PROGRESS', 'IN_QUEUE', 1, 1, W1],
        ['b', 'IN_PROGRESS', 'IN_QUEUE', 1, 1, W1],
      ],
    )
    assert.equal(moves[0]?.job.startedAtMs, null)
    assert.deepEqual(await jobOutcomes.requeueLost(W1, 'it vanished', T0 + 6), [])
    assert.equal((await endpoints.snapshot(E1))?.counters.retried, 2)
    assert.deepEqual(await stops.pending(W1), [])
    await world.worker(W2)
    const claimed = await world.claim(W2, 3)
    assert.deepEqual(
      claimed.map(({ id, attempt }) => [id, attempt]),
      [
        ['a', 2],
        ['b', 2],
        ['later', 1],
      ],
    )
  },

  'one lost job of a worker goes back, or fails, and the others stay with it': async world => {
    const { jobOutcomes, jobs, endpoints } = world.store
    await world.holder(W1, 'a', 'b')
    await world.worker(W2)
    assert.deepEqual(await jobs.heldBy(W1), ['a', 'b'])
    assert.deepEqual(await jobs.heldBy(W2), [])
    assert.deepEqual(await jobOutcomes.requeueLost(W2, 'it forgot', T0 + 5, jobId('a')), [])
    for (let lost = 1; lost <= MAX_LOST_ATTEMPTS; lost += 1) {
      const holder = lost < MAX_LOST_ATTEMPTS ? W1 : W2
      const moves = await jobOutcomes.requeueLost(holder, 'it forgot', T0 + 5, jobId('a'))
      const status = lost < MAX_LOST_ATTEMPTS ? 'IN_QUEUE' : 'FAILED'
      assert.deepEqual(
        moves.map(({ job }) => [job.id, job.status, job.lostAttempts]),
        [['a', status, lost]],
      )
      assert.deepEqual(await jobs.heldBy(W1), ['b'])
      // After the second time it goes only to a worker that holds nothing.
      if (lost < MAX_LOST_ATTEMPTS) await world.claim(lost + 1 < MAX_LOST_ATTEMPTS ? W1 : W2)
    }
    assert.match((await world.read('a')).error ?? '', /it forgot/)
    assert.equal((await world.load()).idleSinceMs, null)
    assert.deepEqual((await endpoints.snapshot(E1))?.counters.failed, 1)
  },

  'a job that lost too many attempts fails with the reason': async world => {
    const { jobOutcomes, endpoints } = world.store
    await world.worker()
    await world.job('a')
    for (let lost = 1; lost < MAX_LOST_ATTEMPTS; lost += 1) {
      await world.claim()
      assert.equal((await jobOutcomes.requeueLost(W1, 'it vanished', T0))[0]?.job.status, 'IN_QUEUE')
    }
    await world.claim()
    const moves = await jobOutcomes.requeueLost(W1, 'it vanished', T0 + 9)
    assert.deepEqual(
      moves.map(({ job, from }) => [job.id, from, job.status]),
      [['a', 'IN_PROGRESS', 'FAILED']],
    )
    const failed = moves[0]!.job
    assert.equal(failed.error, lostReason(MAX_LOST_ATTEMPTS, 'it vanished'))
    assert.deepEqual([failed.finishedAtMs, failed.lostAttempts], [T0 + 9, MAX_LOST_ATTEMPTS])
    const { completed, failed: failures, retried } = (await endpoints.snapshot(E1))!.counters
    assert.deepEqual([completed, failures, retried], [0, 1, MAX_LOST_ATTEMPTS - 1])
    assert.equal((await world.load()).idleSinceMs, T0 + 9)
  },

  'an attempt that is given back never happened': async world => {
    const { jobOutcomes, endpoints, stops } = world.store
    await world.holder(W1, 'a', 'b')
    assert.deepEqual(await jobOutcomes.release(W1, { jobId: jobId('a'), attempt: 2 }), [])
    assert.deepEqual(await jobOutcomes.release(W2, { jobId: jobId('a'), attempt: 1 }), [])
    const [move] = await jobOutcomes.release(W1, { jobId: jobId('a'), attempt: 1 })
    assert.equal(move?.from, 'IN_PROGRESS')
    assert.deepEqual(await world.read('a'), makeJob('a', { input: '' }))
    assert.equal((await world.load()).idleSinceMs, null)
    assert.equal((await jobOutcomes.release(W1, 'all'))[0]?.job.id, 'b')
    assert.deepEqual([(await world.load()).held, (await world.load()).idleSinceMs], [0, T0])
    assert.deepEqual(await jobOutcomes.release(W1, 'all'), [])
    assert.equal((await endpoints.snapshot(E1))?.counters.retried, 0)
    assert.deepEqual(await stops.pending(W1), [])
    assert.equal((await world.claim())[0]?.attempt, 1)
  },

  'expired jobs are removed in any state, the oldest first, and are returned as they were without their texts':
    async world => {
      const { jobOutcomes, stops } = world.store
      await world.worker()
      await world.job('running', { expiresAtMs: T0 + 30 })
      await world.claim()
      await world.job('waiting', { expiresAtMs: T0 + 20 })
      await world.job('cancelled', { expiresAtMs: T0 + 10 })
      await world.job('stays', { expiresAtMs: T0 + 31 })
      await jobOutcomes.cancel(E1, jobId('cancelled'), T0)
      const read = async (id: string) => ({ ...(await world.read(id)), input: '{}' })
      const asTheyWere = [await read('cancelled'), await read('waiting'), await read('running')]
      const remove = async (nowMs: number) => {
        const { jobs, more } = await jobOutcomes.removeExpired(nowMs, 2)
        return { jobs: jobs.map(({ job }) => job), more }
      }
      assert.deepEqual(await remove(T0 + 9), { jobs: [], more: false })
      assert.deepEqual(await remove(T0 + 30), { jobs: asTheyWere.slice(0, 2), more: true })
      assert.deepEqual(await remove(T0 + 30), { jobs: asTheyWere.slice(2), more: false })
      assert.equal(await world.store.jobs.find(E1, jobId('running'), T0), null)
      assert.notEqual(await world.store.jobs.find(E1, jobId('stays'), T0), null)
      assert.deepEqual(await stops.pending(W1), ['running'])
      assert.deepEqual([(await world.load()).held, (await world.load()).idleSinceMs], [1, T0 + 30])
    },

  'of large jobs only a few are removed at once, and there are more then': async world => {
    const input = JSON.stringify('x'.repeat(3 * 1024 * 1024))
    for (const [index, id] of ['a', 'b', 'c'].entries()) await world.job(id, { input, expiresAtMs: T0 + index })
    const remove = async () => {
      const { jobs, more } = await world.store.jobOutcomes.removeExpired(T0 + 10, 100)
      return [jobs.map(({ job }) => job.id), more]
    }
    assert.deepEqual(await remove(), [['a', 'b'], true])
    assert.deepEqual(await remove(), [['c'], false])
  },

  'idempotency keys that are left say that there is more to remove': async world => {
    const { jobs, jobOutcomes } = world.store
    for (const id of ['a', 'b', 'c']) await jobs.insertOnce(makeJob(id), `key ${id}`, T0 + 5)
    assert.deepEqual(await jobOutcomes.removeExpired(T0 + 5, 2), { jobs: [], canceled: [], more: true })
    assert.deepEqual(await jobOutcomes.removeExpired(T0 + 5, 2), { jobs: [], canceled: [], more: false })
  },

  'the next deadline is the first timeout or expiry': async world => {
    const { jobOutcomes } = world.store
    assert.equal(await jobOutcomes.nextDeadline(), null)
    await world.worker()
    await world.job('a', { expiresAtMs: T0 + 60_000 })
    assert.equal(await jobOutcomes.nextDeadline(), T0 + 60_000)
    await world.claim(W1, 1, T0 + 5)
    assert.equal(await jobOutcomes.nextDeadline(), T0 + 10_005)
    await world.finish('a', W1, DONE, T0 + 10)
    assert.equal(await jobOutcomes.nextDeadline(), T0 + 60_000)
  },

  'a worker releases the jobs that it was ordered to stop, one by one or all': async world => {
    const { jobOutcomes, stops } = world.store
    await world.holder(W1, 'a', 'b', 'c')
    await world.holder(W2, 'd')
    for (const [n, id] of ['c', 'd', 'a', 'b'].entries()) await jobOutcomes.cancel(E1, jobId(id), T0 + n)
    assert.deepEqual(await stops.pending(W1), ['c', 'a', 'b'])
    assert.deepEqual(
      (await stops.list()).map(({ workerId, jobId: id, sinceMs }) => [workerId, id, sinceMs]),
      [
        [W1, 'c', T0],
        [W2, 'd', T0 + 1],
        [W1, 'a', T0 + 2],
        [W1, 'b', T0 + 3],
      ],
    )
    await stops.letGo(W1, jobId('a'))
    await stops.letGo(W1, jobId('d'))
    assert.deepEqual([await stops.pending(W1), (await world.load()).held], [['c', 'b'], 2])
    await stops.letGo(W1, 'all')
    await stops.letGo(W1, 'all')
    assert.deepEqual([await stops.pending(W1), await stops.pending(W2)], [[], ['d']])
    assert.equal((await world.load()).held, 0)
  },

  'a retry begins everything afresh, at the given place': async world => {
    const { jobOutcomes, streams, endpoints } = world.store
    await world.holder(W1, 'a')
    await streams.append(jobId('a'), W1, ['1'], 100, 0)
    await world.finish('a', W1, BROKEN)
    const move = await jobOutcomes.retry(E1, jobId('a'), T0 + 7, T0 + 50)
    assert.equal(move?.from, 'FAILED')
    const fresh = { position: T0 + 7, queuedAtMs: T0 + 50, expiresAtMs: T0 + 50 + makeJob('a').ttlMs }
    assert.deepEqual(await world.read('a'), makeJob('a', { ...fresh, input: '' }))
    assert.deepEqual((await streams.read(jobId('a'), 0, 100))?.chunks, [])
    assert.equal((await endpoints.snapshot(E1))?.counters.retried, 1)
    assert.equal(await world.finish('a', W1, DONE), null, 'its last worker has no claim to it any more')
    assert.equal(await jobOutcomes.retry(E1, jobId('b'), T0, T0), null)
  },

  'a job past its retention cannot be retried': async world => {
    await world.holder(W1, 'a')
    await world.finish('a', W1, BROKEN)
    assert.equal(await world.store.jobOutcomes.retry(E1, jobId('a'), T0, T0 + RETENTION + 60_000), null)
  },

  'a purge takes what waits, in bounded steps, and leaves what runs': async world => {
    await world.holder(W1, 'a')
    for (const id of ['b', 'c', 'd']) await world.job(id)
    const purge = async () => (await world.purge(T0, 2)).map(({ job }) => [job.id, job.status])
    assert.equal((await purge()).length, 2)
    assert.equal((await purge()).length, 1)
    assert.deepEqual(await purge(), [])
    assert.equal((await world.read('a')).status, 'IN_PROGRESS')
    assert.deepEqual((await world.store.endpoints.snapshot(E1))?.counters.failed, 0)
  },
}

import assert from 'node:assert/strict'
import type { WorkerId } from '../../src/core/ids.ts'
import { type Cases, E1, E2, EXIT, jobId, makeEndpoint, makeWorker, T0, W1, W2 } from './store-world.ts'

const ids = (jobs: readonly { id: string }[]) => jobs.map(job => job.id)

/** Jobs that each claim gets. */
export const claimCases: Cases = {
  'a claim hands out the head of the line and notes who has it since when': async world => {
    await world.worker()
    const texts = {
      policy: '{"ttl":1}',
      webhook: 'https://example.com',
      s3Config: 'sealed',
      traceparent: '00-ab-cd-01',
    }
    await world.job('a', texts)
    const input = '{"n": 12345678901234567890}'
    const [claimed] = await world.claim(W1, 1, T0 + 5)
    const place = { queuedAtMs: T0, position: T0 }
    assert.deepEqual(claimed, {
      id: 'a',
      attempt: 1,
      input,
      largeInput: null,
      inputProblem: null,
      ...texts,
      batchId: null,
      waitedMs: 5,
      ...place,
    })
    const job = await world.read('a')
    const { status, attempt, workerId, startedAtMs, finishedAtMs } = job
    const wanted = { status: 'IN_PROGRESS', attempt: 1, workerId: W1, startedAtMs: T0 + 5, finishedAtMs: null }
    assert.deepEqual({ status, attempt, workerId, startedAtMs, finishedAtMs }, wanted)
  },

  'the line is ordered by priority, then place, then id, and claims keep that order': async world => {
    await world.worker()
    await world.job('low', { lowPriority: true, position: T0 - 100 })
    await world.job('third', { position: T0 + 2 })
    await world.job('second-b', { position: T0 + 1 })
    await world.job('second-a', { position: T0 + 1 })
    await world.job('first', { position: T0 })
    assert.deepEqual(ids(await world.claim(W1, 3)), ['first', 'second-a', 'second-b'])
    assert.deepEqual(ids(await world.claim(W1, 3)), ['third', 'low'])
    assert.deepEqual(await world.claim(W1, 3), [])
  },

  'a claim takes at most as many as it asks for': async world => {
    await world.worker()
    await world.jobs('a', 'b', 'c')
    assert.deepEqual(await world.claim(W1, 0), [])
    assert.deepEqual(ids(await world.claim(W1, 2)), ['a', 'b'])
  },

  'jobs of another endpoint are not handed out, nor to a worker of another endpoint': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint(E2))
    await world.worker(W1)
    await world.worker(W2, { endpointId: E2 })
    await world.job('a')
    assert.deepEqual((await store.jobs.claim({ endpointId: E2, workerId: W2, limit: 5, nowMs: T0 })).jobs, [])
    assert.deepEqual((await store.jobs.claim({ endpointId: E1, workerId: W2, limit: 5, nowMs: T0 })).jobs, [])
    assert.deepEqual(await world.claim('nobody' as WorkerId, 5), [])
    assert.deepEqual(ids(await world.claim(W1, 5)), ['a'])
  },

  'a worker of an older version gets nothing once one of the present version has been ready': async world => {
    const { endpoints, workers } = world.store
    await world.worker()
    await world.job('a')
    const before = (await endpoints.find(E1))!
    assert.equal(await endpoints.replace({ ...before, version: 2 }, before, T0), true)
    assert.deepEqual(ids(await world.claim(W1)), ['a'])
    await world.worker(W2, { version: 2 })
    await world.job('b')
    await workers.seen(W2, 1, null, T0)
    assert.deepEqual(await world.claim(W1), [])
    assert.deepEqual(ids(await world.claim(W2)), ['b'])
  },

  'a worker that is draining, stopping or gone gets nothing': async world => {
    const { workers } = world.store
    await world.worker()
    await world.job('a')
    await workers.retire(W1, 'DRAINING', 'idle', T0)
    assert.deepEqual(await world.claim(), [])
    await workers.retire(W1, 'STOPPING', 'idle', T0)
    assert.deepEqual(await world.claim(), [])
    await workers.exited(W1, EXIT, T0)
    assert.deepEqual(await world.claim(), [])
    assert.equal((await world.read('a')).attempt, 0)
  },

  'a worker that has yet to stop a job is not handed it again, though others are': async world => {
    const { jobOutcomes, stops } = world.store
    await world.holder(W1, 'a')
    await world.worker(W2)
    await jobOutcomes.timeOutOverdue(T0 + 10_000_000, 10)
    await jobOutcomes.retry(E1, jobId('a'), T0, T0)
    await world.job('b', { position: T0 + 1 })
    assert.deepEqual(ids(await world.claim(W1, 2)), ['b'])
    await stops.letGo(W1, jobId('a'))
    assert.deepEqual(ids(await world.claim(W1, 2)), ['a'])
  },

  'a worker that was handed a job is READY and no longer idle; an empty answer changes nothing': async world => {
    await world.store.workers.insert(makeWorker(W1), 'token')
    assert.deepEqual(await world.claim(W1, 1, T0 + 1), [])
    assert.equal((await world.readWorker()).state, 'STARTING')
    await world.job('a')
    await world.claim(W1, 1, T0 + 2)
    const { state, readyAtMs, idleSinceMs } = await world.readWorker()
    assert.deepEqual({ state, readyAtMs, idleSinceMs }, { state: 'READY', readyAtMs: T0 + 2, idleSinceMs: null })
  },

  'a hundred claims at once give each job to one worker': async world => {
    const workerIds = Array.from({ length: 10 }, (_, n) => `worker-${n}` as WorkerId)
    for (const id of workerIds) await world.worker(id)
    const jobIds = Array.from({ length: 60 }, (_, n) => `job-${String(n).padStart(3, '0')}`)
    await Promise.all(jobIds.map((id, n) => world.job(id, { position: T0 + n })))
    const claims = Array.from({ length: 100 }, (_, n) => world.claim(workerIds[n % 10]))
    const claimed = (await Promise.all(claims)).flat()
    assert.deepEqual(ids(claimed).sort(), jobIds)
    const holders = await Promise.all(jobIds.map(id => world.read(id)))
    assert.ok(holders.every(job => job.status === 'IN_PROGRESS' && job.attempt === 1))
    assert.equal((await world.snapshot()).queue.inProgress, 60)
  },

  'claims and cancels at once leave each job with one fate': async world => {
    await world.worker()
    const jobIds = Array.from({ length: 30 }, (_, n) => `job-${n}`)
    await world.jobs(...jobIds)
    const { jobOutcomes } = world.store
    const results = await Promise.all(
      jobIds.flatMap(id => [
        world.claim(),
        jobOutcomes.cancel(E1, jobId(id), T0),
        jobOutcomes.cancel(E1, jobId(id), T0),
      ]),
    )
    const cancels = results.filter(result => result !== null && 'job' in result)
    assert.equal(cancels.length, 30)
    for (const id of jobIds) assert.equal((await world.read(id)).status, 'CANCELLED')
  },
}

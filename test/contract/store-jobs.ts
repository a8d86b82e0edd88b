import assert from 'node:assert/strict'
import type { EndpointId } from '../../src/core/ids.ts'
import { type Cases, DONE, E1, E2, endpointOf, jobId, jobOf, OWNER, STRANGER, T0, W1, W2 } from './store-world.ts'

const EXPIRY = jobOf('x').expiresAtMs

/** Jobs as they are put, read and kept while they run. */
export const jobCases: Cases = {
  'a new job is kept as it was given': async ({ store }) => {
    const texts = { policy: '{"lowPriority": true}', webhook: 'https://example.com/ü', s3Config: 'sealed' }
    const job = jobOf('a', { ...texts, kind: 'runsync', lowPriority: true, input: '{"t": "\\u0000 \\ud83d ✓ 𝄞"}' })
    assert.equal(await store.jobs.insert(job), true)
    assert.deepEqual(await store.jobs.find(E1, job.id, T0), job)
    assert.deepEqual(await store.jobs.locate(OWNER, job.id, T0), job)
  },

  'a job for an endpoint that is gone is not taken': async ({ store }) => {
    assert.equal(await store.jobs.insert(jobOf('a', { endpointId: 'gone' as EndpointId })), false)
    assert.equal(await store.jobs.locate(OWNER, jobId('a'), T0), null)
  },

  'a job is found on its own endpoint and by its own owner only': async ({ store }) => {
    await store.endpoints.insert(endpointOf(E2))
    assert.equal(await store.jobs.insert(jobOf('a')), true)
    assert.equal(await store.jobs.find(E2, jobId('a'), T0), null)
    assert.equal(await store.jobs.locate(STRANGER, jobId('a'), T0), null)
    assert.equal(await store.jobs.find(E1, jobId('b'), T0), null)
  },

  'a job is there until the instant of its expiry, and not at it': async world => {
    const { jobs } = world.store
    const id = await world.job('a')
    assert.notEqual(await jobs.find(E1, id, EXPIRY - 1), null)
    assert.notEqual(await jobs.locate(OWNER, id, EXPIRY - 1), null)
    assert.equal(await jobs.find(E1, id, EXPIRY), null)
    assert.equal(await jobs.locate(OWNER, id, EXPIRY), null)
  },

  'a job past its expiry is neither handed out, finished, cancelled nor kept longer': async world => {
    const { jobs, jobOutcomes } = world.store
    await world.holder(W1, 'held')
    await world.job('waiting')
    assert.deepEqual(await world.claim(W1, 5, EXPIRY), [])
    assert.equal(await world.finish('held', W1, DONE, EXPIRY), null)
    assert.equal(await jobOutcomes.cancel(E1, jobId('waiting'), EXPIRY), null)
    assert.equal(await jobs.setExpiry(E1, jobId('waiting'), EXPIRY + 9, EXPIRY), null)
    assert.deepEqual(await jobOutcomes.timeOutOverdue(EXPIRY, 5), [])
    assert.equal((await world.read('held')).status, 'IN_PROGRESS')
  },

  'the expiry of a job can be set, whatever its state': async world => {
    const { jobs } = world.store
    await world.holder(W1, 'a')
    assert.equal((await jobs.setExpiry(E1, jobId('a'), T0 + 50, T0))?.expiresAtMs, T0 + 50)
    assert.equal((await world.finish('a', W1, DONE, T0 + 10))?.job.expiresAtMs, T0 + 50)
    assert.equal((await jobs.setExpiry(E1, jobId('a'), T0 + 90, T0 + 10))?.status, 'COMPLETED')
    assert.equal((await world.read('a')).expiresAtMs, T0 + 90)
    assert.equal(await jobs.setExpiry(E2, jobId('a'), T0 + 95, T0), null)
    assert.equal(await jobs.setExpiry(E1, jobId('b'), T0 + 95, T0), null)
  },

  'progress is kept from the holder while it runs the job, and goes with the attempt': async world => {
    const { jobs, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    await world.worker(W2)
    assert.equal(await jobs.setProgress(jobId('a'), W1, '"10 %"'), true)
    assert.equal(await jobs.setProgress(jobId('a'), W1, '"20 %"'), true)
    assert.equal(await jobs.setProgress(jobId('a'), W2, '"90 %"'), false)
    assert.equal(await jobs.setProgress(jobId('b'), W1, '"90 %"'), false)
    assert.equal((await world.read('a')).progress, '"20 %"')
    await jobOutcomes.requeueLost(W1, 'it was lost', T0)
    assert.equal((await world.read('a')).progress, null)
    assert.equal(await jobs.setProgress(jobId('a'), W1, '"30 %"'), false)
    await world.claim(W1)
    await jobs.setProgress(jobId('a'), W1, '"40 %"')
    assert.equal((await world.finish('a'))?.job.progress, null)
    assert.equal(await jobs.setProgress(jobId('a'), W1, '"50 %"'), false)
  },

  'chunks are kept up to a limit of bytes, from the holder only': async world => {
    const { jobs } = world.store
    await world.holder(W1, 'a')
    await world.worker(W2)
    assert.equal(await jobs.appendChunk(jobId('a'), W2, '"x"', 100), false)
    assert.equal(await jobs.appendChunk(jobId('b'), W1, '"x"', 100), false)
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '"äö"', 10), true, 'six bytes')
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '"abc"', 10), false, 'eleven bytes')
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '"ab"', 10), true, 'ten bytes')
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '1', 10), false)
    await world.finish('a')
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '1', 100), false)
  },

  'a new attempt starts without the chunks of the last one, lost or given back': async world => {
    const { jobs, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    for (const giveBack of [
      () => jobOutcomes.requeueLost(W1, 'it was lost', T0),
      () => jobOutcomes.release(W1, 'all'),
      () => jobOutcomes.release(W1, { jobId: jobId('a'), attempt: 2 }),
    ]) {
      assert.equal(await jobs.appendChunk(jobId('a'), W1, '"ten byte"', 10), true)
      assert.equal(await jobs.appendChunk(jobId('a'), W1, '"ten byte"', 10), false)
      assert.equal((await giveBack()).length, 1)
      assert.equal((await world.claim()).length, 1)
    }
    assert.equal(await jobs.appendChunk(jobId('a'), W1, '"ten byte"', 10), true)
  },

  'diagnostics can be added to any job, however many, and to none': async world => {
    const { jobs } = world.store
    await world.job('a')
    for (let n = 0; n < 25; n += 1) await jobs.addDiagnostic(jobId('a'), T0 + n, W1, `number ${n}`)
    await jobs.addDiagnostic(jobId('b'), T0, W1, 'of nothing')
  },
}

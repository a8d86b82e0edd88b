import assert from 'node:assert/strict'
import type { EndpointId } from '../../src/core/ids.ts'
import type { JobStatus } from '../../src/core/jobs/job.ts'
import { ANY_JOB } from '../../src/core/jobs/job-record.ts'
import type { Slice } from '../../src/core/pages.ts'
import { type Cases, DONE, E1, E2, jobId, makeEndpoint, makeJob, OWNER, STRANGER, T0, W1, W2 } from './store-world.ts'

const EXPIRY = makeJob('x').expiresAtMs

/** Jobs as they are put, read and kept while they run. */
export const jobCases: Cases = {
  'a new job is kept as it was given, and its input goes to its worker only': async world => {
    const { store } = world
    const texts = { policy: '{"lowPriority": true}', webhook: 'https://example.com/ü', s3Config: 'sealed' }
    const job = makeJob('a', { ...texts, kind: 'runsync', lowPriority: true, input: '{"t": "\\u0000 \\ud83d ✓ 𝄞"}' })
    assert.equal(await store.jobs.insert(job), true)
    assert.deepEqual(await store.jobs.find(E1, job.id, T0), { ...job, input: '' })
    assert.deepEqual(await store.jobs.locate(OWNER, job.id, T0), { ...job, input: '' })
    await world.worker()
    assert.deepEqual(
      (await world.claim()).map(({ input }) => input),
      [job.input],
    )
  },

  'a job whose insert may be undone is as any other, also once it is kept': async world => {
    const { jobs } = world.store
    const job = makeJob('a', { kind: 'runsync' })
    assert.equal(await jobs.insert(job, true), true)
    assert.deepEqual(await jobs.find(E1, job.id, T0), { ...job, input: '' })
    await jobs.keep(job.id)
    assert.deepEqual(await jobs.find(E1, job.id, T0), { ...job, input: '' })
    await world.worker()
    assert.equal((await world.claim()).length, 1)
    const running = await jobs.find(E1, job.id, T0)
    await jobs.keep(job.id)
    assert.deepEqual(await jobs.find(E1, job.id, T0), running)
    await jobs.keep(jobId('gone'))
    assert.equal(await jobs.insert(makeJob('b', { endpointId: 'gone' as EndpointId }), true), false)
  },

  'a job for an endpoint that is gone is not taken': async ({ store }) => {
    assert.equal(await store.jobs.insert(makeJob('a', { endpointId: 'gone' as EndpointId })), false)
    assert.equal(await store.jobs.locate(OWNER, jobId('a'), T0), null)
  },

  'a job is found on its own endpoint and by its own owner only': async ({ store }) => {
    await store.endpoints.insert(makeEndpoint(E2))
    assert.equal(await store.jobs.insert(makeJob('a')), true)
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

  'jobs are listed newest first, in the states that are asked for, page by page': async world => {
    const { jobRecords, jobOutcomes } = world.store
    const list = (statuses: readonly JobStatus[] = [], slice: Partial<Slice> = {}, nowMs = T0 + 9, maxRead = 99) =>
      jobRecords.list({
        endpointId: E1,
        filter: { ...ANY_JOB, statuses },
        slice: { after: null, limit: 10, ...slice },
        maxRead,
        nowMs,
        withRecords: false,
      })
    const ids = async (...asked: Parameters<typeof list>) => (await list(...asked)).jobs.map(({ id }) => id)
    assert.deepEqual(await ids(), [])
    await world.holder(W1, 'held', 'done')
    await world.finish('done', W1, DONE, T0 + 3)
    for (const name of ['a', 'b', 'c']) await world.job(name, { queuedAtMs: T0 + 1 })
    await world.job('newest', { queuedAtMs: T0 + 2, lowPriority: true })
    await world.job('short', { queuedAtMs: T0 + 3, expiresAtMs: T0 + 5 })
    await jobOutcomes.cancel(E1, jobId('b'), T0 + 4)
    const all = ['newest', 'c', 'b', 'a', 'held', 'done']
    assert.deepEqual(await ids(), all)
    assert.deepEqual(await ids([], {}, T0 + 4), ['short', ...all])
    assert.deepEqual(await ids(['IN_QUEUE', 'COMPLETED']), ['newest', 'c', 'a', 'done'])
    assert.deepEqual(await ids(['TIMED_OUT']), [])
    assert.deepEqual(await ids([], { limit: 2 }), all.slice(0, 2))
    const after = { createdAtMs: T0 + 1, id: 'c' }
    assert.deepEqual(await ids([], { after, limit: 2 }), all.slice(2, 4))
    assert.deepEqual(await ids(['IN_QUEUE'], { after }), ['a'])
    const [held] = (await list(['IN_PROGRESS'])).jobs
    const times = { createdAtMs: T0, queuedAtMs: T0, startedAtMs: T0, finishedAtMs: null }
    const sizes = { inputBytes: 27, outputBytes: null }
    const end = { expiresAtMs: EXPIRY, error: null, fingerprint: null }
    const attempts = { attempt: 1, lostAttempts: 0, workerId: W1 }
    assert.deepEqual(held, {
      id: 'held',
      endpointId: E1,
      status: 'IN_PROGRESS',
      ...times,
      ...end,
      ...attempts,
      ...sizes,
    })
    const page = { slice: { after: null, limit: 9 }, maxRead: 9, nowMs: T0, withRecords: true }
    assert.deepEqual(await jobRecords.list({ endpointId: E2, filter: ANY_JOB, ...page }), { jobs: [], readUntil: null })
    const lastRead = async (maxRead: number) => (await list(['COMPLETED'], {}, T0 + 9, maxRead)).readUntil?.id ?? null
    assert.deepEqual(
      [await lastRead(1), await lastRead(4), await lastRead(7), await lastRead(8)],
      ['short', 'b', 'done', null],
    )
    assert.deepEqual(await ids(['COMPLETED'], {}, T0 + 9, 6), [])
    assert.deepEqual(await ids(['COMPLETED'], {}, T0 + 9, 7), ['done'])
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
    const { streams } = world.store
    await world.holder(W1, 'a')
    await world.worker(W2)
    assert.equal(await streams.append(jobId('a'), W2, ['"x"'], 100, 0), false)
    assert.equal(await streams.append(jobId('b'), W1, ['"x"'], 100, 0), false)
    assert.equal(await streams.append(jobId('a'), W1, ['"äö"'], 10, 0), true, 'six bytes')
    assert.equal(await streams.append(jobId('a'), W1, ['"abc"'], 10, 0), false, 'eleven bytes')
    assert.equal(await streams.append(jobId('a'), W1, ['"ab"'], 10, 0), true, 'ten bytes')
    assert.equal(await streams.append(jobId('a'), W1, ['1'], 10, 0), false)
    await world.finish('a')
    assert.equal(await streams.append(jobId('a'), W1, ['1'], 100, 0), false)
  },

  'a new attempt starts without the chunks of the last one, lost or given back': async world => {
    const { streams, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    for (const giveBack of [
      () => jobOutcomes.requeueLost(W1, 'it was lost', T0),
      () => jobOutcomes.release(W1, 'all'),
      () => jobOutcomes.release(W1, { jobId: jobId('a'), attempt: 2 }),
    ]) {
      assert.equal(await streams.append(jobId('a'), W1, ['"ten byte"'], 10, 0), true)
      assert.equal(await streams.append(jobId('a'), W1, ['"ten byte"'], 10, 0), false)
      assert.equal((await giveBack()).length, 1)
      assert.equal((await world.claim()).length, 1)
    }
    assert.equal(await streams.append(jobId('a'), W1, ['"ten byte"'], 10, 0), true)
  },

  'chunks are read in order, in parts, and no more once a client has them': async world => {
    const { streams } = world.store
    await world.holder(W1, 'a')
    assert.deepEqual(await streams.read(jobId('a'), 0, 10), { attempt: 1, workerId: W1, streamedSeq: 0, chunks: [] })
    await streams.append(jobId('a'), W1, ['"1234"', '"5678"'], 100, 0)
    await streams.append(jobId('a'), W1, ['"9"'], 100, 0)
    const seqs = async (after: number, bytes: number) =>
      (await streams.read(jobId('a'), after, bytes))?.chunks.map(({ seq }) => seq)
    assert.deepEqual(await seqs(0, 100), [1, 2, 3])
    assert.deepEqual(await seqs(0, 1), [1], 'one at least')
    assert.deepEqual(await seqs(0, 12), [1, 2])
    assert.deepEqual(await seqs(1, 9), [2, 3])
    await streams.streamed(jobId('a'), { attempt: 1, workerId: W1 }, 2)
    assert.deepEqual(await seqs(0, 100), [3])
    await streams.streamed(jobId('a'), { attempt: 1, workerId: W1 }, 1)
    assert.deepEqual(await seqs(0, 100), [3], 'never back')
    await streams.streamed(jobId('a'), { attempt: 7, workerId: W1 }, 3)
    assert.deepEqual(await seqs(0, 100), [3], 'not for another attempt')
    assert.equal(await streams.read(jobId('b'), 0, 100), null)
  },

  'the next attempt streams from its start': async world => {
    const { streams, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    await streams.append(jobId('a'), W1, ['1', '2'], 100, 0)
    await streams.streamed(jobId('a'), { attempt: 1, workerId: W1 }, 2)
    await jobOutcomes.requeueLost(W1, 'it was lost', T0)
    await world.claim(W1)
    await streams.append(jobId('a'), W1, ['3'], 100, 0)
    const part = await streams.read(jobId('a'), 0, 100)
    assert.deepEqual(part, { attempt: 2, workerId: W1, streamedSeq: 0, chunks: [{ seq: 1, chunk: '3' }] })
  },

  'what a client has of a run that does not count is not noted for the next one, which has its number': async world => {
    const { streams, jobOutcomes } = world.store
    await world.holder(W1, 'a')
    await world.worker(W2)
    await streams.append(jobId('a'), W1, ['1', '2'], 100, 0)
    await jobOutcomes.release(W1, 'all')
    await world.claim(W2)
    await streams.append(jobId('a'), W2, ['3', '4'], 100, 0)
    await streams.streamed(jobId('a'), { attempt: 1, workerId: W1 }, 2)
    const part = await streams.read(jobId('a'), 0, 100)
    assert.deepEqual([part?.workerId, part?.attempt, part?.chunks.map(({ chunk }) => chunk)], [W2, 1, ['3', '4']])
  },

  'chunks that may have been kept already are kept once': async world => {
    const { streams } = world.store
    await world.holder(W1, 'a')
    await streams.append(jobId('a'), W1, ['1', '2'], 100, 0)
    assert.equal(await streams.append(jobId('a'), W1, ['1', '2'], 100, 1), true)
    assert.equal(await streams.append(jobId('a'), W1, ['3'], 100, 1), true)
    assert.equal(await streams.append(jobId('a'), W1, ['3'], 100, 0), true, 'equal chunks are no mistake')
    assert.equal(await streams.append(jobId('a'), W1, ['3'], 100, 2), true, 'two are there')
    assert.equal(await streams.append(jobId('a'), W1, ['3'], 100, 3), true, 'the third is not')
    const part = await streams.read(jobId('a'), 0, 100)
    assert.deepEqual(
      part?.chunks.map(({ chunk }) => chunk),
      ['1', '2', '3', '3', '3'],
    )
  },

  'one idempotency key makes one job, until it expires': async world => {
    const { jobs, jobOutcomes } = world.store
    const once = (id: string, atMs: number, key = 'key') =>
      jobs.insertOnce(makeJob(id, { queuedAtMs: atMs }), key, atMs + 1_000)
    assert.equal(await once('a', T0), 'a')
    assert.equal(await once('b', T0 + 999), 'a')
    assert.equal(await jobs.find(E1, jobId('b'), T0), null)
    assert.equal(await once('c', T0, 'other key'), 'c')
    assert.equal(await once('d', T0 + 1_000), 'd')
    assert.equal(await once('e', T0 + 1_500), 'd')
    await jobOutcomes.removeExpired(T0 + 3_000, 9)
    assert.equal(await once('f', T0 + 3_000), 'f')
    assert.equal(await jobs.insertOnce(makeJob('g', { endpointId: 'none' as EndpointId }), 'key', T0 + 1), null)
  },

  'any number of diagnostics can be added to any job, also to a missing one; the first 20 are kept': async world => {
    const { jobs } = world.store
    await world.job('a')
    for (let n = 0; n < 25; n += 1) await jobs.addDiagnostic(jobId('a'), T0 + n, W1, `number ${n}`)
    await jobs.addDiagnostic(jobId('b'), T0, W1, 'of nothing')
    const kept = await jobs.diagnostics(jobId('a'))
    assert.deepEqual([kept.length, kept[0]], [20, { atMs: T0, workerId: W1, text: 'number 0' }])
    assert.deepEqual(await jobs.diagnostics(jobId('b')), [])
  },
}

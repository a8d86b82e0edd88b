import assert from 'node:assert/strict'
import type { EndpointId } from '../../src/core/ids.ts'
import { errorFingerprint } from '../../src/core/jobs/error-fingerprint.ts'
import { ANY_JOB, JOB_RECORD_RULES, type JobFilter, type JobRecordRules } from '../../src/core/jobs/job-record.ts'
import type { Slice } from '../../src/core/pages.ts'
import type { OwnerJobListRequest } from '../../src/ports/store/job-record-store.ts'
import {
  BROKEN,
  type Cases,
  DONE,
  E1,
  E2,
  jobId,
  makeEndpoint,
  OWNER,
  STRANGER,
  T0,
  W1,
  W2,
  type World,
} from './store-world.ts'

const DAY_MS = 24 * 60 * 60_000
/** Time at which every job of these cases has expired. */
const LATER = T0 + 2 * DAY_MS

/** Ids of listed jobs, and whether there is more to read. */
async function listed(world: World, filter: Partial<JobFilter> = {}, slice: Partial<Slice> = {}, nowMs = LATER) {
  const { jobs, readUntil } = await world.store.jobRecords.list({
    endpointId: E1,
    filter: { ...ANY_JOB, ...filter },
    slice: { after: null, limit: 10, ...slice },
    maxRead: 99,
    nowMs,
    withRecords: true,
  })
  assert.equal(readUntil, null)
  return jobs.map(({ id }) => id)
}

/** Removes what has expired. */
async function remove(world: World, changes: Partial<JobRecordRules> = {}, nowMs = LATER): Promise<void> {
  const rules = { ...JOB_RECORD_RULES, ...changes }
  while ((await world.store.jobOutcomes.removeExpired(nowMs, 100, rules)).more);
}

/** The inputs that records have. */
async function keptInputs(world: World, ...names: string[]): Promise<(string | null | undefined)[]> {
  const records = names.map(name => world.store.jobRecords.find(E1, jobId(name), LATER, true))
  return (await Promise.all(records)).map(record => record?.input)
}

/** Records of jobs whose results were removed. */
export const jobRecordCases: Cases = {
  'a job leaves a record when it is removed: state, times, attempts, worker, error and sizes': async world => {
    const { jobRecords, jobs } = world.store
    await world.holder(W1, 'done', 'broken')
    await world.finish('done', W1, DONE, T0 + 3)
    await world.finish('broken', W1, BROKEN, T0 + 4)
    await world.job('waiting', { queuedAtMs: T0 + 1 })
    const before = await jobRecords.find(E1, jobId('broken'), T0 + 5, true)
    await remove(world)
    assert.equal(await jobs.find(E1, jobId('broken'), T0 + 5), null)
    assert.deepEqual(await jobRecords.find(E1, jobId('broken'), LATER, true), {
      ...before,
      expiresAtMs: null,
      input: null,
      chunks: null,
    })
    const { input, notes, workerId, fingerprint, error } = before!
    assert.deepEqual([input, notes, workerId, error], ['{"n": 12345678901234567890}', [], W1, BROKEN.error])
    assert.equal(fingerprint, errorFingerprint(BROKEN.error!))
    const done = await jobRecords.find(E1, jobId('done'), LATER, true)
    assert.deepEqual([done?.status, done?.inputBytes, done?.outputBytes, done?.output], ['COMPLETED', 27, 13, null])
    assert.deepEqual([done?.queuedAtMs, done?.startedAtMs, done?.finishedAtMs], [T0, T0, T0 + 3])
    const waiting = await jobRecords.find(E1, jobId('waiting'), LATER, true)
    assert.deepEqual([waiting?.status, waiting?.error], ['TIMED_OUT', 'the job was not done within its ttl'])
    assert.deepEqual(await listed(world), ['waiting', 'done', 'broken'])
  },

  'a record has input and output where payloads are kept, also large ones': async world => {
    const large = JSON.stringify({ text: 'x'.repeat(5_000) })
    await world.worker()
    for (const [id, input] of Object.entries({ small: '{}', large })) {
      await world.job(id, { input })
      await world.claim()
      await world.finish(id, W1, { ...DONE, output: large }, T0 + 3)
    }
    await remove(world, { payloads: true })
    for (const [id, input] of Object.entries({ small: '{}', large })) {
      const record = await world.store.jobRecords.find(E1, jobId(id), LATER, true)
      assert.deepEqual([record?.input, record?.output], [input, large])
    }
  },

  'a record has the input of a failed or timed out job for a time, and no other input': async world => {
    const large = JSON.stringify({ text: 'x'.repeat(5_000) })
    await world.worker()
    for (const [id, outcome] of Object.entries({ done: DONE, broken: BROKEN })) {
      await world.job(id, { input: large })
      await world.claim()
      await world.finish(id, W1, outcome, T0 + 3)
    }
    await world.job('waiting', { input: '{"n": 1}' })
    const rules = { ...JOB_RECORD_RULES, failedInputsKeptMs: 3 * DAY_MS }
    await remove(world, rules)
    assert.deepEqual(await keptInputs(world, 'done', 'broken', 'waiting'), [null, large, '{"n": 1}'])
    const { jobRecords } = world.store
    assert.equal(await jobRecords.trim(rules, T0 + 3 + 3 * DAY_MS, 100), false)
    assert.deepEqual(await keptInputs(world, 'broken', 'waiting'), [large, '{"n": 1}'])
    assert.equal(await jobRecords.trim(rules, T0 + 4 + 3 * DAY_MS, 100), false)
    assert.deepEqual(await keptInputs(world, 'broken', 'waiting'), [null, '{"n": 1}'])
    assert.equal((await jobRecords.find(E1, jobId('broken'), LATER, true))?.inputBytes, large.length)
  },

  'no input is kept where the limit is 0, and kept ones are dropped': async world => {
    for (const name of ['a', 'b', 'c']) await world.job(name)
    const { store } = world
    await store.jobOutcomes.removeExpired(LATER, 1, JOB_RECORD_RULES)
    const none = { ...JOB_RECORD_RULES, failedInputsKeptMs: 0 }
    await store.jobOutcomes.removeExpired(LATER, 1, none)
    await remove(world, { failedInputsMaxBytes: 1 })
    const inputs = async () => (await keptInputs(world, 'a', 'b', 'c')).filter(input => input !== null)
    assert.equal((await inputs()).length, 1)
    assert.equal(await store.jobRecords.trim(none, LATER + 1, 100), false)
    assert.deepEqual(await inputs(), [])
    assert.equal((await listed(world)).length, 3)
  },

  'the oldest inputs of failed jobs go past the limit of their account, a bounded number at once, and records stay':
    async world => {
      const { store } = world
      await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
      await world.job('theirs', { endpointId: E2, owner: STRANGER })
      const input = JSON.stringify('x'.repeat(98))
      for (let n = 1; n <= 5; n += 1) await world.job(`j${n}`, { input, queuedAtMs: T0 + n, expiresAtMs: T0 + 100 + n })
      const all = ['j1', 'j2', 'j3', 'j4', 'j5']
      const kept = async () => (await keptInputs(world, ...all)).map(text => text !== null)
      for (let n = 1; n <= 5; n += 1) await remove(world, { failedInputsMaxBytes: 450 }, T0 + 100 + n)
      assert.deepEqual(await kept(), [false, true, true, true, true])
      const less = { ...JOB_RECORD_RULES, failedInputsMaxBytes: 199 }
      assert.equal(await store.jobRecords.trim(less, T0 + 200, 2), true)
      assert.deepEqual(await kept(), [false, false, false, true, true])
      assert.equal(await store.jobRecords.trim(less, T0 + 200, 9), false)
      assert.deepEqual(await kept(), [false, false, false, false, true])
      assert.equal(await store.jobRecords.remove(E1, jobId('j5'), T0 + 200), 'record')
      assert.equal(await store.jobRecords.trim({ ...less, failedInputsMaxBytes: 0 }, T0 + 200, 9), false)
      assert.deepEqual((await listed(world, {}, {}, T0 + 200)).sort(), all.slice(0, 4))
    },

  'without retention no record is left, and existing ones are not shown': async world => {
    await world.jobs('a', 'b')
    await world.store.jobOutcomes.removeExpired(LATER, 1, JOB_RECORD_RULES)
    await world.store.jobOutcomes.removeExpired(LATER, 1)
    assert.deepEqual(await listed(world), ['a'])
    const asked = { endpointId: E1, filter: ANY_JOB, slice: { after: null, limit: 9 }, maxRead: 9, nowMs: LATER }
    assert.deepEqual((await world.store.jobRecords.list({ ...asked, withRecords: false })).jobs, [])
    assert.equal(await world.store.jobRecords.find(E1, jobId('a'), LATER, false), null)
    const none = { ...JOB_RECORD_RULES, keptMs: 0 }
    assert.equal(await world.store.jobRecords.trim(none, LATER + 1, 100), false)
    assert.deepEqual(await listed(world), [])
  },

  'kept jobs and records are one list, newest first, page by page': async world => {
    for (const [at, name] of ['a', 'b', 'c', 'd'].entries()) {
      const ttl = name === 'a' || name === 'c' ? { expiresAtMs: T0 + 100 } : {}
      await world.job(name, { queuedAtMs: T0 + at, ...ttl })
    }
    const nowMs = T0 + 200
    const all = ['d', 'c', 'b', 'a']
    assert.deepEqual(await listed(world, {}, {}, nowMs), all)
    assert.deepEqual(await listed(world, { statuses: ['TIMED_OUT'] }, {}, nowMs), ['c', 'a'])
    await remove(world, {}, nowMs)
    assert.deepEqual(await listed(world, {}, {}, nowMs), all)
    assert.deepEqual(await listed(world, {}, { limit: 2 }, nowMs), ['d', 'c'])
    assert.deepEqual(await listed(world, {}, { after: { createdAtMs: T0 + 2, id: 'c' }, limit: 2 }, nowMs), ['b', 'a'])
    assert.deepEqual(await listed(world, { statuses: ['TIMED_OUT'] }, {}, nowMs), ['c', 'a'])
    assert.deepEqual(await listed(world, { fromMs: T0 + 1, untilMs: T0 + 3 }, {}, nowMs), ['c', 'b'])
  },

  'a list reads a bounded number of jobs and of records, and goes on where it stopped': async world => {
    for (let n = 1; n <= 6; n += 1) {
      await world.job(`j${n}`, { queuedAtMs: T0 + n, ...(n % 2 === 0 ? {} : { expiresAtMs: T0 + 100 }) })
    }
    const nowMs = T0 + 200
    await remove(world, {}, nowMs)
    const found: string[] = []
    let after: Slice['after'] = null
    for (let calls = 0; calls < 10; calls += 1) {
      const { jobs, readUntil } = await world.store.jobRecords.list({
        endpointId: E1,
        filter: ANY_JOB,
        slice: { after, limit: 10 },
        maxRead: 2,
        nowMs,
        withRecords: true,
      })
      found.push(...jobs.map(({ id }) => id))
      if (readUntil === null) break
      after = readUntil
    }
    assert.deepEqual(found, ['j6', 'j5', 'j4', 'j3', 'j2', 'j1'])
  },

  'the jobs of all endpoints of an account are one list, also their records, without those of others and of deleted endpoints':
    async world => {
      const { store } = world
      await store.endpoints.insert(makeEndpoint(E2))
      const theirs = 'theirs' as EndpointId
      await store.endpoints.insert(makeEndpoint(theirs, { owner: STRANGER }))
      const ttl = { expiresAtMs: T0 + 100 }
      await world.job('a', { queuedAtMs: T0 + 1, ...ttl })
      await world.job('b', { endpointId: E2, queuedAtMs: T0 + 2, ...ttl })
      await world.job('x', { endpointId: theirs, owner: STRANGER, queuedAtMs: T0 + 3 })
      await world.job('c', { queuedAtMs: T0 + 4 })
      await world.job('d', { endpointId: E2, queuedAtMs: T0 + 5 })
      const nowMs = T0 + 200
      const request = {
        owner: OWNER,
        filter: ANY_JOB,
        slice: { after: null, limit: 9 },
        maxRead: 99,
        nowMs,
        withRecords: true,
      }
      const found = async (changes: Partial<OwnerJobListRequest> = {}) => {
        const { jobs, readUntil } = await store.jobRecords.listOfOwner({ ...request, ...changes })
        return [jobs.map(({ id, endpointId }) => `${endpointId} ${id}`), readUntil?.id ?? null]
      }
      const all = [`${E2} d`, `${E1} c`, `${E2} b`, `${E1} a`]
      assert.deepEqual(await found(), [all, null])
      await remove(world, {}, nowMs)
      assert.deepEqual(await found(), [all, null])
      assert.deepEqual(await found({ maxRead: 1 }), [[`${E2} d`], 'd'])
      assert.deepEqual(await found({ slice: { after: { createdAtMs: T0 + 4, id: 'c' }, limit: 9 } }), [
        all.slice(2),
        null,
      ])
      assert.deepEqual(await found({ filter: { ...ANY_JOB, statuses: ['TIMED_OUT'] } }), [all.slice(2), null])
      assert.deepEqual(await found({ owner: STRANGER }), [[`${theirs} x`], null])
      await store.endpoints.remove(E2, nowMs)
      assert.deepEqual(await found(), [[`${E1} c`, `${E1} a`], null])
    },

  'jobs and records are found by worker, by a part of their error, and by its fingerprint': async world => {
    const failed = (id: string, error: string) => world.finish(id, id === 'c' ? W2 : W1, { ...BROKEN, error }, T0 + 9)
    await world.holder(W1, 'a', 'b')
    await world.holder(W2, 'c')
    await failed('a', 'ValueError: 100% of row 17')
    await failed('b', 'ValueError: 100% of row 18')
    await failed('c', 'KeyError: prompt')
    for (const nowMs of [T0 + 10, LATER]) {
      if (nowMs === LATER) await remove(world)
      assert.deepEqual((await listed(world, { workerId: W2 }, {}, nowMs)).sort(), ['c'])
      assert.deepEqual((await listed(world, { error: 'valueerror: 100%' }, {}, nowMs)).sort(), ['a', 'b'])
      assert.deepEqual(await listed(world, { error: '0%r' }, {}, nowMs), [])
      const fingerprint = errorFingerprint('ValueError: 100% of row 99')
      assert.deepEqual((await listed(world, { fingerprint }, {}, nowMs)).sort(), ['a', 'b'])
    }
  },

  'an account has no more records than its limit, the oldest go, and those of others stay': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    await world.job('theirs', { endpointId: E2, owner: STRANGER })
    for (let n = 1; n <= 5; n += 1) await world.job(`j${n}`, { queuedAtMs: T0 + n, expiresAtMs: T0 + 100 + n })
    for (let n = 1; n <= 5; n += 1) await remove(world, { maxRecords: 3 }, T0 + 100 + n)
    await remove(world, { maxRecords: 3 })
    assert.deepEqual(await listed(world), ['j5', 'j4', 'j3'])
    assert.notEqual(await store.jobRecords.find(E2, jobId('theirs'), LATER, true), null)
    assert.equal(await store.jobRecords.find(E1, jobId('theirs'), LATER, true), null)
    assert.equal(await store.jobRecords.endpointOf(STRANGER, jobId('theirs')), E2)
    assert.equal(await store.jobRecords.endpointOf(OWNER, jobId('theirs')), null)
    assert.equal(await store.jobRecords.trim({ ...JOB_RECORD_RULES, maxBytes: 1_000 }, LATER, 100), false)
    assert.deepEqual(await listed(world), ['j5', 'j4'])
  },

  'records go when their time is over, a bounded number at once': async world => {
    for (let n = 1; n <= 5; n += 1) await world.job(`j${n}`, { queuedAtMs: T0 + n })
    const rules = { ...JOB_RECORD_RULES, failedInputsKeptMs: 0 }
    await remove(world, rules)
    const { jobRecords } = world.store
    const at = LATER + rules.keptMs
    assert.equal(await jobRecords.trim(rules, at, 2), false)
    assert.equal((await listed(world)).length, 5)
    assert.equal(await jobRecords.trim(rules, at + 1, 2), true)
    assert.equal((await listed(world)).length, 3)
    assert.equal(await jobRecords.trim(rules, at + 1, 4), false)
    assert.deepEqual(await listed(world), [])
  },

  'the records of a deleted endpoint are not found, and go with it': async world => {
    const { store } = world
    for (let n = 1; n <= 3; n += 1) await world.job(`j${n}`)
    await remove(world)
    await store.endpoints.remove(E1, LATER)
    assert.equal(await store.jobRecords.find(E1, jobId('j1'), LATER, true), null)
    assert.equal((await store.removals.removePart(E1, LATER, 2)).more, true)
    assert.equal((await store.removals.removePart(E1, LATER, 9)).more, false)
    assert.equal(await store.endpoints.isFree(E1), true)
    assert.equal(await store.jobRecords.trim({ ...JOB_RECORD_RULES, maxRecords: 0 }, LATER, 9), false)
  },

  'a job that has ended is removed on demand, with its record, and one that has not is left': async world => {
    const { jobRecords, jobs } = world.store
    await world.holder(W1, 'done', 'runs')
    await world.finish('done', W1, DONE, T0 + 3)
    await world.job('old', { expiresAtMs: T0 + 5 })
    await remove(world, {}, T0 + 6)
    assert.equal(await jobRecords.remove(E1, jobId('runs'), T0 + 7), 'unfinished')
    const removed = await jobRecords.remove(E1, jobId('done'), T0 + 7)
    assert.ok(removed !== null && typeof removed === 'object')
    assert.deepEqual([removed.job.id, removed.job.status], ['done', 'COMPLETED'])
    assert.equal(await jobs.find(E1, jobId('done'), T0 + 7), null)
    assert.equal(await jobRecords.remove(E2, jobId('old'), T0 + 7), null)
    assert.equal(await jobRecords.remove(E1, jobId('old'), T0 + 7), 'record')
    assert.equal(await jobRecords.remove(E1, jobId('old'), T0 + 7), null)
    assert.deepEqual(await listed(world, {}, {}, T0 + 7), ['runs'])
  },

  'a job that is kept knows how many chunks its last attempt has streamed': async world => {
    const { jobRecords, streams } = world.store
    await world.holder(W1, 'a')
    const chunks = async () => (await jobRecords.find(E1, jobId('a'), T0, true))?.chunks
    assert.equal(await chunks(), 0)
    await streams.append(jobId('a'), W1, ['1', '2'], 100, 0)
    assert.equal(await chunks(), 2)
  },

  'a lost attempt and a retry are notes on the job, and stay in its record': async world => {
    await world.holder(W1, 'a')
    await world.store.jobOutcomes.requeueLost(W1, 'it was killed', T0 + 1)
    await world.worker(W2)
    await world.claim(W2, 1, T0 + 2)
    await world.finish('a', W2, BROKEN, T0 + 3)
    await world.store.jobOutcomes.retry(E1, jobId('a'), T0, T0 + 4)
    await remove(world)
    const record = await world.store.jobRecords.find(E1, jobId('a'), LATER, true)
    assert.deepEqual(record?.owner, OWNER)
    assert.deepEqual(record?.notes, [
      { atMs: T0 + 1, workerId: W1, text: 'attempt 1 was lost: it was killed' },
      {
        atMs: T0 + 4,
        workerId: W2,
        text: 'attempt 2 was FAILED, and a client queued the job again; ValueError: no',
      },
    ])
  },
}

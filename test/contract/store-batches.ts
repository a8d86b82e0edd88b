import assert from 'node:assert/strict'
import type { BatchId, EndpointId, OwnerId } from '../../src/core/ids.ts'
import { BATCH, type Batch } from '../../src/core/jobs/batch.ts'
import type { BatchAnswer, BatchDraftRequest, OnceKey } from '../../src/ports/store/batch-store.ts'
import { type Cases, DONE, E1, E2, jobId, makeEndpoint, OWNER, STRANGER, T0, W1, type World } from './store-world.ts'

/** The id of a batch. */
export const batchId = (text: string) => text as BatchId

/** A request as it is added. */
export function makeRequest(id: string, changes: Partial<BatchDraftRequest> = {}): BatchDraftRequest {
  const texts = { input: '{"n": 12345678901234567890}', policy: null, webhook: null, s3Config: null }
  return { id: jobId(id), ...texts, executionTimeoutMs: 10_000, ttlMs: 86_400_000, lowPriority: false, ...changes }
}

/** Ids of so many requests of a batch. */
export const numberedIds = (id: string, count: number) => Array.from({ length: count }, (_, n) => `${id}-${n}`)

/** A draft with requests of these ids. */
export async function draft(world: World, id: string, ids: readonly string[] = [], nowMs = T0, webhook?: string) {
  const fields = { id: batchId(id), owner: OWNER, endpointId: E1, name: null, webhook: webhook ?? null }
  const requests = ids.map(own => makeRequest(own))
  return requireBatch(await world.store.batches.create(fields, requests, nowMs, null))
}

/** A finalized batch whose requests are jobs. */
export async function running(world: World, id: string, ids: readonly string[], nowMs = T0, webhook?: string) {
  await draft(world, id, ids, nowMs, webhook)
  requireBatch(await world.store.batches.finalize(E1, batchId(id), nowMs))
  while ((await world.store.batches.release(batchId(id), 1_000)).length > 0);
}

/** The batch of an answer that has one. */
export function requireBatch(answer: BatchAnswer | 'absent'): Batch {
  assert.ok(answer !== null && answer !== 'absent' && 'batch' in answer, JSON.stringify(answer))
  return answer.batch
}

/** The batch as it is in the store. */
export async function look(world: World, id: string, nowMs = T0): Promise<Batch> {
  const batch = await world.store.batches.find(E1, batchId(id), nowMs)
  assert.ok(batch !== null, `${id} is not there`)
  return batch
}

/** The ids of batches with something left to do. */
export const unsettled = async (world: World) => (await world.store.batches.unsettled(9)).map(({ id }) => id)

/** Code of a refusal; null on success. */
export const refusal = (answer: BatchAnswer | 'absent') =>
  answer !== null && answer !== 'absent' && 'refused' in answer ? answer.refused.code : null
/** Total, in progress, completed, failed. */
export const counts = ({ total, inProgress, completed, failed }: Batch) => [total, inProgress, completed, failed]
/** A page of requests, each as its id and its state. */
export const page = async (world: World, id: string, offset = 0, limit = 100, bytes = 1_000_000) => {
  const { items, total } = await world.store.batches.requests(batchId(id), offset, limit, bytes)
  return { total, items: items.map(request => `${request.id} ${request.status}`) }
}
const once = (key: string, expiresAtMs = T0 + 1_000): OnceKey => ({ key, expiresAtMs })

/** Batches as they are made, changed and read. */
export const batchCases: Cases = {
  'a draft is kept as it was given, and found on its own endpoint until it expires': async world => {
    const { batches } = world.store
    const fields = { id: batchId('b'), owner: OWNER, endpointId: E1, name: 'ü', webhook: 'https://x.example' }
    const made = requireBatch(await batches.create(fields, [makeRequest('r')], T0, null))
    const times = { createdAtMs: T0, finalizedAtMs: null, finishedAtMs: null, expiresAtMs: T0 + BATCH.draftMs }
    const wanted = { ...fields, status: 'DRAFT', total: 1, inProgress: 0, completed: 0, failed: 0, ...times }
    assert.deepEqual(made, wanted)
    assert.deepEqual(await look(world, 'b', T0 + BATCH.draftMs - 1), wanted)
    assert.equal(await batches.find(E1, fields.id, T0 + BATCH.draftMs), null)
    assert.equal(await batches.find(E2, fields.id, T0), null)
    assert.equal(await batches.create({ ...fields, endpointId: 'gone' as EndpointId }, [], T0, null), null)
  },

  'batches are listed newest first, in pages, without those that are gone': async world => {
    const { batches } = world.store
    for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) await draft(world, id, [], T0 + index)
    const ids = async (offset: number, limit: number, nowMs = T0 + 9) => {
      const { items, total } = await batches.list(E1, nowMs, offset, limit)
      return [items.map(({ id }) => id).join(' '), total]
    }
    assert.deepEqual(await ids(0, 10), ['d c b a', 4])
    assert.deepEqual(await ids(1, 2), ['c b', 4])
    assert.deepEqual(await ids(0, 10, T0 + BATCH.draftMs + 1), ['d c', 2])
    assert.deepEqual(await batches.list(E2, T0, 0, 9), { items: [], total: 0 })
    const before = async (of: { owner: OwnerId } | { endpointId: EndpointId }, after: string | null, limit: number) => {
      const place = after === null ? null : { createdAtMs: T0 + 'abcd'.indexOf(after), id: batchId(after) }
      return (await batches.listBefore(of, T0 + 9, { after: place, limit })).map(({ id }) => id).join(' ')
    }
    for (const whose of [{ owner: OWNER }, { endpointId: E1 }]) {
      assert.deepEqual([await before(whose, null, 3), await before(whose, 'b', 3)], ['d c b', 'a'])
    }
    assert.deepEqual([await before({ owner: STRANGER }, null, 9), await before({ endpointId: E2 }, null, 9)], ['', ''])
    await world.store.endpoints.remove(E1, T0 + 9)
    assert.deepEqual([await before({ owner: OWNER }, null, 9), await before({ endpointId: E1 }, null, 9)], ['', ''])
  },

  'an endpoint has at most ten active batches, also when they are made at once': async world => {
    const made = await Promise.all(
      Array.from({ length: 14 }, (_, n) => {
        const fields = { id: batchId(`b${n}`), owner: OWNER, endpointId: E1, name: null, webhook: null }
        return world.store.batches.create(fields, [], T0, null)
      }),
    )
    assert.deepEqual(
      made.map(refusal).filter(code => code !== null),
      Array(4).fill('rate_limited'),
    )
    const { items } = await world.store.batches.list(E1, T0, 0, 1)
    requireBatch(await world.store.batches.cancel(E1, items[0]!.id, T0))
    await draft(world, 'next')
    await draft(world, 'after the drafts have expired', [], T0 + BATCH.draftMs)
  },

  'requests are added all or not at all, up to the limit, and lengthen the life of a draft': async world => {
    const { batches } = world.store
    await draft(world, 'b', numberedIds('first', 2_000))
    const add = (name: string, count: number, nowMs = T0) => {
      const requests = numberedIds(name, count).map(id => makeRequest(id))
      return batches.add(E1, batchId('b'), requests, nowMs, null)
    }
    assert.equal(requireBatch(await add('second', 2_999, T0 + 5)).total, 4_999)
    assert.equal(refusal(await add('third', 2)), 'conflict')
    assert.equal((await look(world, 'b')).total, 4_999)
    const { total, expiresAtMs } = requireBatch(await add('last', 1, T0 + 7))
    assert.deepEqual([total, expiresAtMs], [5_000, T0 + 7 + BATCH.draftMs])
    const all = (await page(world, 'b', 0, 9_000)).items.map(item => item.split(' ')[0])
    assert.deepEqual(all, [...numberedIds('first', 2_000), ...numberedIds('second', 2_999), 'last-0'])
    assert.equal(await batches.add(E2, batchId('b'), [], T0, null), null)
    assert.equal(await batches.add(E1, batchId('c'), [], T0, null), null)
  },

  'requests that are added at once never pass the limit, and stand in the order of their calls': async world => {
    await draft(world, 'b', numberedIds('first', 4_000))
    const calls = Array.from({ length: 6 }, (_, n) => numberedIds(`call${n}`, 300))
    const answers = await Promise.all(
      calls.map(ids => {
        const requests = ids.map(id => makeRequest(id))
        return world.store.batches.add(E1, batchId('b'), requests, T0, null)
      }),
    )
    assert.equal(answers.filter(answer => refusal(answer) === 'conflict').length, 3)
    const listed = (await page(world, 'b', 4_000, 5_000)).items.map(item => item.split('-')[0])
    assert.equal(listed.length, 900)
    assert.equal(listed.filter((call, index) => call !== listed[index - 1]).length, 3)
  },

  'the same key stands for the first change that came with it, until it expires': async world => {
    const { batches } = world.store
    const make = (id: string, nowMs: number, key: string) => {
      const fields = { id: batchId(id), owner: OWNER, endpointId: E1, name: null, webhook: null }
      return batches.create(fields, [makeRequest(`${id}-r`)], nowMs, once(key, nowMs + 1_000))
    }
    assert.equal(requireBatch(await make('a', T0, 'k')).id, 'a')
    assert.equal(requireBatch(await make('b', T0 + 999, 'k')).id, 'a')
    assert.deepEqual(
      [await batches.hasKey(E1, 'k', T0 + 999), await batches.hasKey(E1, 'k', T0 + 1_000)],
      [true, false],
    )
    assert.equal(requireBatch(await make('c', T0 + 1_000, 'k')).id, 'c')
    assert.equal(requireBatch(await make('d', T0, 'other')).id, 'd')
    const add = (id: string, nowMs = T0) =>
      batches.add(E1, batchId('a'), [makeRequest(id)], nowMs, once('more', nowMs + 1_000))
    assert.equal(requireBatch(await add('x')).total, 2)
    assert.equal(requireBatch(await add('y')).total, 2)
    assert.equal(requireBatch(await add('z', T0 + 1_000)).total, 3)
    assert.equal(requireBatch(await batches.finalize(E1, batchId('a'), T0)).total, 3)
    assert.equal(requireBatch(await add('u', T0 + 1_001)).status, 'FINALIZED', 'it was added before')
  },

  'a change that was refused does not use up its key': async world => {
    const { batches } = world.store
    await draft(world, 'b', numberedIds('first', 5_000))
    const add = () => batches.add(E1, batchId('b'), [makeRequest('x')], T0, once('k'))
    assert.equal(refusal(await add()), 'conflict')
    requireBatch(await batches.drop(E1, batchId('b'), jobId('first-7'), T0))
    assert.equal(requireBatch(await add()).total, 5_000)
  },

  'a request is taken out of a draft only, once': async world => {
    const { batches } = world.store
    await draft(world, 'b', ['x', 'y', 'z'])
    await draft(world, 'c', ['u'])
    const drop = (id: string, from = 'b') => batches.drop(E1, batchId(from), jobId(id), T0)
    assert.equal(requireBatch(await drop('y')).total, 2)
    assert.equal(await drop('y'), 'absent')
    assert.equal(await drop('u'), 'absent')
    assert.equal(await drop('x', 'nowhere'), null)
    assert.deepEqual(await page(world, 'b'), { total: 2, items: ['x DRAFT', 'z DRAFT'] })
    await batches.finalize(E1, batchId('b'), T0)
    assert.equal(refusal(await drop('x')), 'conflict')
    assert.equal((await look(world, 'b')).total, 2)
  },

  'a batch is renamed in any state': async world => {
    const { batches } = world.store
    await running(world, 'b', ['x'])
    assert.equal((await batches.rename(E1, batchId('b'), 'new', T0))?.name, 'new')
    assert.equal((await batches.rename(E1, batchId('b'), null, T0))?.name, null)
    assert.equal(await batches.rename(E2, batchId('b'), 'x', T0), null)
  },

  'a draft with requests is finalized once; nothing is added to it afterwards': async world => {
    const { batches } = world.store
    await draft(world, 'empty')
    assert.equal(refusal(await batches.finalize(E1, batchId('empty'), T0)), 'conflict')
    await draft(world, 'b', ['x'])
    const { status, finalizedAtMs, expiresAtMs } = requireBatch(await batches.finalize(E1, batchId('b'), T0 + 5))
    assert.deepEqual([status, finalizedAtMs, expiresAtMs], ['FINALIZED', T0 + 5, null])
    assert.equal(refusal(await batches.finalize(E1, batchId('b'), T0 + 6)), 'conflict')
    assert.equal(refusal(await batches.add(E1, batchId('b'), [makeRequest('y')], T0, null)), 'conflict')
    assert.equal(await batches.finalize(E1, batchId('c'), T0), null)
    await draft(world, 'late', ['y'])
    assert.equal(await batches.finalize(E1, batchId('late'), T0 + BATCH.draftMs), null)
  },

  'requests of a finalized batch become jobs in parts and in order, and the list never changes by it': async world => {
    const { batches } = world.store
    await draft(world, 'b', numberedIds('r', 5))
    assert.deepEqual(await batches.release(batchId('b'), 9), [], 'a draft has no jobs')
    await batches.finalize(E1, batchId('b'), T0 + 50)
    const listed = { total: 5, items: numberedIds('r', 5).map(id => `${id} IN_QUEUE`) }
    for (const ids of [['r-0', 'r-1'], ['r-2', 'r-3'], ['r-4'], []]) {
      assert.deepEqual(await page(world, 'b'), listed)
      assert.deepEqual(await unsettled(world), ids.length === 0 ? [] : ['b'])
      assert.deepEqual(
        await batches.release(batchId('b'), 2),
        ids.map(id => ({ id, endpointId: E1 })),
      )
    }
    const { queuedAtMs, expiresAtMs, status, kind, batchId: of } = await world.read('r-3')
    assert.deepEqual([queuedAtMs, expiresAtMs], [T0 + 50, T0 + 50 + 86_400_000])
    assert.deepEqual([status, kind, of], ['IN_QUEUE', 'run', 'b'])
  },

  'large requests become jobs in smaller parts': async world => {
    const { batches } = world.store
    const input = JSON.stringify('x'.repeat(7 * 1024 * 1024))
    const fields = { id: batchId('b'), owner: OWNER, endpointId: E1, name: null, webhook: null }
    const requests = numberedIds('r', 5).map(id => makeRequest(id, { input }))
    requireBatch(await batches.create(fields, requests, T0, null))
    await batches.finalize(E1, batchId('b'), T0)
    const parts: number[] = []
    for (let part = -1; part !== 0; parts.push(part)) part = (await batches.release(batchId('b'), 100)).length
    assert.deepEqual(parts, [2, 2, 1, 0])
  },

  'results are listed in pages that end before they grow too large': async world => {
    await running(world, 'b', numberedIds('r', 5))
    await world.worker()
    await world.claim(W1, 5)
    const output = JSON.stringify('x'.repeat(998))
    for (const id of numberedIds('r', 4)) await world.finish(id, W1, { ...DONE, output })
    const items = async (offset: number, bytes: number) => (await page(world, 'b', offset, 9, bytes)).items.length
    assert.deepEqual(
      [await items(0, 2_000), await items(0, 2_999), await items(2, 10), await items(3, 10)],
      [2, 2, 1, 1],
    )
    assert.deepEqual([await items(4, 10), await items(5, 10), await items(0, 1e6)], [1, 0, 5])
    const { items: first } = await world.store.batches.requests(batchId('b'), 0, 1, 1e6)
    assert.deepEqual(first, [
      {
        id: 'r-0',
        status: 'COMPLETED',
        output,
        hasLargeOutput: false,
        error: null,
        startedAtMs: T0,
        finishedAtMs: T0 + 500,
      },
    ])
  },

  'batches go with their endpoint': async world => {
    const { batches, endpoints } = world.store
    await running(world, 'b', ['x'])
    await draft(world, 'c', ['y'])
    await endpoints.remove(E1, T0)
    const cancelled = await world.removeAll()
    assert.deepEqual(
      cancelled.map(({ job }) => job.id),
      ['x'],
    )
    await endpoints.insert(makeEndpoint(E1))
    assert.deepEqual(await batches.list(E1, T0, 0, 9), { items: [], total: 0 })
    assert.deepEqual(await page(world, 'c'), { total: 0, items: [] })
  },
}

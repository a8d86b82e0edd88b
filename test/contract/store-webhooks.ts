import assert from 'node:assert/strict'
import type { EndpointId, OwnerId } from '../../src/core/ids.ts'
import { MAX_LOST_ATTEMPTS } from '../../src/core/jobs/job.ts'
import { jobView } from '../../src/core/jobs/job-view.ts'
import { receiverNumber, UNKNOWN_RECEIVER, WEBHOOK, type WebhookTry } from '../../src/core/jobs/webhook.ts'
import type { DueWebhooksRequest } from '../../src/ports/store/store.ts'
import { BROKEN, type Cases, DONE, E1, E2, jobId, makeJob, OWNER, STRANGER, T0, W1, type World } from './store-world.ts'

const webhook = 'https://example.com/hook?ü'

/** A job with a webhook that a worker holds. */
async function held(world: World, id: string): Promise<void> {
  await world.worker()
  await world.job(id, { webhook })
  await world.claim()
}

/** The deliveries of a job as `status state`. */
async function deliveries(world: World, id: string, endpoint: EndpointId = E1): Promise<string[]> {
  return (await world.store.webhooks.list(endpoint, jobId(id))).map(({ jobStatus, state }) => `${jobStatus} ${state}`)
}

/** The one delivery that is due. */
async function onlyDue(world: World, nowMs: number) {
  const due = await world.store.webhooks.due({ owner: OWNER, nowMs, limit: 10 })
  assert.equal(due.length, 1)
  return due[0]!
}

function makeTry(number: number, atMs: number, status: number | null = 500): WebhookTry {
  return { number, atMs, tookMs: 5, status, error: status === null ? 'no answer' : null }
}

/** Deliveries of webhooks and their keys. */
export const webhookCases: Cases = {
  'a result of a job with a webhook leaves a delivery with the payload of that moment': async world => {
    await held(world, 'a')
    const move = await world.finish('a', W1, DONE, T0 + 500)
    const due = await onlyDue(world, T0 + 500)
    assert.deepEqual([due.owner, due.endpointId, due.dueAtMs], [OWNER, E1, T0 + 500])
    assert.equal(due.receiver, receiverNumber(webhook))
    const open = await world.store.webhooks.open(due.id)
    const payload = jobView(move!.job, T0 + 500)
    assert.deepEqual(open, {
      ...due,
      jobId: jobId('a'),
      url: webhook,
      payload,
      input: '{"n": 12345678901234567890}',
      traceparent: null,
      tries: 0,
    })
    assert.doesNotMatch(due.id, /\./)
    assert.deepEqual(await world.store.webhooks.list(E1, jobId('a')), [
      {
        id: due.id,
        endpointId: E1,
        jobId: jobId('a'),
        jobStatus: 'COMPLETED',
        state: 'PENDING',
        url: webhook,
        createdAtMs: T0 + 500,
        dueAtMs: T0 + 500,
        tries: [],
      },
    ])
  },

  'the deliveries of an endpoint are listed with their tries, the newest first, of one state or all, in pages':
    async world => {
      const { webhooks } = world.store
      await world.worker()
      for (const [index, id] of ['a', 'b', 'c'].entries()) {
        await world.job(id, { webhook, position: T0 + index })
        await world.claim()
        await world.finish(id, W1, DONE, T0 + index)
      }
      const [first] = await webhooks.list(E1, jobId('a'))
      await webhooks.recordTry(first!.id, makeTry(1, T0 + 10, 200))
      const asked = { of: { endpointId: E1 }, state: null, slice: { after: null, limit: 10 }, maxRead: 100 } as const
      const all = await webhooks.page(asked)
      assert.deepEqual([all.deliveries.map(({ jobId }) => jobId), all.readUntil], [['c', 'b', 'a'], null])
      assert.deepEqual(all.deliveries[2]?.tries, [makeTry(1, T0 + 10, 200)])
      const of = async (changes: Partial<Parameters<typeof webhooks.page>[0]>) =>
        (await webhooks.page({ ...asked, ...changes })).deliveries.map(({ jobId }) => jobId)
      assert.deepEqual(await of({ state: 'DELIVERED' }), ['a'])
      assert.deepEqual(await of({ state: 'PENDING' }), ['c', 'b'])
      assert.deepEqual(await of({ state: 'FAILED' }), [])
      assert.deepEqual(await of({ slice: { after: null, limit: 1 } }), ['c'])
      const last = all.deliveries[0]!
      assert.deepEqual(await of({ slice: { after: { createdAtMs: last.createdAtMs, id: last.id }, limit: 10 } }), [
        'b',
        'a',
      ])
      assert.deepEqual(await of({ of: { endpointId: E2 } }), [])
      assert.deepEqual(await of({ of: { owner: OWNER } }), ['c', 'b', 'a'])
      assert.deepEqual(await of({ of: { owner: STRANGER } }), [])
      const bounded = await webhooks.page({ ...asked, state: 'DELIVERED', maxRead: 2 })
      assert.deepEqual([bounded.deliveries, bounded.readUntil?.createdAtMs], [[], T0 + 1])
    },

  'a delivery that waits, or that was given up, is due again with its message; no other one is': async world => {
    const { webhooks } = world.store
    const again = (id: string, nowMs: number) => webhooks.sendAgain(E1, jobId(id), nowMs)
    await held(world, 'a')
    assert.equal(await again('a', T0), null)
    await world.finish('a', W1, DONE, T0)
    const { id } = await onlyDue(world, T0)
    const { payload } = (await webhooks.open(id))!
    await webhooks.recordTry(id, makeTry(1, T0))
    assert.equal(await again('a', T0 + 1), 'due')
    assert.equal((await onlyDue(world, T0 + 1)).dueAtMs, T0 + 1)
    for (const number of [2, 3]) await webhooks.recordTry(id, makeTry(number, T0 + number))
    assert.deepEqual(await deliveries(world, 'a'), ['COMPLETED FAILED'])
    assert.equal(await webhooks.sendAgain(E2, jobId('a'), T0), null)
    for (let number = 4; number <= WEBHOOK.triesAgain; number += 1) {
      assert.equal(await again('a', T0 + 100 * number), 'due')
      assert.equal((await webhooks.open(id))?.payload, payload)
      await webhooks.recordTry(id, makeTry(number, T0 + 100 * number))
    }
    assert.deepEqual([await deliveries(world, 'a'), await again('a', T0)], [['COMPLETED FAILED'], 'tried_often'])
  },

  'a message that is large, or was delivered, is not sent again': async world => {
    const { webhooks } = world.store
    const again = (id: string) => webhooks.sendAgain(E1, jobId(id), T0)
    await held(world, 'large')
    await world.finish('large', W1, { ...DONE, output: JSON.stringify('x'.repeat(WEBHOOK.keptCharacters)) }, T0)
    const { id } = await onlyDue(world, T0)
    for (const number of [1, 2, 3]) await webhooks.recordTry(id, makeTry(number, T0 + number))
    assert.equal(await again('large'), 'not_kept')
    await world.job('good', { webhook })
    await world.claim()
    await world.finish('good', W1, DONE, T0)
    await webhooks.recordTry((await onlyDue(world, T0)).id, makeTry(1, T0, 204))
    assert.equal(await again('good'), 'delivered')
  },

  'a job without a webhook, and one that is not final, leave no delivery': async world => {
    await world.holder(W1, 'a')
    await world.job('b', { webhook })
    await world.finish('a')
    await world.store.jobOutcomes.requeueLost(W1, 'it was lost', T0)
    assert.deepEqual(await world.store.webhooks.due({ owner: OWNER, nowMs: T0 + 1_000, limit: 10 }), [])
    assert.equal(await world.store.webhooks.nextDue(0), null)
  },

  'each way to a final state leaves a delivery': async world => {
    const { jobOutcomes, endpoints } = world.store
    await held(world, 'failed')
    await world.finish('failed', W1, BROKEN)
    await world.job('timed-out', { webhook })
    await world.claim()
    await jobOutcomes.timeOutOverdue(T0 + 10_000, 10)
    await world.job('cancelled', { webhook })
    await jobOutcomes.cancel(E1, jobId('cancelled'), T0)
    await world.job('purged', { webhook })
    await world.purge()
    await world.job('expired', { webhook, expiresAtMs: T0 + 50 })
    await jobOutcomes.removeExpired(T0 + 50, 10)
    await world.job('lost', { webhook })
    await world.store.stops.letGo(W1, 'all')
    for (let attempt = 0; attempt < MAX_LOST_ATTEMPTS; attempt += 1) {
      await world.claim()
      await jobOutcomes.requeueLost(W1, 'it was lost', T0)
    }
    await world.job('deleted', { webhook })
    await endpoints.remove(E1, T0)
    await world.removeAll()
    const found: Record<string, string> = {}
    for (const id of ['failed', 'timed-out', 'cancelled', 'purged', 'expired', 'lost', 'deleted']) {
      found[id] = (await deliveries(world, id)).join()
    }
    assert.deepEqual(found, {
      failed: 'FAILED PENDING',
      'timed-out': 'TIMED_OUT PENDING',
      cancelled: 'CANCELLED PENDING',
      purged: 'CANCELLED PENDING',
      expired: 'TIMED_OUT PENDING',
      lost: 'FAILED PENDING',
      deleted: 'CANCELLED PENDING',
    })
  },

  'a final job that expires leaves no second delivery, and its first stays': async world => {
    await held(world, 'a')
    await world.finish('a')
    await world.store.jobOutcomes.removeExpired(T0 + 86_400_000, 10)
    assert.deepEqual(await deliveries(world, 'a'), ['COMPLETED PENDING'])
  },

  'a retry leaves the payload alone, and the next end is a delivery of its own': async world => {
    const { jobOutcomes, webhooks } = world.store
    await held(world, 'a')
    await world.finish('a', W1, BROKEN, T0 + 500)
    const first = await onlyDue(world, T0 + 500)
    const before = await webhooks.open(first.id)
    await jobOutcomes.retry(E1, jobId('a'), T0, T0 + 500)
    assert.deepEqual(await webhooks.open(first.id), before)
    await jobOutcomes.cancel(E1, jobId('a'), T0 + 500)
    assert.deepEqual(await deliveries(world, 'a'), ['FAILED PENDING', 'CANCELLED PENDING'])
    const due = await webhooks.due({ owner: OWNER, nowMs: T0 + 500, limit: 10 })
    assert.equal(new Set(due.map(({ id }) => id)).size, 2)
  },

  'tries are kept in order, and after the last one it is over': async world => {
    const { webhooks } = world.store
    await held(world, 'a')
    await world.finish('a', W1, DONE, T0)
    const { id } = await onlyDue(world, T0)
    assert.equal(await webhooks.recordTry(id, makeTry(2, T0)), false)
    assert.equal(await webhooks.recordTry(id, makeTry(1, T0, null)), true)
    assert.equal(await webhooks.recordTry(id, makeTry(1, T0, null)), true, 'the very same again')
    assert.equal(await webhooks.recordTry(id, makeTry(1, T0 + 1)), false)
    const dueMs = T0 + 5 + WEBHOOK.pauseMs
    assert.deepEqual(await webhooks.due({ owner: OWNER, nowMs: dueMs - 1, limit: 10 }), [])
    assert.equal(await webhooks.nextDue(T0), dueMs)
    assert.equal(await webhooks.nextDue(dueMs), null)
    assert.equal((await webhooks.open(id))?.tries, 1)
    await webhooks.recordTry(id, makeTry(2, dueMs))
    assert.equal(await webhooks.recordTry(id, makeTry(3, dueMs + 20)), true)
    assert.equal(await webhooks.recordTry(id, makeTry(4, dueMs + 40)), false)
    assert.equal(await webhooks.open(id), null)
    assert.deepEqual(await webhooks.due({ owner: OWNER, nowMs: dueMs + 100_000, limit: 10 }), [])
    const [over] = await webhooks.list(E1, jobId('a'))
    assert.deepEqual([over?.state, over?.dueAtMs], ['FAILED', null])
    assert.deepEqual(over?.tries, [makeTry(1, T0, null), makeTry(2, dueMs), makeTry(3, dueMs + 20)])
  },

  'an answer of 200 ends it, and no other endpoint sees it': async world => {
    await held(world, 'a')
    await world.finish('a', W1, DONE, T0)
    const { id } = await onlyDue(world, T0)
    assert.equal(await world.store.webhooks.recordTry(id, makeTry(1, T0, 200)), true)
    assert.deepEqual(await deliveries(world, 'a'), ['COMPLETED DELIVERED'])
    assert.deepEqual(await deliveries(world, 'a', E2), [])
  },

  'what is due is found by account and by receiver, the oldest first': async world => {
    const { jobs, jobOutcomes, webhooks } = world.store
    const other = 'https://other.example/hook'
    const add = async (id: string, url: string, atMs: number, owner: OwnerId = OWNER) => {
      await jobs.insert(makeJob(id, { webhook: url, owner }))
      await jobOutcomes.cancel(E1, jobId(id), atMs)
    }
    await add('a1', webhook, T0 + 1)
    await add('a0', webhook, T0)
    await add('b', other, T0 + 2)
    await add('s', other, T0 + 3, STRANGER)
    const due = async (request: Partial<DueWebhooksRequest> = {}) => {
      const found = await webhooks.due({ owner: OWNER, nowMs: T0 + 9, limit: 10, ...request })
      return found.map(({ id }) => id.replace(/^msg_(.*)_\d+$/, '$1'))
    }
    const [first, second] = [receiverNumber(webhook), receiverNumber(other)]
    assert.deepEqual(await due(), ['a0', 'a1', 'b'])
    assert.deepEqual(await due({ nowMs: T0 }), ['a0'])
    assert.deepEqual(await due({ limit: 2 }), ['a0', 'a1'])
    assert.deepEqual(await due({ receiver: second }), ['b'])
    assert.deepEqual(await due({ receiver: first, limit: 1 }), ['a0'])
    assert.deepEqual(await due({ owner: STRANGER }), ['s'])
    const accounts = (nowMs: number, after = '', limit = 10) => webhooks.accountsDue(nowMs, after, limit)
    assert.deepEqual(await accounts(T0 + 9), { accounts: [OWNER, STRANGER], readUntil: null })
    assert.deepEqual(await accounts(T0 + 2), { accounts: [OWNER], readUntil: null })
    assert.deepEqual(await accounts(T0 + 9, '', 1), { accounts: [OWNER], readUntil: OWNER })
    assert.deepEqual(await accounts(T0 + 9, OWNER), { accounts: [STRANGER], readUntil: null })
    const receivers = (nowMs: number, after = -2, maxRead = 10) =>
      webhooks.receiversDue({ owner: OWNER, nowMs, after, maxRead })
    const [low, high] = first < second ? [first, second] : [second, first]
    assert.deepEqual(await receivers(T0 + 9), { receivers: [low, high], readUntil: null })
    assert.deepEqual(await receivers(T0 + 1), { receivers: [first], readUntil: null })
    assert.deepEqual(await receivers(T0 + 9, -2, 1), { receivers: [low], readUntil: low })
    assert.deepEqual(await receivers(T0 + 9, low), { receivers: [high], readUntil: null })
  },

  'a delivery whose URL is sealed has no receiver until it is given one': async world => {
    const { webhooks, jobOutcomes } = world.store
    await world.job('a', { webhook: 'sealed:something' })
    await jobOutcomes.cancel(E1, jobId('a'), T0)
    const { id, receiver } = await onlyDue(world, T0)
    assert.equal(receiver, UNKNOWN_RECEIVER)
    assert.deepEqual(await webhooks.unnamed(OWNER, T0, 10), [{ id, jobId: jobId('a'), url: 'sealed:something' }])
    await webhooks.setReceivers([{ id, receiver: 7 }])
    assert.equal((await onlyDue(world, T0)).receiver, 7)
    assert.deepEqual(await webhooks.unnamed(OWNER, T0, 10), [])
  },

  'what is overdue for too long is given up, and stays visible': async world => {
    const { jobOutcomes, webhooks } = world.store
    await world.job('a', { webhook })
    await world.job('b', { webhook })
    await jobOutcomes.cancel(E1, jobId('a'), T0)
    await jobOutcomes.cancel(E1, jobId('b'), T0 + 1)
    const { id } = (await webhooks.due({ owner: OWNER, nowMs: T0, limit: 10 }))[0]!
    await webhooks.recordTry(id, { ...makeTry(1, T0), tookMs: 0 })
    assert.deepEqual(await webhooks.giveUp(T0, T0 + 2, 10), [])
    assert.deepEqual(await webhooks.giveUp(T0 + 1, T0 + 2, 10), [{ endpointId: E1, jobId: jobId('b'), tries: 0 }])
    const rest = await webhooks.giveUp(T0 + WEBHOOK.pauseMs, T0 + WEBHOOK.pauseMs, 10)
    assert.deepEqual(rest, [{ endpointId: E1, jobId: jobId('a'), tries: 1 }])
    assert.deepEqual(
      [await deliveries(world, 'a'), await deliveries(world, 'b')],
      [['CANCELLED FAILED'], ['CANCELLED FAILED']],
    )
    assert.equal(await webhooks.open(id), null)
  },

  'what is over is removed in time, and keys when nobody needs them': async world => {
    const { webhooks, endpoints } = world.store
    const key = { sealed: 'sealed', createdAtMs: T0 }
    await held(world, 'a')
    await world.job('b', { webhook })
    await world.finish('a', W1, DONE, T0)
    const { id } = await onlyDue(world, T0)
    await webhooks.ensureKey(E1, OWNER, key)
    await endpoints.remove(E1, T0 + 1)
    await world.removeAll(E1, T0 + 1)
    await webhooks.recordTry(id, makeTry(1, T0, 200))
    assert.equal(await webhooks.removeOver(T0 + 4, 10), 0)
    assert.equal(await webhooks.removeOver(T0 + 5, 10), 1)
    assert.deepEqual([await deliveries(world, 'a'), await deliveries(world, 'b')], [[], ['CANCELLED PENDING']])
    assert.deepEqual(await webhooks.key(E1), key)
    await webhooks.recordTry((await onlyDue(world, T0 + 10)).id, makeTry(1, T0 + 10, 200))
    assert.equal(await webhooks.removeOver(T0, 10), 0)
    assert.equal(await webhooks.key(E1), null)
  },

  'an endpoint has one key, which can be replaced': async ({ store: { webhooks } }) => {
    const keys = ['one', 'two', 'three'].map((sealed, index) => ({ sealed, createdAtMs: T0 + index }))
    assert.equal(await webhooks.key(E1), null)
    assert.deepEqual(await webhooks.ensureKey(E1, OWNER, keys[0]!), keys[0])
    assert.deepEqual(await webhooks.ensureKey(E1, OWNER, keys[1]!), keys[0])
    await webhooks.replaceKey(E1, OWNER, keys[2]!)
    assert.deepEqual(await webhooks.key(E1), keys[2])
    await webhooks.replaceKey(E2, OWNER, keys[1]!)
    assert.deepEqual(await webhooks.key(E2), keys[1])
    await webhooks.removeOver(T0, 10)
    assert.deepEqual([await webhooks.key(E1), await webhooks.key(E2)], [keys[2], null])
  },
}

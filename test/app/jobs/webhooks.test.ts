import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { MAX_WAITING_OUTCOMES, WebhookDispatcher } from '../../../src/control/webhook-dispatcher.ts'
import { CALLS } from '../../../src/control/webhook-slots.ts'
import type { DeliveryId, EndpointId, JobId, OwnerId } from '../../../src/core/ids.ts'
import { HIDDEN_PROBLEM, shownAddress, WEBHOOK } from '../../../src/core/jobs/webhook.ts'
import type { Store } from '../../../src/ports/store/store.ts'
import type { Webhooks } from '../../../src/services/jobs/webhooks.ts'
import { makeLiveEvent } from '../../../src/services/observing/live-event.ts'
import type { OutboundCall } from '../../support/fake-outbound.ts'
import { portsWith } from '../../support/ports.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const URL_ = 'https://example.com/hook'
const DAY_MS = 24 * 60 * 60_000

/** A job with a webhook that waits, and nothing that takes it. */
async function waiting(rig: Rig, url = URL_): Promise<{ endpoint: EndpointId; id: JobId }> {
  const endpoint = await rig.endpoint({ workersMax: 0 })
  return { endpoint, id: await rig.submit(endpoint, { input: {}, webhook: url }) }
}

/** A job with a webhook that has just been cancelled. */
async function ended(rig: Rig): Promise<{ endpoint: EndpointId; id: JobId }> {
  const job = await waiting(rig)
  assert.equal((await rig.ask('POST', `/v2/${job.endpoint}/cancel/${job.id}`)).status, 200)
  return job
}

async function deliveries(rig: Rig, endpoint: EndpointId, id: JobId) {
  const { status, json, text } = await rig.ask('GET', `/v2/${endpoint}/webhooks/${id}`)
  assert.equal(status, 200, text)
  return json.deliveries
}

function since(calls: readonly OutboundCall[]): number[] {
  return calls.map(({ atMs }) => Math.floor((atMs - calls[0]!.atMs) / 1_000))
}

function verifies(call: OutboundCall, key: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = call.headers
  const secret = Buffer.from(key.replace('whsec_', ''), 'base64')
  const wanted = createHmac('sha256', secret).update(`${id}.${timestamp}.${call.body}`).digest('base64')
  return signature === `v1,${wanted}`
}

test('a step leaves an outcome alone that is being stored', async t => {
  const { clock } = await openRig(t)
  const slow = Promise.withResolvers<void>()
  const delivery = { id: 'msg_1' as DeliveryId, owner: 'default' as OwnerId, receiver: 1 }
  let stored = 0
  const webhooks = {
    attempt: async () => ({ delivery, entry: {}, problem: null }),
    record: () => {
      stored += 1
      return slow.promise
    },
    removeOld: async () => false,
  }
  const due = {
    accountsDue: async () => ({ accounts: [delivery.owner], readUntil: null }),
    due: async () => [delivery],
    nextDue: async () => null,
  }
  const ports = portsWith({ store: { webhooks: due } as unknown as Store, clock })
  const dispatcher = new WebhookDispatcher(ports, webhooks as unknown as Webhooks, () => {})
  await dispatcher.step(clock.now())
  await clock.settle()
  assert.equal(stored, 1)
  const step = dispatcher.step(clock.now())
  await clock.settle()
  slow.resolve()
  await step
  assert.equal(stored, 1)
})

test('each final state is delivered, with the payload of status, the input and the webhook', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const submit = (policy: object = {}) => rig.submit(endpoint, { input: {}, policy, webhook: URL_ })
  const told = async (id: JobId, status: string) => {
    await rig.clock.advance(50)
    const call = rig.outbound.calls.at(-1)
    const view = await rig.status(endpoint, id)
    assert.equal(call?.body, `${view.text.slice(0, -1)},"input":{},"webhook":"${URL_}"}`)
    assert.deepEqual([view.json.status, call?.url, call?.headers['content-type']], [status, URL_, 'application/json'])
    assert.deepEqual(
      (await deliveries(rig, endpoint, id)).map((one: { state: string }) => one.state),
      ['DELIVERED'],
    )
  }
  await submit()
  const completed = await worker.takeJob()
  await worker.done(completed, { output: { big: 1 } })
  await told(completed, 'COMPLETED')
  await submit()
  const failed = await worker.takeJob()
  await worker.done(failed, { error: 'no' })
  await told(failed, 'FAILED')
  const cancelled = await submit()
  await rig.ask('POST', `/v2/${endpoint}/cancel/${cancelled}`)
  await told(cancelled, 'CANCELLED')
  const purged = await submit()
  await rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  await told(purged, 'CANCELLED')
  await submit({ executionTimeout: 5_000 })
  const late = await worker.takeJob()
  await rig.clock.advance(6_000)
  await told(late, 'TIMED_OUT')
  assert.equal(rig.outbound.calls.length, 5)
  assert.equal(rig.happened('webhook.delivered').length, 5)
})

for (const sealPayloads of [false, true]) {
  test(`a message has the input as it was sent, ${sealPayloads ? 'sealed' : 'plain'} in the store`, async t => {
    const rig = await openRig(t, { sealPayloads })
    const endpoint = await rig.endpoint({ workersMax: 0 })
    for (const filler of ['', 'x'.repeat(100_000)]) {
      const input = `{"n": 12345678901234567890, "name": "Ädä", "filler": "${filler}"}`
      const body = `{"input": ${input}, "webhook": "${URL_}"}`
      const { id } = (await rig.ask('POST', `/v2/${endpoint}/run`, { body })).json
      await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
      await rig.clock.advance(50)
      const call = rig.outbound.calls.at(-1)!
      assert.ok(call.body.endsWith(`,"input":${input},"webhook":"${URL_}"}`), call.body.slice(0, 500))
      const { key } = (await rig.ask('GET', `/v2/${endpoint}/webhook-key`)).json
      assert.ok(verifies(call, key))
    }
  })
}

test('a message about a job that is gone has the input that is kept of it', async t => {
  const rig = await openRig(t, { jobRecords: { payloads: true } })
  const endpoint = await rig.endpoint({ workersMax: 0 })
  await rig.submit(endpoint, { input: { kept: 1 }, webhook: URL_, policy: { ttl: 10_000 } })
  await rig.clock.advance(11_500)
  const told = JSON.parse(rig.outbound.calls[0]!.body)
  assert.deepEqual([told.status, told.input], ['TIMED_OUT', { kept: 1 }])
})

test('a message leaves out an input over 1 MB, and the name and the password of its own URL', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const webhook = 'https://name:word@example.com/hook?token=a'
  const id = await rig.submit(endpoint, { input: { filler: 'x'.repeat(1_048_576) }, webhook })
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.clock.advance(50)
  const [{ url, body }] = rig.outbound.calls as [OutboundCall]
  assert.equal(url, webhook)
  assert.deepEqual(JSON.parse(body), {
    ...(await rig.status(endpoint, id)).json,
    webhook: 'https://example.com/hook?token=a',
  })
})

test('a job that expires, and those of a deleted endpoint, are delivered too', async t => {
  const rig = await openRig(t)
  const { endpoint } = await waiting(rig)
  const expiring = await rig.submit(endpoint, { input: {}, webhook: URL_, policy: { ttl: 10_000 } })
  await rig.clock.advance(11_500)
  const [expired] = rig.outbound.calls
  const told = JSON.parse(expired!.body)
  assert.deepEqual([told.id, told.status, told.error], [expiring, 'TIMED_OUT', 'the job was not done within its ttl'])
  assert.equal(told.webhook, URL_)
  await rig.graphql(`mutation { deleteEndpoint(id: "${endpoint}") }`)
  await rig.clock.advance(100)
  assert.equal(JSON.parse(rig.outbound.calls[1]!.body).status, 'CANCELLED')
  assert.equal(rig.outbound.calls.length, 2)
})

test('a receiver is called at 0, 10 and 20 seconds, and the results can be read', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = () => (rig.outbound.calls.length === 2 ? { problem: 'connect ECONNREFUSED' } : { status: 500 })
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(5_000)
  const [pending] = await deliveries(rig, endpoint, id)
  assert.equal(pending.state, 'PENDING')
  assert.ok(Date.parse(pending.nextTryAt) > rig.clock.now())
  await rig.clock.advance(60_000)
  const { calls } = rig.outbound
  assert.deepEqual(since(calls), [0, 10, 20])
  assert.equal(new Set(calls.map(({ headers }) => headers['webhook-id'])).size, 1)
  const [over] = await deliveries(rig, endpoint, id)
  assert.deepEqual([over.state, over.jobStatus, over.nextTryAt], ['FAILED', 'CANCELLED', undefined])
  assert.deepEqual(
    over.tries.map(({ status, error }: { status?: number; error?: string }) => status ?? error),
    [500, 'connect ECONNREFUSED', 500],
  )
  assert.deepEqual(
    over.tries.map(({ at }: { at: string }) => Date.parse(at)),
    calls.map(({ atMs }) => atMs),
  )
  const [event, ...more] = rig.happened('webhook.failed')
  assert.deepEqual([event?.tries, event?.problem, more.length], [3, 'the receiver answered 500', 0])
})

for (const delivered of [200, 201, 202, 204, 299]) {
  test(`a receiver that answers ${delivered} has the message, after redirects and other refusals of it`, async t => {
    const rig = await openRig(t)
    const answers = [302, 199, delivered]
    rig.outbound.answer = () => ({ status: answers[rig.outbound.calls.length - 1]! })
    const { endpoint, id } = await ended(rig)
    await rig.clock.advance(60_000)
    assert.equal(rig.outbound.calls.length, 3)
    assert.equal((await deliveries(rig, endpoint, id))[0].state, 'DELIVERED')
    assert.equal(rig.happened('webhook.delivered')[0]?.tries, 3)
  })
}

test('a receiver that never answers is given up after 10 seconds a try', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = () => null
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(70_000)
  assert.deepEqual(since(rig.outbound.calls), [0, 20, 40])
  assert.ok(rig.outbound.calls.every(({ signal }) => signal.aborted))
  const [{ tries }] = await deliveries(rig, endpoint, id)
  assert.deepEqual([tries[0].error, tries[0].tookMs], ['no answer within 10 s', 10_000])
})

test('the signature verifies with the key of the endpoint, also after a new one was made', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(50)
  const path = `/v2/${endpoint}/webhook-key`
  const first = await rig.ask('GET', path)
  assert.match(first.json.key, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(first.headers.get('cache-control'), 'no-store')
  assert.ok(verifies(rig.outbound.calls[0]!, first.json.key))
  assert.equal(rig.outbound.calls[0]!.headers['webhook-timestamp'], String(Math.floor(rig.clock.now() / 1000)))
  const second = await rig.ask('POST', path)
  assert.notEqual(second.json.key, first.json.key)
  assert.equal((await rig.ask('GET', path)).json.key, second.json.key)
  const next = await rig.submit(endpoint, { input: {}, webhook: URL_ })
  await rig.ask('POST', `/v2/${endpoint}/cancel/${next}`)
  await rig.clock.advance(50)
  const call = rig.outbound.calls[1]!
  assert.ok(verifies(call, second.json.key) && !verifies(call, first.json.key))
  assert.notEqual(call.headers['webhook-id'], rig.outbound.calls[0]!.headers['webhook-id'])
  assert.ok(!JSON.stringify(rig.events).includes(second.json.key), id)
})

test('the key is for those who may change the endpoint, and the list for those who may read its jobs', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await ended(rig)
  const scopes = [
    ['reader', { type: 'restricted', management: 'read', jobs: 'read' }],
    ['manager', { type: 'restricted', management: 'write', jobs: 'none' }],
  ] as const
  const seen: Record<string, number[]> = {}
  for (const [name, scope] of scopes) {
    const key = await rig.addKey(name, { scope })
    const list = await rig.ask('GET', `/v2/${endpoint}/webhooks/${id}`, { key })
    const read = await rig.ask('GET', `/v2/${endpoint}/webhook-key`, { key })
    const rotate = await rig.ask('POST', `/v2/${endpoint}/webhook-key`, { key })
    seen[name] = [list.status, read.status, rotate.status]
  }
  assert.deepEqual(seen, { reader: [200, 403, 403], manager: [403, 200, 200] })
  assert.equal((await rig.ask('DELETE', `/v2/${endpoint}/webhook-key`)).status, 405)
  assert.equal((await rig.ask('GET', `/v2/nowhere/webhook-key`)).status, 404)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/webhooks/unknown`)).status, 404)
  const without = await rig.submit(endpoint)
  assert.deepEqual(await deliveries(rig, endpoint, without), [])
})

test('a restart between tries continues, and one during a try repeats it', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = ({ atMs }) => (atMs < rig.clock.startMs + 15_000 ? { status: 500 } : null)
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(5_000)
  await rig.crash()
  await rig.clock.advance(15_000)
  await rig.start()
  await rig.clock.advance(1_000)
  assert.equal(rig.outbound.calls.length, 2, 'it was due meanwhile, so it is called at once')
  await rig.crash()
  rig.outbound.answer = () => ({ status: 200 })
  await rig.start()
  await rig.clock.advance(1_000)
  const [over] = await deliveries(rig, endpoint, id)
  assert.deepEqual([over.state, over.tries.length, rig.outbound.calls.length], ['DELIVERED', 2, 3])
})

test('a stop waits a moment for calls that are being made', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = () => null
  await ended(rig)
  await rig.clock.advance(50)
  let stopped = false
  const stopping = rig.stop().then(() => {
    stopped = true
  })
  await rig.clock.advance(1_500)
  assert.equal(stopped, false)
  await rig.clock.advance(1_500)
  await stopping
  assert.equal(rig.outbound.calls[0]!.signal.aborted, true)
  await rig.start()
})

test('an end that the store did not keep is not delivered; one that it kept is, even without a confirmation', async t => {
  for (const fault of ['before', 'after'] as const) {
    const rig = await openRig(t)
    const { endpoint, id } = await waiting(rig)
    rig.failNext('jobOutcomes.cancel', fault)
    assert.equal((await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)).status, 503)
    await rig.clock.advance(6_000)
    assert.equal(rig.outbound.calls.length, fault === 'before' ? 0 : 1)
  }
})

test('a try that the store could not record is recorded later and not repeated', async t => {
  for (const fault of ['before', 'after'] as const) {
    const rig = await openRig(t)
    const { endpoint, id } = await waiting(rig)
    rig.failNext('webhooks.recordTry', fault, 2)
    await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
    await rig.clock.advance(20_000)
    assert.equal(rig.outbound.calls.length, 1)
    const [over] = await deliveries(rig, endpoint, id)
    assert.deepEqual([over.state, over.tries.length], ['DELIVERED', 1])
    assert.equal(rig.happened('webhook.delivered').length, 1)
  }
})

test('a lost notification and a store that fails for a while delay a delivery without loss', async t => {
  const rig = await openRig(t)
  rig.loses = topic => topic === 'webhooks'
  const { endpoint, id } = await waiting(rig)
  for (const method of ['webhooks.due', 'webhooks.open', 'webhooks.ensureKey'] as const) rig.failNext(method, 'before')
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  await rig.clock.advance(20_000)
  assert.equal((await deliveries(rig, endpoint, id))[0].state, 'DELIVERED')
})

/** Purges jobs of a new endpoint with these webhooks, so that all of them are due at once. */
async function purge(rig: Rig, urls: readonly string[], key?: string): Promise<void> {
  const asked = key === undefined ? {} : { key }
  const endpoint = await rig.endpoint({ workersMax: 0 }, asked)
  for (const webhook of urls) await rig.submit(endpoint, { input: {}, webhook }, asked)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/purge-queue`, asked)).status, 200)
}

const times = (count: number, url: string) => Array.from({ length: count }, () => url)

test('calls at once are bounded by receiver, account and in all', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = () => null
  const running = () => rig.outbound.calls.filter(({ signal }) => !signal.aborted).length
  await purge(rig, times(5, 'https://slow.example'))
  await rig.clock.advance(50)
  assert.equal(running(), CALLS.otherReceiver)
  await purge(
    rig,
    Array.from({ length: 40 }, (_, n) => `https://slow${n}.example`),
  )
  await rig.clock.advance(50)
  assert.equal(running(), CALLS.notQuick)
  for (let n = 0; n < 6; n += 1) {
    const key = await rig.addKey(`rpa_${n}`, { owner: `user_${n}` as OwnerId })
    await purge(
      rig,
      Array.from({ length: 20 }, (_, job) => `https://slow${job}.example`),
      key,
    )
  }
  await rig.clock.advance(50)
  assert.ok(running() <= CALLS.all, `${running()} calls`)
  await rig.clock.advance(3_000_000)
  assert.equal(rig.outbound.calls.length, (5 + 40 + 6 * 20) * WEBHOOK.tries)
})

for (const isSealed of [false, true]) {
  test(`a receiver that takes long delays its own webhooks only, URLs ${isSealed ? 'sealed' : 'plain'}`, async t => {
    const rig = await openRig(t, { sealPayloads: isSealed })
    rig.outbound.take = ({ url }) => (url.includes('slow') ? 6_000 : 10)
    const slow = Array.from({ length: 400 }, (_, n) => `https://slow.example:8443/${n}`)
    await purge(rig, [...slow, ...times(30, 'https://quick.example/')])
    await rig.clock.advance(3_000)
    assert.equal(rig.outbound.calls.filter(({ url }) => url.includes('quick')).length, 30)
    assert.equal(rig.happened('webhook.delivered').length, 30)
  })
}

test('a receiver that answers at once is not delayed by twenty others that hang', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = ({ url }) => (url.includes('quick') ? { status: 200 } : null)
  await purge(rig, ['https://quick.example/'])
  await rig.clock.advance(100)
  await purge(
    rig,
    Array.from({ length: 400 }, (_, n) => `https://hangs${n % 20}.example/`),
  )
  await rig.clock.advance(30_000)
  await purge(rig, times(30, 'https://quick.example/'))
  await rig.clock.advance(1_000)
  assert.equal(rig.happened('webhook.delivered').length, 31)
})

test('among a thousand receivers with many webhooks each is called in its turn', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = ({ url }) => (url.includes('hangs') ? null : { status: 200 })
  await purge(rig, times(200, 'https://hangs.example/'))
  await purge(
    rig,
    Array.from({ length: 1_000 }, (_, n) => `https://quick${n}.example/`),
  )
  await rig.clock.advance(20_000)
  assert.equal(rig.happened('webhook.delivered').length, 1_000)
})

test('webhooks of one account that reach nobody do not delay those of another', async t => {
  const rig = await openRig(t)
  const owner = 'user_stranger' as OwnerId
  const key = await rig.addKey('rpa_stranger', { owner })
  rig.outbound.answer = ({ url }) =>
    url.includes('dead') ? { problem: 'the address 127.0.0.1 is not public' } : { status: 200 }
  rig.outbound.isPublic = url => !url.includes('dead')
  for (let n = 0; n < 12; n += 1) {
    await purge(rig, times(40, `http://dead${n}.example:81/`), key)
  }
  await rig.clock.advance(1_000)
  await purge(rig, times(10, URL_))
  await rig.clock.advance(1_000)
  assert.equal(rig.outbound.calls.filter(({ url }) => url === URL_).length, 10)
  const dead = () => rig.outbound.calls.filter(({ url }) => url.includes('dead')).length
  assert.ok(dead() <= MAX_WAITING_OUTCOMES + CALLS.account, `${dead()} were called`)
  await rig.clock.advance(180_000)
  assert.equal(dead(), 480 * WEBHOOK.tries)
  assert.equal(rig.happened('webhook.failed').length, 480)
})

test('neither the deliveries nor the events of an account say why a receiver without a public address failed', async t => {
  const rig = await openRig(t)
  const key = await rig.addKey('rpa_stranger', { owner: 'user_stranger' as OwnerId })
  rig.outbound.answer = () => ({ problem: 'connect ECONNREFUSED 127.0.0.1:81' })
  rig.outbound.isPublic = () => false
  await purge(rig, ['http://private.example/'], key)
  await rig.clock.advance(61_000)
  const [failed] = rig.happened('webhook.failed')
  assert.match(failed!.problem, /ECONNREFUSED/)
  const shown = makeLiveEvent('webhook.failed', failed!, 0)
  assert.deepEqual([shown?.fields.problem, shown?.fields.tries], [HIDDEN_PROBLEM, 3])
})

test('a retry of the job does not change the delivery of its first end', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  rig.outbound.answer = () => ({ status: rig.outbound.calls.length === 1 ? 500 : 200 })
  const id = await rig.submit(endpoint, { input: {}, webhook: URL_ })
  await worker.takeJob()
  await worker.done(id, { error: 'no' })
  await rig.clock.advance(50)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)).status, 200)
  await worker.takeJob()
  await worker.done(id, { output: 'yes' })
  await rig.clock.advance(12_000)
  const statuses = rig.outbound.calls.map(({ body }) => JSON.parse(body).status)
  assert.deepEqual(statuses, ['FAILED', 'COMPLETED', 'FAILED'])
  assert.equal(rig.outbound.calls[0]!.body, rig.outbound.calls[2]!.body)
})

test('a webhook that was given up is sent again with the same message, by those who may change its jobs', async t => {
  const rig = await openRig(t)
  rig.outbound.answer = () => ({ status: rig.outbound.calls.length <= 4 ? 500 : 200 })
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(60_000)
  const send = (key?: string) =>
    rig.ask('POST', `/v2/${endpoint}/webhooks/${id}/send`, key === undefined ? {} : { key })
  const scope = { type: 'restricted', management: 'none', jobs: { [endpoint]: 'read' } } as const
  assert.equal((await send(await rig.addKey('rpa_reader', { scope }))).status, 403)
  assert.equal((await send(await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId }))).status, 404)
  assert.equal((await send()).json.deliveries[0].state, 'PENDING')
  await rig.clock.advance(1_000)
  assert.deepEqual([rig.outbound.calls.length, (await deliveries(rig, endpoint, id))[0].state], [4, 'FAILED'])
  assert.equal(rig.happened('webhook.failed').at(-1)?.tries, 4)
  await send()
  await rig.clock.advance(1_000)
  const [over] = await deliveries(rig, endpoint, id)
  assert.deepEqual([over.state, over.tries.length], ['DELIVERED', 5])
  const { calls } = rig.outbound
  assert.deepEqual([...new Set(calls.map(({ body }) => body))], [calls[0]!.body])
  assert.equal(new Set(calls.map(({ headers }) => headers['webhook-id'])).size, 1)
  const { status, json } = await send()
  assert.equal(status, 409)
  assert.match(json.error, /was delivered; only one that was given up can be sent again/)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/webhooks/${await rig.submit(endpoint)}/send`)).status, 404)
})

test('of the path of a receiver only a beginning is shown that tells receivers apart', () => {
  for (const [url, shown] of [
    ['https://hooks.slack.example/services/T1/B1/key', 'https://hooks.slack.example/services/…'],
    ['https://chat.example/api/webhooks/1/key?wait=1', 'https://chat.example/api/…'],
    ['https://ntfy.example/long-secret-topic', 'https://ntfy.example/long…'],
    ['http://ada:word@127.0.0.1:8000/hook/?key=1', 'http://127.0.0.1:8000/hook/?…'],
    ['https://example.com', 'https://example.com/'],
    ['https://example.com//key', 'https://example.com//…'],
    ['not a URL', '?'],
  ] as const) {
    assert.equal(shownAddress(url), shown)
  }
})

for (const sealPayloads of [false, true]) {
  test(`deliveries name their receiver without its secrets, ${sealPayloads ? 'also ' : 'un'}sealed`, async t => {
    const rig = await openRig(t, { sealPayloads })
    const { endpoint, id } = await waiting(rig, 'https://ada:secret@example.com:8443/hook/7?token=secret#part')
    await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
    for (const path of [`/v2/${endpoint}/webhooks/${id}`, `/v2/${endpoint}/webhooks`, '/ops/webhooks']) {
      const { json, text } = await rig.ask('GET', path)
      assert.equal(json.deliveries[0].address, 'https://example.com:8443/hook/…', path)
      assert.ok(!text.includes('secret') && !text.includes('ada'), path)
    }
  })
}

test('deliveries stay visible for a day after they are over', async t => {
  const rig = await openRig(t)
  const { endpoint, id } = await ended(rig)
  await rig.clock.advance(50)
  await rig.clock.leap(DAY_MS - 60_000)
  assert.equal((await deliveries(rig, endpoint, id)).length, 1)
  await rig.clock.leap(120_000)
  await rig.clock.advance(61_000)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/webhooks/${id}`)).status, 404)
})

test('the deliveries of an endpoint are listed by their state, for keys that may read its jobs', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const ids: JobId[] = []
  for (let n = 0; n < 3; n += 1) {
    ids.unshift(await rig.submit(endpoint, { input: {}, webhook: URL_ }))
    await rig.ask('POST', `/v2/${endpoint}/cancel/${ids[0]}`)
    await rig.clock.advance(1_000)
  }
  const list = async (query = '') => {
    const { status, json, text } = await rig.ask('GET', `/v2/${endpoint}/webhooks${query}`)
    assert.equal(status, 200, text)
    return json
  }
  const all = await list()
  const jobsOf = ({ deliveries }: { deliveries: { jobId: string }[] }) => deliveries.map(({ jobId }) => jobId)
  assert.deepEqual([jobsOf(all), all.pagination.hasNextPage], [ids, false])
  const [newest] = all.deliveries
  assert.deepEqual([newest.state, newest.jobStatus, newest.tries[0].status], ['DELIVERED', 'CANCELLED', 200])
  assert.deepEqual(jobsOf(await list('?state=failed')), [])
  assert.deepEqual(jobsOf(await list('?state=delivered')), ids)
  const first = await list('?limit=2')
  assert.deepEqual(jobsOf(first), ids.slice(0, 2))
  assert.deepEqual(jobsOf(await list(`?limit=2&cursor=${first.pagination.nextCursor}`)), ids.slice(2))
  for (const wrong of ['?state=gone', '?limit=0', '?limit=101', '?cursor=*']) {
    assert.equal((await rig.ask('GET', `/v2/${endpoint}/webhooks${wrong}`)).status, 400, wrong)
  }
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/webhooks`, { key: stranger })).status, 404)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/webhooks`, { key: none })).status, 403)
})

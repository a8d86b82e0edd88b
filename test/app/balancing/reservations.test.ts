import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { type Asked, aTarget, ENDPOINT, RequestQueuesRig, refusalOf } from '../../support/request-queues.ts'

const many = <Value>(count: number, make: (n: number) => Value) => Array.from({ length: count }, (_, n) => make(n))
const NO_WORKERS = { status: 400, message: 'no workers available', retries: true }
const GONE = { status: 404, message: 'affinity_worker_gone', retries: false }

test('two hundred requests at once from zero are all served in their order as soon as a worker is ready', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({})
  const asked = many(200, n => rig.ask({ name: String(n) }))
  assert.ok((await rig.told()) > 0)
  const load = rig.queues.load(ENDPOINT)
  assert.deepEqual([load.waiting, load.waitingSinceMs], [200, rig.clock.now()])
  await rig.keep({}, aTarget('a', { state: 'starting', servedAt: null }))
  await rig.clock.advance(30_000)
  assert.equal(rig.served.length, 0)
  await rig.keep({}, aTarget('a'))
  assert.deepEqual(
    rig.served,
    many(200, n => String(n)),
  )
  assert.ok(asked.every(({ reservation }) => reservation?.waitedMs === 30_000))
  assert.deepEqual(rig.inFlight, { a: 200 })
  assert.equal(rig.queues.load(ENDPOINT).waiting, 0)
})

test('requests may arrive before their endpoint is known', async () => {
  const rig = new RequestQueuesRig()
  const [any, named] = [rig.ask(), rig.insist('a')]
  await rig.clock.settle()
  assert.equal(rig.queues.load(ENDPOINT).waiting, 1)
  await rig.keep({}, aTarget('a'))
  assert.ok(any.reservation !== null && named.reservation !== null)
})

test('under a hard limit each place that becomes free goes to whoever waits longest', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 2 }, aTarget('a'), aTarget('b'))
  const asked = many(8, n => rig.ask({ name: String(n) }))
  await rig.clock.settle()
  assert.deepEqual(rig.served, ['0', '1', '2', '3'])
  assert.deepEqual(rig.inFlight, { a: 2, b: 2 })
  for (let n = 0; n < 4; n += 1) {
    await rig.clock.advance(1_000)
    asked[3 - n]!.reservation!.release('answered')
    await rig.clock.settle()
    assert.deepEqual(rig.inFlight, { a: 2, b: 2 })
    assert.equal(rig.served.at(-1), String(4 + n))
    assert.equal(asked[4 + n]!.reservation!.waitedMs, 1_000 * (n + 1))
  }
  const late = rig.ask()
  asked[4]!.reservation!.release('answered')
  await rig.clock.settle()
  assert.ok(late.reservation !== null)
})

test('new requests never overtake queued ones, and a raised limit dispatches those', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const asked = many(4, n => rig.ask({ name: String(n) }))
  asked[1]!.abort()
  await rig.keep({ maxConcurrency: 2 }, aTarget('a'))
  assert.deepEqual(rig.served, ['0', '2'])
  await rig.keep({ maxConcurrency: null }, aTarget('a'))
  assert.deepEqual(rig.served, ['0', '2', '3'])
})

test('a client that disconnects leaves the queue, and no other request is affected', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const asked = many(4, n => rig.ask({ name: String(n) }))
  await rig.clock.settle()
  asked[1]!.abort()
  await rig.clock.settle()
  assert.equal((asked[1]!.error as Error).message, 'gone')
  assert.equal(rig.queues.load(ENDPOINT).waiting, 2)
  asked[0]!.reservation!.release('answered')
  await rig.clock.settle()
  assert.deepEqual(rig.served, ['0', '2'])
  const before = rig.ask({ signal: AbortSignal.abort(new Error('gone already')) })
  await rig.clock.settle()
  assert.equal((before.error as Error).message, 'gone already')
  asked[2]!.abort()
  assert.deepEqual(rig.inFlight, { a: 1 }, 'what is in flight ends with its release')
})

test('the queue of an endpoint is bounded, and so are all queues together', async () => {
  const rig = new RequestQueuesRig({ limits: { perEndpoint: 3, inAll: 5 } })
  const asked = many(4, () => rig.ask())
  const other = many(3, () => rig.ask({ endpointId: 'other' as EndpointId }))
  await rig.clock.settle()
  assert.equal(refusalOf(asked[3]!).status, 429)
  assert.match(refusalOf(asked[3]!).message, /^3 requests are waiting for a worker of this endpoint already/)
  assert.deepEqual(refusalOf(other[2]!), {
    status: 429,
    message: 'too many requests are waiting on this server',
    retries: true,
  })
  assert.equal(rig.queues.waiting, 5)
  for (const { abort } of [...asked, ...other]) abort()
  assert.equal(rig.queues.waiting, 0)
  const again = rig.ask()
  await rig.keep({}, aTarget('a'))
  assert.ok(again.reservation !== null)
})

test('a request that waits for two minutes is answered that no workers are available', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({})
  const first = rig.ask()
  await rig.clock.advance(60_000)
  const [second, hasty] = [rig.ask(), rig.ask({ maxWaitMs: 5_000 })]
  await rig.clock.advance(59_999)
  assert.equal(first.error, null)
  assert.deepEqual(refusalOf(hasty), NO_WORKERS)
  await rig.clock.advance(1)
  assert.deepEqual([refusalOf(first), second.error], [NO_WORKERS, null])
  await rig.clock.advance(60_000)
  assert.deepEqual(refusalOf(second), NO_WORKERS)
})

test('a request that may not wait is refused at once if it would have to', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const asked = many(2, () => rig.ask({ maxWaitMs: 0 }))
  await rig.clock.settle()
  assert.ok(asked[0]!.reservation !== null)
  assert.deepEqual(refusalOf(asked[1]!), NO_WORKERS)
})

test('a request that cannot be served in time is refused at once, with the time to retry', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const asked: Asked[] = many(60, () => rig.ask())
  for (let n = 0; n < 20; n += 1) {
    await rig.clock.advance(5_000)
    asked[n]!.reservation!.release('answered')
  }
  await rig.clock.settle()
  // 39 wait, and one is served every 5 s: the next would wait for 200 s.
  const [patient, hasty] = [rig.ask(), rig.ask({ maxWaitMs: 60_000 })]
  await rig.clock.settle()
  assert.equal(patient.error, null, 'it is not sure that 120 s are too short')
  assert.match(refusalOf(hasty).message, /expected in 205 s, which is longer than the 60 s/)
  assert.equal(refusalOf(hasty).status, 429)
  assert.ok(refusalOf(hasty).retries)
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'), aTarget('b', { state: 'starting' }))
  const hopeful = rig.ask({ maxWaitMs: 60_000 })
  await rig.clock.settle()
  assert.equal(hopeful.error, null, 'with one more worker it goes faster, and nobody knows how much')
})

test('a paused endpoint refuses queued and new requests at once', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({})
  const asked = [rig.ask(), rig.insist('a', 'strict-resume')]
  await rig.keep({ paused: true }, aTarget('b'))
  asked.push(rig.ask(), rig.insist('b'))
  await rig.clock.settle()
  assert.deepEqual(refusalOf(asked[0]!), NO_WORKERS)
  assert.deepEqual(refusalOf(asked[2]!), NO_WORKERS)
  assert.deepEqual(refusalOf(asked[3]!), NO_WORKERS)
  assert.equal(rig.queues.waiting, 0)
})

test('requests queued for a deleted endpoint are refused, and those in flight are finished', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const [claimed, waits] = [await rig.claim(), rig.ask()]
  rig.queues.forget(ENDPOINT)
  await rig.clock.settle()
  assert.deepEqual(refusalOf(waits), { status: 404, message: 'endpoint endpoint not found', retries: false })
  assert.deepEqual(rig.inFlight, { a: 1 }, 'who ends its workers has to know')
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  assert.deepEqual(rig.inFlight, { a: 1 }, 'it may come back, with what is in flight')
  rig.queues.forget(ENDPOINT)
  claimed.release('answered')
  assert.deepEqual(rig.inFlight, {})
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  assert.deepEqual(rig.inFlight, { a: 0 })
})

test('a server that stops refuses queued and new requests, and finishes those in flight', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'))
  const claimed = await rig.claim()
  const asked = [rig.ask(), rig.insist('a')]
  rig.queues.close()
  asked.push(rig.ask())
  await rig.clock.settle()
  for (const one of asked) {
    assert.deepEqual(refusalOf(one), { status: 503, message: 'the server is stopping', retries: true })
  }
  assert.deepEqual(rig.inFlight, { a: 1 })
  claimed.release('answered')
  assert.deepEqual(rig.inFlight, { a: 0 })
})

test('a worker that drains gets no new requests, keeps its own, and its last end is reported', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'), aTarget('b'))
  const claims = many(4, () => rig.claim())
  for (const claim of claims) await claim
  await rig.keep({}, aTarget('a', { state: 'draining' }), aTarget('b'))
  for (let n = 0; n < 3; n += 1) assert.equal((await rig.claim()).workerId, 'b')
  assert.deepEqual(rig.inFlight, { a: 2, b: 5 })
  await rig.told()
  const ofA = (await Promise.all(claims)).filter(({ workerId }) => workerId === 'a')
  ofA[0]!.release('answered')
  assert.equal(await rig.told(), 0)
  ofA[1]!.release('answered')
  ofA[1]!.release('answered')
  assert.equal(await rig.told(), 1)
  assert.deepEqual(rig.inFlight, { a: 0, b: 5 })
})

test('a worker is idle since the end of its last request, or since it is ready without any', async () => {
  const rig = new RequestQueuesRig()
  const idleSince = () => rig.queues.load(ENDPOINT).workers[0]!.idleSinceMs
  await rig.keep({}, aTarget('a', { state: 'starting' }))
  await rig.clock.advance(5_000)
  await rig.keep({}, aTarget('a'))
  assert.equal(idleSince(), rig.clock.now())
  const [first, second] = [await rig.claim(), await rig.claim()]
  assert.equal(idleSince(), null)
  await rig.clock.advance(5_000)
  first.release('answered')
  assert.equal(idleSince(), null)
  await rig.clock.advance(5_000)
  second.release('aborted')
  const end = rig.clock.now()
  await rig.clock.advance(5_000)
  await rig.keep({}, aTarget('a', { state: 'starting' }))
  await rig.keep({}, aTarget('a'))
  assert.equal(idleSince(), end)
  const waits = rig.insist('a')
  await rig.keep({}, aTarget('a', { state: 'starting' }))
  rig.insist('a')
  waits.reservation!.release('answered')
  await rig.clock.advance(5_000)
  assert.equal(idleSince(), rig.clock.now(), 'a worker that somebody waits for by name is not idle')
})

test('a worker above its limit, or without requests, is reported at once, and not for each request', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ requestCount: 2 }, aTarget('a'))
  const claims = [await rig.claim(), await rig.claim()]
  assert.equal(await rig.told(), 0)
  claims.push(await rig.claim())
  assert.equal(await rig.told(), 1)
  await rig.clock.advance(10_000)
  await rig.told()
  for (const claim of claims) claim.release('answered')
  assert.equal(await rig.told(), 1)
  for (let n = 0; n < 5_000; n += 1) {
    const asked = rig.ask()
    if (n % 100 === 0) await rig.clock.advance(1)
    else await null
    await null
    asked.reservation?.release('answered')
  }
  assert.ok((await rig.told()) <= 3 * rig.threads, 'a flood is told of now and then')
  await rig.clock.advance(2_000)
  assert.ok((await rig.told()) <= rig.threads)
})

test('a request with strict affinity waits for its worker only, and delays no other request', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'), aTarget('b'))
  const ofA = await rig.claim({ affinity: { kind: 'strict', workerId: aTarget('a').workerId } })
  const strict = [rig.insist('a', 'strict', 's1'), rig.insist('a', 'strict', 's2')]
  assert.deepEqual(rig.queues.load(ENDPOINT).waiting, 0, 'other workers do not help those')
  const ofB = await rig.claim()
  assert.equal(ofB.workerId, 'b')
  const any = rig.ask({ name: 'any' })
  ofB.release('answered')
  await rig.clock.settle()
  assert.equal(any.reservation?.workerId, 'b')
  const later = rig.ask({ name: 'later' })
  ofA.release('answered')
  await rig.clock.settle()
  assert.equal(strict[0]!.reservation?.workerId, 'a', 'who wants that worker and was there first')
  strict[0]!.reservation?.release('answered')
  await rig.clock.settle()
  assert.equal(strict[1]!.reservation?.workerId, 'a')
  strict[1]!.reservation?.release('answered')
  await rig.clock.settle()
  assert.equal(later.reservation?.workerId, 'a')
})

test('a request with strict affinity waits while its worker starts, five minutes at most, and is refused when the worker is gone', async () => {
  const rig = new RequestQueuesRig()
  const starting = aTarget('a', { state: 'starting' })
  await rig.keep({}, starting, aTarget('b'))
  const [patient, unknown] = [rig.insist('a'), rig.insist('nobody')]
  await rig.clock.advance(299_999)
  assert.deepEqual(refusalOf(unknown), GONE)
  assert.equal(patient.error, null)
  await rig.clock.advance(1)
  assert.deepEqual(refusalOf(patient), { status: 400, message: 'worker_timeout', retries: true })
  const [next, drained] = [rig.insist('a'), rig.insist('b')]
  assert.ok((await rig.told()) > 0)
  await rig.keep({}, starting, aTarget('b', { state: 'draining' }))
  const toB = rig.insist('b')
  await rig.clock.settle()
  assert.ok(drained.reservation !== null)
  assert.deepEqual(refusalOf(toB), GONE)
  await rig.keep({}, aTarget('b'))
  assert.deepEqual(refusalOf(next), GONE)
})

test('a request with soft affinity goes to its worker while that has room', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 2 }, aTarget('a'), aTarget('b'))
  const soft = { affinity: { kind: 'soft', workerId: aTarget('b').workerId } } as const
  const workers: string[] = []
  for (let n = 0; n < 3; n += 1) workers.push((await rig.claim(soft)).workerId)
  assert.deepEqual(workers, ['b', 'b', 'a'])
  await rig.keep({}, aTarget('a'))
  assert.equal((await rig.claim(soft)).workerId, 'a')
})

test('strict-resume has a worker that has ended started again, and waits for it', async () => {
  const asked: string[] = []
  const canResume = async (_: EndpointId, worker: string) => asked.push(worker) > 0 && worker !== 'foreign'
  const rig = new RequestQueuesRig({ canResume })
  await rig.keep({}, aTarget('b'))
  const [first, second, foreign] = ['a', 'a', 'foreign'].map(name => rig.insist(name, 'strict-resume'))
  assert.ok((await rig.told()) > 0)
  assert.deepEqual(refusalOf(foreign!), GONE)
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, ['a'])
  assert.deepEqual(asked, ['a', 'foreign'])
  await rig.keep({}, aTarget('b'), aTarget('a', { state: 'starting' }))
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, [])
  await rig.keep({}, aTarget('b'), aTarget('a'))
  assert.deepEqual([first!.reservation?.workerId, second!.reservation?.workerId], ['a', 'a'])
})

test('strict-resume waits for a worker that is about to end to be started again, and no longer than anybody else', async () => {
  const rig = new RequestQueuesRig({ canResume: async () => true })
  await rig.keep({}, aTarget('a', { state: 'draining' }))
  const waits = rig.insist('a', 'strict-resume')
  await rig.clock.settle()
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, [])
  await rig.keep({})
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, ['a'])
  await rig.keep({}, aTarget('a', { state: 'starting' }))
  await rig.keep({})
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, ['a'], 'it has ended again')
  await rig.clock.advance(300_000)
  assert.deepEqual(refusalOf(waits), { status: 400, message: 'worker_timeout', retries: true })
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, [])
  const gone = rig.insist('a', 'strict-resume')
  await rig.clock.settle()
  gone.abort()
  assert.deepEqual(rig.queues.load(ENDPOINT).resumed, [])
})

test('where it cannot be found out whether a worker can be resumed, the request is refused', async () => {
  const rig = new RequestQueuesRig({ canResume: () => Promise.reject(new Error('the disk is full')) })
  await rig.keep({})
  const asked = rig.insist('a', 'strict-resume')
  await rig.clock.settle()
  assert.equal(refusalOf(asked).status, 500)
  assert.equal(rig.queues.waiting, 0)
})

test('a worker whose requests fail three times in a row is ejected for a while, then gets one, and is back once that succeeds', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'), aTarget('b'))
  await rig.send('a', 'unreachable', 'broken', 'unreachable')
  assert.deepEqual(rig.problems, [{ endpointId: ENDPOINT, workerId: 'a', failures: 3, forMs: 1_000 }])
  for (let n = 0; n < 10; n += 1) assert.equal((await rig.claim()).workerId, 'b')
  await rig.clock.advance(1_000)
  const trial = await rig.claim()
  assert.equal(trial.workerId, 'a')
  assert.equal((await rig.claim()).workerId, 'b')
  trial.release('unreachable')
  assert.equal(rig.problems.length, 2)
  await rig.clock.advance(1_999)
  assert.equal((await rig.claim()).workerId, 'b')
  await rig.clock.advance(1)
  const second = await rig.claim()
  assert.equal(second.workerId, 'a')
  second.release('answered')
  assert.deepEqual(rig.problems.at(-1), { endpointId: ENDPOINT, workerId: 'a' })
  for (let n = 0; n < 10; n += 1) assert.equal((await rig.claim()).workerId, 'a')
})

test('a worker on trial with a long request, such as a WebSocket, gets another one after a while', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'), aTarget('b'))
  await rig.send('a', 'broken', 'broken', 'broken')
  await rig.clock.advance(1_000)
  await rig.claim()
  const claims = [await rig.claim(), await rig.claim()]
  assert.deepEqual(rig.inFlight, { a: 1, b: 2 })
  await rig.clock.advance(1_000)
  assert.equal((await rig.claim()).workerId, 'a')
  for (const claim of claims) claim.release('answered')
})

test('ready workers that all fail stay in use: a request that may fail is better than a refusal', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'))
  await rig.send('a', 'broken', 'broken', 'broken', 'broken')
  assert.equal((await rig.claim()).workerId, 'a')
  await rig.keep({}, aTarget('a'), aTarget('b', { state: 'starting' }))
  assert.equal((await rig.claim()).workerId, 'a')
  await rig.keep({}, aTarget('a'), aTarget('b'))
  for (let n = 0; n < 5; n += 1) assert.equal((await rig.claim()).workerId, 'b')
})

test('where the only worker refuses connections requests wait for the next one', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'))
  const [lost, later] = [await rig.claim(), await rig.claim()]
  lost.release('refused')
  later.release('refused')
  assert.deepEqual(rig.problems, [{ endpointId: ENDPOINT, workerId: 'a', failures: 1, forMs: 1_000 }])
  const waits = [rig.ask({ avoid: [lost.workerId] }), rig.ask()]
  await rig.clock.advance(500)
  assert.equal(rig.queues.waiting, 2)
  await rig.keep({}, aTarget('b', { state: 'starting' }))
  await rig.keep({}, aTarget('b'))
  assert.deepEqual(
    waits.map(({ reservation }) => reservation?.workerId),
    ['b', 'b'],
  )
})

test('a worker that refuses connections is tried after 1, 2 and 4 s, and then serves for lack of another', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({}, aTarget('a'))
  ;(await rig.claim()).release('refused')
  for (const ms of [1_000, 2_000, 4_000]) {
    const waits = rig.ask({ avoid: [aTarget('a').workerId] })
    await rig.clock.advance(ms - 1)
    assert.equal(rig.queues.waiting, 1)
    await rig.clock.advance(1)
    assert.deepEqual([waits.reservation?.workerId, waits.reservation?.waitedMs], ['a', ms])
    waits.reservation?.release('refused')
  }
  assert.equal((await rig.claim()).workerId, 'a')
})

test('the waits of a request that several workers refused are limited together', async () => {
  const rig = new RequestQueuesRig({ limits: { waitMs: 10_000, namedWaitMs: 20_000 } })
  await rig.keep({})
  const waits = rig.ask({ waitedMs: 9_000 })
  await rig.clock.advance(999)
  assert.equal(waits.error, null)
  await rig.clock.advance(1)
  assert.equal(refusalOf(waits).message, 'no workers available')
})

test('a queued request goes to a worker whose ejection is over', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'), aTarget('b'))
  await rig.send('a', 'broken', 'broken', 'broken')
  assert.equal((await rig.claim()).workerId, 'b')
  const waits = rig.ask()
  await rig.clock.advance(999)
  assert.equal(rig.queues.waiting, 1)
  await rig.clock.advance(1)
  assert.equal(waits.reservation?.workerId, 'a')
})

test('a request that failed at a worker waits for another one, and does not block that worker', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('a'), aTarget('b'))
  const [first, second] = [await rig.claim(), await rig.claim()]
  const again = rig.ask({ avoid: [first.workerId], name: 'again' })
  const other = rig.ask({ name: 'other' })
  first.release('unreachable')
  await rig.clock.settle()
  assert.deepEqual(rig.served.slice(2), ['other'])
  assert.equal(other.reservation?.workerId, first.workerId)
  second.release('answered')
  await rig.clock.settle()
  assert.equal(again.reservation?.workerId, second.workerId)
})

test('a request that failed elsewhere overtakes no other, and is dispatched as soon as it is the first', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 1 }, aTarget('out'), aTarget('b'))
  await rig.send('out', 'broken', 'broken', 'broken')
  await rig.claim()
  const [first, again] = [rig.ask(), rig.ask({ avoid: [aTarget('b').workerId] })]
  await rig.clock.settle()
  assert.equal(rig.queues.waiting, 2)
  first.abort()
  await rig.clock.settle()
  assert.equal(again.reservation?.workerId, 'out', 'b is not wanted, and there is no other')
})

test('a worker that is no longer reported keeps its count, in case the report was incomplete', async () => {
  const rig = new RequestQueuesRig()
  await rig.keep({ maxConcurrency: 2 }, aTarget('a'))
  const claims = [await rig.claim(), await rig.claim()]
  await rig.keep({ maxConcurrency: 2 })
  assert.deepEqual(rig.inFlight, {})
  claims[0]!.release('broken')
  const waits = rig.ask()
  await rig.keep({ maxConcurrency: 2 }, aTarget('a'))
  assert.deepEqual(rig.inFlight, { a: 2 })
  assert.ok(waits.reservation !== null)
})

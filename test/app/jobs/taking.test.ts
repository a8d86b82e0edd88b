import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { faultyStore } from '../../support/faulty-store.ts'
import { type Answer, openRig, type Rig, type RigWorker } from '../../support/rig.ts'

/** An endpoint with this many workers, each of which has a take that waits. */
async function idleWorkers(rig: Rig, count: number) {
  const endpoint = await rig.endpoint({ workersMin: count, workersMax: count })
  await rig.clock.advance(100)
  const workers = rig.fleet.started
    .slice(-count)
    .map((_, index) => rig.worker(rig.fleet.started.length - count + index))
  const polls = workers.map(worker => worker.take())
  await rig.clock.settle()
  return { endpoint, workers, polls }
}

/** Takes that are answered once the rig is settled. */
async function answered(rig: Rig, polls: readonly Promise<Answer>[]): Promise<Answer[]> {
  const answers: Answer[] = []
  for (const poll of polls) void poll.then(answer => answers.push(answer))
  await rig.clock.settle()
  return answers
}

test('a hundred idle workers and one job: exactly one gets it, and few claim', async t => {
  const rig = await openRig(t)
  const { endpoint, polls } = await idleWorkers(rig, 100)
  const before = rig.calls('jobs.claim')
  assert.equal(before, 0, 'a take of an empty queue is no transaction')
  const id = await rig.submit(endpoint)
  const answers = await answered(rig, polls)
  assert.deepEqual(
    answers.map(({ json }) => json?.id),
    [id],
  )
  const tried = rig.calls('jobs.claim') - before
  assert.ok(tried <= 3, `${tried} claims for one job`)
})

test('a hundred idle workers and a hundred jobs at once: each gets one', async t => {
  const rig = await openRig(t)
  const { endpoint, polls } = await idleWorkers(rig, 100)
  const before = rig.calls('jobs.claim')
  await Promise.all(polls.map(() => rig.submit(endpoint)))
  const answers = await answered(rig, polls)
  assert.equal(new Set(answers.map(({ json }) => json?.id)).size, 100)
  const tried = rig.calls('jobs.claim') - before
  assert.ok(tried <= 210, `${tried} claims for a hundred jobs`)
})

test('of workers that have completed no job the one that waits longest gets the next one', async t => {
  const rig = await openRig(t)
  const { endpoint, workers, polls } = await idleWorkers(rig, 3)
  for (const [index, worker] of workers.entries()) {
    const id = await rig.submit(endpoint)
    assert.equal((await polls[index])!.json.id, id)
    assert.equal((await rig.job(endpoint, id)).workerId, worker.id)
  }
})

test('the worker that completed a job last gets the next one, and one whose last job failed comes behind the others', async t => {
  const rig = await openRig(t)
  const { endpoint, workers, polls } = await idleWorkers(rig, 3)
  const next = async (): Promise<{ id: JobId; holder: string }> => {
    const id = await rig.submit(endpoint)
    await rig.clock.settle()
    return { id, holder: (await rig.job(endpoint, id)).workerId! }
  }
  const ends = async ({ id, holder }: { id: JobId; holder: string }, result?: unknown) => {
    const worker = workers.find(one => one.id === holder)!
    await worker.done(id, result)
    await rig.clock.advance(10)
    void worker.take()
    await rig.clock.settle()
  }
  const [first, second] = [await next(), await next()]
  await Promise.all(polls.slice(0, 2))
  await ends(second)
  await ends(first)
  const third = await next()
  assert.equal(third.holder, first.holder)
  await ends(third, { error: 'broken' })
  assert.equal((await next()).holder, second.holder)
  assert.notEqual((await next()).holder, third.holder)
})

test('a take is held for 25 seconds and then answered 204', async t => {
  const rig = await openRig(t)
  const { polls } = await idleWorkers(rig, 1)
  await rig.clock.advance(24_900)
  assert.deepEqual(await answered(rig, polls), [])
  await rig.clock.advance(100)
  assert.equal((await polls[0])!.status, 204)
})

const HELD_FOR_A_SECOND = 1_000
const HELD_WHOLE = 25_000
const PYTHON = (version: string) => ({ 'user-agent': `RunPod-Python-SDK/${version} (Linux; x86_64)` })

/** Wait of a take without a job, in ms. */
async function heldMs(rig: Rig, take: Promise<Answer>): Promise<number> {
  const sinceMs = rig.clock.now()
  let endedMs: number | null = null
  void take.then(({ status }) => {
    assert.equal(status, 204)
    endedMs = rig.clock.now()
  })
  for (let tick = 0; tick <= 250 && endedMs === null; tick += 1) await rig.clock.advance(100)
  assert.ok(endedMs !== null)
  return endedMs - sinceMs
}

test('a take beside a job is held for a second: a worker that sends its result at the end of that take does so soon', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  for (const headers of [{ 'user-agent': 'runpod-rs/0.4.1' }, {}, PYTHON('1.12.0')]) {
    const id = await rig.submit(endpoint)
    assert.equal((await worker.take({ headers })).json.id, id)
    assert.equal(await heldMs(rig, worker.take({ busy: true, headers })), HELD_FOR_A_SECOND)
    assert.equal(await heldMs(rig, worker.take({ busy: true, headers })), HELD_FOR_A_SECOND)
    await worker.done(id)
    assert.equal((await rig.job(endpoint, id)).status, 'COMPLETED')
  }
  assert.equal(await heldMs(rig, worker.take()), HELD_WHOLE)
})

test('a take beside a job still gets the job that comes while it is held', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.submit(endpoint)
  await worker.takeJob()
  const take = worker.take({ busy: true })
  await rig.clock.advance(900)
  const next = await rig.submit(endpoint)
  assert.equal((await take).json.id, next)
})

for (const busy of [{ batch: 3 }, {}]) {
  const kind = busy.batch === undefined ? 'single' : 'batch'
  test(`a worker that has asked for several jobs is held whole beside one, at a ${kind} take`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
    await rig.submit(endpoint)
    assert.equal((await worker.take({ batch: 4 })).json.length, 1)
    assert.equal(await heldMs(rig, worker.take({ ...busy, busy: true })), HELD_WHOLE)
  })
}

test('the concurrency of a worker stays over a restart of the server, where its SDK asks for all of it', async t => {
  for (const [sdk, expectedMs] of [
    ['RunPod-Python-SDK/1.12.0 (Linux; x86_64)', HELD_WHOLE],
    ['Runyard-Worker-SDK/0.1.0 (linux; x64)', HELD_WHOLE],
    ['runpod-rs/0.4.1', HELD_FOR_A_SECOND],
  ] as const) {
    const rig = await openRig(t)
    const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
    const headers = { 'user-agent': sdk }
    await rig.submit(endpoint)
    assert.equal((await worker.take({ batch: 2, headers })).json.length, 1)
    await rig.crash()
    await rig.start()
    assert.equal(await heldMs(rig, worker.take({ busy: true, headers })), expectedMs, sdk)
  }
})

for (const sdk of ['RunPod-Python-SDK/1.6.2 (Linux)', 'Runyard-Worker-SDK/0.1.0 (linux; x64)']) {
  test(`a single take beside a job is held whole where it holds up no result: ${sdk}`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
    const headers = { 'user-agent': sdk }
    await rig.submit(endpoint)
    await worker.take({ headers })
    assert.equal(await heldMs(rig, worker.take({ busy: true, headers })), HELD_WHOLE)
  })
}

test('a take that ends loses no job: the next take in the poll queue gets the one that came just then', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const connection = new AbortController()
  const first = rig.worker(0).take({ signal: connection.signal })
  await rig.clock.settle()
  const second = rig.worker(1).take()
  await rig.clock.settle()
  const submitted = rig.submit(endpoint)
  connection.abort()
  assert.equal((await second).json.id, await submitted)
  assert.equal((await first).status, 204)
})

test('a batch leaves enough for the other workers', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 3, workersMax: 3 })
  await rig.clock.advance(100)
  for (let number = 0; number < 9; number += 1) await rig.submit(endpoint)
  const sizes: number[] = []
  for (const index of [0, 1, 2]) sizes.push((await rig.worker(index).take({ batch: 10 })).json.length)
  assert.deepEqual(sizes, [3, 2, 2])
})

test('a batch is one job while other takes are in the poll queue, and a fair share for the last of them', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const polls = [rig.worker(0).take({ batch: 10 }), rig.worker(1).take({ batch: 10 })]
  await rig.clock.settle()
  await Promise.all([1, 2, 3, 4].map(() => rig.submit(endpoint)))
  const sizes = (await Promise.all(polls)).map(({ json }) => json.length)
  assert.deepEqual(sizes, [1, 2])
})

test('the only worker gets as many as it asks for, in order', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids: JobId[] = []
  for (let number = 0; number < 5; number += 1) ids.push(await rig.submit(endpoint))
  const batch = (await worker.take({ batch: 4 })).json as { id: JobId }[]
  assert.deepEqual(
    batch.map(({ id }) => id),
    ids.slice(0, 4),
  )
  assert.equal((await worker.record()).capacity, 4)
})

test('the concurrency of a worker is what it takes besides what it holds, and is forgotten when it asks for less', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const concurrency = async () => (await worker.record()).capacity
  const held: JobId[] = []
  for (let number = 0; number < 3; number += 1) await rig.submit(endpoint)
  for (let number = 0; number < 3; number += 1) held.push((await worker.take({ busy: number > 0 })).json.id)
  assert.equal(await concurrency(), 3)
  for (const id of held) await worker.done(id)
  for (let minute = 0; minute < 3; minute += 1) {
    await worker.done(await rig.submit(endpoint).then(() => worker.takeJob()))
    await rig.clock.advance(60_000)
  }
  assert.equal(await concurrency(), 1)
})

test('a batch that never reached its worker is queued again as a whole, in order', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids = [await rig.submit(endpoint), await rig.submit(endpoint), await rig.submit(endpoint)]
  assert.equal((await worker.take({ batch: 3, delivered: false })).json.length, 3)
  await rig.clock.settle()
  const again = (await worker.take({ batch: 3 })).json as { id: JobId }[]
  assert.deepEqual(
    again.map(({ id }) => id),
    ids,
  )
})

/** A worker that holds a job and waits for more while it is drained, as a concurrent handler does. */
async function drainingWorker(rig: Rig): Promise<{ endpoint: EndpointId; old: RigWorker; held: JobId }> {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 2 })
  const held = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), held)
  await rig.change(endpoint, { env: [{ key: 'NEW', value: '1' }] })
  await rig.store.workers.retire(worker.id, 'DRAINING', 'requested', rig.clock.now())
  await rig.clock.advance(100)
  return { endpoint, old: worker, held }
}

test('a worker that is drained gets no more jobs', async t => {
  const rig = await openRig(t)
  const { endpoint, old } = await drainingWorker(rig)
  const poll = old.take({ busy: true })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
  await rig.clock.advance(25_000)
  assert.equal((await poll).status, 204)
})

test('a drained worker that waits for jobs does not block the takes behind it in the poll queue', async t => {
  const rig = await openRig(t)
  const { endpoint, old } = await drainingWorker(rig)
  const oldPoll = old.take({ busy: true })
  await rig.clock.settle()
  const poll = rig.worker(-1).take()
  await rig.clock.settle()
  const id = await rig.submit(endpoint)
  const answers = await answered(rig, [poll])
  assert.deepEqual(
    answers.map(({ json }) => json?.id),
    [id],
  )
  await rig.clock.advance(25_000)
  assert.equal((await oldPoll).status, 204)
})

test('a worker that is drained while its take is first in the poll queue keeps no job from those behind it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 2 })
  await rig.submit(endpoint)
  await worker.takeJob()
  const oldPoll = worker.take({ busy: true })
  await rig.clock.settle()
  await rig.change(endpoint, { env: [{ key: 'NEW', value: '1' }] })
  await rig.clock.advance(100)
  const poll = rig.worker(-1).take()
  // With the first take of the new release the old worker drains.
  await rig.clock.advance(100)
  const id = await rig.submit(endpoint)
  assert.equal((await answered(rig, [poll]))[0]?.json.id, id)
  await rig.clock.advance(25_000)
  await oldPoll
})

test('the take of a stopping worker is answered at once', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const { endpoint, polls } = await idleWorkers(rig, 1)
  await rig.change(endpoint, { workersMin: 0, workersMax: 0 })
  await rig.clock.advance(100)
  assert.deepEqual(
    (await answered(rig, polls)).map(({ status }) => status),
    [204],
  )
})

test('a worker that has ended is slowed down and gets no job', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  await rig.submit(endpoint)
  const { status, headers } = await worker.take()
  assert.deepEqual([status, headers.get('retry-after')], [429, '5'])
})

test('a worker that asks to be refreshed gets no more jobs and is replaced', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const [first, second] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await worker.takeJob()
  await worker.done(first, { output: 1, stopPod: true })
  await rig.clock.advance(100)
  assert.ok(rig.fleet.terminated.has(worker.id))
  const end = await worker.record()
  assert.deepEqual([end.state, end.stopReason], ['EXITED', 'refresh'])
  assert.equal(await rig.worker(-1).takeJob(), second)
})

test('the token of a worker is valid for the calls of its own endpoint and for nothing else', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const other = await rig.endpoint()
  const key = worker.spec.protocolEnv.RUNPOD_AI_API_KEY!
  assert.equal((await rig.ask('GET', `/v2/${other}/job-take/x`, { key })).status, 401)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/job-take/x`, { key: 'rpw_wrong' })).status, 401)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/job-take/x`, { key: null })).status, 401)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/run`, { key, body: { input: {} } })).status, 401)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}`, { key })).status, 401)
})

test('a retried job is not stopped because its last attempt was, and is when it is cancelled itself', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  assert.equal(await worker.takeJob(), id)
  const first = worker.stops()
  await rig.clock.advance(6_000)
  assert.equal((await rig.status(endpoint, id)).json.status, 'TIMED_OUT')
  assert.deepEqual((await first).json, { jobsToStop: [id] })
  await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)
  assert.equal(await worker.takeJob(), id)
  const poll = worker.stops()
  await rig.clock.advance(3_000)
  assert.deepEqual(await rig.store.stops.pending(worker.id), [])
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.deepEqual((await poll).json, { jobsToStop: [id] })
})

test('a job that is retried goes to no worker that has yet to stop its last attempt, and to that one once it has', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  const other = await rig.submit(endpoint)
  const taken = (await worker.take({ batch: 2 })).json.map((job: { id: JobId }) => job.id)
  assert.deepEqual(taken, [id, other])
  await rig.clock.advance(6_000)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)).status, 200)
  const held = worker.take({ batch: 2, busy: true })
  await rig.clock.advance(1_000)
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_QUEUE')
  await worker.stops()
  await worker.ping([other])
  assert.equal((await held).status, 204, 'it may say with the next one that it has let go')
  assert.deepEqual((await worker.take({ batch: 2, busy: true })).json[0].id, id)
})

const python = (version: string) => ({ 'user-agent': `RunPod-Python-SDK/${version} (Linux; x86_64)` })

/** A worker for several jobs at once whose only job was cancelled, on an SDK that cannot stop it. */
async function withCancelled(rig: Rig, version: string) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const unwanted = await rig.submit(endpoint)
  assert.equal((await worker.take({ batch: 3, headers: python(version) })).json[0].id, unwanted)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${unwanted}`)
  const more = () => worker.take({ batch: 2, busy: true, headers: python(version) })
  return { endpoint, worker, unwanted, more }
}

for (const version of ['1.7.4', '1.7.13', '1.8.1', '1.9.0']) {
  test(`${version} begins no job beside a cancelled one: it gets no job, and is replaced for the next one after 5 s`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker, more } = await withCancelled(rig, version)
    const next = await rig.submit(endpoint)
    void more()
    await rig.clock.advance(7_000)
    assert.equal((await worker.record()).stopReason, 'cancelled_job')
    const { lostAttempts, status } = await rig.job(endpoint, next)
    assert.deepEqual([status, lostAttempts], ['IN_QUEUE', 0])
    assert.equal(await rig.worker(-1).takeJob(), next)
  })
}

test('1.8.1 gets jobs again as soon as the cancelled one has ended', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, unwanted, more } = await withCancelled(rig, '1.8.1')
  const next = await rig.submit(endpoint)
  const poll = more()
  await rig.clock.advance(500)
  await worker.done(unwanted)
  assert.deepEqual(
    (await poll).json.map(({ id }: { id: JobId }) => id),
    [next],
  )
})

for (const version of ['1.6.2', '1.7.0', '1.9.1', '1.12.0']) {
  test(`${version} begins jobs beside a cancelled one, so it gets them`, async t => {
    const rig = await openRig(t)
    const { endpoint, more } = await withCancelled(rig, version)
    const next = await rig.submit(endpoint)
    assert.deepEqual(
      (await more()).json.map(({ id }: { id: JobId }) => id),
      [next],
    )
  })
}
test('a batch of large jobs has as many as fit into one response, at least one, and the rest comes with the next', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const text = 'x'.repeat(9 * 1024 * 1024)
  const ids: JobId[] = []
  for (let n = 0; n < 5; n += 1) ids.push(await rig.submit(endpoint, { input: { text } }))
  const taken: string[][] = []
  for (let got = 0; got < ids.length; got += taken.at(-1)!.length) {
    const { json } = await worker.take({ batch: 10, busy: got > 0 })
    taken.push(json.map(({ id }: { id: string }) => id))
  }
  assert.deepEqual(taken, [ids.slice(0, 3), ids.slice(3)])
})

/** Turns of the microtask queue in which a take that is woken claims. */
const TURNS = 100

function inTurns(turns: number, call: () => void): void {
  if (turns === 0) call()
  else queueMicrotask(() => inTurns(turns - 1, call))
}

/**
 * A rig whose writes wait for the end of a turn of the event loop, as in production.
 * @param fails true for a call of the store that fails
 */
async function rigWithTurns(t: TestContext, fails: (name: string) => boolean = () => false) {
  let rig: Rig | null = null
  const gather = (flush: () => void) =>
    inTurns(TURNS, () => {
      rig?.clock.fireDue()
      inTurns(TURNS, flush)
    })
  const store = await openSqliteStore({ file: ':memory:', host: 'inline', gather })
  rig = await openRig(t, { openStore: async () => faultyStore(store, name => (fails(name) ? 'before' : null)) })
  return { rig, commits: async () => (await store.stats()).commits }
}

test('a job for a worker that waits is stored and claimed in one transaction', async t => {
  const { rig, commits } = await rigWithTurns(t)
  const { endpoint, polls } = await idleWorkers(rig, 1)
  const before = await commits()
  const looks = rig.calls('endpoints.demand')
  const id = await rig.submit(endpoint)
  assert.equal((await commits()) - before, 1)
  assert.equal((await polls[0])!.json.id, id)
  assert.equal(rig.calls('endpoints.demand'), looks, 'the take has seen that no other job waits')
  const job = await rig.job(endpoint, id)
  assert.deepEqual([job.status, job.attempt], ['IN_PROGRESS', 1])
})

test('a worker that may have no more jobs leaves the one that comes to the next', async t => {
  const { rig } = await rigWithTurns(t)
  const { endpoint, workers, polls } = await idleWorkers(rig, 2)
  await rig.store.workers.retire(workers[0]!.id, 'DRAINING', 'requested', rig.clock.now())
  const id = await rig.submit(endpoint)
  await rig.clock.settle()
  assert.equal((await polls[1])!.json.id, id)
  assert.equal((await rig.job(endpoint, id)).workerId, workers[1]!.id)
})

test('jobs that come in one turn are claimed by one batch take, in their order', async t => {
  const { rig, commits } = await rigWithTurns(t)
  const endpoint = await rig.endpoint({ workersMin: 1, workersMax: 1 })
  await rig.clock.advance(100)
  const poll = rig.worker(rig.fleet.started.length - 1).take({ batch: 16 })
  await rig.clock.settle()
  const before = await commits()
  const submitted = await Promise.all(Array.from({ length: 5 }, () => rig.submit(endpoint)))
  assert.equal((await commits()) - before, 1)
  const taken = (await poll).json as { readonly id: string }[]
  assert.deepEqual(
    taken.map(({ id }) => id),
    submitted,
  )
})

test('a job that is not stored wakes a worker for nothing, which gets the next one', async t => {
  let isBroken = false
  const { rig } = await rigWithTurns(t, name => isBroken && name === 'jobs.insert')
  const { endpoint, polls } = await idleWorkers(rig, 1)
  isBroken = true
  const refused = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} } })
  await rig.clock.settle()
  assert.equal(refused.status, 503)
  isBroken = false
  const id = await rig.submit(endpoint)
  assert.equal((await polls[0])!.json.id, id)
})

/** Workers on RunPod's SDK 2.0: hooks of a program run before its handler, and what happens when they fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const SDK = { 'user-agent': 'RunPod-Python-SDK/2.0.0rc2 (Linux; x86_64)' }
const NO_WEIGHTS = { event: 'prestart_failed', error_type: 'RuntimeError', error_message: 'no weights', hook: 'load' }
const BOOTSTRAP = {
  error_type: 'BootstrapError',
  error_message: "worker bootstrap failed during 'attach': no manifest",
}
const CANCELLED = { event: 'prestart_cancelled', error_type: 'PrestartCancelled', error_message: 'shutdown' }

const says = (rig: Rig, worker: RigWorker, message: string, level = 'INFO') =>
  rig.print(worker.id, JSON.stringify({ requestId: null, message, level }))

function begins(rig: Rig, worker: RigWorker): void {
  says(rig, worker, 'Prestart | phase started')
  says(rig, worker, 'Prestart | running hook: load')
}

const reports = (worker: RigWorker, id: JobId, report: object) =>
  worker.done(id, { error: JSON.stringify({ ...report, ...('event' in report ? { worker_id: worker.id } : {}) }) })

/** Starts of the program of a worker, by the variable RELEASE of its release. */
const STARTS: Readonly<Record<string, (rig: Rig, worker: RigWorker) => Promise<void>>> = {
  /**
   * A hook fails at once. The SDK reports that in its output and, with its first job, in place of a result.
   */
  async 'failing hook'(rig, worker) {
    begins(rig, worker)
    void worker.take({ headers: SDK })
    await later(rig, 100)
    says(rig, worker, `prestart_failed | ${JSON.stringify({ ...NO_WEIGHTS, worker_id: worker.id })}`, 'ERROR')
    await STARTS['failing hook in silence']!(rig, worker)
  },
  async 'failing hook in silence'(rig, worker) {
    const { status, json } = await worker.take({ headers: SDK })
    if (status === 200) await reports(worker, json.id, NO_WEIGHTS)
    rig.fleet.exit(worker.id, { code: 1 })
  },
  /** The runtime answers each job, and goes on. */
  async 'failing bootstrap'(rig, worker) {
    while (rig.fleet.running().includes(worker.id)) {
      const { status, json } = await worker.take({ headers: { 'user-agent': 'Python-urllib/3.12' } })
      if (status === 200) await reports(worker, json.id, BOOTSTRAP)
      else await later(rig, 2_000)
    }
  },
  async good(rig, worker) {
    while (rig.fleet.running().includes(worker.id)) {
      const { status, json } = await worker.take({ headers: SDK })
      await later(rig, 500)
      if (status === 200) await worker.done(json.id)
    }
  },
}

const later = (rig: Rig, ms: number) => new Promise<void>(resolve => rig.clock.after(ms, resolve))
const release = (name: string) => ({ template: { env: [{ key: 'RELEASE', value: name }] } })

/** Time passes, in which each worker that is started runs its program. */
async function passes(rig: Rig, forMs: number, known = { workers: 0 }): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 100) {
    for (; known.workers < rig.fleet.started.length; known.workers += 1) {
      const worker = rig.worker(known.workers)
      STARTS[worker.spec.env.RELEASE ?? '']?.(rig, worker).catch(() => undefined)
    }
    await rig.clock.advance(100)
  }
}

test('a worker whose hooks run initializes and gets no job; once they are over it gets the job, which has run from then on', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, policy: { executionTimeout: 5_000 } })
  const createdAtMs = (await worker.record()).createdAtMs
  begins(rig, worker)
  let take = worker.take({ headers: SDK })
  await rig.clock.advance(20_000)
  assert.deepEqual(
    [(await worker.record()).state, (await rig.status(endpoint, id)).json.status],
    ['STARTING', 'IN_QUEUE'],
  )
  assert.equal((await rig.why(endpoint)).cause, 'worker_starting')
  await rig.clock.advance(10_000)
  assert.equal((await take).status, 204, 'a take is held as long as any other')
  take = worker.take({ headers: SDK })
  await rig.clock.advance(5_000)
  says(rig, worker, 'Prestart | ready')
  await rig.clock.settle()
  assert.equal((await take).json.id, id)
  const record = await worker.record()
  assert.deepEqual(
    [record.state, record.readyAtMs! - createdAtMs >= 35_000, record.sdk],
    ['READY', true, SDK['user-agent']],
  )
  await rig.clock.advance(1_000)
  await worker.done(id)
  const { json } = await rig.status(endpoint, id)
  assert.deepEqual([json.status, json.executionTime, json.delayTime >= 35_000], ['COMPLETED', 1_000, true])
})

test('a worker without hooks, and one on an older SDK, is ready with its first take', async t => {
  for (const headers of [SDK, { 'user-agent': 'RunPod-Python-SDK/1.12.0 (Linux; x86_64)' }]) {
    const rig = await openRig(t)
    const { worker } = await rig.endpointWithWorker()
    if (headers !== SDK) begins(rig, worker)
    void worker.take({ headers })
    await rig.clock.settle()
    assert.equal((await worker.record()).state, 'READY')
  }
})

test('hooks that do not end are a hung start, which names the hook', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await rig.submit(endpoint)
  begins(rig, worker)
  for (let polls = 0; polls < 18; polls += 1) {
    void worker.take({ headers: SDK })
    await rig.clock.advance(25_000)
  }
  const { cause, summary } = await rig.why(endpoint)
  assert.equal(cause, 'hung_start')
  assert.match(summary, /its prestart hook load still ran 420 s after its start/)
})

for (const [name, why] of [
  ['failing hook', /its prestart hook load failed: RuntimeError: no weights/],
  ['failing hook in silence', /its prestart hook load failed: RuntimeError: no weights/],
  ['failing bootstrap', /its runtime could not load its program: worker bootstrap failed during 'attach': no manifest/],
] as const) {
  test(`a release with a ${name} fails no job: its rollout stops with the reason, and the last release does the jobs`, async t => {
    const rig = await openRig(t)
    const known = { workers: 0 }
    const endpoint = await rig.endpoint({ workersMin: 1, workersMax: 2, ...release('good') })
    const before = await rig.submit(endpoint)
    await passes(rig, 2_000, known)
    assert.equal((await rig.status(endpoint, before)).json.status, 'COMPLETED')
    await rig.change(endpoint, release(name))
    const ids = []
    for (let count = 0; count < 10; count += 1) {
      ids.push(await rig.submit(endpoint))
      await passes(rig, 1_000, known)
    }
    await passes(rig, 10_000, known)
    const [stopped] = rig.happened('rollout.stopped')
    assert.match(stopped?.cause ?? '', why)
    assert.equal(stopped?.crashes, 3)
    for (const id of ids) {
      const { json } = await rig.status(endpoint, id)
      assert.deepEqual([json.status, json.retries], ['COMPLETED', undefined])
      assert.equal((await rig.job(endpoint, id)).attempt, 1)
    }
    const bad = rig.happened('worker.exited').filter(({ cause }) => why.test(cause))
    assert.ok(bad.length >= 3 && bad.every(({ asked }) => !asked))
  })

  test(`where no release works, jobs wait while a ${name} is tried again after growing pauses, and why names it`, async t => {
    const rig = await openRig(t)
    const endpoint = await rig.endpoint({ workersMax: 1, ...release(name) })
    const ids = [await rig.submit(endpoint), await rig.submit(endpoint)]
    await passes(rig, 60_000)
    const explained = await rig.why(endpoint)
    assert.equal(explained.cause, 'crash_loop')
    assert.match(explained.summary, why)
    assert.ok(rig.fleet.started.length >= 4 && rig.fleet.started.length <= 7, `${rig.fleet.started.length} starts`)
    for (const id of ids) {
      const { json } = await rig.status(endpoint, id)
      assert.deepEqual([json.status, json.retries], ['IN_QUEUE', undefined])
    }
    await rig.change(endpoint, release('good'))
    await passes(rig, 5_000, { workers: rig.fleet.started.length })
    for (const id of ids) assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
  })
}

test('a job that was given back ten times by workers that did not start fails with what they say', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1, ...release('failing bootstrap') })
  const id = await rig.submit(endpoint)
  const known = { workers: 0 }
  await passes(rig, 400_000, known)
  assert.equal((await rig.status(endpoint, id)).json.status, 'IN_QUEUE')
  await passes(rig, 500_000, known)
  const { status, error } = (await rig.status(endpoint, id)).json
  assert.equal(status, 'FAILED')
  assert.match(error, /worker bootstrap failed during 'attach': no manifest/)
  const { started } = rig.fleet
  await rig.submit(endpoint)
  await passes(rig, 60_000, known)
  assert.ok(rig.fleet.started.length - started.length <= 1, 'the failure is no work that ends the back-off')
})

test('a worker that is asked to end before its hooks are over gives its job back, and nothing is counted', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), id)
  await reports(worker, id, CANCELLED)
  const { json } = await rig.status(endpoint, id)
  assert.deepEqual([json.status, json.retries, (await rig.job(endpoint, id)).attempt], ['IN_QUEUE', undefined, 0])
  rig.fleet.exit(worker.id, { code: 0 })
  await rig.clock.advance(200)
  assert.deepEqual(
    rig.happened('worker.exited').map(({ asked }) => asked),
    [true],
  )
  const next = rig.worker(-1)
  assert.notEqual(next.id, worker.id)
  assert.equal(await next.takeJob(), id)
})

test('all jobs of a worker whose hook fails are given back, in their order, and its later reports change nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids = []
  for (let count = 0; count < 3; count += 1) ids.push(await rig.submit(endpoint))
  assert.equal((await worker.take({ batch: 3 })).json.length, 3)
  for (const id of ids) assert.equal((await reports(worker, id, NO_WEIGHTS)).status, 200)
  await rig.clock.advance(1_500)
  const next = rig.worker(-1)
  assert.notEqual(next.id, worker.id)
  const taken = (await next.take({ batch: 3 })).json.map((job: { id: JobId }) => job.id)
  assert.deepEqual(taken, ids)
  for (const id of ids) assert.equal((await rig.job(endpoint, id)).attempt, 1)
})

test('an error that quotes a failed start is an error of the handler, where another worker says it or where jobs were done', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const quoted = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), quoted)
  await worker.done(quoted, { error: JSON.stringify({ ...NO_WEIGHTS, worker_id: 'another' }) })
  const later = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), later)
  await worker.done(later, { error: JSON.stringify(BOOTSTRAP) })
  for (const id of [quoted, later]) assert.equal((await rig.status(endpoint, id)).json.status, 'FAILED')
  assert.equal((await worker.record()).state, 'READY')
})

test('a job whose take a worker drops as its hook fails is not lost, however often that happens', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  for (let round = 0; round < 4; round += 1) {
    await rig.clock.advance(10_000)
    const worker = rig.worker(-1)
    // Written, and never read.
    assert.equal((await worker.take({ headers: SDK })).json.id, id)
    assert.equal((await worker.take({ headers: SDK })).json.id, id)
    await reports(worker, id, NO_WEIGHTS)
    assert.deepEqual(
      [(await rig.status(endpoint, id)).json.status, (await rig.job(endpoint, id)).attempt],
      ['IN_QUEUE', 0],
    )
  }
  await rig.clock.advance(10_000)
  const worker = rig.worker(-1)
  await worker.take({ headers: SDK })
  await worker.take({ headers: SDK })
  void worker.take({ headers: SDK })
  await rig.clock.settle()
  assert.equal((await rig.job(endpoint, id)).lostAttempts, 1, 'a worker is excused once')
})

test('a worker whose hooks run when the server is started again is held back as before', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  begins(rig, worker)
  void worker.take({ headers: SDK }).catch(() => undefined)
  await rig.clock.advance(1_000)
  await rig.crash()
  await rig.start()
  const take = worker.take({ headers: SDK })
  await rig.clock.advance(1_000)
  assert.equal((await worker.record()).state, 'STARTING')
  says(rig, worker, 'Prestart | ready')
  await rig.clock.settle()
  assert.equal((await take).json.id, id)
})

test('a take never gets more jobs than it asks for', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  for (let count = 0; count < 30; count += 1) await rig.submit(endpoint)
  const { json } = await worker.take()
  assert.equal(typeof json.id, 'string')
  for (const [asked, most] of [
    [1, 1],
    [2, 2],
    [5, 5],
    [2.9, 2],
    [Number.NaN, 1],
  ] as const) {
    const { status, json } = await worker.take({ batch: asked, busy: true })
    assert.ok(status === 200 && json.length <= most, `${asked}: ${json.length}`)
  }
  for (const asked of [0, -1, 0.5]) assert.equal((await worker.take({ batch: asked, busy: true })).status, 429)
})

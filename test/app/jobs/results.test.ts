import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

/** An endpoint of at most one worker that holds one job. */
async function oneRunning(rig: Rig, body?: Record<string, unknown>) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, body)
  assert.equal(await worker.takeJob(), id)
  return { endpoint, worker, id }
}

/** The next worker, once the endpoint has started one more. */
async function nextWorker(rig: Rig, count: number) {
  assert.ok(await rig.clock.until(() => rig.fleet.started.length === count, 400_000), `no worker ${count} was started`)
  return rig.worker(-1)
}

test('a job whose response never reached the worker is queued first again, and the attempt does not count', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const [first, second] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  const lost = await worker.take({ delivered: false })
  assert.equal(lost.json.id, first)
  await rig.clock.settle()
  const back = await rig.job(endpoint, first)
  assert.deepEqual([back.status, back.attempt, back.lostAttempts], ['IN_QUEUE', 0, 0])
  assert.deepEqual([await worker.takeJob(), await worker.takeJob()], [first, second])
  assert.equal((await rig.job(endpoint, first)).attempt, 1)
  assert.equal((await rig.health(endpoint)).jobs.retried, 0)
})

test('a poll with a closed connection claims nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const connection = new AbortController()
  const poll = worker.take({ signal: connection.signal })
  await rig.clock.advance(1_000)
  connection.abort()
  assert.equal((await poll).status, 204)
  const id = await rig.submit(endpoint)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
})

test('a lost worker gives its jobs back to the head of the queue', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  const later = await rig.submit(endpoint)
  rig.fleet.exit(worker.id, { signal: 'SIGKILL' })
  await rig.clock.advance(100)
  assert.deepEqual(rig.moves(id).slice(1), ['requeue IN_PROGRESS IN_QUEUE'])
  const next = await nextWorker(rig, 2)
  assert.deepEqual([await next.takeJob(), await next.takeJob()], [id, later])
  await next.done(id)
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual([view.status, view.retries, view.workerId], ['COMPLETED', 1, next.id])
  assert.equal((await rig.health(endpoint)).jobs.retried, 1)
})

test('a job that loses its third worker is FAILED and says why', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  rig.fleet.exit(worker.id, { code: 1 })
  for (const count of [2, 3]) {
    const next = await nextWorker(rig, count)
    assert.equal(await next.takeJob(), id)
    rig.fleet.exit(next.id, { signal: 'SIGSEGV' })
  }
  await rig.clock.advance(100)
  const view = (await rig.status(endpoint, id)).json
  assert.equal(view.status, 'FAILED')
  assert.equal(
    view.error,
    `the worker was lost 3 times while it ran this job, the last time because it was killed by SIGSEGV; this was worker ${view.workerId}`,
  )
  assert.deepEqual((await rig.health(endpoint)).jobs, {
    completed: 0,
    failed: 1,
    inProgress: 0,
    inQueue: 0,
    retried: 2,
  })
})

test('the late result of the last holder counts while nobody has claimed the job since', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  const waiting = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_QUEUE')
  assert.equal((await worker.done(id, { output: 'late' })).status, 200)
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual([view.status, view.output, view.workerId], ['COMPLETED', 'late', worker.id])
  assert.deepEqual(rig.moves(id).slice(2), ['finish IN_QUEUE COMPLETED'])
  const next = await nextWorker(rig, 2)
  const other = await next.takeJob()
  assert.notEqual(other, id, 'a job that is done is not run again')
  await next.done(other)
  await waiting
})

test('the late result of the last holder is ignored once another worker has the job, and kept as a diagnostic', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  rig.fleet.exit(worker.id, { code: 1 })
  const next = await nextWorker(rig, 2)
  assert.equal(await next.takeJob(), id)
  assert.equal((await worker.done(id, { output: 'from the first' })).status, 401)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
  const [ignored] = rig.happened('job.result_ignored')
  assert.deepEqual([ignored?.jobId, ignored?.workerId], [id, worker.id])
  assert.equal(rig.calls('jobs.addDiagnostic'), 1)
  await next.done(id, { output: 'from the second' })
  assert.equal((await rig.status(endpoint, id)).json.output, 'from the second')
})

test('a result sent twice counts once', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await worker.done(id, { output: 1 })
  assert.equal((await worker.done(id, { output: 2 })).status, 200)
  assert.equal((await rig.status(endpoint, id)).json.output, 1)
  assert.equal((await rig.health(endpoint)).jobs.completed, 1)
})

test('a result after a cancel is answered 200 and changes nothing', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.equal((await worker.done(id, { output: 'too late' })).status, 200)
  const view = (await rig.status(endpoint, id)).json
  assert.deepEqual([view.status, view.output], ['CANCELLED', undefined])
  assert.deepEqual((await rig.health(endpoint)).jobs, {
    completed: 0,
    failed: 0,
    inProgress: 0,
    inQueue: 0,
    retried: 0,
  })
  assert.equal((await rig.alive(endpoint))[0]!.held, 0, 'the worker has let go of it')
})

test('a progress update shows while the job runs and never afterwards', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await worker.done(id, { status: 'IN_PROGRESS', output: { percent: 50 } })
  const running = (await rig.status(endpoint, id)).json
  assert.deepEqual([running.status, running.output], ['IN_PROGRESS', { percent: 50 }])
  await worker.done(id, { output: 'final' })
  await worker.done(id, { status: 'IN_PROGRESS', output: { percent: 99 } })
  assert.equal((await rig.status(endpoint, id)).json.output, 'final')
})

test('the progress of a lost attempt is not shown as that of the next', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  await worker.done(id, { status: 'IN_PROGRESS', output: 'half' })
  rig.fleet.exit(worker.id, { code: 1 })
  const next = await nextWorker(rig, 2)
  await worker.done(id, { status: 'IN_PROGRESS', output: 'of a dead worker' })
  assert.equal((await rig.status(endpoint, id)).json.output, undefined)
  await next.takeJob()
  await worker.done(id, { status: 'IN_PROGRESS', output: 'of a dead worker' })
  assert.equal((await rig.status(endpoint, id)).json.output, undefined)
})

const outcomes: [what: string, body: string, expected: Record<string, unknown>][] = [
  ['an error string', '{"error":"boom"}', { status: 'FAILED', error: 'boom' }],
  [
    'an error object',
    '{"error":{"code": 12345678901234567890}}',
    {
      status: 'FAILED',
      error: '{"code": 12345678901234567890}',
    },
  ],
  ['no output at all', '{}', { status: 'COMPLETED', output: undefined }],
  ['something that is no JSON', 'Traceback', { status: 'FAILED' }],
  ['NaN, with a warning', '{"output":{"loss":NaN}}', { status: 'COMPLETED', output: { loss: null } }],
]

for (const [what, body, expected] of outcomes) {
  test(`a worker that sends ${what} ends its job`, async t => {
    const rig = await openRig(t)
    const { endpoint, worker, id } = await oneRunning(rig)
    assert.equal((await worker.done(id, body)).status, 200)
    const view = (await rig.status(endpoint, id)).json
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(view[name], value, name)
    assert.equal(typeof view.executionTime, 'number')
    assert.equal('warning' in view, body.includes('NaN'))
  })
}

test('a large result that is not JSON fails its job at once instead of stopping the server', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  assert.equal((await worker.done(id, `{"output":"${'\\"'.repeat(2_000_000)}`)).status, 200)
  assert.equal((await rig.status(endpoint, id)).json.status, 'FAILED')
})

test('a result over the limit fails the job with both sizes', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  assert.equal((await worker.done(id, `{"output":"${'x'.repeat(20_971_520)}"}`)).status, 200)
  const { status, error } = (await rig.status(endpoint, id)).json
  assert.equal(status, 'FAILED')
  assert.equal(error, 'the result is too large: it has 20971533 bytes, the limit is 20971520 bytes')
})

test('jobs of one worker end one by one, each with its own result', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const ids: JobId[] = []
  for (let number = 0; number < 3; number += 1) ids.push(await rig.submit(endpoint as EndpointId))
  for (const id of ids) assert.equal(await worker.takeJob(), id)
  for (const id of ids.toReversed()) await worker.done(id, { output: id })
  for (const id of ids) assert.equal((await rig.status(endpoint, id)).json.output, id)
})

test('a result that the relay set aside because servers died of it fails its job, which says where it is', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  const file = 'body-1-2-3'
  assert.equal((await worker.done(id, '', { 'x-runyard-dropped': '1234', 'x-runyard-set-aside': file })).status, 200)
  const view = (await rig.status(endpoint, id)).json
  assert.equal(view.status, 'FAILED')
  assert.match(view.error, /the result was set aside: .* these 1234 bytes .* they are in set-aside\/body-1-2-3 of/)
})

test('a chunk that the relay had no room to set aside is reported in the history of its job, which continues', async t => {
  const rig = await openRig(t)
  const { endpoint, worker, id } = await oneRunning(rig)
  assert.equal((await worker.chunk(id, '', { 'x-runyard-dropped': '77' })).status, 200)
  const { notes } = (await rig.ask('GET', `/ops/why/${id}`)).json.explanations[0]
  assert.match(notes.join(), new RegExp(`worker ${worker.id}: a chunk was dropped: .* these 77 bytes`))
  await worker.done(id)
  assert.equal((await rig.status(endpoint, id)).json.status, 'COMPLETED')
})

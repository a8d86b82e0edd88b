/** The traces that the server records: the spans of jobs and workers, and their contexts for workers and receivers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Span } from '../../../src/core/observing/span.ts'
import { TRACE_SAMPLING } from '../../../src/core/observing/trace-sampling.ts'
import { RigBatches } from '../../support/batches.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { spanProblems, treeOf } from '../../support/span-trees.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CLIENT = '00f067aa0ba902b7'
const WEBHOOK = 'https://example.com/hook'
const TRACING = { tracing: TRACE_SAMPLING }

/** The spans of jobs; those of starts of workers are in traces of their own. */
const ofJobs = ({ spans }: Rig) => spans.filter(({ attributes }) => attributes['runyard.job.id'] !== undefined)

function named(rig: Rig, name: string): Span {
  const [found, ...more] = rig.spans.filter(span => span.name === name)
  assert.ok(found !== undefined && more.length === 0, `${more.length} more ${name}: ${treeOf(rig.spans).join(', ')}`)
  return found
}

/** The ids of a `traceparent`. */
function idsOf(traceparent: unknown): { traceId: string; spanId: string; flags: string } {
  const [version, traceId, spanId, flags] = String(traceparent).split('-')
  assert.equal(version, '00', `not a traceparent: ${traceparent}`)
  return { traceId: traceId!, spanId: spanId!, flags: flags! }
}

test('a job is one tree, with the times of what happened, and worker and receiver go on with it', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker()
  await worker.take({ signal: AbortSignal.abort() })
  const submittedMs = rig.clock.now()
  const id = await rig.submit(endpoint, { input: { secret: 1 }, webhook: WEBHOOK })
  await rig.clock.advance(300)
  const { json: taken } = await worker.take()
  await rig.clock.advance(700)
  await worker.done(id, { output: 'also secret' })
  await rig.clock.advance(50)
  assert.deepEqual(treeOf(ofJobs(rig)), ['job: completed', '  queue: claimed', '  attempt: completed', '  webhook'])
  const [job, queue, attempt, webhook] = ['job', 'queue', 'attempt', 'webhook'].map(name => named(rig, name)) as [
    Span,
    Span,
    Span,
    Span,
  ]
  assert.deepEqual(idsOf(taken.traceparent), { traceId: job.traceId, spanId: attempt.spanId, flags: '01' })
  const { traceparent } = rig.outbound.calls.at(-1)!.headers
  assert.deepEqual(idsOf(traceparent), { traceId: job.traceId, spanId: webhook.spanId, flags: '01' })
  assert.deepEqual([job.startMs, job.endMs], [submittedMs, submittedMs + 1_000])
  assert.deepEqual([queue.startMs, queue.endMs], [submittedMs, submittedMs + 300])
  assert.deepEqual([attempt.startMs, attempt.endMs], [submittedMs + 300, submittedMs + 1_000])
  assert.ok(webhook.startMs >= job.endMs && webhook.attributes['http.response.status_code'] === 200)
  assert.equal(attempt.attributes['runyard.worker.id'], worker.id)
  assert.equal(attempt.attributes['runyard.release'], 1)
  assert.deepEqual(spanProblems(rig.spans), [])
  assert.doesNotMatch(JSON.stringify(rig.spans), /secret/)
})

test('the trace of a client goes on, and what it does not record is not recorded here', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const run = async (flags: string) => {
    const headers = { traceparent: `00-${TRACE}-${CLIENT}-${flags}` }
    const { json } = await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} }, headers })
    const { json: taken } = await worker.take()
    await worker.done(json.id)
    return idsOf(taken.traceparent)
  }
  const { traceId, flags, spanId } = await run('00')
  assert.deepEqual([traceId, flags], [TRACE, '00'])
  assert.deepEqual(ofJobs(rig), [])
  const recorded = await run('01')
  assert.deepEqual([recorded.traceId, recorded.flags], [TRACE, '01'])
  assert.notEqual(recorded.spanId, spanId)
  assert.deepEqual(treeOf(ofJobs(rig), CLIENT), ['job: completed', '  queue: claimed', '  attempt: completed'])
  assert.deepEqual([named(rig, 'job').isParentRemote, named(rig, 'job').kind], [true, 'server'])
  assert.deepEqual(spanProblems(rig.spans), [])
})

test('each attempt is a span: one that was lost, one that never arrived, and one after a retry of the client', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  const lost = await worker.take()
  await rig.clock.advance(20)
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(20_000)
  const next = rig.worker(-1)
  await next.take({ delivered: false })
  await rig.clock.advance(10)
  const second = await next.take()
  await next.done(id, { error: 'no' })
  await rig.clock.advance(1_000)
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)).status, 200)
  const third = await next.take()
  await next.done(id)
  assert.deepEqual(treeOf(ofJobs(rig)), [
    'job: failed',
    '  queue: claimed',
    '  attempt: lost',
    '  queue: claimed',
    '  queue: claimed',
    '  attempt: given_back',
    '  attempt: failed',
    '  retry: completed',
    '    queue: claimed',
    '    attempt: completed',
  ])
  const attempts = rig.spans.filter(({ name }) => name === 'attempt')
  const spanOf = (outcome: string) => attempts.find(({ attributes }) => attributes['runyard.outcome'] === outcome)!
  assert.deepEqual(
    [lost, second, third].map(({ json }) => idsOf(json.traceparent).spanId),
    ['lost', 'failed', 'completed'].map(outcome => spanOf(outcome).spanId),
  )
  assert.deepEqual([spanOf('lost').error, spanOf('given_back').error], ['lost', null])
  assert.deepEqual(
    [spanOf('lost').attributes['runyard.attempt'], spanOf('failed').attributes['runyard.attempt']],
    [1, 2],
  )
  assert.deepEqual(spanProblems(rig.spans), [])
})

test('chunks are a span of their attempt, from the first to the last', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.clock.advance(100)
  await worker.chunk(id, { output: 1 })
  await rig.clock.advance(200)
  await worker.chunk(id, { output: 2 })
  await rig.clock.advance(300)
  await worker.done(id)
  assert.deepEqual(treeOf(ofJobs(rig)), ['job: completed', '  queue: claimed', '  attempt: completed', '    stream'])
  const [attempt, stream] = [named(rig, 'attempt'), named(rig, 'stream')]
  assert.deepEqual([stream.startMs - attempt.startMs, stream.endMs - stream.startMs], [100, 200])
  assert.equal(stream.attributes['runyard.chunks'], 2)
})

test('jobs that end in the queue have a wait and no attempt', async t => {
  const rig = await openRig(t, TRACING)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const cancelled = await rig.submit(endpoint)
  const expired = await rig.submit(endpoint, { input: {}, policy: { ttl: 10_000 } })
  await rig.clock.advance(500)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${cancelled}`)
  await rig.clock.advance(12_000)
  assert.equal((await rig.status(endpoint, expired)).status, 404)
  assert.deepEqual(treeOf(ofJobs(rig)), ['job: cancelled', '  queue: cancelled', 'job: expired', '  queue: expired'])
  const [first] = ofJobs(rig).filter(({ name }) => name === 'queue')
  assert.equal(first!.endMs - first!.startMs, 500)
  assert.deepEqual(spanProblems(rig.spans), [])
})

test('another server goes on with the trace of a job that the first one accepted and dispatched', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const waiting = await rig.submit(endpoint)
  const running = await rig.submit(endpoint)
  const { json: first } = await worker.take()
  assert.equal(first.id, waiting)
  await rig.crash()
  await rig.start()
  await worker.done(waiting)
  const { json: second } = await worker.take()
  await worker.done(running)
  assert.deepEqual(treeOf(ofJobs(rig)), [
    ...['job: completed', '  queue: claimed', '  attempt: completed'],
    ...['job: completed', '  queue: claimed', '  attempt: completed'],
  ])
  const attempts = new Set(rig.spans.filter(({ name }) => name === 'attempt').map(({ spanId }) => spanId))
  for (const { traceparent } of [first, second]) assert.ok(attempts.has(idsOf(traceparent).spanId))
  assert.deepEqual(spanProblems(rig.spans), [])
})

test('the start of a worker is a trace of its own, which the jobs that waited for it point at', async t => {
  const rig = await openRig(t, TRACING)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const [first, second] = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await rig.clock.advance(4_000)
  const worker = rig.worker(-1)
  assert.equal(await worker.takeJob(), first)
  await rig.clock.advance(10)
  const late = await rig.submit(endpoint)
  for (const id of [first, second, late]) {
    if (id !== first) assert.equal(await worker.takeJob(), id)
    await worker.done(id)
  }
  const start = named(rig, 'worker start')
  const phases = rig.spans.filter(({ parentId }) => parentId === start.spanId)
  assert.ok(phases.length > 0 && phases.every(({ startMs, endMs }) => startMs >= start.startMs && endMs <= start.endMs))
  assert.equal(
    phases.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0),
    start.endMs - start.startMs,
  )
  const waits = rig.spans.filter(({ name }) => name === 'queue')
  const link = { traceId: start.traceId, spanId: start.spanId }
  assert.deepEqual(
    waits.map(({ links, attributes }) => [links, attributes['runyard.cold_start']]),
    [
      [[link], true],
      [[link], true],
      [[], false],
    ],
  )
  assert.deepEqual(spanProblems(rig.spans), [])
})

test('a worker that cannot start is a span with an error', async t => {
  const rig = await openRig(t, TRACING)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  await rig.submit(endpoint)
  await rig.clock.advance(40)
  rig.fleet.exit(rig.worker(-1).id, { code: 1 })
  await rig.clock.advance(40)
  assert.equal(rig.spans.find(({ name }) => name === 'worker start')?.error, 'exited')
})

test('each request of a batch is a tree, also after a retry, and the webhook of the batch is in no tree', async t => {
  const rig = await openRig(t, TRACING)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const batches = new RigBatches(rig, endpoint)
  const drafted = await batches.draft([{ input: {}, webhook: WEBHOOK }], { webhook: `${WEBHOOK}/batch` })
  await rig.clock.advance(60_000)
  await batches.post(drafted, 'finalize')
  await rig.clock.settle()
  const id = await worker.takeJob()
  await worker.done(id, { error: 'no' })
  await rig.clock.advance(1_000)
  await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)
  await worker.takeJob()
  await worker.done(id)
  await rig.clock.advance(1_000)
  assert.deepEqual(spanProblems(rig.spans), [])
  assert.deepEqual(
    treeOf(ofJobs(rig))
      .map(line => line.trim())
      .sort(),
    [
      ...['attempt: completed', 'attempt: failed', 'job: failed', 'queue: claimed', 'queue: claimed'],
      ...['retry: completed', 'webhook', 'webhook'],
    ],
  )
  const ofBatch = rig.outbound.calls.filter(({ url }) => url.endsWith('/batch'))
  assert.ok(ofBatch.length > 0 && ofBatch.every(({ headers }) => headers.traceparent === undefined))
})

test('a sampler by ratio records the same part of the traces everywhere', async t => {
  const rig = await openRig(t, { tracing: { sampler: 'parentbased_traceidratio', ratio: 0.5 } })
  const { endpoint, worker } = await rig.endpointWithWorker()
  const flags: string[] = []
  for (let job = 0; job < 40; job += 1) {
    const id = await rig.submit(endpoint)
    const { json } = await worker.take()
    flags.push(idsOf(json.traceparent).flags)
    await worker.done(id)
  }
  const recorded = flags.filter(one => one === '01').length
  assert.ok(recorded > 5 && recorded < 35, `${recorded} of 40`)
  assert.equal(rig.spans.filter(({ name }) => name === 'job').length, recorded)
  assert.deepEqual(spanProblems(rig.spans), [])
})

/** The builder of spans keeps a bounded memory, and also works beyond it. */
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { EndpointId, JobId, WorkerId } from '../../../src/core/ids.ts'
import type { TracedMove } from '../../../src/core/observing/job-spans.ts'
import { TraceIds } from '../../../src/core/observing/span.ts'
import { SpanBuilder } from '../../../src/core/observing/span-builder.ts'
import { TRACE_SAMPLING } from '../../../src/core/observing/trace-sampling.ts'

const rules = { ids: new TraceIds(text => hash('sha256', text)), sampling: TRACE_SAMPLING }
const endpointId = 'e' as EndpointId
const workerId = 'w' as WorkerId

function move(jobId: string, rest: Partial<TracedMove>): TracedMove {
  const ids = { endpointId, jobId: jobId as JobId, queuedAtMs: 1_000, position: 0, traceparent: null }
  const states = { from: 'IN_QUEUE', to: 'IN_PROGRESS', transition: 'claim' } as const
  return { ...ids, ...states, workerId, attempt: 1, waitedMs: 0, ranMs: 0, ...rest }
}

const givenBack = { transition: 'release', from: 'IN_PROGRESS', to: 'IN_QUEUE', workerId: null, attempt: 0 } as const

test('an attempt that is given back has its own times while few go on, and is left out once it is forgotten', () => {
  const builder = new SpanBuilder(rules)
  builder.moved(move('first', {}), false, 1_000)
  builder.moved(move('second', {}), false, 2_000)
  const [span] = builder.moved(move('second', givenBack), false, 2_500)
  assert.deepEqual([span!.startMs, span!.endMs, span!.attributes['runyard.worker.id']], [2_000, 2_500, 'w'])
  for (let job = 0; job < 20_000; job += 1) builder.moved(move(`job ${job}`, {}), false, 3_000)
  assert.deepEqual(builder.moved(move('first', givenBack), false, 4_000), [])
})

test('a job whose begin was not seen has the same spans, without the values of its begin', () => {
  const seen = new SpanBuilder(rules)
  seen.created(workerId, 7, 900)
  const end = { transition: 'finish', from: 'IN_PROGRESS', to: 'COMPLETED', ranMs: 500 } as const
  seen.moved(move('a', {}), false, 1_500)
  const first = seen.moved(move('a', end), false, 2_000)
  const second = new SpanBuilder(rules).moved(move('a', end), false, 2_000)
  const ids = (spans: typeof first) =>
    spans.map(({ spanId, parentId, startMs, endMs }) => [spanId, parentId, startMs, endMs])
  assert.deepEqual(ids(first), ids(second))
  assert.deepEqual(
    first.map(({ attributes }) => attributes['runyard.release']),
    [7, undefined],
  )
})

test('a clock that was set back makes no span that ends before it starts', () => {
  const end = { transition: 'finish', from: 'IN_PROGRESS', to: 'FAILED', ranMs: -300 } as const
  for (const { startMs, endMs } of new SpanBuilder(rules).moved(move('a', end), false, 500)) assert.ok(startMs <= endMs)
})

test('a worker that ends after it was ready has one start, which succeeded', () => {
  const builder = new SpanBuilder(rules)
  builder.created(workerId, 1, 0)
  const phases = { queued: 10, downloading: 0, pulling: 20, starting: 0, initializing: 70 }
  const spans = builder.ready({ endpointId, workerId, coldStartMs: 100, phases }, 100)
  assert.deepEqual(
    spans.map(({ name, startMs, endMs, error }) => [name, startMs, endMs, error]),
    [
      ['worker start', 0, 100, null],
      ['worker placement', 0, 10, null],
      ['image pull', 10, 30, null],
      ['worker init', 30, 100, null],
    ],
  )
  assert.deepEqual(builder.ended(endpointId, workerId, 'exited', 200), [])
})

/** Spans on their way to the collector: in groups, within limits, and without keeping anybody. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSpan, type Span } from '../../src/core/observing/span.ts'
import { type SendSpans, SpanQueue } from '../../src/system/observing/span-queue.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const LIMITS = { maxQueueSize: 10, maxExportBatchSize: 4, scheduleDelayMs: 5_000, exportTimeoutMs: 30_000 }

const spans = (count: number): Span[] =>
  Array.from({ length: count }, (_, index) =>
    createSpan({
      traceId: 't',
      spanId: String(index),
      parentId: null,
      name: 'n',
      startMs: 0,
      endMs: 1,
      attributes: {},
    }),
  )

/** A queue, and what became of its spans. */
function open(send: SendSpans) {
  const clock = new VirtualClock()
  const seen = { sent: 0, dropped: 0, failing: [] as [string, number][], groups: [] as number[] }
  const counting: SendSpans = group => {
    seen.groups.push(group.length)
    return send(group)
  }
  const queue = new SpanQueue(clock, LIMITS, counting, {
    sent: count => {
      seen.sent += count
    },
    dropped: count => {
      seen.dropped += count
    },
    failing: (problem, count) => void seen.failing.push([problem, count]),
  })
  return { clock, queue, seen }
}

test('a few spans wait for others, and a group goes at once', async () => {
  const { clock, queue, seen } = open(async () => {})
  queue.add(spans(1))
  await clock.advance(4_999)
  assert.deepEqual(seen.groups, [])
  await clock.advance(1)
  assert.deepEqual(seen.groups, [1])
  queue.add(spans(9))
  await clock.settle()
  assert.deepEqual(seen.groups, [1, 4, 4])
  await clock.advance(5_000)
  assert.deepEqual([seen.sent, seen.dropped], [10, 0])
})

test('while the collector hangs spans wait up to the limit, further ones are dropped, and one line a minute reports it', async () => {
  const { clock, queue, seen } = open(() => new Promise(() => {}))
  queue.add(spans(30))
  await clock.settle()
  assert.deepEqual([seen.groups, seen.dropped], [[4], 20])
  queue.add(spans(30))
  await clock.settle()
  assert.deepEqual(seen.failing, [['too many spans wait', 1]])
  await clock.advance(30_000)
  assert.equal(seen.groups.length, 2, 'a call that takes too long is given up')
  await clock.advance(31_000)
  assert.equal(seen.failing.length, 2)
  assert.ok(seen.failing[1]![1] > 20, 'the next line counts what was dropped meanwhile')
})

test('a failure of the collector costs its group alone, and a long answer of it is cut', async () => {
  let fails = true
  const { clock, queue, seen } = open(async () => {
    if (fails) throw new Error('x'.repeat(5_000))
  })
  queue.add(spans(4))
  await clock.settle()
  fails = false
  queue.add(spans(4))
  await clock.settle()
  assert.deepEqual([seen.sent, seen.dropped], [4, 4])
  assert.equal(seen.failing[0]![0].length, 200)
})

test('a close sends what waits', async () => {
  const { clock, queue, seen } = open(async () => {})
  queue.add(spans(3))
  await queue.close(3_000)
  assert.deepEqual([seen.sent, seen.dropped], [3, 0])
  queue.add(spans(1))
  await clock.advance(10_000)
  assert.deepEqual([seen.sent, seen.dropped], [3, 1])
})

test('a close does not wait for a collector that hangs', async () => {
  const { clock, queue, seen } = open(() => new Promise(() => {}))
  queue.add(spans(6))
  let isClosed = false
  void queue.close(3_000).then(() => {
    isClosed = true
  })
  await clock.advance(2_999)
  assert.equal(isClosed, false)
  await clock.advance(1)
  assert.equal(isClosed, true)
  assert.equal(seen.sent, 0)
  assert.equal(seen.dropped, 2, 'the group on its way may arrive')
})

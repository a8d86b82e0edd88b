/** Points of the API become charts: what is missing is zero where it was counted, and a gap where it was measured. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointMetricPoint } from '../../console/client/api-types.d.ts'
import {
  csvRows,
  emptyReason,
  measuresFromSlots,
  slotsFromPoints,
} from '../../console/pages/endpoint/metrics/measures.ts'
import type { Range } from '../../console/pages/endpoint/metrics/range.ts'

const MINUTE_MS = 60_000
const FROM = Date.parse('2026-11-26T10:00:00Z')
const RANGE: Range = { id: null, interval: '1m', fromMs: FROM, toMs: FROM + 5 * MINUTE_MS, isLive: true }

const none = { count: 0, p50: null, p90: null, p95: null, p99: null }
const zero = { average: 0, max: 0 }

function point(minute: number, parts: Partial<EndpointMetricPoint> = {}): EndpointMetricPoint {
  return {
    at: new Date(FROM + minute * MINUTE_MS).toISOString(),
    requests: { completed: 2, failed: 1, timedOut: 0, cancelled: 0, expired: 0 },
    delayMs: { count: 3, p50: 10, p90: 20, p95: 25, p99: 30 },
    executionMs: none,
    coldStartMs: none,
    workers: { starting: zero, idle: { average: 0.5, max: 1 }, running: zero, frozen: zero },
    gpus: { busyPercent: null, memoryPercent: null },
    queue: { waiting: 4, inProgress: 1 },
    crashes: 0,
    ...parts,
  }
}

/** Values of a series of the slots, up to half a minute into the fourth one. */
function values(points: EndpointMetricPoint[], measure: string, series: string, sinceMs = 0) {
  const slots = slotsFromPoints(points, RANGE, sinceMs, FROM + 3.5 * MINUTE_MS)
  return measuresFromSlots(slots)
    .find(({ id }) => id === measure)
    ?.series.find(({ id }) => id === series)?.values
}

test('slots follow each other without holes, up to the one that is not over', () => {
  const slots = slotsFromPoints([point(1)], RANGE, 0, FROM + 3.5 * MINUTE_MS)
  assert.deepEqual(
    slots.map(({ atMs, point: found, isOpen }) => [(atMs - FROM) / MINUTE_MS, found !== null, isOpen]),
    [
      [0, false, false],
      [1, true, false],
      [2, false, false],
      [3, false, true],
    ],
  )
})

test('requests that were not counted are zero', () => {
  assert.deepEqual(values([point(1)], 'requests', 'completed'), [0, 2, 0, 0])
})

test('before the endpoint was there, nothing is known', () => {
  const since = FROM + 2 * MINUTE_MS
  assert.deepEqual(values([point(3)], 'requests', 'completed', since), [null, null, 0, 2])
  assert.deepEqual(values([point(3)], 'workers', 'idle', since), [null, null, 0, 0.5])
})

test('times that were not measured are gaps', () => {
  assert.deepEqual(values([point(1)], 'delayMs', 'p90'), [null, 20, null, null])
  assert.deepEqual(values([point(1)], 'executionMs', 'p90'), [null, null, null, null])
})

test('workers that were not counted yet in the present minute are a gap, not zero', () => {
  const uncounted = { starting: zero, idle: zero, running: zero, frozen: zero }
  assert.deepEqual(values([point(3, { workers: uncounted })], 'workers', 'idle'), [0, 0, 0, null])
  assert.deepEqual(values([], 'workers', 'idle'), [0, 0, 0, null])
})

test('the queue and crashes are zero where none were counted', () => {
  assert.deepEqual(values([point(1)], 'queue', 'waiting'), [0, 4, 0, 0])
  assert.deepEqual(values([point(1, { crashes: 2 })], 'crashes', 'crashes', FROM + MINUTE_MS), [null, 2, 0, 0])
})

test('GPUs have charts only where they were measured', () => {
  assert.equal(values([point(1)], 'gpuBusy', 'average'), undefined)
  const gpus = { busyPercent: { average: 41.5, max: 90 }, memoryPercent: null }
  assert.deepEqual(values([point(1, { gpus })], 'gpuBusy', 'max'), [null, 90, null, null])
  assert.equal(values([point(1, { gpus })], 'gpuMemory', 'max'), undefined)
})

test('a file has one row for each slot, with the names of all series', () => {
  const slots = slotsFromPoints([point(0)], RANGE, 0, FROM + 1.5 * MINUTE_MS)
  const [head, first, second, ...rest] = csvRows(slots, measuresFromSlots(slots))
  assert.equal(rest.length, 0)
  assert.deepEqual(head?.slice(0, 3), ['at', 'requests.completed', 'requests.failed'])
  assert.deepEqual(first?.slice(0, 3), ['2026-11-26T10:00:00.000Z', 2, 1])
  const p99 = head!.indexOf('delayMs.p99')
  assert.deepEqual([first?.[p99], second?.[p99]], [30, null])
})

test('a chart without numbers says why', () => {
  const reasons = (points: EndpointMetricPoint[]) => {
    const slots = slotsFromPoints(points, RANGE, 0, FROM + 3.5 * MINUTE_MS)
    return Object.fromEntries(measuresFromSlots(slots).map(measure => [measure.id, emptyReason(measure)]))
  }
  const empty = reasons([])
  assert.equal(empty.requests, 'No request ended in this time.')
  assert.ok(Object.values(empty).every(reason => reason !== null))
  const some = reasons([point(1)])
  assert.deepEqual([some.requests, some.delayMs, some.workers, some.queue], [null, null, null, null])
  assert.equal(some.crashes, 'No worker crashed in this time.')
  assert.match(some.coldStartMs!, /^No worker got ready in this time/)
})

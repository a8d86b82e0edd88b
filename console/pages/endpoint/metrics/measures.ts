/** Measures of an endpoint for charts: the points of the API as series without holes in their time. */
import type { EndpointMetricPoint } from '../../../client/api-types.d.ts'
import type { Series, Unit } from '../../../parts/chart-data.ts'
import { INTERVALS, type Range } from './range.ts'

/** One chart. */
export interface Measure {
  readonly id: string
  readonly title: string
  readonly kind: 'bars' | 'lines'
  readonly unit: Unit
  /** Figure of the whole range in the legend. */
  readonly summary: 'sum' | 'average' | 'max'
  readonly series: readonly Series[]
}

/** A span of time, and the counts in it; null if nothing was counted. */
export interface Slot {
  readonly atMs: number
  readonly point: EndpointMetricPoint | null
  /** True for a span before the endpoint was created. */
  readonly isUnknown: boolean
  /** True if the span has not ended. */
  readonly isOpen: boolean
}

/** All intervals of a range up to the present. @param sinceMs creation of the endpoint */
export function slotsFromPoints(
  points: readonly EndpointMetricPoint[],
  { fromMs, toMs, interval }: Range,
  sinceMs: number,
  nowMs: number,
): Slot[] {
  const { lengthMs } = INTERVALS[interval]
  const byTime = new Map(points.map(point => [Date.parse(point.at), point]))
  const slots: Slot[] = []
  for (let atMs = fromMs; atMs < toMs && atMs <= nowMs; atMs += lengthMs) {
    const point = byTime.get(atMs) ?? null
    const isUnknown = point === null && atMs + lengthMs <= sinceMs
    slots.push({ atMs, point, isUnknown, isOpen: atMs + lengthMs > nowMs })
  }
  return slots
}

/** The charts of some slots. A missing count is zero; a time or use that was not measured is a gap. */
export function measuresFromSlots(slots: readonly Slot[]): Measure[] {
  return [requests(slots), queue(slots), ...times(slots), workers(slots), crashes(slots), ...gpus(slots)]
}

function requests(slots: readonly Slot[]): Measure {
  const of = (result: keyof EndpointMetricPoint['requests']) =>
    slots.map(({ point, isUnknown }) => (isUnknown ? null : (point?.requests[result] ?? 0)))
  return {
    id: 'requests',
    title: 'Requests by result',
    kind: 'bars',
    unit: 'count',
    summary: 'sum',
    series: [
      { id: 'completed', title: 'Completed', color: '--good', look: 'plain', values: of('completed') },
      { id: 'failed', title: 'Failed', color: '--bad', look: 'up', values: of('failed') },
      { id: 'timedOut', title: 'Timed out', color: '--wait', look: 'down', values: of('timedOut') },
      { id: 'cancelled', title: 'Cancelled', color: '--faint', look: 'plain', values: of('cancelled') },
      { id: 'expired', title: 'Expired', color: '--frozen', look: 'level', values: of('expired') },
    ],
  }
}

function queue(slots: readonly Slot[]): Measure {
  const of = (part: keyof EndpointMetricPoint['queue']) =>
    slots.map(({ point, isUnknown }) => (isUnknown ? null : (point?.queue[part] ?? 0)))
  return {
    id: 'queue',
    title: 'Queue',
    kind: 'lines',
    unit: 'count',
    summary: 'max',
    series: [
      { id: 'waiting', title: 'Waiting', color: '--wait', look: 'up', values: of('waiting') },
      { id: 'inProgress', title: 'In progress', color: '--busy', look: 'plain', values: of('inProgress') },
    ],
  }
}

function crashes(slots: readonly Slot[]): Measure {
  const values = slots.map(({ point, isUnknown }) => (isUnknown ? null : (point?.crashes ?? 0)))
  return {
    id: 'crashes',
    title: 'Crashes of workers',
    kind: 'bars',
    unit: 'count',
    summary: 'sum',
    series: [{ id: 'crashes', title: 'Crashes', color: '--bad', look: 'plain', values }],
  }
}

const TIMES = [
  ['delayMs', 'Delay', 'Time that requests waited for a worker'],
  ['executionMs', 'Execution', 'Time that workers ran requests'],
  ['coldStartMs', 'Cold start', 'Time of workers from their place to their first request'],
] as const
const PERCENTILES = [
  ['p50', 'p50', '--chart-1', 'plain'],
  ['p90', 'p90', '--chart-2', 'up'],
  ['p99', 'p99', '--chart-3', 'down'],
] as const

function times(slots: readonly Slot[]): Measure[] {
  return TIMES.map(([time, title]) => ({
    id: time,
    title,
    kind: 'lines',
    unit: 'ms',
    summary: 'max',
    series: PERCENTILES.map(([part, name, color, look]) => ({
      id: part,
      title: name,
      color,
      look,
      values: slots.map(({ point }) => point?.[time][part] ?? null),
    })),
  }))
}

/** Sentences in the place of charts that have nothing to show, by the ids of their measures. */
const EMPTY: Readonly<Record<string, string>> = {
  requests: 'No request ended in this time.',
  delayMs: 'No request ended in this time, so none has a time of waiting.',
  executionMs: 'No worker ran a request in this time.',
  coldStartMs: 'No worker got ready in this time: either none was needed, or those that started are not ready yet.',
  workers: 'No worker existed in this time.',
  queue: 'Nothing waited and nothing ran when the queue was counted, every 20 seconds.',
  crashes: 'No worker crashed in this time.',
}

/** The reason why a measure has nothing to show; null if it has something. */
export function emptyReason({ id, series }: Pick<Measure, 'id' | 'series'>): string | null {
  const isEmpty = series.every(({ values }) => values.every(value => value === null || value === 0))
  return isEmpty ? (EMPTY[id] ?? 'Nothing was measured in this time.') : null
}

/** Explanation of a measure. */
export function measureHint(id: string): string | undefined {
  if (id === 'queue') return 'Highest number of requests that waited and that workers had'
  return TIMES.find(([time]) => time === id)?.[2]
}

const STATES = [
  ['running', 'Running', '--busy', 'plain'],
  ['idle', 'Idle', '--good', 'level'],
  ['starting', 'Starting', '--wait', 'up'],
  ['frozen', 'Frozen', '--frozen', 'down'],
] as const

function workers(slots: readonly Slot[]): Measure {
  return {
    id: 'workers',
    title: 'Workers by state',
    kind: 'bars',
    unit: 'number',
    summary: 'average',
    series: STATES.map(([id, title, color, look]) => ({
      id,
      title,
      color,
      look,
      values: slots.map(slot => (hasWorkers(slot) ? (slot.point?.workers[id].average ?? 0) : null)),
    })),
  }
}

/**
 * Workers are counted a few times a minute: in an interval that just began, no count may
 * mean that none was taken yet.
 */
function hasWorkers({ point, isUnknown, isOpen }: Slot): boolean {
  if (isUnknown) return false
  return !isOpen || STATES.some(([state]) => (point?.workers[state].max ?? 0) > 0)
}

function gpus(slots: readonly Slot[]): Measure[] {
  const of = (use: keyof EndpointMetricPoint['gpus'], statistic: 'average' | 'max') =>
    slots.map(({ point }) => point?.gpus[use]?.[statistic] ?? null)
  const isMeasured = (use: keyof EndpointMetricPoint['gpus']) => slots.some(({ point }) => point?.gpus[use] != null)
  const measure = (id: string, title: string, use: keyof EndpointMetricPoint['gpus']): Measure => ({
    id,
    title,
    kind: 'lines',
    unit: 'percent',
    summary: 'average',
    series: [
      { id: 'average', title: 'Average', color: '--chart-1', look: 'plain', values: of(use, 'average') },
      { id: 'max', title: 'Highest', color: '--chart-2', look: 'up', values: of(use, 'max') },
    ],
  })
  return [
    ...(isMeasured('busyPercent') ? [measure('gpuBusy', 'GPUs busy', 'busyPercent')] : []),
    ...(isMeasured('memoryPercent') ? [measure('gpuMemory', 'GPU memory in use', 'memoryPercent')] : []),
  ]
}

/** All numbers as rows of a CSV file, the first of them the names of its columns. */
export function csvRows(slots: readonly Slot[], measures: readonly Measure[]): (string | number | null)[][] {
  const columns = measures.flatMap(({ id, series }) =>
    series.map(one => ({ name: `${id}.${one.id}`, values: one.values })),
  )
  return [
    ['at', ...columns.map(({ name }) => name)],
    ...slots.map(({ atMs }, index) => [
      new Date(atMs).toISOString(),
      ...columns.map(({ values }) => values[index] ?? null),
    ]),
  ]
}

/**
 * Counts of an endpoint in one span of time: results of its requests, their times of waiting and running, numbers of
 * its workers, the use of their GPUs, its queue, crashes of its workers, and results of its releases. Buckets add
 * up: those of the minutes of an hour are the bucket of the hour.
 */
import type { GpuUse } from '../hardware/machine-use.ts'

/**
 * Results of requests. Of a load-balancing endpoint a response of the worker below 500 is `completed`, and a client
 * that left `cancelled`.
 */
export const METRIC_RESULTS = ['completed', 'failed', 'timedOut', 'cancelled', 'expired'] as const
/** One of {@link METRIC_RESULTS}. */
export type MetricResult = (typeof METRIC_RESULTS)[number]

/**
 * Measured times: of requests in the queue, of requests at a worker, and of workers from their place to their first
 * request.
 */
export const METRIC_TIMES = ['delay', 'execution', 'coldStart'] as const
/** One of {@link METRIC_TIMES}. */
export type MetricTime = (typeof METRIC_TIMES)[number]

/** States in which workers are counted. */
export const METRIC_WORKERS = ['starting', 'idle', 'running', 'frozen'] as const
/** One of {@link METRIC_WORKERS}. */
export type MetricWorkers = (typeof METRIC_WORKERS)[number]

/**
 * Measured uses of the GPUs of workers, in percent: the time in which they computed, and the used part of their
 * memory.
 */
export const METRIC_GPU_USES = ['busy', 'memory'] as const
/** One of {@link METRIC_GPU_USES}. */
export type MetricGpuUse = (typeof METRIC_GPU_USES)[number]

/** Numbers of a queue: jobs or requests that wait for a worker, and those that workers have. */
export const METRIC_QUEUES = ['waiting', 'inProgress'] as const
/** The numbers of a queue, by {@link METRIC_QUEUES}. */
export type MetricQueue = Record<(typeof METRIC_QUEUES)[number], number>

/** Counts of times by size class; see {@link percentile}. Class `n` has times up to `GROWTH ** n` milliseconds. */
export type TimeClasses = number[]

/** Requests that workers of a release ended, without cancelled ones, and their times at a worker. */
export interface ReleaseCounts {
  ended: number
  /** Those that failed or timed out. */
  failed: number
  readonly execution: TimeClasses
}

/** Maximum releases of a bucket, the newest: few have requests in the same hour. */
const MAX_RELEASES = 8

/** The counts of one span. Filled in place, since many requests end in it. */
export interface MetricBucket {
  readonly results: Record<MetricResult, number>
  readonly times: Record<MetricTime, TimeClasses>
  readonly workers: {
    /** Number of counts of workers. */
    samples: number
    readonly sum: Record<MetricWorkers, number>
    readonly max: Record<MetricWorkers, number>
  }
  /** Measurements of single GPUs, in percent. */
  readonly gpus: Record<MetricGpuUse, { samples: number; sum: number; max: number }>
  /** The highest numbers. */
  readonly queue: MetricQueue
  /** Workers that ended and were not asked to. */
  crashes: number
  /** By version. */
  readonly releases: Map<number, ReleaseCounts>
}

/** Each size class reaches a fifth farther than the previous one, so a percentile is off by a tenth at most. */
const GROWTH = 1.2
const LOG_GROWTH = Math.log(GROWTH)
/** The class of 30 days; longer times count in it too. */
const LAST_CLASS = 120

/** A bucket without counts. */
export function emptyBucket(): MetricBucket {
  const zeros = () => ({ starting: 0, idle: 0, running: 0, frozen: 0 })
  const unmeasured = () => ({ samples: 0, sum: 0, max: 0 })
  return {
    results: { completed: 0, failed: 0, timedOut: 0, cancelled: 0, expired: 0 },
    times: { delay: [], execution: [], coldStart: [] },
    workers: { samples: 0, sum: zeros(), max: zeros() },
    gpus: { busy: unmeasured(), memory: unmeasured() },
    queue: { waiting: 0, inProgress: 0 },
    crashes: 0,
    releases: new Map(),
  }
}

/** Counts a time, in milliseconds. */
export function countTime(bucket: MetricBucket, time: MetricTime, ms: number): void {
  addToClass(bucket.times[time], timeClass(ms), 1)
}

function timeClass(ms: number): number {
  return ms <= 1 ? 0 : Math.min(LAST_CLASS, Math.ceil(Math.log(ms) / LOG_GROWTH))
}

function addToClass(classes: TimeClasses, index: number, count: number): void {
  while (classes.length <= index) classes.push(0)
  classes[index] = classes[index]! + count
}

/** Counts a request that a worker of a release ended. @param executionMs null if its time is not known */
export function countOfRelease(
  bucket: MetricBucket,
  version: number,
  { hasFailed, executionMs }: { readonly hasFailed: boolean; readonly executionMs: number | null },
): void {
  let counts = bucket.releases.get(version)
  if (counts === undefined) {
    counts = { ended: 0, failed: 0, execution: [] }
    bucket.releases.set(version, counts)
    dropOldReleases(bucket)
  }
  counts.ended += 1
  if (hasFailed) counts.failed += 1
  if (executionMs !== null) addToClass(counts.execution, timeClass(executionMs), 1)
}

/** Adds the counts of releases to others, of each version. */
export function addReleases(to: Map<number, ReleaseCounts>, from: ReadonlyMap<number, ReleaseCounts>): void {
  for (const [version, { ended, failed, execution }] of from) {
    const sum = to.get(version) ?? { ended: 0, failed: 0, execution: [] }
    sum.ended += ended
    sum.failed += failed
    for (const [index, count] of execution.entries()) addToClass(sum.execution, index, count)
    to.set(version, sum)
  }
}

/** Counts the present workers. */
export function countWorkers(bucket: MetricBucket, now: Readonly<Record<MetricWorkers, number>>): void {
  bucket.workers.samples += 1
  for (const state of METRIC_WORKERS) {
    bucket.workers.sum[state] += now[state]
    bucket.workers.max[state] = Math.max(bucket.workers.max[state], now[state])
  }
}

/** Counts the present queue. */
export function countQueue(bucket: MetricBucket, now: Readonly<MetricQueue>): void {
  for (const of of METRIC_QUEUES) bucket.queue[of] = Math.max(bucket.queue[of], now[of])
}

/** Counts a measurement of one GPU of a worker. */
export function countGpu(bucket: MetricBucket, use: GpuUse): void {
  for (const kind of METRIC_GPU_USES) {
    const percent = use[kind]
    if (percent === null) continue
    const measured = bucket.gpus[kind]
    measured.samples += 1
    measured.sum += percent
    measured.max = Math.max(measured.max, percent)
  }
}

/** Adds the counts of one bucket to another. */
export function addBucket(to: MetricBucket, from: MetricBucket): void {
  for (const result of METRIC_RESULTS) to.results[result] += from.results[result]
  for (const time of METRIC_TIMES) {
    for (const [index, count] of from.times[time].entries()) addToClass(to.times[time], index, count)
  }
  to.workers.samples += from.workers.samples
  for (const state of METRIC_WORKERS) {
    to.workers.sum[state] += from.workers.sum[state]
    to.workers.max[state] = Math.max(to.workers.max[state], from.workers.max[state])
  }
  for (const use of METRIC_GPU_USES) {
    const [sum, part] = [to.gpus[use], from.gpus[use]]
    sum.samples += part.samples
    sum.sum += part.sum
    sum.max = Math.max(sum.max, part.max)
  }
  countQueue(to, from.queue)
  to.crashes += from.crashes
  addReleases(to.releases, from.releases)
  dropOldReleases(to)
}

function dropOldReleases({ releases }: MetricBucket): void {
  if (releases.size <= MAX_RELEASES) return
  for (const old of [...releases.keys()].sort((a, b) => b - a).slice(MAX_RELEASES)) releases.delete(old)
}

/** Number of counted times. */
export function countedTimes(classes: TimeClasses): number {
  return classes.reduce((sum, count) => sum + count, 0)
}

/**
 * The time, in whole milliseconds, within which this part of the counted times lies: accurate to a tenth. Null without
 * counts.
 * @param part above 0, up to 1
 */
export function percentile(classes: TimeClasses, part: number): number | null {
  const rank = countedTimes(classes) * part
  if (rank === 0) return null
  let seen = 0
  const index = classes.findIndex(count => {
    seen += count
    return seen >= rank
  })
  if (index <= 0) return index === 0 ? 1 : null
  return Math.round(GROWTH ** (index - 0.5))
}

/** A bucket as a text: lists of numbers, without the zeros between them. */
export function bucketText({ results, times, workers, gpus, queue, crashes, releases }: MetricBucket): string {
  const counts = METRIC_RESULTS.map(result => results[result])
  const classes = METRIC_TIMES.map(time => classPairs(times[time]))
  const states = METRIC_WORKERS.flatMap(state => [workers.sum[state], workers.max[state]])
  const uses = METRIC_GPU_USES.flatMap(use => [gpus[use].samples, gpus[use].sum, gpus[use].max])
  const ofReleases = [...releases]
    .sort(([a], [b]) => a - b)
    .map(([version, { ended, failed, execution }]) => [version, ended, failed, ...classPairs(execution)])
  const rest = [uses, [...METRIC_QUEUES.map(of => queue[of]), crashes], ...ofReleases]
  while (rest.at(-1)?.every(number => number === 0)) rest.pop()
  return JSON.stringify([counts, ...classes, [workers.samples, ...states], ...rest])
}

/** Each class with counts, with their number. */
function classPairs(classes: TimeClasses): number[] {
  return classes.flatMap((count, index) => (count === 0 ? [] : [index, count]))
}

function readPairs(pairs: readonly number[]): TimeClasses {
  const classes: TimeClasses = []
  for (let at = 0; at < pairs.length; at += 2) {
    const index = Math.min(LAST_CLASS, pairs[at]!)
    while (classes.length <= index) classes.push(0)
    classes[index] = pairs[at + 1] ?? 0
  }
  return classes
}

/** The bucket of such a text. A field that an older version of the server did not count is 0. */
export function readBucket(text: string): MetricBucket {
  const bucket = emptyBucket()
  const [counts = [], ...rest] = JSON.parse(text) as number[][]
  for (const [index, result] of METRIC_RESULTS.entries()) bucket.results[result] = counts[index] ?? 0
  for (const [place, time] of METRIC_TIMES.entries()) {
    bucket.times[time].push(...readPairs(rest[place] ?? []))
  }
  const [samples = 0, ...states] = rest[METRIC_TIMES.length] ?? []
  bucket.workers.samples = samples
  for (const [index, state] of METRIC_WORKERS.entries()) {
    bucket.workers.sum[state] = states[2 * index] ?? 0
    bucket.workers.max[state] = states[2 * index + 1] ?? 0
  }
  const uses = rest[METRIC_TIMES.length + 1] ?? []
  for (const [index, use] of METRIC_GPU_USES.entries()) {
    const [samples = 0, sum = 0, max = 0] = uses.slice(3 * index, 3 * index + 3)
    bucket.gpus[use] = { samples, sum, max }
  }
  const queue = rest[METRIC_TIMES.length + 2] ?? []
  for (const [index, of] of METRIC_QUEUES.entries()) bucket.queue[of] = queue[index] ?? 0
  bucket.crashes = queue[METRIC_QUEUES.length] ?? 0
  for (const [version = 0, ended = 0, failed = 0, ...pairs] of rest.slice(METRIC_TIMES.length + 3)) {
    bucket.releases.set(version, { ended, failed, execution: readPairs(pairs) })
  }
  return bucket
}

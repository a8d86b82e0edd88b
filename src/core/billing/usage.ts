/**
 * Usage of jobs and workers, for bills and for capacity planning. Jobs are counted at the end of an attempt or a
 * wait, workers by the time that they existed; all in hours of UTC.
 */
import type { Compute } from '../endpoints/endpoint.ts'
import { poolsFromTypes } from '../hardware/catalog.ts'
import { GPU_POOLS } from '../hardware/catalog-data.ts'
import type { JobStatus, Transition } from '../jobs/job.ts'
import { fractionOfGpus, type Placement, type PlatformRequest, shareOf } from '../workers/placement.ts'
import type { ReportedPlace } from '../workers/platform-report.ts'

/** Length of the spans in which usage is counted. */
export const HOUR_MS = 3_600_000

/** The hour that an instant falls into, as the instant of its beginning. */
export function hourStart(atMs: number): number {
  return atMs - (((atMs % HOUR_MS) + HOUR_MS) % HOUR_MS)
}

/** Counted figures of jobs, in the order in which they are stored. */
export const JOB_FIGURES = [
  'queuedMs',
  'executionMs',
  'lostMs',
  'inputBytes',
  'outputBytes',
  'streamBytes',
  'attempts',
  'lostAttempts',
  'completed',
  'failed',
  'timedOut',
  'cancelled',
  'expired',
  'retried',
] as const

/**
 * Sums over jobs; times in milliseconds. `queuedMs` are waits in the queue that ended, `executionMs` attempts that
 * ended with their job and `lostMs` those that were lost, `inputBytes` inputs once for each attempt, `streamBytes`
 * stored chunks. `attempts` includes the lost ones; `retried` counts requests to retry, not attempts.
 */
export type JobUsage = Readonly<Record<(typeof JOB_FIGURES)[number], number>>

/** Usage of no job. */
export const NO_JOB_USAGE = Object.fromEntries(JOB_FIGURES.map(name => [name, 0])) as unknown as JobUsage

/** The sum of both. */
export function addJobUsage(a: JobUsage, b: JobUsage): JobUsage {
  const sum: { -readonly [Name in keyof JobUsage]: number } = { ...a }
  for (const name of JOB_FIGURES) sum[name] += b[name]
  return sum
}

/** Facts of a job before it leaves the queue, or its worker, without a dispatch. */
export interface UsageSpan {
  /** Beginning of its wait, or of the wait for the attempt that ends. */
  readonly waitingSinceMs: number
  /** Beginning of the attempt that ends; null for a job in the queue. */
  readonly startedAtMs: number | null
  readonly inputBytes: number
  /** Bytes of the result, 0 without one. */
  readonly outputBytes: number
  /** Bytes of the chunks of the attempt that ends. */
  readonly streamBytes: number
}

const ENDS: Partial<Record<JobStatus, keyof JobUsage>> = {
  COMPLETED: 'completed',
  FAILED: 'failed',
  TIMED_OUT: 'timedOut',
  CANCELLED: 'cancelled',
}

/**
 * Usage that a transition of a job adds. A wait is counted when it leads to an end, an attempt when it ends, so
 * each is counted once: a claim and a release add nothing, and the attempt of a late result is already counted as
 * lost.
 * @param to the next state; `expired` for a job that is removed before it was done
 */
export function usageFromMove(
  transition: Transition | 'expire',
  to: JobStatus | 'expired',
  span: UsageSpan,
  nowMs: number,
): JobUsage {
  if (transition === 'claim' || transition === 'release') return NO_JOB_USAGE
  if (transition === 'retry') return { ...NO_JOB_USAGE, retried: 1 }
  const end = to === 'expired' ? 'expired' : ENDS[to]
  const ended = end === undefined ? {} : { [end]: 1 }
  const { waitingSinceMs, startedAtMs, inputBytes, outputBytes, streamBytes } = span
  if (startedAtMs === null) {
    const queuedMs = Math.max(0, nowMs - waitingSinceMs)
    return { ...NO_JOB_USAGE, ...ended, queuedMs, outputBytes }
  }
  const ranMs = Math.max(0, nowMs - startedAtMs)
  const lost = transition === 'requeue'
  return {
    ...NO_JOB_USAGE,
    ...ended,
    queuedMs: Math.max(0, startedAtMs - waitingSinceMs),
    ...(lost ? { lostMs: ranMs, lostAttempts: 1 } : { executionMs: ranMs }),
    attempts: 1,
    inputBytes,
    outputBytes,
    streamBytes,
  }
}

/**
 * Lifetime of workers, in milliseconds: until they asked for their first job, and then with jobs, without, and
 * frozen.
 */
export interface WorkerUsage {
  readonly startingMs: number
  readonly runningMs: number
  readonly idleMs: number
  readonly frozenMs: number
}

/** Usage of no worker. */
export const NO_WORKER_USAGE: WorkerUsage = { startingMs: 0, runningMs: 0, idleMs: 0, frozenMs: 0 }

/** The sum of both. */
export function addWorkerUsage(a: WorkerUsage, b: WorkerUsage): WorkerUsage {
  return {
    startingMs: a.startingMs + b.startingMs,
    runningMs: a.runningMs + b.runningMs,
    idleMs: a.idleMs + b.idleMs,
    frozenMs: a.frozenMs + b.frozenMs,
  }
}

/** The part of a worker's time that is counted. */
export interface WorkerMeter {
  readonly readyAtMs: number | null
  /** Time without jobs, up to the last job that it received. */
  readonly idleMs: number
  /** Beginning of its idle time; null while it has a job, and while it is frozen. */
  readonly idleSinceMs: number | null
  /** Frozen time, up to the last thaw. */
  readonly frozenMs: number
  /** Instant at which it was frozen; null while it is not. */
  readonly frozenSinceMs: number | null
  /** End of the counted time. */
  readonly countedUntilMs: number
  /** Idle and frozen parts of the counted time. */
  readonly countedIdleMs: number
  readonly countedFrozenMs: number
}

/** Limit of the uncounted time; more than that comes from a clock that was set. */
const FARTHEST_HOURS = 31 * 24

/** Time of a worker that should be counted now: by hours, with the meter as it is afterwards. */
export interface WorkerCount {
  readonly hours: readonly { readonly hourMs: number; readonly usage: WorkerUsage }[]
  readonly countedUntilMs: number
  readonly countedIdleMs: number
  readonly countedFrozenMs: number
}

/**
 * Time of a worker from the end of its counted time up to `untilMs`. Within a count the idle and the frozen parts
 * are spread evenly, so counts should be short; the sum of all parts is always the time that passed.
 */
export function countWorker(meter: WorkerMeter, untilMs: number): WorkerCount {
  const { countedUntilMs, countedIdleMs, countedFrozenMs } = meter
  if (untilMs <= countedUntilMs) return { hours: [], countedUntilMs, countedIdleMs, countedFrozenMs }
  const fromMs = Math.max(countedUntilMs, hourStart(untilMs) - FARTHEST_HOURS * HOUR_MS)
  const readyMs = Math.min(Math.max(meter.readyAtMs ?? untilMs, fromMs), untilMs)
  const since = (sinceMs: number | null) => (sinceMs === null ? 0 : Math.max(0, untilMs - sinceMs))
  const frozenTotal = meter.readyAtMs === null ? 0 : meter.frozenMs + since(meter.frozenSinceMs)
  const frozen = Math.min(Math.max(0, frozenTotal - countedFrozenMs), untilMs - readyMs)
  const idleTotal = meter.readyAtMs === null ? 0 : meter.idleMs + since(meter.idleSinceMs)
  const idle = Math.min(Math.max(0, idleTotal - countedIdleMs), untilMs - readyMs - frozen)
  const hours: { hourMs: number; usage: WorkerUsage }[] = []
  for (let atMs = fromMs; atMs < untilMs; ) {
    const hourMs = hourStart(atMs)
    const endMs = Math.min(hourMs + HOUR_MS, untilMs)
    const readyBefore = Math.max(0, atMs - readyMs)
    const readyAfter = Math.max(0, endMs - readyMs)
    const share = (of: number, part: number) =>
      untilMs === readyMs ? 0 : Math.round((of * part) / (untilMs - readyMs))
    const frozenMs = share(frozen, readyAfter) - share(frozen, readyBefore)
    // Each is rounded separately, so both together could exceed the whole by a millisecond.
    const idleMs = Math.min(share(idle, readyAfter) - share(idle, readyBefore), readyAfter - readyBefore - frozenMs)
    const startingMs = endMs - atMs - (readyAfter - readyBefore)
    const runningMs = readyAfter - readyBefore - idleMs - frozenMs
    hours.push({ hourMs, usage: { startingMs, runningMs, idleMs, frozenMs } })
    atMs = endMs
  }
  return {
    hours,
    countedUntilMs: untilMs,
    countedIdleMs: Math.max(countedIdleMs, idleTotal),
    countedFrozenMs: Math.max(countedFrozenMs, frozenTotal),
  }
}

/** Flavor of a worker that waits for a place on its platform. It is free: no machine is occupied. */
export const WAITING_FLAVOR = 'waiting'

/**
 * Flavor under which a worker's time is counted: the hardware of its placement, or without one the first hardware
 * that its endpoint names. For a worker on a platform it is the hardware that the platform reports, else the
 * requested one.
 */
export function billedFlavor(
  placement: Placement | null,
  compute: Compute,
  place: ReportedPlace | null = null,
): string {
  if (placement?.asked !== undefined) return requestedFlavor(placement.asked, place)
  if (placement !== null) {
    const { gpus, pool, flavor, vcpus } = placement
    if (gpus.length > 0) return `gpu:${pool}:${fractionOfGpus(placement)}`
    if (flavor !== undefined) return `cpu:${flavor}:${vcpus}`
    if (compute.kind === 'gpu') return 'cpu:any'
  }
  if (compute.kind === 'gpu') return `gpu:${compute.pools[0] ?? 'any'}:${wantedGpus(compute)}`
  const config = compute.configs[0]
  return config === undefined ? 'cpu:any' : `cpu:${config.flavor}:${config.vcpuCount}`
}

/** GPUs that an endpoint names; for a share its part of a GPU of the first pool. */
function wantedGpus({ pools: [pool], count, memoryGb }: Extract<Compute, { kind: 'gpu' }>): number {
  if (memoryGb === undefined || memoryGb === 'auto') return count
  const poolGb = GPU_POOLS.find(({ id }) => id === pool)?.memoryGb ?? memoryGb
  return shareOf({ memoryGb: poolGb }, memoryGb * 1024)
}

function requestedFlavor({ gpus, pool, cpu }: PlatformRequest, place: ReportedPlace | null): string {
  if (gpus > 0) {
    const reported = place?.gpuType == null ? null : poolsFromTypes([place.gpuType]).pools[0]
    return `gpu:${reported ?? pool ?? 'any'}:${place === null || place.gpuCount === 0 ? gpus : place.gpuCount}`
  }
  return cpu === null ? 'cpu:any' : `cpu:${cpu.flavor}:${cpu.vcpus}`
}

/**
 * Limits of one read: spans of time of sums of tokens, and of usage, where each takes a statement; sums; and counted
 * hours of endpoints, beyond which only one hour is read.
 */
export const USAGE_READ = { tokenSpans: 1_000, spans: 100, sums: 10_000, hours: 4_000 } as const

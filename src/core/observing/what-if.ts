/**
 * Effects of other settings: the recorded attempts of an endpoint, replayed through the planning of workers once with
 * the present settings and once with others.
 */
import {
  type Endpoint,
  type EndpointConfig,
  endpointProblems,
  idleTimeoutProblems,
  type Scaler,
} from '../endpoints/endpoint.ts'
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import { ATTEMPT_TIMES_KEPT_MS, type AttemptTimes } from '../jobs/attempt-times.ts'
import type { ReplayedJob, ReplayResult } from '../scaling/replay.ts'
import { measuredStartMs, presentStartMs } from '../scaling/start-time.ts'
import type { Worker } from '../workers/worker.ts'

/** Limit of replayed attempts: the newest ones. */
export const MAX_PLAYED = 200_000
/** Largest and default number of days of a replay. */
export const WHAT_IF_DAYS = ATTEMPT_TIMES_KEPT_MS / 86_400_000
/** Assumed time from the thaw of a frozen worker to its next take; bench/thaw measures 10 to 30 ms. */
export const ASSUMED_THAW_MS = 20
/** Percentiles of fewer attempts are not reliable. */
const FEW_ATTEMPTS = 50

/** Settings that decide the number of workers. */
export type ScalingSettings = Pick<
  EndpointConfig,
  'workersMin' | 'workersMax' | 'idleTimeoutS' | 'scaler' | 'flashboot'
> & { readonly startAware: boolean }

/** The changed settings; a setting that is left out keeps its present value. */
export interface SettingChanges {
  readonly workersMin?: number | undefined
  readonly workersMax?: number | undefined
  readonly idleTimeoutS?: number | undefined
  readonly flashboot?: EndpointConfig['flashboot'] | undefined
  readonly scalerType?: Scaler['type'] | undefined
  /** Seconds of QUEUE_DELAY, or the count of REQUEST_COUNT. */
  readonly scalerValue?: number | undefined
  readonly startAware?: boolean | undefined
}

/** The settings of an endpoint. @param startAware the server's setting for all endpoints */
export function scalingSettings(endpoint: EndpointConfig, startAware: boolean): ScalingSettings {
  const { workersMin, workersMax, idleTimeoutS, scaler, flashboot } = endpoint
  return { workersMin, workersMax, idleTimeoutS, scaler, flashboot, startAware }
}

/**
 * Settings with changes, or all of their problems: those that an update of the endpoint would refuse, and those that
 * a replay cannot use.
 */
export function changedSettings(
  today: ScalingSettings,
  changes: SettingChanges,
): { readonly settings: ScalingSettings } | { readonly problems: readonly FieldProblem[] } {
  const { scalerType, scalerValue, ...given } = changes
  const { startAware = today.startAware, workersMax = today.workersMax } = given
  const { workersMin = today.workersMin, idleTimeoutS = today.idleTimeoutS, flashboot = today.flashboot } = given
  const scaler = changedScaler(today.scaler, scalerType, scalerValue)
  if (scaler === null) {
    const field = scalerType === 'QUEUE_DELAY' ? 'scaler.queueDelayS' : 'scaler.requestCount'
    return { problems: [fieldProblem(field, `must be given with ${scalerType}, which is not the scaler of today`)] }
  }
  const settings = { workersMin, workersMax, idleTimeoutS, scaler, flashboot, startAware }
  const problems = endpointProblems({ ...settings, type: 'QUEUE' })
  if (given.idleTimeoutS !== undefined) problems.push(...idleTimeoutProblems({ type: 'QUEUE', scaler }))
  if (workersMax === 0) problems.push(fieldProblem('workersMax', 'must be at least 1: without workers no job ends'))
  return problems.length > 0 ? { problems } : { settings }
}

/** The scaler with the changes. @returns null if the value of another type is missing */
function changedScaler(today: Scaler, type: Scaler['type'] = today.type, value?: number): Scaler | null {
  if (value === undefined) return type === today.type ? today : null
  return type === 'QUEUE_DELAY' ? { type, queueDelayS: value } : { type, requestCount: value }
}

/** Percentiles of waits, in milliseconds. */
export interface WaitPercentiles {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** The recorded load of a replay. */
export interface RecordedLoad {
  readonly jobs: readonly ReplayedJob[]
  /** The time that it covers. */
  readonly fromMs: number
  readonly untilMs: number
  /** True if older attempts were left out, since the limit was reached. */
  readonly isCut: boolean
  /** Recorded waits, null without attempts, and the number of attempts that waited for the start of their worker. */
  readonly waitMs: WaitPercentiles | null
  readonly cold: number
  /** Median wait of these; null if the number is zero. */
  readonly coldWaitMs: number | null
}

/**
 * The load of recorded attempts. A lost attempt counts like any other: it waited, and kept a worker busy.
 * @param attempts in any order
 * @param span the requested time; attempts that were queued before it are left out
 */
export function recordedLoad(
  attempts: readonly AttemptTimes[],
  span: { readonly fromMs: number; readonly untilMs: number },
): RecordedLoad {
  const within = attempts.filter(({ queuedAtMs }) => queuedAtMs >= span.fromMs && queuedAtMs <= span.untilMs)
  const played = within.sort((a, b) => a.queuedAtMs - b.queuedAtMs).slice(-MAX_PLAYED)
  const isCut = played.length < within.length
  const wait = ({ startedAtMs, queuedAtMs }: AttemptTimes) => startedAtMs - queuedAtMs
  const cold = played.filter(attempt => attempt.cold).map(wait)
  return {
    jobs: played.map(({ queuedAtMs, startedAtMs, finishedAtMs }) => ({
      queuedAtMs,
      executionMs: finishedAtMs - startedAtMs,
    })),
    fromMs: isCut ? played[0]!.queuedAtMs : span.fromMs,
    untilMs: span.untilMs,
    isCut,
    waitMs: waitPercentiles(Float64Array.from(played, wait)),
    cold: cold.length,
    coldWaitMs: sortedPercentile(Float64Array.from(cold).sort(), 0.5),
  }
}

/** Percentiles of waits; null without waits. @param waits in any order; it is sorted in place */
export function waitPercentiles(waits: Float64Array): WaitPercentiles | null {
  const sorted = waits.sort()
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map(part => sortedPercentile(sorted, part))
  return p50 == null || p95 == null || p99 == null ? null : { p50, p95, p99 }
}

function sortedPercentile(sorted: Float64Array, part: number): number | null {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null
}

/** Assumed time of a worker's start in a replay, and its source. */
export interface AssumedStart {
  readonly ms: number
  /**
   * Measured of workers that exist or ended lately, else of recorded attempts that waited for a start, else unknown.
   */
  readonly from: 'WORKERS' | 'COLD_ATTEMPTS' | 'UNKNOWN'
}

/** The start time of an endpoint's workers, from the best known source. */
export function assumedStart(
  snapshot: { readonly endpoint: Endpoint; readonly workers: readonly Worker[]; readonly exits: readonly Worker[] },
  { coldWaitMs }: Pick<RecordedLoad, 'coldWaitMs'>,
): AssumedStart {
  const ms = presentStartMs(snapshot) ?? measuredStartMs(snapshot.workers, snapshot.exits)
  if (ms !== null) return { ms, from: 'WORKERS' }
  return coldWaitMs === null ? { ms: 0, from: 'UNKNOWN' } : { ms: coldWaitMs, from: 'COLD_ATTEMPTS' }
}

/** Results of one replay; times of workers are sums in milliseconds. */
export interface WhatIfFigures {
  readonly workers: {
    readonly startingMs: number
    readonly idleMs: number
    readonly runningMs: number
    readonly frozenMs: number
  }
  readonly waitMs: WaitPercentiles | null
  readonly coldStarts: number
  readonly thaws: number
  readonly mostWorkers: number
}

/** The figures of a finished replay. Its waits are sorted in place. */
export function figuresFromReplay(result: ReplayResult): WhatIfFigures {
  const { waitsMs, startingMs, idleMs, runningMs, frozenMs, coldStarts, thaws, mostWorkers } = result
  const workers = { startingMs, idleMs, runningMs, frozenMs }
  return { workers, waitMs: waitPercentiles(waitsMs), coldStarts, thaws, mostWorkers }
}

/** Notes for the reader of the figures, one sentence each. */
export function whatIfNotes({ jobs, isCut }: RecordedLoad, start: AssumedStart): string[] {
  const notes: string[] = []
  if (jobs.length === 0) notes.push('no job ran in this time, so waits are unknown')
  else if (jobs.length < FEW_ATTEMPTS)
    notes.push(
      `only ${jobs.length} attempt${jobs.length === 1 ? '' : 's'} ran in this time, too few for reliable figures`,
    )
  if (isCut) notes.push(`only the newest ${MAX_PLAYED} attempts are replayed`)
  if (start.from === 'UNKNOWN') notes.push('no start of a worker was measured, so workers start at once here')
  if (start.from === 'COLD_ATTEMPTS')
    notes.push('the time of a start is the median wait of the attempts that waited for one')
  return notes
}

/**
 * Whether a worker that serves requests is well, judged by what its health check answers. Instants are of a clock that only
 * grows, in milliseconds. 200 is healthy, 204 initializing, anything else is not healthy; the rules are in
 * docs/guides/load-balancing.md.
 */
import type { Serving } from '../endpoints/serving.ts'
import type { FaultReason } from '../workers/worker.ts'
import type { HealthProblem, WorkerProblem } from '../workers/worker-problem.ts'

/**
 * What came of one health check: its status, or why there was none, as a phrase. `refused` says that nobody listens there, as
 * before a server has come up.
 */
export type HealthAnswer = { readonly status: number } | { readonly problem: string; readonly refused: boolean }

/**
 * `starting` was never healthy, or says that it initializes; `healthy` may get requests; `unhealthy` was healthy and is not, or
 * answers something that it should not.
 */
export type HealthState = 'starting' | 'healthy' | 'unhealthy'

/** What is known of the health of one worker. */
export interface WorkerHealth {
  readonly state: HealthState
  /** Since when it is in this state. */
  readonly sinceMs: number
  /** Whether it was healthy since this server looks at it. */
  readonly wasHealthy: boolean
  /** Answers in a row that were neither 200 nor 204. */
  readonly failures: number
  /** Null before the first one. */
  readonly last: HealthAnswer | null
  /** When to ask again. */
  readonly nextAtMs: number
}

/** So many failures in a row take a healthy worker out of rotation; one success brings it back. */
export const FAILURES = 3
/** How long a health check may take. */
export const PROBE_TIMEOUT_MS = 5_000
/** How often a healthy worker is asked. */
const HEALTHY_MS = 5_000
/** How often a worker is asked that may be, or is, out of rotation. */
const SUSPECT_MS = 1_000
/** How often a worker that starts is asked: a tenth of the time for which it starts, within these. */
const STARTING_MS = { least: 100, most: 1_000 }
/** How long a worker may be unhealthy without a request in flight before it is replaced. */
export const UNHEALTHY_MS = 60_000
/** The same for one that has requests in flight: a program that does one thing at a time cannot answer meanwhile. */
export const UNHEALTHY_BUSY_MS = 6 * 60_000

/** The health of a worker that was not asked yet. @param wasHealthy whether an earlier run of the server has seen it healthy */
export function unasked(nowMs: number, wasHealthy: boolean): WorkerHealth {
  return { state: 'starting', sinceMs: nowMs, wasHealthy, failures: 0, last: null, nextAtMs: nowMs }
}

/** The health of a worker after one more answer. */
export function afterAnswer(health: WorkerHealth, answer: HealthAnswer, nowMs: number): WorkerHealth {
  const failures = isFailure(answer) ? health.failures + 1 : 0
  const state = stateAfter(health, answer, failures)
  const sinceMs = state === health.state ? health.sinceMs : nowMs
  const wasHealthy = health.wasHealthy || state === 'healthy'
  const next = { state, sinceMs, wasHealthy, failures, last: answer }
  return { ...next, nextAtMs: nowMs + pauseOf(next, nowMs) }
}

/** The health of a worker whose address is not known yet, so that it could not be asked. */
export function afterNothing(health: WorkerHealth, nowMs: number): WorkerHealth {
  return { ...health, nextAtMs: nowMs + pauseOf(health, nowMs) }
}

function isFailure(answer: HealthAnswer): boolean {
  return !('status' in answer) || (answer.status !== 200 && answer.status !== 204)
}

function stateAfter(health: WorkerHealth, answer: HealthAnswer, failures: number): HealthState {
  if ('status' in answer && answer.status === 200) return 'healthy'
  if ('status' in answer && answer.status === 204) return 'starting'
  if (health.state === 'unhealthy') return 'unhealthy'
  if (failures < FAILURES) return health.state
  // A server that boots listens late, and answers late.
  if (!('status' in answer) && !health.wasHealthy) return health.state
  return 'unhealthy'
}

function pauseOf({ state, failures, wasHealthy, sinceMs }: Omit<WorkerHealth, 'nextAtMs'>, nowMs: number): number {
  if (state === 'healthy') return failures === 0 ? HEALTHY_MS : SUSPECT_MS
  if (wasHealthy && failures > 0) return SUSPECT_MS
  return Math.min(Math.max(STARTING_MS.least, Math.round((nowMs - sinceMs) / 10)), STARTING_MS.most)
}

/** A worker that has to be ended, and why. */
export interface Verdict {
  readonly reason: Extract<FaultReason, 'never_healthy' | 'unhealthy'>
  readonly problem: WorkerProblem
}

/** What a verdict is about besides the health. */
export interface Judged {
  readonly serves: Serving
  /** Which port it is asked at, for people. */
  readonly port: number
  /** How long its process or container runs, as far as this server looked; null when it was not started yet. */
  readonly runsForMs: number | null
  readonly inFlight: number
}

/**
 * Whether a worker has to be ended: it was not healthy for the first time in its time (8 min), initializes again for as long, or
 * is unhealthy for 60 s in a row, 6 min while it has requests in flight. Null when it may go on.
 */
export function verdictOn(
  health: WorkerHealth,
  { serves, port, runsForMs, inFlight }: Judged,
  nowMs: number,
): Verdict | null {
  if (health.state === 'healthy' || runsForMs === null) return null
  const { initTimeoutMs } = serves
  const problem = healthProblem(health, serves, port)
  if (!health.wasHealthy) {
    if (runsForMs < initTimeoutMs) return null
    return {
      reason: 'never_healthy',
      problem: { kind: 'never_healthy', limitS: initTimeoutMs / 1000, health: problem },
    }
  }
  const limitMs = health.state === 'starting' ? initTimeoutMs : inFlight > 0 ? UNHEALTHY_BUSY_MS : UNHEALTHY_MS
  const forMs = nowMs - health.sinceMs
  if (forMs < limitMs) return null
  return { reason: 'unhealthy', problem: { kind: 'unhealthy', forS: Math.round(forMs / 1000), health: problem } }
}

/**
 * What the last health check found; null for a healthy worker, and before the first health check.
 * @param port the port that is asked, for people
 */
export function healthProblem(
  { last }: Pick<WorkerHealth, 'last'>,
  serves: Serving,
  port: number,
): HealthProblem | null {
  if (last === null) return null
  const { healthPath: path } = serves
  if ('status' in last) return last.status === 200 ? null : { kind: 'health_status', status: last.status, path }
  const variable = serves.healthPort === serves.port ? 'PORT' : 'PORT_HEALTH'
  if (last.refused) return { kind: 'not_listening', port, variable }
  return { kind: 'no_health_response', path, port, said: last.problem }
}

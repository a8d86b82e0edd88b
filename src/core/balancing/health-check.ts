/**
 * Health of serving workers, from the responses to their health checks: 200 is healthy, 204 initializing, anything
 * else unhealthy. The rules are in docs/guides/load-balancing.md. Times are of a monotonic clock, in milliseconds.
 */
import type { Serving } from '../endpoints/serving.ts'
import type { FaultReason } from '../workers/worker.ts'
import type { HealthProblem, WorkerProblem } from '../workers/worker-problem.ts'

/**
 * Result of one health check: its status, or a phrase with the reason for no status. `refused` means that no program
 * listens, as before a server has started.
 */
export type HealthAnswer = { readonly status: number } | { readonly problem: string; readonly refused: boolean }

/**
 * `starting`: never healthy yet, or it responds that it initializes. `healthy`: it may get requests. `unhealthy`: no
 * longer healthy, or it gives a wrong response.
 */
export type HealthState = 'starting' | 'healthy' | 'unhealthy'

/** The health of one worker. */
export interface WorkerHealth {
  readonly state: HealthState
  /** Start of this state. */
  readonly sinceMs: number
  /** True if it was healthy at any time since this server checks it. */
  readonly wasHealthy: boolean
  /** Number of results in a row other than 200 and 204. */
  readonly failures: number
  /** The last result; null before the first one. */
  readonly last: HealthAnswer | null
  /** Time of the next check. */
  readonly nextAtMs: number
}

/** Number of failures in a row that eject a healthy worker; one success brings it back. */
export const FAILURES = 3
/** Timeout of a health check. */
export const PROBE_TIMEOUT_MS = 5_000
/** Interval between checks of a healthy worker. */
const HEALTHY_MS = 5_000
/** Interval between checks of a worker that may be, or is, ejected. */
const SUSPECT_MS = 1_000
/** Interval between checks of a starting worker: a tenth of its time since the start, within these limits. */
const STARTING_MS = { least: 100, most: 1_000 }
/** Longest time that a worker may be unhealthy without a request in flight before it is replaced. */
export const UNHEALTHY_MS = 60_000
/** The same with requests in flight: a program that does one thing at a time cannot respond in the meantime. */
export const UNHEALTHY_BUSY_MS = 6 * 60_000

/**
 * The health of a worker before its first check.
 * @param wasHealthy true if it was healthy in an earlier run of the server
 */
export function uncheckedHealth(nowMs: number, wasHealthy: boolean): WorkerHealth {
  return { state: 'starting', sinceMs: nowMs, wasHealthy, failures: 0, last: null, nextAtMs: nowMs }
}

/** The health of a worker after one more result. */
export function healthAfterAnswer(health: WorkerHealth, answer: HealthAnswer, nowMs: number): WorkerHealth {
  const failures = isFailure(answer) ? health.failures + 1 : 0
  const state = stateAfter(health, answer, failures)
  const sinceMs = state === health.state ? health.sinceMs : nowMs
  const wasHealthy = health.wasHealthy || state === 'healthy'
  const next = { state, sinceMs, wasHealthy, failures, last: answer }
  return { ...next, nextAtMs: nowMs + nextPauseMs(next, nowMs) }
}

/** The health of a worker without an address, which cannot be checked yet. */
export function healthWithoutAddress(health: WorkerHealth, nowMs: number): WorkerHealth {
  return { ...health, nextAtMs: nowMs + nextPauseMs(health, nowMs) }
}

function isFailure(answer: HealthAnswer): boolean {
  return !('status' in answer) || (answer.status !== 200 && answer.status !== 204)
}

function stateAfter(health: WorkerHealth, answer: HealthAnswer, failures: number): HealthState {
  if ('status' in answer && answer.status === 200) return 'healthy'
  if ('status' in answer && answer.status === 204) return 'starting'
  if (health.state === 'unhealthy') return 'unhealthy'
  if (failures < FAILURES) return health.state
  // A server that boots listens late and responds late.
  if (!('status' in answer) && !health.wasHealthy) return health.state
  return 'unhealthy'
}

function nextPauseMs({ state, failures, wasHealthy, sinceMs }: Omit<WorkerHealth, 'nextAtMs'>, nowMs: number): number {
  if (state === 'healthy') return failures === 0 ? HEALTHY_MS : SUSPECT_MS
  if (wasHealthy && failures > 0) return SUSPECT_MS
  return Math.min(Math.max(STARTING_MS.least, Math.round((nowMs - sinceMs) / 10)), STARTING_MS.most)
}

/** A worker that has to be ended, with the reason. */
export interface Verdict {
  readonly reason: Extract<FaultReason, 'never_healthy' | 'unhealthy'>
  readonly problem: WorkerProblem
}

/** Input of a verdict besides the health. */
export interface JudgedWorker {
  readonly serves: Serving
  /** The port of its health check, for messages. */
  readonly port: number
  /** Time since this server first saw its process or container running; null before its start. */
  readonly runsForMs: number | null
  readonly inFlight: number
}

/**
 * The verdict on a worker that has to end: it was not healthy within its time to start (8 min by default), initializes
 * again for as long, or is unhealthy for 60 s in a row, 6 min with requests in flight. Null if it may continue.
 */
export function judgeHealth(
  health: WorkerHealth,
  { serves, port, runsForMs, inFlight }: JudgedWorker,
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
  // The function of a task may keep its process from answering for as long as it runs.
  if (serves.once === true) return null
  const limitMs = health.state === 'starting' ? initTimeoutMs : inFlight > 0 ? UNHEALTHY_BUSY_MS : UNHEALTHY_MS
  const forMs = nowMs - health.sinceMs
  if (forMs < limitMs) return null
  return { reason: 'unhealthy', problem: { kind: 'unhealthy', forS: Math.round(forMs / 1000), health: problem } }
}

/**
 * The result of the last health check as a problem; null for a healthy worker, and before the first health check.
 * @param port port of the health check, for people
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

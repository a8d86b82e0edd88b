/**
 * Advice on the one setting with the largest effect on the recorded waits. It is read from some attempts, without a
 * simulation.
 */
import { hasIdleTimeout, idleTimeoutMs, MAX_IDLE_TIMEOUT_S, MAX_WORKERS } from '../endpoints/endpoint.ts'
import { firstIndex } from '../first-index.ts'
import type { AttemptTimes } from '../jobs/attempt-times.ts'
import type { EndpointSnapshot } from '../scaling/scale.ts'
import { presentStartMs } from '../scaling/start-time.ts'
import { typicalConcurrency } from '../scaling/worker-concurrency.ts'

/** A setting to change, its new value, and the waits that support it. */
export interface SettingAdvice {
  readonly setting: 'workersMax' | 'idleTimeout'
  /** Number of workers, or seconds. */
  readonly value: number
  /** Number of attempts that waited for it, their total wait, and the number of all attempts. */
  readonly waited: number
  readonly waitedMs: number
  readonly attempts: number
}

/** With fewer waits, or a smaller part of the attempts, no advice is given. */
const LEAST = { waited: 5, part: 0.05 }
/** Shorter waits do not count. */
const SHORT_MS = 1_000
/** Largest advised increase of workersMax, as a factor. */
const MOST_GROWTH = 2

/**
 * The advice whose attempts have the longest total wait; null if no advice applies. `workersMax` is the limit of an
 * attempt that waited longer than the scaler permits while the maximum number of attempts ran. `idleTimeout` is too
 * short for one that waited for the start of a worker within the time of a start after all workers ended: keeping the
 * last worker for that long costs at most as much as the start.
 * @param attempts the newest ones of a queue endpoint, some hundreds
 */
export function settingAdvice(
  snapshot: Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits'>,
  attempts: readonly AttemptTimes[],
): SettingAdvice | null {
  if (snapshot.endpoint.type !== 'QUEUE') return null
  const candidates = [maxAdvice(snapshot, attempts), idleTimeoutAdvice(snapshot, attempts)]
    .filter(advice => advice !== null)
    .filter(({ waited }) => waited >= LEAST.waited && waited >= LEAST.part * attempts.length)
  return candidates.sort((a, b) => b.waitedMs - a.waitedMs)[0] ?? null
}

type Facts = Pick<EndpointSnapshot, 'endpoint' | 'workers' | 'exits'>

function maxAdvice({ endpoint, workers, exits }: Facts, attempts: readonly AttemptTimes[]): SettingAdvice | null {
  const { workersMax, scaler } = endpoint
  if (workersMax === 0 || workersMax >= MAX_WORKERS) return null
  const concurrency = typicalConcurrency(workers, exits)
  const patienceMs = scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS * 1000 : 0
  const queued = instants(attempts, ({ queuedAtMs }) => queuedAtMs)
  const started = instants(attempts, ({ startedAtMs }) => startedAtMs)
  const finished = instants(attempts, ({ finishedAtMs }) => finishedAtMs)
  let [waited, waitedMs] = [0, 0]
  const wanted: number[] = []
  for (const { queuedAtMs, startedAtMs } of attempts) {
    const waitMs = startedAtMs - queuedAtMs
    if (waitMs < Math.max(SHORT_MS, patienceMs)) continue
    const middleMs = queuedAtMs + waitMs / 2
    const ended = countUntil(finished, middleMs)
    if (countUntil(started, middleMs) - ended < workersMax * concurrency) continue
    waited += 1
    waitedMs += waitMs
    wanted.push(Math.ceil((countUntil(queued, middleMs) - ended) / concurrency))
  }
  // Most of them would have begun with this number; a worker for the last of a burst is not worth its start.
  const enough = wanted.sort((a, b) => a - b)[Math.floor((wanted.length - 1) / 2)] ?? 0
  const most = Math.min(MAX_WORKERS, MOST_GROWTH * workersMax)
  const value = Math.min(most, Math.max(workersMax + 1, enough))
  return { setting: 'workersMax', value, waited, waitedMs, attempts: attempts.length }
}

function idleTimeoutAdvice(facts: Facts, attempts: readonly AttemptTimes[]): SettingAdvice | null {
  const { endpoint } = facts
  if (!hasIdleTimeout(endpoint) || endpoint.flashboot !== 'OFF' || endpoint.workersMin > 0) return null
  const startMs = presentStartMs(facts)
  const idleMs = idleTimeoutMs(endpoint)
  const value = Math.min(MAX_IDLE_TIMEOUT_S, Math.ceil((startMs ?? 0) / 1000))
  if (value * 1000 <= idleMs) return null
  const finished = instants(attempts, ({ finishedAtMs }) => finishedAtMs)
  let [waited, waitedMs] = [0, 0]
  for (const { queuedAtMs, startedAtMs, cold } of attempts) {
    const waitMs = startedAtMs - queuedAtMs
    if (!cold || waitMs < SHORT_MS) continue
    const lastEndMs = finished[countUntil(finished, queuedAtMs) - 1]
    if (lastEndMs === undefined) continue
    const quietMs = queuedAtMs - lastEndMs
    if (quietMs <= idleMs || quietMs > value * 1000) continue
    waited += 1
    waitedMs += waitMs
  }
  return { setting: 'idleTimeout', value, waited, waitedMs, attempts: attempts.length }
}

function instants(attempts: readonly AttemptTimes[], of: (attempt: AttemptTimes) => number): Float64Array {
  return Float64Array.from(attempts, of).sort()
}

/** Number of sorted times that are not after another one. */
function countUntil(sorted: Float64Array, atMs: number): number {
  return firstIndex(sorted, instant => instant > atMs)
}

/** The state of an endpoint in one word, for lists of many. */
import type { Endpoint } from '../endpoints/endpoint.ts'
import type { RolloutState } from '../scaling/rollout.ts'
import type { WaitCause } from './explanation.ts'
import type { WorkerCounts } from './worker-status.ts'

/**
 * `PROBLEM`: something has to be fixed. `PAUSED`: `workersMax` is 0. `ROLLING_OUT`: workers of two releases run.
 * `READY`: a worker works or waits for work. `STARTING`: a worker starts, and no worker is ready. `WAITING`: jobs,
 * requests or workers wait, and no worker starts. `SCALED_TO_ZERO`: no worker exists and nothing waits.
 */
export const ENDPOINT_STATES = [
  'PROBLEM',
  'PAUSED',
  'ROLLING_OUT',
  'READY',
  'STARTING',
  'WAITING',
  'SCALED_TO_ZERO',
] as const
/** One of {@link ENDPOINT_STATES}. */
export type EndpointState = (typeof ENDPOINT_STATES)[number]

/** Facts that decide the state. */
export interface EndpointFacts {
  readonly endpoint: Pick<Endpoint, 'workersMax'>
  readonly counts: WorkerCounts
  /** Number of jobs or requests that wait. */
  readonly waiting: number
  readonly rollout: RolloutState
  /** Cause of the wait; null if it was not computed. */
  readonly cause: WaitCause | null
}

/** Causes that last until somebody acts. */
const PROBLEMS: ReadonlySet<WaitCause> = new Set([
  ...(['image_error', 'model_error', 'engine_away', 'secret_missing', 'volume_missing', 'settings_invalid'] as const),
  ...(['crash_loop', 'out_of_memory', 'fitness_failed', 'hung_start', 'unhealthy', 'never_healthy'] as const),
  'rollout_stopped',
  'cluster_away',
  'store_damaged',
  'store_full',
])

/** The first state that applies, in the order of {@link ENDPOINT_STATES}. */
export function endpointState({ endpoint, counts, waiting, rollout, cause }: EndpointFacts): EndpointState {
  const { ready, unhealthy, initializing, throttled } = counts
  const isIll = unhealthy > 0 && ready === 0
  if (isIll || (cause !== null && PROBLEMS.has(cause)) || rollout === 'STOPPED') return 'PROBLEM'
  if (endpoint.workersMax === 0) return 'PAUSED'
  if (rollout === 'IN_PROGRESS' || rollout === 'CANARY') return 'ROLLING_OUT'
  if (ready > 0 || counts.idle > 0) return 'READY'
  if (initializing > 0) return 'STARTING'
  return waiting > 0 || throttled > 0 ? 'WAITING' : 'SCALED_TO_ZERO'
}

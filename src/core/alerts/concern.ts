/** Endpoints that somebody should look at, as the page Home of the console lists them under "Needs attention". */
import type { EndpointId } from '../ids.ts'
import type { WaitCause } from '../observing/explanation.ts'
import type { RequestRate } from '../observing/recent-results.ts'

/** Urgency of a cause: to fix, a wait that somebody may shorten, or nothing to do. */
export type Urgency = 'fix' | 'wait' | 'none'

/** The urgency of each cause. A wait that somebody chose, such as a pause, is none. */
export const URGENCY: Readonly<Record<WaitCause, Urgency>> = {
  nothing_waits: 'none',
  finished: 'none',
  running: 'none',
  store_damaged: 'fix',
  store_full: 'fix',
  about_to_start: 'none',
  paused: 'none',
  image_error: 'fix',
  model_error: 'fix',
  engine_away: 'fix',
  secret_missing: 'fix',
  volume_missing: 'fix',
  settings_invalid: 'fix',
  crash_loop: 'fix',
  out_of_memory: 'fix',
  fitness_failed: 'fix',
  hung_start: 'fix',
  unhealthy: 'fix',
  never_healthy: 'fix',
  models_downloading: 'none',
  worker_starting: 'none',
  worker_restarting: 'none',
  max_reached: 'wait',
  no_capacity: 'wait',
  throttled: 'wait',
  unschedulable: 'wait',
  cluster_quota: 'wait',
  cluster_away: 'fix',
  volume_pending: 'wait',
  node_lost: 'wait',
  low_priority: 'none',
  batch_turn: 'none',
  preempted: 'none',
  runs_alone: 'none',
  rollout_stopped: 'fix',
}

/** Something about an endpoint that somebody should look at. */
export interface Concern {
  readonly endpointId: EndpointId
  /** The endpoint's name. */
  readonly name: string
  /** The cause of a wait or a problem, or `failing` for an endpoint whose requests fail. */
  readonly cause: WaitCause | 'failing'
  readonly urgency: Exclude<Urgency, 'none'>
  /** A clause. */
  readonly text: string
}

/** Facts of an endpoint that decide if it is a concern. */
export interface ConcernFacts {
  readonly id: EndpointId
  readonly name: string
  /** Reason why something waits or is wrong; null without one. */
  readonly why: { readonly cause: WaitCause; readonly summary: string } | null
  readonly isRolloutStopped: boolean
  readonly rate: RequestRate
}

/** Share of errors from which an endpoint is a concern, and failures below which a share says little. */
export const FAILING = { share: 0.1, failures: 5 } as const

/** The share of errors that is a concern: that of the last hour, or of the last ten minutes; null below that. */
export function failingShare({ errorShare, recentErrorShare, points }: RequestRate): number | null {
  const requests = points.reduce((sum, point) => sum + point, 0)
  if (errorShare === null || errorShare * requests < FAILING.failures) return null
  const share = Math.max(errorShare, recentErrorShare ?? 0)
  // Errors of the hour that are over concern nobody.
  const isOver = recentErrorShare !== null && recentErrorShare < FAILING.share / 2
  return share >= FAILING.share && !isOver ? share : null
}

/** The concern about an endpoint, the most urgent one; null without any. */
export function findConcern({ id, name, why, isRolloutStopped, rate }: ConcernFacts): Concern | null {
  const about = { endpointId: id, name }
  const urgency = why === null ? 'none' : URGENCY[why.cause]
  if (why !== null && urgency === 'fix') return { ...about, cause: why.cause, urgency, text: why.summary }
  const share = failingShare(rate)
  if (share !== null) {
    const text = `${Math.round(share * 100)} % of its requests fail`
    return { ...about, cause: 'failing', urgency: 'fix', text }
  }
  if (isRolloutStopped) {
    return { ...about, cause: 'rollout_stopped', urgency: 'fix', text: why?.summary ?? 'its rollout has stopped' }
  }
  return why === null || urgency === 'none' ? null : { ...about, cause: why.cause, urgency, text: why.summary }
}

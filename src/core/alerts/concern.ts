/** Endpoints that somebody should look at, as the page Home of the console lists them under "Needs attention". */
import type { EndpointId } from '../ids.ts'
import type { WaitCause } from '../observing/explanation.ts'
import type { RequestRate } from '../observing/recent-results.ts'

/** Urgency of a cause: to fix, a wait that somebody may shorten, one that somebody chose, or nothing to do. */
export type Urgency = 'fix' | 'wait' | 'chosen' | 'none'

/** The urgency of each cause. */
export const URGENCY: Readonly<Record<WaitCause, Urgency>> = {
  nothing_waits: 'none',
  finished: 'none',
  running: 'none',
  store_damaged: 'fix',
  store_full: 'fix',
  about_to_start: 'none',
  paused: 'chosen',
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
  low_priority: 'chosen',
  batch_turn: 'none',
  preempted: 'chosen',
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
  readonly urgency: 'fix' | 'wait'
  /** A clause. */
  readonly text: string
}

/** Kinds of attention, the most urgent first: those of {@link Urgency}, and `failing` where requests fail. */
export const ATTENTION_KINDS = ['fix', 'failing', 'wait', 'chosen'] as const
/** One of {@link ATTENTION_KINDS}. */
export type AttentionKind = (typeof ATTENTION_KINDS)[number]

/** Facts of an endpoint that decide if somebody should look at it. */
export interface AttentionFacts {
  /** Reason why something waits or is wrong; null without one. */
  readonly why: { readonly cause: WaitCause; readonly summary: string } | null
  readonly isRolloutStopped: boolean
  readonly rate: RequestRate
}

/** An endpoint with its {@link AttentionFacts}. */
export interface ConcernFacts extends AttentionFacts {
  readonly id: EndpointId
  readonly name: string
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

/** The most urgent kind of attention that an endpoint needs; null for none. */
export function findAttention({ why, isRolloutStopped, rate }: AttentionFacts): AttentionKind | null {
  const urgency = why === null ? 'none' : URGENCY[why.cause]
  if (urgency === 'fix') return 'fix'
  if (failingShare(rate) !== null) return 'failing'
  if (isRolloutStopped) return 'fix'
  return urgency === 'none' ? null : urgency
}

/** The concern about an endpoint, the most urgent one; null without any, and for a wait that somebody chose. */
export function findConcern({ id, name, ...facts }: ConcernFacts): Concern | null {
  const { why, rate } = facts
  const about = { endpointId: id, name }
  const kind = findAttention(facts)
  if (kind === null || kind === 'chosen') return null
  if (kind === 'failing') {
    const text = `${Math.round(failingShare(rate)! * 100)} % of its requests fail`
    return { ...about, cause: 'failing', urgency: 'fix', text }
  }
  if (why !== null && URGENCY[why.cause] === kind) {
    return { ...about, cause: why.cause, urgency: kind, text: why.summary }
  }
  return { ...about, cause: 'rollout_stopped', urgency: 'fix', text: why?.summary ?? 'its rollout has stopped' }
}

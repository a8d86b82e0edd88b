/** Alerts: one message when an endpoint becomes a concern for a while, and one when that is over. */
import type { EndpointId, OwnerId } from '../ids.ts'
import type { Concern } from './concern.ts'

/** A concern that was seen, and the alert that it may have become. */
export interface Alert {
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  /** The endpoint's name. */
  readonly name: string
  readonly cause: Concern['cause']
  /** A clause. */
  readonly text: string
  /** Time at which the concern was first and last seen, in epoch milliseconds. */
  readonly firstSeenAtMs: number
  readonly lastSeenAtMs: number
  /** Time of its first message; null before that. */
  readonly raisedAtMs: number | null
}

/** Times of alerts, in milliseconds. */
export const ALERT_TIMES = {
  /** Time between two looks at the endpoints of an account. */
  lookMs: 30_000,
  /** Time for which a concern lasts before its alert: crashes are tried again, and queues become empty. */
  holdMs: { fix: 60_000, wait: 600_000 },
  /** Time without the concern after which its alert is over. */
  overMs: 120_000,
} as const

/** The next alerts of an account. */
export interface NextAlerts {
  /** All concerns that are seen or not over yet. */
  readonly alerts: readonly Alert[]
  /** Those that are raised now. */
  readonly raised: readonly Alert[]
  /** Those that were raised and are over now. */
  readonly over: readonly Alert[]
}

/**
 * The alerts of an account after a look at its endpoints. A concern whose cause changes keeps its alert: it is one
 * trouble for whoever reads it.
 * @param concerns at most one of each endpoint
 */
export function nextAlerts(
  owner: OwnerId,
  previous: readonly Alert[],
  concerns: readonly Concern[],
  nowMs: number,
): NextAlerts {
  const before = new Map(previous.map(alert => [alert.endpointId, alert]))
  const alerts: Alert[] = []
  const raised: Alert[] = []
  for (const { endpointId, name, cause, text, urgency } of concerns) {
    const known = before.get(endpointId)
    before.delete(endpointId)
    const firstSeenAtMs = known?.firstSeenAtMs ?? nowMs
    const isRaised = known?.raisedAtMs == null && nowMs - firstSeenAtMs >= ALERT_TIMES.holdMs[urgency]
    const raisedAtMs = isRaised ? nowMs : (known?.raisedAtMs ?? null)
    const alert = { owner, endpointId, name, cause, text, firstSeenAtMs, lastSeenAtMs: nowMs, raisedAtMs }
    alerts.push(alert)
    if (isRaised) raised.push(alert)
  }
  const over: Alert[] = []
  for (const alert of before.values()) {
    if (alert.raisedAtMs === null) continue
    if (nowMs - alert.lastSeenAtMs >= ALERT_TIMES.overMs) over.push(alert)
    else alerts.push(alert)
  }
  return { alerts, raised, over }
}

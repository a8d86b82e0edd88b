/**
 * Outlier ejection: a worker whose last requests failed is taken out of the rotation for a while, and then tried with
 * one request. The time doubles with each ejection, as in Envoy and other proxies.
 *
 * A worker at whose address nobody listens has probably ended, and the server has not noticed yet. It gets no request
 * meanwhile, even if no other worker is there: requests wait for the next one.
 */

/**
 * End of a request as evidence about its worker; `unreachable`: the connection failed, `refused`: it failed since
 * nobody listens there.
 */
export type RequestOutcome = 'answered' | 'broken' | 'unreachable' | 'refused' | 'aborted'

/** Number of requests in a row that fail before a worker is ejected. */
export const FAILURES_UNTIL_EJECTED = 3
const FIRST_EJECTION_MS = 1_000
const MAX_EJECTION_MS = 30_000
/** Number of refusals in a row, each found by a trial, after which it counts as a worker that runs and fails. */
const MAX_REFUSALS = 3

/**
 * State of a worker in the rotation: `in_rotation`; `ejected`: no requests for a while, as long as another worker is
 * there; `refusing`: none at all for a while; `trial_due`: the time is over and it gets one request; `on_trial`: it
 * has that one and gets no other until it ends.
 */
export interface Ejection {
  readonly state: 'in_rotation' | 'ejected' | 'refusing' | 'trial_due' | 'on_trial'
  /** Number of requests that failed since the last one that was answered. */
  readonly failures: number
  /** Number of ejections since then. */
  readonly ejections: number
  /** Number of those in which it was refusing. */
  readonly refusals: number
}

/** The state of a new worker. */
export const NOT_EJECTED: Ejection = { state: 'in_rotation', failures: 0, ejections: 0, refusals: 0 }

/** True if a worker may get a request although others can serve it. */
export function isInRotation({ state }: Ejection): boolean {
  return state === 'in_rotation' || state === 'trial_due'
}

/** The state after a request. A request that its client aborted is no evidence. */
export function ejectionAfter(ejection: Ejection, outcome: RequestOutcome): Ejection {
  if (outcome === 'answered') return NOT_EJECTED
  const { state, failures, ejections, refusals } = ejection
  if (outcome === 'refused' && state !== 'refusing' && state !== 'trial_due' && refusals < MAX_REFUSALS)
    return { state: 'refusing', failures: failures + 1, ejections: ejections + 1, refusals: refusals + 1 }
  if (outcome === 'aborted') return state === 'on_trial' ? { ...ejection, state: 'trial_due' } : ejection
  if (state === 'on_trial') return { state: 'ejected', failures: failures + 1, ejections: ejections + 1, refusals }
  // It was ejected already and used for lack of another, or an earlier request failed as well.
  if (state !== 'in_rotation') return { ...ejection, failures: failures + 1 }
  if (failures + 1 < FAILURES_UNTIL_EJECTED) return { ...ejection, failures: failures + 1 }
  return { state: 'ejected', failures: failures + 1, ejections: 1, refusals }
}

/** The state after a request is sent. */
export function ejectionWhenSent(ejection: Ejection): Ejection {
  return ejection.state === 'trial_due' ? { ...ejection, state: 'on_trial' } : ejection
}

/** The state when an ejection ends, or when a trial such as a socket has gone well for as long. */
export function ejectionWhenDue(ejection: Ejection): Ejection {
  return ejection.state === 'in_rotation' ? ejection : { ...ejection, state: 'trial_due' }
}

/** Duration of an ejection, and the longest one of a trial: 1 s, doubled each time, up to 30 s. */
export function ejectedForMs({ ejections }: Ejection): number {
  return Math.min(MAX_EJECTION_MS, FIRST_EJECTION_MS * 2 ** Math.min(ejections - 1, 10))
}

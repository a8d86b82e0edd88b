import type { Store } from '../../ports/store/store.ts'
import { inheriting } from '../known-rows.ts'

/**
 * A store from which nothing is removed for its age while retention waits; limits of size hold all the same. Jobs, batches and their keys are not asked for here: their expiry
 * was put off in the store (`clock.hold`).
 * @param isHeld whether retention waits now
 */
export function withHeldRemovals(store: Store, isHeld: () => boolean): Store {
  /** Nothing is older than the beginning of time. */
  const before = (ms: number) => (isHeld() ? 0 : ms)
  const { usage, metrics, attemptTimes, audit, webhooks, jobRecords, workers } = store
  return {
    ...store,
    usage: inheriting(usage, { removeOld: (beforeMs, limit) => usage.removeOld(before(beforeMs), limit) }),
    metrics: inheriting(metrics, {
      removeOld: (span, beforeMs, limit) => metrics.removeOld(span, before(beforeMs), limit),
    }),
    attemptTimes: inheriting(attemptTimes, {
      removeOld: (beforeMs, limit) => attemptTimes.removeOld(before(beforeMs), limit),
    }),
    audit: inheriting(audit, { removeOld: (beforeMs, most, limit) => audit.removeOld(before(beforeMs), most, limit) }),
    webhooks: inheriting(webhooks, { removeOver: (beforeMs, limit) => webhooks.removeOver(before(beforeMs), limit) }),
    jobRecords: inheriting(jobRecords, { trim: (rules, nowMs, limit) => jobRecords.trim(rules, before(nowMs), limit) }),
    workers: inheriting(workers, { removeExited: (beforeMs, limit) => workers.removeExited(before(beforeMs), limit) }),
  }
}

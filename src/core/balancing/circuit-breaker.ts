/**
 * Decides when the requests of a load-balancing endpoint are refused instead of waiting, since no worker can start
 * for them.
 */
import { type ExplainContext, explainEndpoint } from '../observing/explain.ts'
import { currentBackoff, type EndpointSnapshot } from '../scaling/scale.ts'
import { isHopeless } from '../workers/placement.ts'
import { type StartFailure, startRemedy } from '../workers/start-failure.ts'
import { isAwayCause } from '../workers/start-remedy.ts'
import { isFrozen, takesJobs } from '../workers/worker.ts'
import { isLastingStartFailure } from '../workers/worker-failure.ts'

/** Reason why no worker can serve the requests of an endpoint. */
export interface OpenCircuit {
  /** The summary of {@link explainEndpoint}. It can name secrets, images and folders of the endpoint's owner. */
  readonly cause: string
  /** Time after which a retry makes sense. */
  readonly retryAfterSeconds: number
}

/** Maximum crash back-off for which requests wait: that of three crashes in a row. */
const SHORT_BACKOFF_MS = 5_000
/** Retry-After for causes that a person has to fix. */
const LASTING_S = 30
const MAX_CAUSE = 500

/**
 * The cause that makes waiting useless; null if a worker may serve the requests now or soon. A cause that lasts until
 * somebody changes something counts at once: a missing secret, a missing image, a GPU that the machine lacks. A crash
 * loop counts while its back-off is long, so that a request outlasts a cold start and a first crash. An unreachable
 * engine or registry does not count: it can return in seconds.
 */
export function findOpenCircuit(
  snapshot: EndpointSnapshot,
  { startFailure, nowMs }: Pick<ExplainContext, 'startFailure' | 'nowMs'>,
): OpenCircuit | null {
  if (snapshot.requests === undefined || snapshot.workers.some(worker => takesJobs(worker) || isFrozen(worker)))
    return null
  const retryAfterMs = hopelessForMs(snapshot, startFailure, nowMs)
  if (retryAfterMs === null) return null
  const { queue } = snapshot
  // Requests with affinity are in no queue, and have the same cause.
  const asked = { ...snapshot, queue: { ...queue, queued: Math.max(1, queue.queued) } }
  const capacity = { freeWorkers: null, bound: '' }
  const { summary } = explainEndpoint(asked, { capacity, startFailure, nowMs })
  return { cause: summary.slice(0, MAX_CAUSE), retryAfterSeconds: Math.ceil(retryAfterMs / 1000) }
}

function hopelessForMs(snapshot: EndpointSnapshot, startFailure: StartFailure | null, nowMs: number): number | null {
  if (startFailure !== null) return isAwayCause(startRemedy(startFailure).cause) ? null : LASTING_S * 1000
  const { last, untilMs } = currentBackoff(snapshot)
  const backoffMs = untilMs - nowMs
  if (last !== null && backoffMs > 0) {
    if (isLastingStartFailure(last)) return Math.max(backoffMs, LASTING_S * 1000)
    return backoffMs > SHORT_BACKOFF_MS ? backoffMs : null
  }
  const [queued] = snapshot.queuedWorkers
  return queued !== undefined && isHopeless(queued) ? LASTING_S * 1000 : null
}

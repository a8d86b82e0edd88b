import type { EndpointId } from '../../core/ids.ts'
import type { EventName, Events } from '../../events.ts'

/** An event in the form for the account that owns its endpoint, or that made the change. */
export interface LiveEvent {
  readonly type: EventName
  readonly atMs: number
  /** Null for an event that concerns no single endpoint. */
  readonly endpointId: EndpointId | null
  /** The other fields, by their public names. */
  readonly fields: Readonly<Record<string, unknown>>
}

type Fields = { readonly endpointId: EndpointId | null } & Readonly<Record<string, unknown>>
type Publishers = { readonly [Name in EventName]?: (fields: Events[Name]) => Fields | null }

/** Job operations that events of the job report. */
const REPORTED_BY_JOBS: ReadonlySet<string> = new Set(['cancel/:job', 'retry/:job'])

/**
 * Public fields of each published event. Events that are missing here belong to the operator, or to single requests
 * of a load-balancing endpoint.
 */
const PUBLISHERS: Publishers = {
  'job.accepted': ({ endpointId, jobId }) => ({ endpointId, jobId, to: 'IN_QUEUE' }),
  'job.moved': ({ endpointId, jobId, from, to, workerId, attempt, reason = null, waitedMs = null }) => {
    return { endpointId, jobId, from, to, workerId, attempt, reason, waitedMs }
  },
  'job.begun': ({ endpointId, jobId, workerId, attempt, waitedMs }) => {
    return { endpointId, jobId, workerId, attempt, waitedMs }
  },
  'job.expired': ({ endpointId, jobId, from }) => ({ endpointId, jobId, from }),
  'job.result_ignored': ({ endpointId, jobId, workerId, reason }) => ({ endpointId, jobId, workerId, reason }),
  'webhook.delivered': ({ endpointId, jobId, tries }) => ({ endpointId, jobId, tries }),
  'webhook.failed': ({ endpointId, jobId, tries, shown }) => ({ endpointId, jobId, tries, problem: shown }),
  'alert.raised': ({ endpointId, cause, text }) => ({ endpointId, cause, text }),
  'alert.over': ({ endpointId, cause }) => ({ endpointId, cause }),
  'worker.created': ({ endpointId, workerId, version }) => ({ endpointId, workerId, version }),
  'worker.moved': ({ endpointId, workerId, from, to, reason, coldStartMs = null }) => {
    return { endpointId, workerId, from, to, reason, coldStartMs }
  },
  'worker.start_failed': ({ endpointId, workerId, problem }) => ({ endpointId, workerId, problem }),
  'worker.problem': ({ endpointId, workerId, problem }) => ({ endpointId, workerId, problem }),
  'worker.avoided': ({ endpointId, workerId, failures, forMs }) => ({ endpointId, workerId, failures, forMs }),
  'worker.trusted': ({ endpointId, workerId }) => ({ endpointId, workerId }),
  'worker.health': ({ endpointId, workerId, healthy, problem }) => ({ endpointId, workerId, healthy, problem }),
  'worker.exited': ({ endpointId, workerId, cause, asked }) => ({ endpointId, workerId, cause, asked }),
  'rollout.stopped': ({ endpointId, version, crashes, working, cause, failures = null }) => {
    return { endpointId, version, crashes, working, cause, failures }
  },
  'worker.clamped': ({ endpointId, problem }) => ({ endpointId, problem }),
  // The endpoint that gets the room may be another account's.
  'worker.evicted': ({ endpointId, workerId, afterJob, notSuspended }) => ({
    endpointId,
    workerId,
    afterJob,
    notSuspended,
  }),
  'worker.share_learned': ({ endpointId, workerId, gpu, shareMb, usedMb }) => {
    return { endpointId, workerId, gpu, shareMb, usedMb }
  },
  'worker.over_share': ({ endpointId, workerId, gpu, shareMb, usedMb }) => {
    return { endpointId, workerId, gpu, shareMb, usedMb }
  },
  'worker.reported': ({ endpointId, workerId, what, text }) => ({ endpointId, workerId, what, text }),
  'worker.unplaced': ({ endpointId, count, resource, reason }) => ({ endpointId, count, resource, reason }),
  'endpoint.saved': ({ endpointId, version, created }) => ({ endpointId, version, created }),
  'endpoint.deleted': ({ endpointId }) => ({ endpointId }),
  'change.made': ({ surface, operation, object }) => {
    return REPORTED_BY_JOBS.has(operation) ? null : { endpointId: null, surface, operation, object }
  },
}

/** An event for the account that it concerns; null for an unpublished event. */
export function makeLiveEvent<Name extends EventName>(name: Name, event: Events[Name], atMs: number): LiveEvent | null {
  const publisher = PUBLISHERS[name]
  if (publisher === undefined) return null
  const published = publisher(event)
  if (published === null) return null
  const { endpointId, ...fields } = published
  return { type: name, atMs, endpointId, fields }
}

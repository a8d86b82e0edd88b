import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { JOB_ID_END, type JobId, timeOrderedUuid } from '../../core/ids.ts'
import type { Job, JobKind } from '../../core/jobs/job.ts'
import { JOB_TIMES, retentionMs } from '../../core/jobs/retention.ts'
import type { Submission } from '../../core/jobs/submission.ts'
import { jobPlace } from '../../core/secrets/seals.ts'
import type { Ports } from '../../ports/ports.ts'

/** Facts of a submission beside its body. */
export interface SubmissionOrigin {
  readonly kind: JobKind
  /** The explicit `wait` of a runsync, which may lengthen its retention. */
  readonly askedWaitMs?: number | undefined
  /** A key that the client chose: the same key within a day stands for the first job. */
  readonly idempotencyKey?: string | undefined
  /** The context of the client's trace, which goes with the job. */
  readonly traceparent?: string | null
  /**
   * True for a caller that passes the job to `Jobs.whenFinal` before its client gets to see anything of it. The
   * job is on stable storage when that returns, not before (docs/adr/0141). False unless given.
   */
  readonly awaitsEnd?: boolean
}

/**
 * The job of a submission, which waits in the queue.
 * @param origin with the time of the submission (Unix time in ms), and the position in the queue
 */
export function newJob(
  { random, vault }: Pick<Ports, 'random' | 'vault'>,
  endpoint: Endpoint,
  submission: Submission,
  origin: SubmissionOrigin & { readonly nowMs: number; readonly position: number },
): Job {
  const { kind, askedWaitMs, traceparent = null, nowMs, position } = origin
  const uuid = timeOrderedUuid(random.uuid(), nowMs)
  const ttlMs = submission.ttlMs ?? JOB_TIMES.ttlMs.default
  const id = (kind === 'run' ? `${uuid}${JOB_ID_END}` : `sync-${uuid}${JOB_ID_END}`) as JobId
  return {
    id,
    owner: endpoint.owner,
    endpointId: endpoint.id,
    kind,
    status: 'IN_QUEUE',
    input: submission.input,
    ...(submission.largeInput !== undefined && { largeInput: submission.largeInput }),
    policy: submission.policy,
    webhook: submission.webhook,
    s3Config: submission.s3Config === null ? null : vault.seal(submission.s3Config, jobPlace(id)),
    executionTimeoutMs: submission.executionTimeoutMs ?? endpoint.executionTimeoutMs,
    lowPriority: submission.lowPriority,
    position,
    ttlMs,
    retentionMs: retentionMs(kind, askedWaitMs),
    queuedAtMs: nowMs,
    startedAtMs: null,
    finishedAtMs: null,
    expiresAtMs: nowMs + ttlMs,
    attempt: 0,
    lostAttempts: 0,
    workerId: null,
    output: null,
    error: null,
    progress: null,
    warning: null,
    batchId: null,
    traceparent,
  }
}

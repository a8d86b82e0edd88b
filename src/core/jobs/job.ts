/**
 * The life of a job, as one table. Its uses: the guards of the store's statements, the diagram in
 * docs/internals/job-lifecycle.md, the exhaustive test of test/core and the legality check of the simulator.
 */
import type { BatchId, EndpointId, JobId, OwnerId, WorkerId } from '../ids.ts'
import type { LargeText, ReceivedOutput, ReceivedText } from './large-text.ts'

/** Every state that a client can see. */
export const JOB_STATUSES = ['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'] as const
/** One of {@link JOB_STATUSES}. */
export type JobStatus = (typeof JOB_STATUSES)[number]

/**
 * Transitions of a job. `finish` from IN_QUEUE is for the last holder only, while no other worker has claimed the
 * job since: its late result counts (docs/adr/0005-late-results.md).
 */
export const TRANSITIONS = {
  claim: { from: ['IN_QUEUE'], to: ['IN_PROGRESS'] },
  finish: { from: ['IN_PROGRESS', 'IN_QUEUE'], to: ['COMPLETED', 'FAILED'] },
  cancel: { from: ['IN_QUEUE', 'IN_PROGRESS'], to: ['CANCELLED'] },
  timeOut: { from: ['IN_PROGRESS'], to: ['TIMED_OUT'] },
  requeue: { from: ['IN_PROGRESS'], to: ['IN_QUEUE', 'FAILED'] },
  release: { from: ['IN_PROGRESS'], to: ['IN_QUEUE'] },
  retry: { from: ['FAILED', 'TIMED_OUT'], to: ['IN_QUEUE'] },
  purge: { from: ['IN_QUEUE'], to: ['CANCELLED'] },
} as const satisfies Record<string, { from: readonly JobStatus[]; to: readonly JobStatus[] }>

/**
 * A name of {@link TRANSITIONS}. `release` returns a job to the queue without counting an attempt: no handler has
 * seen it.
 */
export type Transition = keyof typeof TRANSITIONS

const FINAL: ReadonlySet<JobStatus> = new Set(['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])

/** True if a job in this state has its outcome: no transition but a retry follows. */
export function isFinal(status: JobStatus): boolean {
  return FINAL.has(status)
}

/** True if the table allows `transition` from one state to the other. */
export function isLegal(transition: Transition, from: JobStatus, to: JobStatus): boolean {
  const rule: { from: readonly JobStatus[]; to: readonly JobStatus[] } = TRANSITIONS[transition]
  return rule.from.includes(from) && rule.to.includes(to)
}

/** The error of a job past its ttl. */
export const EXPIRED_ERROR = 'the job was not done within its ttl'

/** The status of a job past its ttl for clients that still wait for it. */
export function expiredJob(job: Job, nowMs: number): Job {
  return {
    ...job,
    status: 'TIMED_OUT',
    finishedAtMs: nowMs,
    progress: null,
    error: job.error ?? EXPIRED_ERROR,
  }
}

/** Operation that submitted a job; it decides the retention of the result. */
export type JobKind = 'run' | 'runsync'

/** The policy of one job. Times in milliseconds. */
export interface JobPolicy {
  /** Maximum duration of one attempt. */
  readonly executionTimeoutMs: number
  /** Lifetime of the job from its submission, in any state. */
  readonly ttlMs: number
  /** True if it runs after all other jobs and never starts a worker. */
  readonly lowPriority: boolean
}

/** A stored job. Instants are epoch milliseconds; `input`, `output` and `progress` are JSON texts. */
export interface Job {
  readonly id: JobId
  readonly owner: OwnerId
  readonly endpointId: EndpointId
  readonly kind: JobKind
  readonly status: JobStatus
  /** Empty in jobs from the store: only the worker that claims the job needs it, and it may be large. */
  readonly input: string
  /** In a job that is submitted, the input where it is too large for {@link input}, which is empty then. */
  readonly largeInput?: ReceivedText
  /** The client's own `policy` member, unchanged; workers may read it. Null without one. */
  readonly policy: string | null
  readonly webhook: string | null
  /** The client's `s3Config`, sealed by the vault. */
  readonly s3Config: string | null
  readonly executionTimeoutMs: number
  readonly lowPriority: boolean
  /** Position in the queue; smaller is earlier. A requeued job keeps its position, which is then the head. */
  readonly position: number
  /** Lifetime of the job from its submission or its last retry. */
  readonly ttlMs: number
  /** Retention of a final result. */
  readonly retentionMs: number
  readonly queuedAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  /** Instant after which the job does not exist. */
  readonly expiresAtMs: number
  /** Number of the current or last counted attempt, from 1; 0 before the first. */
  readonly attempt: number
  /** Attempts that ended because their worker was lost. */
  readonly lostAttempts: number
  /** The holder while IN_PROGRESS, and the last holder afterwards. */
  readonly workerId: WorkerId | null
  readonly output: string | null
  /** The output where it is too large for {@link output}, which is null then. */
  readonly largeOutput?: LargeText
  readonly error: string | null
  /** Latest progress update of the running attempt. */
  readonly progress: string | null
  /** A warning about the result for the client, such as values that JSON cannot hold. */
  readonly warning: string | null
  /** Its batch; null for a job that was submitted alone. */
  readonly batchId: BatchId | null
  /** The trace context that the client sent; see trace-context.ts. */
  readonly traceparent: string | null
}

/** Number of lost attempts after which a job is FAILED and not queued again. */
export const MAX_LOST_ATTEMPTS = 3

/**
 * Number of lost attempts after which a job is a suspect: it may have ended its workers. It goes only to a worker
 * without jobs, and that worker gets no other until it is done, so that no other job is lost with it.
 */
export const SUSPECT_LOST_ATTEMPTS = 2

/** True if a job must run alone. */
export function isSuspect({ lostAttempts }: Pick<Job, 'lostAttempts'>): boolean {
  return lostAttempts >= SUSPECT_LOST_ATTEMPTS
}

/** The outcome of one attempt. Texts are JSON except `error`, which is a sentence or the worker's own error string. */
export interface JobOutcome {
  readonly status: 'COMPLETED' | 'FAILED'
  readonly output: string | null
  /** The output where it is too large for {@link output}, which is null then. */
  readonly largeOutput?: ReceivedOutput
  readonly error: string | null
  readonly warning: string | null
}

/** A job for the worker that claimed it. */
export interface ClaimedJob {
  readonly id: JobId
  readonly attempt: number
  readonly input: string
  /** The input where it is too large for {@link input}, which is empty then. */
  readonly largeInput: LargeText | null
  /** Reason why no worker can get this input, as the error of the job; null for the stored input. */
  readonly inputProblem: string | null
  readonly policy: string | null
  readonly webhook: string | null
  readonly s3Config: string | null
  /** Wait in the queue for this attempt, in milliseconds. */
  readonly waitedMs: number
  readonly batchId: BatchId | null
  readonly traceparent: string | null
  readonly queuedAtMs: number
  readonly position: number
}

/** The error of a job that lost its last attempt. */
export function lostReason(lostAttempts: number, cause: string): string {
  return `the worker was lost ${lostAttempts} times while it ran this job, the last time because ${cause}`
}

const MAX_LOSS_LINES = 10
const MAX_LOSS_LINE = 300
/** Form of tokens of workers and keys of the server, which a worker may print with its environment. */
const TOKENS = /\brp[aw]_[\w-]{8,}/g

/** The separator between the cause of a lost worker and the end of its output. */
export const LAST_LINES_WERE = ', and its last lines were:\n'

/**
 * Reason for the loss of a worker, for the client of a job that is not retried: at most a few thousand characters.
 * @param cause a clause without a full stop
 * @param lastLines the end of the worker's output; empty if it has no relation to its exit
 */
export function lossWords(cause: string, workerId: WorkerId, lastLines: readonly string[]): string {
  const lines = lastLines.slice(-MAX_LOSS_LINES).map(line => {
    const shown = line.replace(TOKENS, '<hidden>')
    return shown.length > MAX_LOSS_LINE ? `${shown.slice(0, MAX_LOSS_LINE)}...` : shown
  })
  const printed = lines.length === 0 ? '' : `${LAST_LINES_WERE}${lines.join('\n')}`
  return `${cause}; this was worker ${workerId}${printed}`
}
